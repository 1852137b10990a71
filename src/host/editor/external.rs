//! The line in the user's own editor, `$VISUAL` or `$EDITOR`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::host::surroundings::Surroundings;

/// What runs where no variable names an editor.
const FALLBACK: &str = "vi";

/// Opens `line` in the editor and gives back what was saved; a sentence for the user where that does not work.
pub(super) fn edit(line: &str, surroundings: &Surroundings) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| surroundings.text(name));
    let named = named.unwrap_or_else(|| FALLBACK.to_owned());
    let mut words = named.split_whitespace();
    let program = words.next().unwrap_or(FALLBACK);
    let path = surroundings
        .text("XDG_RUNTIME_DIR")
        .map_or_else(std::env::temp_dir, Into::into)
        .join(format!("agent-smith-line-{}.md", std::process::id()));
    let outcome = write_new(&path, line).map_err(|error| format!("{} cannot be written: {error}", path.display()));
    let outcome = outcome.and_then(|()| {
        let mut command = Command::new(program);
        command
            .args(words)
            .arg(&path)
            .current_dir(surroundings.cwd())
            .env_clear()
            .envs(surroundings.env());
        let status = command
            .status()
            .map_err(|error| format!("the editor `{named}` cannot be run: {error}"))?;
        if !status.success() {
            return Err(format!(
                "the editor `{named}` ended with {status}; the line stays as it was"
            ));
        }
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("what was edited cannot be read: {error}"))?;
        Ok(text.trim_end().to_owned())
    });
    // The line may be private, and the file was ours alone.
    let _ = std::fs::remove_file(&path);
    outcome
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // A file left by a process of the same number goes; a link somebody put there is not followed.
    let _ = std::fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn with_editor(editor: &str) -> (tempfile::TempDir, Surroundings) {
        let home = tempfile::tempdir().unwrap();
        let vars = [
            ("EDITOR", editor),
            ("XDG_RUNTIME_DIR", home.path().to_str().unwrap()),
            ("PATH", "/usr/bin:/bin"),
        ];
        let vars = vars.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let surroundings = Surroundings::new(home.path().to_owned(), vars);
        (home, surroundings)
    }

    #[test]
    fn what_the_editor_saves_is_the_line_and_the_file_goes() {
        let (home, surroundings) = with_editor("sed -i s/world/there/");
        assert_eq!(edit("hello world\nagain", &surroundings).unwrap(), "hello there\nagain");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_editor_that_fails_or_is_not_there_is_told() {
        let (_home, surroundings) = with_editor("false");
        assert!(edit("x", &surroundings).unwrap_err().contains("the line stays"));
        let (_home, surroundings) = with_editor("no-such-editor --wait");
        assert!(edit("x", &surroundings).unwrap_err().contains("cannot be run"));
    }
}
