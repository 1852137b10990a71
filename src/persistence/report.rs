//! What a commit says to its caller: how safe the records are, and what the user should know.

use std::path::PathBuf;
use std::time::Duration;

pub use crate::protocol::Durability;

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// The records are in memory only.
    NotSaved,
    /// The records wait beside the database.
    Spooled,
    /// What was kept in memory or beside the database is in it now.
    SavedAgain,
    /// A damaged file was moved aside and a new one begun.
    MovedAside,
    /// A record that is not valid was left out.
    Refused,
    /// A stored record could not be read.
    Unreadable,
    /// Content was longer than the limit, and its end was not kept.
    Cut,
    /// Turns of a process that died were closed as aborted.
    AbortedTurns,
    /// A file of the spool is damaged and was set aside, or belongs to a newer version.
    Spool,
}

/// One thing the user should know, told once and not at every commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreNotice {
    /// What it is about.
    pub kind: NoticeKind,
    /// What happened and where, in whole sentences.
    pub message: String,
    /// The file it is about.
    pub path: Option<PathBuf>,
    /// What to do next.
    pub hint: Option<String>,
}

impl StoreNotice {
    pub(crate) fn new(kind: NoticeKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
            hint: None,
        }
    }

    pub(crate) fn at(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitReport {
    /// How safe it is.
    pub durability: Durability,
    /// What the user should know; empty nearly always.
    pub notices: Vec<StoreNotice>,
    /// How long the database's lock took to get.
    pub lock_wait: Duration,
}
