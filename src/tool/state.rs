//! What tools share within a session: who writes which file now, what was changed; and who keeps the bytes before.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use super::text::Text;
use super::versions::{Lines, Versions};
use crate::process::Jobs;

/// Why a keeper could not keep or fetch something, in words for a person.
pub type KeeperError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps the bytes a file had before a tool changes it, so that they can be compared and brought back.
pub trait PreimageKeeper: Send + Sync {
    /// Keeps `bytes` (`None` where there was no file) and that `change` is about to be made, whose own `preimage` is not
    /// set yet. Returns the key the bytes can be had by. An error stops nothing: the change is made and cannot be undone,
    /// which the result says.
    ///
    /// # Errors
    /// What stands in the way.
    fn keep(&self, change: &FileChange, bytes: Option<&[u8]>) -> Result<Option<String>, KeeperError>;

    /// The bytes kept under `key`; `None` where they are not there any more, or not as a whole.
    ///
    /// # Errors
    /// What stands in the way.
    fn fetch(&self, key: &str) -> Result<Option<Vec<u8>>, KeeperError>;
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

/// What all changes of one file come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetChange {
    /// The file, without links.
    pub path: PathBuf,
    /// Hash of its content before the first change; `None` where it was new.
    pub before: Option<String>,
    /// Hash of its content after the last change.
    pub after: String,
    /// The key of the bytes before the first change, where they were kept.
    pub preimage: Option<String>,
    /// How many changes it took.
    pub changes: usize,
}

/// The state of a session's tools.
#[derive(Default)]
pub struct ToolState {
    locks: Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>,
    changes: Mutex<Vec<FileChange>>,
    jobs: Jobs,
    versions: Mutex<Versions>,
}

impl ToolState {
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

    /// Remembers that the file at `path` (resolved) was `text` when the model saw it.
    pub(super) fn note_version(&self, path: &Path, hash: &str, text: &Text) {
        guard(&self.versions).note(path, hash, text);
    }

    /// The lines the file at `path` had when its hash was the one that `hash` names.
    pub(super) fn version(&self, path: &Path, hash: &str) -> Option<Lines> {
        guard(&self.versions).find(path, hash)
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

/// What `changes`, oldest first, come to for each file, in the order of their first change. A file that is as it was is
/// left out.
#[must_use]
pub fn net_changes(changes: &[FileChange]) -> Vec<NetChange> {
    let mut net: Vec<NetChange> = Vec::new();
    for change in changes {
        match net.iter_mut().find(|net| net.path == change.path) {
            Some(net) => {
                net.after.clone_from(&change.after);
                net.changes += 1;
            }
            None => net.push(NetChange {
                path: change.path.clone(),
                before: change.before.clone(),
                after: change.after.clone(),
                preimage: change.preimage.clone(),
                changes: 1,
            }),
        }
    }
    net.retain(|net| net.before.as_ref() != Some(&net.after));
    net
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

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, before: Option<&str>, after: &str) -> FileChange {
        FileChange {
            turn_id: "t".to_owned(),
            call_id: "c".to_owned(),
            path: PathBuf::from(path),
            before: before.map(str::to_owned),
            after: after.to_owned(),
            preimage: before.map(|hash| format!("key-{hash}")),
        }
    }

    #[test]
    fn changes_of_a_file_come_to_one_and_those_that_cancel_out_to_none() {
        let changes = [
            change("a", Some("1"), "2"),
            change("new", None, "x"),
            change("b", Some("1"), "2"),
            change("a", Some("2"), "3"),
            change("b", Some("2"), "1"),
        ];
        let net = net_changes(&changes);
        assert_eq!(net.len(), 2);
        assert_eq!(
            (net[0].before.as_deref(), net[0].after.as_str(), net[0].changes),
            (Some("1"), "3", 2)
        );
        assert_eq!(net[0].preimage.as_deref(), Some("key-1"));
        assert_eq!((net[1].path.to_str(), net[1].before.as_deref()), (Some("new"), None));
    }
}
