//! Where the user's files are, given the environment of a session.
//!
//! Nothing here reads the process's own environment: a host may change it at any time, so a session passes the
//! snapshot it took.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// The directory shared with the shell, below the configuration and the data directories.
const SHELL_DIR: &str = "lilush";

/// The folder of a repository that holds what belongs to us in it.
const PROJECT_DIR: &str = ".agent_smith";

/// The user's directories and files. None of them needs to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The home directory.
    pub home: PathBuf,
    /// `~/.config/lilush`.
    pub config_dir: PathBuf,
    /// `~/.local/share/lilush`.
    pub data_dir: PathBuf,
    /// `~/.cache/lilush`: what may be deleted at any time.
    pub cache_dir: PathBuf,
}

impl Paths {
    /// The paths under an environment. `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and `XDG_CACHE_HOME` count where they are
    /// absolute, as the XDG Base Directory Specification has it.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`] when `HOME` is absent or relative.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").ok_or(ConfigError::NoHome)?;
        let base = |name: &str, below: &str| absolute(name).unwrap_or_else(|| home.join(below)).join(SHELL_DIR);
        Ok(Self {
            config_dir: base("XDG_CONFIG_HOME", ".config"),
            data_dir: base("XDG_DATA_HOME", ".local/share"),
            cache_dir: base("XDG_CACHE_HOME", ".cache"),
            home,
        })
    }

    /// The user's configuration.
    #[must_use]
    pub fn user_file(&self) -> PathBuf {
        self.config_dir.join("agent_smith.json")
    }

    /// The store.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.data_dir.join("agent_smith.redb")
    }

    /// Everything else of ours on disk: spools, full outputs of tools, previous contents of files.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.data_dir.join("agent_smith")
    }

    /// The catalogue of models as last fetched, and the like.
    #[must_use]
    pub fn agent_cache_dir(&self) -> PathBuf {
        self.cache_dir.join("agent_smith")
    }

    /// The user's own commands, a Markdown file each.
    #[must_use]
    pub fn user_commands(&self) -> PathBuf {
        self.config_dir.join("agent_smith").join("commands")
    }

    /// A repository's commands, a Markdown file each.
    #[must_use]
    pub fn project_commands(git_root: &Path) -> PathBuf {
        git_root.join(PROJECT_DIR).join("commands")
    }

    /// `path` with the home directory written as `~`, for the screen.
    #[must_use]
    pub fn shorten(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// `path` with a leading `~/` replaced by the home directory.
    #[must_use]
    pub fn expand(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None if path == "~" => self.home.clone(),
            None => PathBuf::from(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)]) -> Result<Paths, ConfigError> {
        Paths::new(|name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_files_are_where_the_document_says() {
        let paths = paths(&[("HOME", "/h")]).unwrap();
        assert_eq!(paths.user_file(), Path::new("/h/.config/lilush/agent_smith.json"));
        assert_eq!(paths.database(), Path::new("/h/.local/share/lilush/agent_smith.redb"));
        assert_eq!(
            paths.user_commands(),
            Path::new("/h/.config/lilush/agent_smith/commands")
        );
        assert_eq!(
            Paths::project_commands(Path::new("/r")),
            Path::new("/r/.agent_smith/commands")
        );
        assert_eq!(paths.shorten(&paths.user_file()), "~/.config/lilush/agent_smith.json");
        assert_eq!(paths.expand("~/x"), Path::new("/h/x"));
    }

    #[test]
    fn absolute_xdg_directories_count_and_relative_ones_do_not() {
        let paths = paths(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "data")]).unwrap();
        assert_eq!(paths.user_file(), Path::new("/c/lilush/agent_smith.json"));
        assert_eq!(paths.data_dir, Path::new("/h/.local/share/lilush"));
    }

    #[test]
    fn no_home_is_an_error() {
        assert!(matches!(paths(&[]), Err(ConfigError::NoHome)));
        assert!(matches!(paths(&[("HOME", "relative")]), Err(ConfigError::NoHome)));
    }
}
