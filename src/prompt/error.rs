//! Why a part of the prompt could not be had.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::{AgentError, ErrorKind};

/// Why a file that belongs into the prompt was not read. The prompt is built without it, and the user is told.
#[derive(Debug, Error)]
pub enum PromptError {
    /// The path leads out of the directory it must stay in, by its spelling or by a link.
    #[error("{} leads out of {} and was not read", path.display(), root.display())]
    Outside {
        /// The path as it was named.
        path: PathBuf,
        /// The directory it must stay in.
        root: PathBuf,
    },
    /// It is there and is no regular file.
    #[error("{} is no regular file and was not read", path.display())]
    NotAFile {
        /// The path as it was named.
        path: PathBuf,
    },
    /// It is there and cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The path as it was named.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
}

impl PromptError {
    fn code(&self) -> &'static str {
        match self {
            Self::Outside { .. } => "outside_root",
            Self::NotAFile { .. } => "not_a_file",
            Self::Read { .. } => "unreadable",
        }
    }
}

impl From<&PromptError> for AgentError {
    fn from(error: &PromptError) -> Self {
        let kind = match error {
            PromptError::Outside { .. } => ErrorKind::Policy,
            PromptError::NotAFile { .. } | PromptError::Read { .. } => ErrorKind::Schema,
        };
        let agent = Self::new(kind, error.code(), error.to_string()).from_origin("prompt");
        match std::error::Error::source(error) {
            Some(source) => agent.with_cause(source),
            None => agent,
        }
    }
}
