//! What tools share within a session: who writes which file now, what was changed, where the bytes before are kept.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use crate::process::Jobs;

/// Keeps the bytes a file had before a tool changes it, for `/undo`.
pub trait PreimageKeeper: Send + Sync {
    /// Keeps `bytes`, or `None` where there was no file, and returns the key they can be had by. An error stops
    /// nothing: the change is made and cannot be undone, which the result says.
    fn keep(&self, path: &Path, bytes: Option<&[u8]>) -> Result<String, Box<dyn std::error::Error + Send + Sync>>;
}

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The turn that made it.
    pub turn_id: String,
    /// The call that made it.
    pub call_id: String,
    /// The file, without links.
    pub path: PathBuf,
    /// Hash of its content before; `None` where it was new.
    pub before: Option<String>,
    /// Hash of its content after.
    pub after: String,
    /// The key of the bytes before, where they were kept.
    pub preimage: Option<String>,
}

/// The state of a session's tools.
#[derive(Default)]
pub struct ToolState {
    locks: Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>,
    changes: Mutex<Vec<FileChange>>,
    keeper: Option<Arc<dyn PreimageKeeper>>,
    jobs: Jobs,
}

impl ToolState {
    /// A state that keeps the bytes before each change with `keeper`.
    #[must_use]
    pub fn with_keeper(keeper: Arc<dyn PreimageKeeper>) -> Self {
        Self {
            keeper: Some(keeper),
            ..Self::default()
        }
    }

    /// Who keeps the bytes before a change.
    #[must_use]
    pub fn keeper(&self) -> Option<&Arc<dyn PreimageKeeper>> {
        self.keeper.as_ref()
    }

    /// The commands in the background.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Waits until nobody else changes the file at `path` (resolved).
    pub async fn lock_file(&self, path: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = guard(&self.locks);
            match locks.get(path).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    locks.retain(|_, lock| lock.strong_count() > 0);
                    let lock = Arc::new(tokio::sync::Mutex::new(()));
                    locks.insert(path.to_owned(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }

    /// Notes a change.
    pub fn record_change(&self, change: FileChange) {
        guard(&self.changes).push(change);
    }

    /// The changes made so far, oldest first; those of one turn only, if asked.
    #[must_use]
    pub fn changes(&self, turn_id: Option<&str>) -> Vec<FileChange> {
        guard(&self.changes)
            .iter()
            .filter(|change| turn_id.is_none_or(|turn| change.turn_id == turn))
            .cloned()
            .collect()
    }
}

/// The value behind `mutex`: each is consistent between two statements, whatever panicked.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ToolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolState").finish_non_exhaustive()
    }
}
