//! What can be wrong with a configuration, told so that a person can mend it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;

use super::path::PathError;
use crate::error::{AgentError, ErrorKind};

/// Where a layer came from, as it is named in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's file.
    File(PathBuf),
    /// What `/config set` keeps.
    Overrides,
    /// What the command line or the session sets without keeping it.
    Session,
    /// The profile in use.
    Profile(String),
    /// A value about to be set.
    Candidate,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Overrides => f.write_str("the overrides kept by /config set"),
            Self::Session => f.write_str("the settings of this session"),
            Self::Profile(name) => write!(f, "the profile \"{name}\""),
            Self::Candidate => f.write_str("the new value"),
        }
    }
}

/// One thing the schema does not allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The dotted path of the place.
    pub path: String,
    /// What is wrong there.
    pub problem: Problem,
    /// The layer it is in.
    pub origin: Origin,
}

/// What is wrong at one place.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The schema has no such key; the nearest one, if any is near.
    UnknownKey {
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// The value is not what the key takes.
    WrongValue {
        /// What it takes, to stand after "must be".
        expected: String,
        /// What it is, shortened, secrets masked.
        found: String,
    },
    /// A table has an entry whose name is empty.
    EmptyName,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::WrongValue { expected, found } if self.path.is_empty() => {
                write!(f, "the configuration must be {expected}, but is {found}")
            }
            Problem::UnknownKey { nearest: None } => write!(f, "`{}` is not a key", self.path),
            Problem::UnknownKey { nearest: Some(nearest) } => {
                write!(f, "`{}` is not a key; did you mean `{nearest}`?", self.path)
            }
            Problem::WrongValue { expected, found } => write!(f, "`{}` must be {expected}, but is {found}", self.path),
            Problem::EmptyName if self.path.is_empty() => f.write_str("an entry has an empty name"),
            Problem::EmptyName => write!(f, "`{}` has an entry with an empty name", self.path),
        }
    }
}

/// Why there is no configuration, or why it was not changed.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The user's file is there and cannot be read.
    #[error("{}: the configuration cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// The user's file cannot be written.
    #[error("{}: the configuration cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// What has the file's name is no file, or is far too large for a configuration.
    #[error("{}: {problem}", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        problem: String,
    },
    /// The file is not JSON.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The schema does not allow what is there. Never empty.
    #[error("{}", list(.0))]
    Invalid(Vec<Violation>),
    /// What was named is no dotted path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The key is known and `/config set` may not change it.
    #[error("`{path}` cannot be changed by /config; {reason}")]
    NotOverridable {
        /// The key.
        path: String,
        /// Why, and what to do instead.
        reason: String,
    },
    /// There is nothing to remove.
    #[error("`{path}` is not set by /config, so there is nothing to unset")]
    NotSet {
        /// The key.
        path: String,
    },
    /// No profile has this name.
    #[error("there is no profile \"{name}\"; {known}")]
    NoSuchProfile {
        /// The name.
        name: String,
        /// Which there are, in words.
        known: String,
    },
    /// The environment does not say where the user's files are.
    #[error("HOME is not set to an absolute path, so there is no place for the configuration and the store")]
    NoHome,
}

/// All violations in one line, each after the layer it is in; the layer is named again only where it changes.
fn list(violations: &[Violation]) -> String {
    let mut text = String::new();
    let mut last: Option<&Origin> = None;
    for violation in violations {
        if !text.is_empty() {
            text.push_str("; ");
        }
        if last != Some(&violation.origin) && violation.origin != Origin::Candidate {
            text.push_str(&format!("{}: ", violation.origin));
        }
        text.push_str(&violation.to_string());
        last = Some(&violation.origin);
    }
    text
}

impl ConfigError {
    /// The stable word for the kind of error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::NotAFile { .. } => "config_unreadable",
            Self::Write { .. } => "config_unwritable",
            Self::Json { .. } => "config_json",
            Self::Invalid(violations) => match violations.first().map(|violation| &violation.problem) {
                Some(Problem::UnknownKey { .. }) => "unknown_key",
                _ => "config_invalid",
            },
            Self::Path(_) => "bad_path",
            Self::NotOverridable { .. } => "not_overridable",
            Self::NotSet { .. } => "not_set",
            Self::NoSuchProfile { .. } => "unknown_profile",
            Self::NoHome => "no_home",
        }
    }

    /// The file it is about, if it is about one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::NotAFile { path, .. }
            | Self::Json { path, .. } => Some(path),
            Self::Invalid(violations) => violations.iter().find_map(|violation| match &violation.origin {
                Origin::File(path) => Some(path.as_path()),
                _ => None,
            }),
            _ => None,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } => Some("make the file readable, or move it away to start from the defaults"),
            Self::Write { .. } => Some("make the directory writable, or put the settings into the file yourself"),
            Self::NotAFile { .. } => Some("put a JSON file there, or move what is there away"),
            Self::Json { .. } => Some("the file is plain JSON: no comments, no comma after the last entry"),
            Self::Invalid(violations) => Some(match &violations.first()?.origin {
                Origin::File(_) => {
                    "docs/CONFIG.md lists every key; `agent-smith config schema` prints them for an editor"
                }
                Origin::Overrides => "`/config unset <key>` removes an override",
                _ => "`/config` lists every key",
            }),
            Self::Path(_) => Some(r#"quote a name with dots or colons: llm_config.models."a/b:c".temperature"#),
            Self::NoHome => Some("set HOME to your home directory"),
            Self::NotOverridable { .. } | Self::NotSet { .. } | Self::NoSuchProfile { .. } => None,
        }
    }
}

impl From<&ConfigError> for AgentError {
    fn from(error: &ConfigError) -> Self {
        let mut data = json!({});
        if let Some(file) = error.file() {
            data["file"] = json!(file.to_string_lossy());
        }
        match error {
            ConfigError::Json { line, column, .. } => {
                data["line"] = json!(line);
                data["column"] = json!(column);
            }
            ConfigError::Invalid(violations) => {
                data["keys"] = violations.iter().map(|violation| json!(violation.path)).collect();
            }
            _ => {}
        }
        let mut agent = Self::new(ErrorKind::Schema, error.code(), error.to_string())
            .from_origin("config")
            .with_data(data);
        if let Some(source) = std::error::Error::source(error) {
            agent.message = format!("{}: {source}", agent.message);
            agent = agent.with_cause(source);
        }
        match error.hint() {
            Some(hint) => agent.with_hint(hint),
            None => agent,
        }
    }
}

impl From<ConfigError> for AgentError {
    fn from(error: ConfigError) -> Self {
        Self::from(&error)
    }
}
