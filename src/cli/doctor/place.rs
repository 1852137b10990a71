//! Where it runs: the host it lives in, and the terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Check;
use crate::config::Paths;
use crate::ui::term;

/// The shell that may have the mode.
const LILUSH: &str = "lilush";
/// The mode's name there.
const MODE: &str = "agent_smith";

/// Which shells there are: our own, always, and Lilush, where it is installed.
pub(super) fn host(paths: &Paths) -> Check {
    let own = format!(
        "agent-smith {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let Some(lilush) = on_path(LILUSH) else {
        return Check::ok("host", format!("{own}, with its own shell; no Lilush is on the PATH"));
    };
    let lilush = lilush.display();
    match registered(&paths.config_dir) {
        Ok(Some(place)) => Check::ok(
            "host",
            format!("{own}; Lilush is at {lilush} and has the mode ({place})"),
        ),
        Ok(None) => Check::warn(
            "host",
            format!("{own}; Lilush is at {lilush} and does not have the mode"),
        )
        .next(format!(
            "lilpack install {MODE}, then name the mode in {}: {{\"F4\": \"{MODE}\"}}",
            paths.config_dir.join("modes.json").display()
        )),
        Err(why) => Check::warn("host", format!("{own}; Lilush is at {lilush}; {why}"))
            .next("mend the file: Lilush does not start with it"),
    }
}

/// Where Lilush is told of the mode: a file of its own in the older generation, a key in one file in the newer.
fn registered(config_dir: &Path) -> Result<Option<String>, String> {
    let mut found = None;
    for (file, holds) in [
        (config_dir.join("modes").join(format!("{MODE}.json")), None),
        (config_dir.join("modes.json"), Some(MODE)),
    ] {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| format!("{} is no JSON: {error}", file.display()))?;
        let there = match holds {
            None => value.is_object(),
            Some(mode) => value
                .as_object()
                .is_some_and(|keys| keys.values().any(|value| value == mode)),
        };
        if there {
            found.get_or_insert(file.display().to_string());
        }
    }
    Ok(found)
}

/// Where a program is on the `PATH`.
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// What the terminal says it can do.
pub(super) fn terminal() -> Check {
    let is_tty = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_tty {
        return Check::ok(
            "terminal",
            "none here: lines are read as they come, answers are plain text",
        );
    }
    let var = |name: &str| std::env::var(name).ok();
    let info = term::describe(&var, true, size());
    let name = var("TERM").filter(|name| !name.is_empty());
    let colors = match info.colors {
        0 => "no colours".to_owned(),
        count if count >= 1 << 24 => "all colours".to_owned(),
        count => format!("{count} colours"),
    };
    let text = format!(
        "{}, {} columns and {} rows, {colors}, {}",
        name.as_deref().unwrap_or("of an unknown kind"),
        info.cols,
        info.rows,
        if info.unicode { "Unicode" } else { "ASCII" },
    );
    match name.as_deref() {
        None | Some("dumb") => Check::warn("terminal", format!("{text}; lines cannot be edited here"))
            .next("export TERM to what the terminal is, such as xterm-256color"),
        _ if !info.unicode => Check::warn("terminal", format!("{text}; symbols are replaced"))
            .next("export LANG=C.UTF-8, or another locale in UTF-8"),
        _ => Check::ok("terminal", text),
    }
}

fn size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_found_in_both_generations_of_the_shell() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        assert_eq!(registered(dir), Ok(None));
        std::fs::write(dir.join("modes.json"), r#"{"F4": "another"}"#).unwrap();
        assert_eq!(registered(dir), Ok(None));
        std::fs::write(dir.join("modes.json"), r#"{"F5": "agent_smith"}"#).unwrap();
        assert!(registered(dir).unwrap().unwrap().ends_with("modes.json"));
        std::fs::create_dir(dir.join("modes")).unwrap();
        std::fs::write(dir.join("modes/agent_smith.json"), r#"{"path": "agent_smith"}"#).unwrap();
        assert!(registered(dir).unwrap().unwrap().ends_with("modes/agent_smith.json"));
        std::fs::write(dir.join("modes.json"), "{").unwrap();
        assert!(registered(dir).unwrap_err().contains("modes.json is no JSON"));
    }
}
