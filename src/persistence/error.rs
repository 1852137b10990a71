//! What can go wrong in the store, in words for a person.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{AgentError, ErrorKind};

/// A failure of the store. Every message says what, where and what next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds the lock, and went on holding it.
    #[error("{path}: another process kept the store locked for {} ms; try again", waited.as_millis())]
    Busy {
        /// The database.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
    },
    /// An input or output error of the file system.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried: `open`, `write`, `create the directory`.
        action: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file is not a database, or a damaged one.
    #[error(
        "{path} is damaged or not a database of agent_smith ({detail}); `agent-smith doctor --repair` saves what is readable"
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What the engine said.
        detail: String,
    },
    /// The file was written by a newer version of the program.
    #[error(
        "{path} has schema version {found}, this program knows up to {known}; update agent-smith (the file was not changed)"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The newest version this program knows.
        known: u64,
    },
    /// One record does not have the agreed form.
    #[error("the {keyspace} record {key:?} is not valid: {detail}")]
    Record {
        /// The keyspace.
        keyspace: &'static str,
        /// Its key, or the part of it that is known.
        key: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A part of a key that may not stand in one.
    #[error("{name} {value:?} cannot be part of a key: {reason}")]
    KeySegment {
        /// Which segment: `conversation_id`, `turn_id`.
        name: &'static str,
        /// What came.
        value: String,
        /// Why not.
        reason: &'static str,
    },
    /// The engine failed in another way.
    #[error("the database engine failed on {path}: {detail}")]
    Engine {
        /// The database.
        path: PathBuf,
        /// What the engine said.
        detail: String,
    },
    /// The process was forked after the store was opened; a forked child must not use it.
    #[error("this process was forked from the one that opened the store; it must not use it")]
    Forked,
    /// Something was asked that only a store with a file can do.
    #[error("this store is in memory only and has no file")]
    NoFile,
    /// The store's thread could not be started, or ended.
    #[error("the store's thread is not running: {0}")]
    Thread(String),
}

impl StoreError {
    /// The finer word of the canonical error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "store_busy",
            Self::Io { .. } => "store_io",
            Self::Corrupt { .. } => "store_corrupt",
            Self::NewerSchema { .. } => "store_newer_schema",
            Self::Record { .. } => "store_record",
            Self::KeySegment { .. } => "store_key",
            Self::Engine { .. } => "store_engine",
            Self::Forked => "store_forked",
            Self::NoFile => "store_no_file",
            Self::Thread(_) => "store_thread",
        }
    }
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        let retryable = matches!(error, StoreError::Busy { .. });
        AgentError::new(ErrorKind::Persistence, error.code(), error.to_string())
            .from_origin("persistence")
            .retryable(retryable)
    }
}
