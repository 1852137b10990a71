//! One change of one file, from the lock to the note in the list of changes.

use std::path::PathBuf;

use similar::TextDiff;
use tokio::sync::OwnedMutexGuard;

use super::context::ToolContext;
use super::files::{Loaded, hash_of, load, path_error};
use super::replace::replace;
use super::result::ToolError;
use super::state::FileChange;
use super::text::Text;
use super::versions::Lines;
use crate::process::confine::{Place, Resolver};

/// Longest diff put into the metadata, in bytes; larger files and changes have none.
const DIFF_BYTES: usize = 16 * 1024;
/// Longest files a diff is made of, in bytes.
const DIFF_OF_BYTES: usize = 512 * 1024;

/// A file that is about to be changed; nobody else in this session changes it meanwhile.
pub(super) struct Target {
    ctx: ToolContext,
    place: Place,
    name: String,
    _lock: OwnedMutexGuard<()>,
}

/// A change that was made.
pub(super) struct Change {
    /// The hash of the new content.
    pub(super) hash: String,
    /// What else has to be said.
    pub(super) notes: Vec<String>,
    /// The change as a unified diff; empty where it would be too long.
    pub(super) diff: String,
}

impl Target {
    /// Finds the file and waits for its lock.
    pub(super) async fn lock(ctx: &ToolContext, path: &str, make_directories: bool) -> Result<Self, ToolError> {
        let find = |resolver: Resolver, path: String| {
            super::blocking(move || resolver.resolve(&path, make_directories).map_err(path_error))
        };
        let resolver = ctx.resolver();
        let place = find(resolver.clone(), path.to_owned()).await?;
        let lock = ctx.state.lock_file(&place.path).await;
        // It may have been replaced, created or removed while we waited.
        let place = find(resolver.clone(), path.to_owned()).await?;
        Ok(Self {
            name: resolver.shown(&place.path).into_owned(),
            ctx: ctx.clone(),
            place,
            _lock: lock,
        })
    }

    /// The path as it is shown.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The lines the file had when its hash was the one that `hash` names, if it was seen then.
    pub(super) fn version(&self, hash: &str) -> Option<Lines> {
        self.ctx.state.version(&self.place.path, hash)
    }

    /// The place.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The file's content; `None` where there is no file.
    pub(super) fn load(&self) -> Result<Option<Loaded>, ToolError> {
        load(&self.place, &self.name)
    }

    /// Writes `bytes` in place of `before` and notes it.
    pub(super) fn commit(self, before: Option<Loaded>, bytes: Vec<u8>) -> Result<Change, ToolError> {
        // The last moment at which stopping leaves nothing behind.
        if self.ctx.cancel.is_cancelled() {
            return Err(ToolError::Fatal(crate::error::AgentError::cancelled("tool")));
        }
        let mut notes = Vec::new();
        let hash = hash_of(&bytes);
        let mut change = FileChange {
            turn_id: self.ctx.turn_id.clone(),
            call_id: self.ctx.call_id.clone(),
            path: PathBuf::from(&self.place.path),
            before: before.as_ref().map(|before| before.hash.clone()),
            after: hash.clone(),
            preimage: None,
        };
        if let Some(keeper) = &self.ctx.keeper {
            match keeper.keep(&change, before.as_ref().map(|before| before.bytes.as_slice())) {
                Ok(key) => change.preimage = key,
                Err(error) => notes.push(format!(
                    "The content before could not be kept, so it cannot be brought back: {error}."
                )),
            }
        }
        let replaced = replace(&self.place, before.as_ref(), &bytes, &self.name)?;
        if let Some(why) = replaced.in_place {
            notes.push(format!("It was overwritten in place, not replaced atomically: {why}."));
        }
        if self.place.through_link {
            notes.push(format!(
                "A symbolic link led to {}, which was changed.",
                self.place.path.display()
            ));
        }
        let old = before.as_ref().map_or(&[][..], |before| &before.bytes);
        let diff = unified(&self.name, old, &bytes);
        if let Some(text) = Text::new(bytes) {
            self.ctx.state.note_version(&self.place.path, &hash, &text);
        }
        self.ctx.state.record_change(change);
        Ok(Change { hash, notes, diff })
    }
}

/// The difference of two contents as a unified diff with `name` in its header; empty where one of them is no UTF-8 text
/// or the diff would be longer than 16 KiB.
#[must_use]
pub fn unified(name: &str, old: &[u8], new: &[u8]) -> String {
    if old.len().max(new.len()) > DIFF_OF_BYTES {
        return String::new();
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        return String::new();
    };
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_millis(100))
        .diff_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(name, name)
        .to_string();
    if diff.len() > DIFF_BYTES { String::new() } else { diff }
}
