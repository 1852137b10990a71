//! What `db stats`, `db compact` and `db export` need: sizes by keyspace, giving space back, and everything as text.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use redb::{ReadableTableMetadata, TableError};
use serde_json::{Value, json};

use super::batch::hex;
use super::blobs;
use super::codec;
use super::error::StoreError;
use super::keys;
use super::lock::Lock;
use super::open;
use super::problem::{self, Problem};
use super::spool::{self, Waiting};
use super::store::{Store, StoreOptions};
use super::tables;

/// Records per question of an export: other processes write in between.
const EXPORT_PAGE: usize = 500;

/// Sizes of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStats {
    /// The database.
    pub path: PathBuf,
    /// The length of its file; 0 where there is none.
    pub file_bytes: u64,
    /// Its schema version, where anything was written.
    pub schema_version: Option<u64>,
    /// Each keyspace, in a fixed order.
    pub keyspaces: Vec<KeyspaceStats>,
    /// Batches that wait beside it.
    pub spooled: usize,
    /// Damaged databases that were moved aside.
    pub damaged: Vec<PathBuf>,
}

/// Sizes of one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceStats {
    /// Its name.
    pub name: &'static str,
    /// How many records there are.
    pub records: u64,
    /// Keys and values together, in bytes.
    pub stored_bytes: u64,
    /// What the tree around them takes, in bytes.
    pub metadata_bytes: u64,
    /// Space in its pages that nothing is in, in bytes.
    pub fragmented_bytes: u64,
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// The length of the file before, in bytes.
    pub before_bytes: u64,
    /// And after.
    pub after_bytes: u64,
    /// Blobs that no record named any more.
    pub removed_blobs: u64,
}

/// Sizes by keyspace. Reads the whole tree.
///
/// # Errors
/// A store without a file, that is busy, damaged or of a newer version.
pub fn stats(options: &StoreOptions) -> Result<StoreStats, StoreError> {
    let path = path_of(options)?;
    let run = || -> Result<StoreStats, Problem> {
        let lock = Lock::acquire(&path, options.lock_deadline)?;
        let waiting = spool::waiting(&path).map_err(|error| Problem::Io("read the spool of", error))?;
        let mut stats = StoreStats {
            file_bytes: std::fs::metadata(&path).map_or(0, |file| file.len()),
            schema_version: None,
            keyspaces: Vec::new(),
            spooled: waiting
                .iter()
                .filter(|item| !matches!(item, Waiting::Damaged(..)))
                .count(),
            damaged: damaged_files(&path),
            path: path.clone(),
        };
        if open::exists(options, &path)? {
            let view = open::view(options, &path)?;
            let result = fill(&view, &mut stats);
            view.close();
            result?;
        }
        drop(lock);
        Ok(stats)
    };
    open::guarded(run).map_err(|problem| problem.into_error(&path))
}

fn fill(view: &open::Opened, stats: &mut StoreStats) -> Result<(), Problem> {
    let txn = view.begin_read()?;
    stats.schema_version = super::migrations::version(&txn)?;
    for name in keys::ALL {
        let mut keyspace = KeyspaceStats {
            name,
            records: 0,
            stored_bytes: 0,
            metadata_bytes: 0,
            fragmented_bytes: 0,
        };
        match txn.open_table(tables::definition(name)) {
            Ok(table) => {
                keyspace.records = table.len().map_err(problem::storage)?;
                let tree = table.stats().map_err(problem::storage)?;
                keyspace.stored_bytes = tree.stored_bytes();
                keyspace.metadata_bytes = tree.metadata_bytes();
                keyspace.fragmented_bytes = tree.fragmented_bytes();
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(problem::table(error)),
        }
        stats.keyspaces.push(keyspace);
    }
    Ok(())
}

/// Removes blobs that no record names, and gives free space back to the file system. Takes seconds per GB and holds the
/// lock meanwhile, so it is never done by itself.
///
/// # Errors
/// A store without a file, that is busy, damaged or of a newer version.
pub fn compact(options: &StoreOptions) -> Result<CompactReport, StoreError> {
    let path = path_of(options)?;
    let run = || -> Result<CompactReport, Problem> {
        let mut lock = Lock::acquire(&path, options.lock_deadline)?;
        let length = || std::fs::metadata(&path).map_or(0, |file| file.len());
        let before_bytes = length();
        if !open::exists(options, &path)? {
            return Ok(CompactReport {
                before_bytes,
                after_bytes: before_bytes,
                removed_blobs: 0,
            });
        }
        let view = open::view(options, &path)?;
        let checked = view.check_schema().and_then(|()| named_blobs(&view));
        view.close();
        let named = checked?;
        let synced = lock.mark_writing()?;
        let opened = open::for_writing(options, &path, synced)?;
        let removed_blobs = remove_blobs(&opened, &named)?;
        opened.compact_and_close()?;
        lock.mark_synced();
        Ok(CompactReport {
            before_bytes,
            after_bytes: length(),
            removed_blobs,
        })
    };
    open::guarded(run).map_err(|problem| problem.into_error(&path))
}

/// Everything in any record that looks like the name of a blob.
fn named_blobs(view: &open::Opened) -> Result<HashSet<String>, Problem> {
    const DIGITS: usize = 64;
    let txn = view.begin_read()?;
    let mut named = HashSet::new();
    for name in keys::ALL.into_iter().filter(|name| *name != keys::BLOB) {
        let table = tables::ReadKeyspace::open(Some(&txn), name)?;
        table.scan_from(None, |_, value| {
            for word in value.split(|byte| !byte.is_ascii_hexdigit()) {
                if word.len() == DIGITS {
                    named.insert(String::from_utf8_lossy(word).into_owned());
                }
            }
            Ok(true)
        })?;
    }
    Ok(named)
}

fn remove_blobs(opened: &open::Opened, named: &HashSet<String>) -> Result<u64, Problem> {
    let txn = opened.begin_write()?;
    super::migrations::bring_up_to_date(&txn)?;
    let mut removed = 0;
    {
        let mut blobs = tables::WriteKeyspace::open(&txn, keys::BLOB)?;
        for key in blobs.keys("")? {
            if !named.contains(&key) {
                blobs.remove(&key)?;
                removed += 1;
            }
        }
    }
    opened.commit(txn)?;
    Ok(removed)
}

/// Writes every record as a line of JSON, `{"keyspace", "key", "record"}`, in key order. A blob's `record` is its text, or
/// `{"hex"}` where it is none; a record that cannot be read is `{"unreadable", "hex"}`. Returns the number of lines.
///
/// # Errors
/// A store that is busy, damaged or of a newer version, or an `out` that cannot be written to.
pub fn export(store: &Store, out: &mut dyn Write) -> Result<u64, StoreError> {
    let path = store.path().unwrap_or_else(|| Path::new("(memory)")).to_owned();
    let mut lines = 0;
    for keyspace in keys::ALL {
        let mut cursor: Option<String> = None;
        loop {
            let (page, next) = store.read_blocking(|reader| reader.page(keyspace, cursor.as_deref(), EXPORT_PAGE))?;
            for (key, value) in page {
                let line = codec::to_sorted_bytes(&json!({
                    "keyspace": keyspace,
                    "record": readable(keyspace, &key, &value),
                    "key": key,
                }));
                out.write_all(&line)
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(|source| StoreError::Io {
                        action: "write the export of",
                        path: path.clone(),
                        source,
                    })?;
                lines += 1;
            }
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(lines)
}

fn readable(keyspace: &str, key: &str, value: &[u8]) -> Value {
    let unreadable = |detail: String| json!({"unreadable": detail, "hex": hex(value)});
    match keyspace {
        keys::META => Value::String(String::from_utf8_lossy(value).into_owned()),
        keys::BLOB => match blobs::unpack(key, value) {
            Ok(blob) => {
                let full_bytes = blob.full_bytes;
                match String::from_utf8(blob.content) {
                    Ok(text) => json!({"bytes": full_bytes, "text": text}),
                    Err(error) => json!({"bytes": full_bytes, "hex": hex(error.as_bytes())}),
                }
            }
            Err(error) => unreadable(error.to_string()),
        },
        _ => codec::from_bytes(value).unwrap_or_else(unreadable),
    }
}

/// Damaged databases that were moved aside from `database`, oldest first, without those whose content was saved.
pub(crate) fn damaged_files(database: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (database.parent(), database.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{name}{}", super::aside::DAMAGED);
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(&prefix) && !name.contains(super::aside::SAVED))
        })
        .collect();
    found.sort();
    found
}

pub(crate) fn path_of(options: &StoreOptions) -> Result<PathBuf, StoreError> {
    let path = options.path.clone().ok_or(StoreError::NoFile)?;
    // The lock lives beside the database. Where its directory cannot be made, taking the lock says why.
    if let Some(directory) = path.parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    Ok(std::fs::canonicalize(&path).unwrap_or(path))
}
