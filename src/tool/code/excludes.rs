//! The file of names that git ignores everywhere, found in the turn's variables and not in the process's own, which the
//! host may change at any moment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::process::Environment;

/// The user's own ignore file: what `core.excludesFile` names, else where git looks without it.
pub(super) fn global_excludes(env: &Environment) -> Option<PathBuf> {
    let directory = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(Path::new);
    let home = directory("HOME");
    let config = directory("XDG_CONFIG_HOME")
        .map(Path::to_owned)
        .or_else(|| home.map(|home| home.join(".config")));
    let own = match directory("GIT_CONFIG_GLOBAL") {
        Some(path) => vec![path.to_owned()],
        None => [
            home.map(|home| home.join(".gitconfig")),
            config.as_ref().map(|config| config.join("git/config")),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    let system = directory("GIT_CONFIG_SYSTEM").unwrap_or(Path::new("/etc/gitconfig"));
    own.iter()
        .map(PathBuf::as_path)
        .chain([system])
        .find_map(|path| named_in(&std::fs::read(path).ok()?, home))
        .or_else(|| config.map(|config| config.join("git/ignore")))
        .filter(|path| path.is_file())
}

/// The value of `excludesFile` in a configuration of git's. The key stands in no other section than `core`.
fn named_in(config: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(config);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim()
            .eq_ignore_ascii_case("excludesfile")
            .then(|| value.trim().trim_matches('"'))
    })?;
    match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(PathBuf::from(OsStr::new(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_where_git_looks() {
        let home = tempfile::tempdir().unwrap();
        let env: Environment = [
            ("HOME", home.path()),
            // Whatever this machine has is left out.
            ("GIT_CONFIG_SYSTEM", Path::new("/nonexistent")),
        ]
        .into_iter()
        .collect();
        assert_eq!(global_excludes(&env), None);
        let default = home.path().join(".config/git/ignore");
        std::fs::create_dir_all(default.parent().unwrap()).unwrap();
        std::fs::write(&default, "*.tmp\n").unwrap();
        assert_eq!(global_excludes(&env), Some(default));
        std::fs::write(home.path().join(".gitconfig"), "[core]\n\texcludesFile = \"~/mine\"\n").unwrap();
        std::fs::write(home.path().join("mine"), "").unwrap();
        assert_eq!(global_excludes(&env), Some(home.path().join("mine")));
        let env = env.with_changes([("GIT_CONFIG_GLOBAL", Some("/dev/null"))]);
        assert_eq!(global_excludes(&env), Some(home.path().join(".config/git/ignore")));
    }
}
