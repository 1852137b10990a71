//! Failures inside a transaction, sorted by what has to be done about them.

use std::io;

use redb::{CommitError, DatabaseError, StorageError, TableError, TransactionError};

use super::error::StoreError;

/// A failure inside a transaction. [`super::engine`] decides what becomes of the batch and adds the path.
#[derive(Debug)]
pub(crate) enum Problem {
    /// One record is not valid; the rest of the transaction can go on.
    Record(StoreError),
    /// The lock or the engine's own lock is somebody else's.
    Busy(std::time::Duration),
    /// The file is damaged or not ours.
    Corrupt(String),
    /// The file is of a newer version.
    Newer(u64),
    /// The file system failed.
    Io(&'static str, io::Error),
    /// Anything else the engine says.
    Engine(String),
}

pub(crate) fn storage(error: StorageError) -> Problem {
    match error {
        StorageError::Corrupted(detail) => Problem::Corrupt(detail),
        // "Not a redb database" comes as this kind; the system itself has no error of it.
        StorageError::Io(error) if error.kind() == io::ErrorKind::InvalidData => Problem::Corrupt(error.to_string()),
        // The file is shorter than what it refers to.
        StorageError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Problem::Corrupt(error.to_string()),
        StorageError::Io(error) => Problem::Io("write", error),
        other => Problem::Engine(other.to_string()),
    }
}

pub(crate) fn database(error: DatabaseError) -> Problem {
    match error {
        DatabaseError::DatabaseAlreadyOpen => Problem::Busy(std::time::Duration::ZERO),
        DatabaseError::UpgradeRequired(version) => {
            Problem::Corrupt(format!("its file format {version} is not one this program reads"))
        }
        DatabaseError::Storage(error) => storage(error),
        other => Problem::Engine(other.to_string()),
    }
}

pub(crate) fn table(error: TableError) -> Problem {
    match error {
        TableError::Storage(error) => storage(error),
        error @ (TableError::TableTypeMismatch { .. }
        | TableError::TableIsMultimap(_)
        | TableError::TableIsNotMultimap(_)
        | TableError::TypeDefinitionChanged { .. }) => Problem::Corrupt(error.to_string()),
        other => Problem::Engine(other.to_string()),
    }
}

pub(crate) fn transaction(error: TransactionError) -> Problem {
    match error {
        TransactionError::Storage(error) => storage(error),
        other => Problem::Engine(other.to_string()),
    }
}

pub(crate) fn commit(error: CommitError) -> Problem {
    match error {
        CommitError::Storage(error) => storage(error),
        other => Problem::Engine(other.to_string()),
    }
}

impl Problem {
    /// The error for a caller, with the database it happened on.
    pub(crate) fn into_error(self, path: &std::path::Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Record(error) => error,
            Self::Busy(waited) => StoreError::Busy { path, waited },
            Self::Corrupt(detail) => StoreError::Corrupt { path, detail },
            Self::Newer(found) => StoreError::NewerSchema {
                path,
                found,
                known: super::keys::SCHEMA_VERSION,
            },
            Self::Io(action, source) => StoreError::Io { action, path, source },
            Self::Engine(detail) => StoreError::Engine { path, detail },
        }
    }
}
