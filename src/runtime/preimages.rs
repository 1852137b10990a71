//! Keeps in the store what files were before the tools changed them: the bytes once by their hash, and each change as a
//! note of the conversation, in one durable commit before the change is made.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::persistence::{Batch, Store, StoreError};
use crate::runtime::clock;
use crate::tool::{FileChange, KeeperError, PreimageKeeper};

/// The start of the ids of the notes that tell a conversation's changes; the time the turn began, the turn and a number
/// follow, so that the order of ids is that of the changes.
const NOTE: &str = "file_change-";
/// How many bytes one turn keeps: what a long session of edits comes to, and little enough for anybody's disk.
const TURN_BYTES: usize = 256 << 20;

/// The keeper of one turn.
pub(super) struct StoredPreimages {
    store: Store,
    conversation_id: String,
    max_blob_bytes: usize,
    begun: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    changes: usize,
    bytes: usize,
}

impl StoredPreimages {
    /// Keeps the changes of a turn of `conversation_id`; no content longer than `max_blob_bytes`.
    pub(super) fn new(store: Store, conversation_id: String, max_blob_bytes: usize) -> Self {
        Self {
            store,
            conversation_id,
            max_blob_bytes,
            begun: clock::now_ms(),
            kept: Mutex::default(),
        }
    }
}

impl PreimageKeeper for StoredPreimages {
    fn keep(&self, change: &FileChange, bytes: Option<&[u8]>) -> Result<Option<String>, KeeperError> {
        let mut batch = Batch::default();
        let size = bytes.map_or(0, <[u8]>::len);
        let (number, fits) = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.changes += 1;
            let fits = size <= self.max_blob_bytes && kept.bytes.saturating_add(size) <= TURN_BYTES;
            if fits {
                kept.bytes += size;
            }
            (kept.changes, fits)
        };
        let mut change = change.clone();
        if fits {
            change.preimage = bytes.map(|bytes| batch.put_blob(bytes.to_vec()));
        }
        let note = format!("{NOTE}{:014}-{}-{number:06}", self.begun, change.turn_id);
        batch.put_note(&self.conversation_id, note, serde_json::to_value(&change)?);
        self.store.commit_blocking(batch);
        if !fits {
            return Err(match size > self.max_blob_bytes {
                true => format!(
                    "it is longer than persistence.max_blob_bytes ({} bytes)",
                    self.max_blob_bytes
                ),
                false => format!("this turn has kept {} MiB already", TURN_BYTES >> 20),
            }
            .into());
        }
        Ok(change.preimage)
    }

    fn fetch(&self, key: &str) -> Result<Option<Vec<u8>>, KeeperError> {
        Ok(fetch(&self.store, key)?)
    }
}

/// The bytes kept under `key`; `None` where they are not there any more, or not as a whole.
///
/// # Errors
/// The store's.
pub(super) fn fetch(store: &Store, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let blob = store.read_blocking(|reader| reader.blob(key))?;
    let whole = blob.filter(|blob| !blob.is_cut());
    Ok(whole.map(|blob| blob.content))
}

/// The changes of a conversation that the store knows of, oldest turn first.
///
/// # Errors
/// The store's.
pub(super) async fn changes_of(store: &Store, conversation_id: String) -> Result<Vec<FileChange>, StoreError> {
    let notes = store.read(move |reader| reader.notes(&conversation_id, NOTE)).await?;
    // A note that a later version wrote otherwise is not ours to read.
    let changes = notes
        .into_iter()
        .filter_map(|(_, note): (_, Value)| serde_json::from_value(note).ok());
    Ok(changes.collect())
}
