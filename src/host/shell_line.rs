//! The plain shell-line mode: a line goes to the user's shell; `cd`, `export`, `unset` and `exit` are done here, because
//! they change what the next line finds.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::host::signals;
use crate::host::surroundings::Surroundings;

/// What a shell is where `$SHELL` names none.
const FALLBACK_SHELL: &str = "/bin/sh";

/// What came of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It ended with this status.
    Status(i32),
    /// It could not be done; a sentence for the user.
    Problem(String),
    /// The user wants to leave.
    Leave,
}

/// The prompt of this mode.
pub(super) fn prompt(surroundings: &Surroundings, last_status: i32, colors: bool) -> String {
    let status = if last_status == 0 {
        String::new()
    } else {
        format!("[{last_status}] ")
    };
    let cwd = surroundings.short_cwd();
    if colors {
        format!("\x1b[34m{cwd}\x1b[0m {status}$ ")
    } else {
        format!("{cwd} {status}$ ")
    }
}

/// Works on a line.
pub(super) fn run(line: &str, surroundings: &Surroundings) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    let done_here = !line.contains(['\n', ';', '|', '&', '$', '`', '(', '>', '<']);
    match words.as_slice() {
        [] => Outcome::Status(0),
        ["exit"] => Outcome::Leave,
        ["cd"] if done_here => change_directory(None, surroundings),
        ["cd", ..] if done_here => change_directory(Some(unquoted(line.trim_start()[2..].trim())), surroundings),
        ["export", assignment] if done_here && assignment.contains('=') => {
            let (name, value) = line.trim_start()["export".len()..]
                .trim()
                .split_once('=')
                .unwrap_or_default();
            surroundings.set_var(name, Some(unquoted(value.trim())));
            Outcome::Status(0)
        }
        ["unset", names @ ..] if done_here && !names.is_empty() => {
            names.iter().for_each(|name| surroundings.set_var(name, None));
            Outcome::Status(0)
        }
        _ => in_shell(line, surroundings),
    }
}

/// A word without the quotes around it.
fn unquoted(word: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    word
}

fn change_directory(wanted: Option<&str>, surroundings: &Surroundings) -> Outcome {
    let home = surroundings.home();
    let target = match wanted {
        None | Some("~") => home,
        Some("-") => surroundings.previous(),
        Some(path) => match (path.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => Some(home.join(below)),
            _ => Some(surroundings.cwd().join(path)),
        },
    };
    let Some(target) = target else {
        return Outcome::Problem("cd: there is no such place to go to".to_owned());
    };
    match target
        .canonicalize()
        .and_then(|path| is_directory(&path).map(|()| path))
    {
        Ok(path) => {
            surroundings.set_cwd(path);
            Outcome::Status(0)
        }
        Err(error) => Outcome::Problem(format!("cd: {}: {error}", target.display())),
    }
}

fn is_directory(path: &PathBuf) -> io::Result<()> {
    std::fs::read_dir(path).map(|_| ())
}

fn in_shell(line: &str, surroundings: &Surroundings) -> Outcome {
    let shell = surroundings.text("SHELL").unwrap_or_else(|| FALLBACK_SHELL.to_owned());
    let mut command = Command::new(&shell);
    command
        .arg("-c")
        .arg(line)
        .current_dir(surroundings.cwd())
        .env_clear()
        .envs(surroundings.env());
    let stdin = io::stdin();
    let modes = tcgetattr(&stdin).ok();
    let status = command.status();
    // A program that died may have left the terminal as it had it.
    if let Some(modes) = modes {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
    }
    // Ctrl-C was meant for the program.
    signals::forget_interrupt();
    match status {
        Ok(status) => Outcome::Status(
            status
                .code()
                .or_else(|| status.signal().map(|signal| 128 + signal))
                .unwrap_or(1),
        ),
        Err(error) => Outcome::Problem(format!("the shell {shell} cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn place() -> (tempfile::TempDir, Surroundings) {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("a b")).unwrap();
        let path = home.path().canonicalize().unwrap();
        let vars = [
            ("HOME", path.to_str().unwrap()),
            ("PATH", "/usr/bin:/bin"),
            ("SHELL", "/bin/sh"),
        ];
        let vars = vars.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        (home, Surroundings::new(path, vars))
    }

    #[test]
    fn cd_and_export_change_what_the_next_line_finds() {
        let (_home, place) = place();
        let home = place.cwd();
        assert_eq!(run("cd 'a b'", &place), Outcome::Status(0));
        assert_eq!(place.cwd(), home.join("a b"));
        assert_eq!(place.short_cwd(), "~/a b");
        assert_eq!(
            run(
                "test \"$PWD\" = \"$HOME/a b\" && test \"$(pwd)\" = \"$HOME/a b\"",
                &place
            ),
            Outcome::Status(0)
        );
        assert_eq!(run("cd -", &place), Outcome::Status(0));
        assert_eq!(
            run("cd ~/a", &place),
            Outcome::Problem(format!(
                "cd: {}: No such file or directory (os error 2)",
                home.join("a").display()
            ))
        );
        assert_eq!(run("export WHO='you'", &place), Outcome::Status(0));
        assert_eq!(run("test \"$WHO\" = you", &place), Outcome::Status(0));
        assert_eq!(run("unset WHO", &place), Outcome::Status(0));
        assert_eq!(run("test -z \"$WHO\"", &place), Outcome::Status(0));
        assert_eq!(run("cd; cd", &place), Outcome::Status(0));
        assert_eq!(place.cwd(), home);
    }

    #[test]
    fn a_line_has_the_status_of_its_command() {
        let (_home, place) = place();
        assert_eq!(run("exit 7 | false; exit 3", &place), Outcome::Status(3));
        assert_eq!(run("kill -9 $$", &place), Outcome::Status(137));
        assert_eq!(run("  ", &place), Outcome::Status(0));
        assert_eq!(run("exit", &place), Outcome::Leave);
        place.set_var("SHELL", Some("/no/such/shell"));
        assert!(matches!(run("true", &place), Outcome::Problem(_)));
    }
}
