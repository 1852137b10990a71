//! Gets out of a damaged database what is readable.
//!
//! First through the engine, keyspace by keyspace, from both ends, each time with the file opened anew: an error or a panic
//! ends only that walk. Where a walk was cut short, the file is searched byte by byte for records as well: every value says
//! what it is and carries its own key, so that a record is found wherever its page lies. Such a loose record may be an older
//! version, or one that was removed; what the walks found comes first.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::blobs::{self, Blob};
use super::codec;
use super::keys;
use super::open;
use super::problem::Problem;
use super::records::{
    ConfigPatch, ConversationRecord, NoteRecord, OpenTurn, ProjectMemory, StoredMessage, UsageRecord,
};
use super::store::StoreOptions;
use super::tables::ReadKeyspace;

/// How every record's JSON begins: `_` sorts before the small letters that members begin with.
const START: &[u8] = b"{\"_type\":\"";
/// How much of the file is searched at a time.
const WINDOW: usize = 4 * 1024 * 1024;
/// The keyspaces whose records say their own key. `meta` and the index of message ids are made anew, terminals are of no
/// use.
const KEYSPACES: [&str; 8] = [
    keys::CONVERSATION,
    keys::MESSAGE,
    keys::NOTE,
    keys::USAGE,
    keys::MEMORY,
    keys::CONFIG,
    keys::OPEN_TURN,
    keys::BLOB,
];

/// What was and was not found in a damaged database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The damaged file; it is kept, under this name.
    pub source: PathBuf,
    /// Records that could be reached through the database, by keyspace.
    pub reached: BTreeMap<&'static str, u64>,
    /// Records that were found loose in the file, by keyspace; some may be old or have been removed.
    pub loose: BTreeMap<&'static str, u64>,
    /// Records that are new in the database by this, by keyspace.
    pub added: BTreeMap<&'static str, u64>,
    /// What could not be read: keyspaces that could not be walked to their end, records that are not valid.
    pub unreadable: Vec<String>,
}

impl SalvageReport {
    /// Whether everything in the file could be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_empty()
    }
}

/// What was found, by key.
#[derive(Default)]
pub(crate) struct Salvaged {
    pub conversations: BTreeMap<String, ConversationRecord>,
    /// By conversation and message id.
    pub messages: BTreeMap<(String, String), StoredMessage>,
    pub notes: BTreeMap<String, NoteRecord>,
    pub usage: BTreeMap<String, UsageRecord>,
    pub memories: BTreeMap<String, ProjectMemory>,
    pub config: Option<ConfigPatch>,
    pub open_turns: BTreeMap<String, OpenTurn>,
    pub blobs: BTreeMap<String, Blob>,
    pub active: Option<String>,
}

impl Salvaged {
    /// Takes one stored value; says whether it is a record of `keyspace` that was not there yet.
    fn take(&mut self, keyspace: &'static str, value: &[u8]) -> Result<bool, String> {
        fn add<R: codec::Record>(map: &mut BTreeMap<String, R>, value: &[u8]) -> Result<bool, String> {
            let record: R = codec::decode_anywhere(value).map_err(|error| error.to_string())?;
            let key = codec::Record::key(&record).map_err(|error| error.to_string())?;
            let new = !map.contains_key(&key);
            map.entry(key).or_insert(record);
            Ok(new)
        }
        match keyspace {
            keys::CONVERSATION => {
                let record: ConversationRecord = codec::decode_anywhere(value).map_err(|error| error.to_string())?;
                let stored = self.conversations.get(&record.id);
                let new = stored.is_none();
                if stored.is_none_or(|stored| stored.updated < record.updated) {
                    self.conversations.insert(record.id.clone(), record);
                }
                Ok(new)
            }
            keys::MESSAGE => {
                let stored: StoredMessage = codec::decode_anywhere(value).map_err(|error| error.to_string())?;
                codec::Record::key(&stored).map_err(|error| error.to_string())?;
                let key = (stored.record.conversation_id.clone(), stored.record.id.clone());
                let new = !self.messages.contains_key(&key);
                self.messages.entry(key).or_insert(stored);
                Ok(new)
            }
            keys::NOTE => add(&mut self.notes, value),
            keys::USAGE => add(&mut self.usage, value),
            keys::MEMORY => add(&mut self.memories, value),
            keys::OPEN_TURN => add(&mut self.open_turns, value),
            keys::CONFIG => {
                let patch: ConfigPatch = codec::decode_anywhere(value).map_err(|error| error.to_string())?;
                let new = self.config.is_none();
                self.config.get_or_insert(patch);
                Ok(new)
            }
            keys::BLOB => {
                let (name, blob, _) = blobs::unpack_prefix(value)?;
                let new = !self.blobs.contains_key(&name);
                self.blobs.entry(name).or_insert(blob);
                Ok(new)
            }
            _ => Ok(false),
        }
    }
}

/// Reads what is readable in `damaged`. Nothing is written.
pub(crate) fn read(options: &StoreOptions, damaged: &Path) -> io::Result<(Salvaged, SalvageReport)> {
    let mut found = Salvaged::default();
    let mut report = SalvageReport {
        source: damaged.to_owned(),
        ..SalvageReport::default()
    };
    let mut cut_short = false;
    for keyspace in KEYSPACES {
        for reverse in [false, true] {
            match walk(options, damaged, keyspace, reverse, &mut found, &mut report) {
                Ok(()) => break,
                Err(detail) => {
                    cut_short = true;
                    if reverse {
                        report
                            .unreadable
                            .push(format!("the keyspace {keyspace} cannot be walked to its end: {detail}"));
                    }
                }
            }
        }
    }
    found.active = active(options, damaged);
    if cut_short {
        search(&File::open(damaged)?, &mut found, &mut report)?;
    }
    Ok((found, report))
}

fn walk(
    options: &StoreOptions,
    damaged: &Path,
    keyspace: &'static str,
    reverse: bool,
    found: &mut Salvaged,
    report: &mut SalvageReport,
) -> Result<(), String> {
    open::guarded(|| {
        let view = open::view(options, damaged)?;
        let txn = view.begin_read()?;
        let table = ReadKeyspace::open(Some(&txn), keyspace)?;
        table.scan("", reverse, |key, value| {
            match found.take(keyspace, value) {
                Ok(true) => *report.reached.entry(keyspace).or_default() += 1,
                Ok(false) => {}
                Err(detail) => report
                    .unreadable
                    .push(format!("the {keyspace} record {key:?}: {detail}")),
            }
            Ok(true)
        })
    })
    .map_err(|problem| problem.into_error(damaged).to_string())
}

fn active(options: &StoreOptions, damaged: &Path) -> Option<String> {
    let read = || -> Result<Option<Vec<u8>>, Problem> {
        let view = open::view(options, damaged)?;
        let txn = view.begin_read()?;
        ReadKeyspace::open(Some(&txn), keys::META)?.get(keys::META_ACTIVE_CONVERSATION)
    };
    let value = open::guarded(read).ok().flatten()?;
    let id = String::from_utf8(value).ok()?;
    keys::segment("conversation_id", &id).is_ok().then_some(id)
}

/// Searches the bytes of the file for records.
fn search(file: &File, found: &mut Salvaged, report: &mut SalvageReport) -> io::Result<()> {
    let len = file.metadata()?.len();
    let mut window = vec![0; WINDOW + START.len()];
    let mut at = 0;
    while at < len {
        // Windows overlap, so that a beginning on their border is seen.
        let take = usize::try_from(len - at).unwrap_or(usize::MAX).min(window.len());
        file.read_exact_at(&mut window[..take], at)?;
        for (n, _) in window[..take]
            .windows(START.len())
            .enumerate()
            .filter(|(_, bytes)| *bytes == START)
        {
            if n < WINDOW {
                loose(file, at + n as u64, found, report);
            }
        }
        at += WINDOW as u64;
    }
    Ok(())
}

/// Takes the record that begins at `at`, if it is one.
fn loose(file: &File, at: u64, found: &mut Salvaged, report: &mut SalvageReport) {
    let reader = io::BufReader::new(At { file, at });
    let mut json = serde_json::Deserializer::from_reader(reader);
    let Ok(value) = Value::deserialize(&mut json) else {
        return;
    };
    let Some(keyspace) = value
        .get("_type")
        .and_then(Value::as_str)
        .and_then(|kind| KEYSPACES.into_iter().find(|keyspace| *keyspace == kind))
    else {
        return;
    };
    let mut bytes = codec::to_sorted_bytes(&value);
    if keyspace == keys::BLOB {
        // The header is as it was written, so its length is known; the content comes after it and a line's end.
        let kept = value
            .get("kept")
            .and_then(Value::as_u64)
            .and_then(|kept| usize::try_from(kept).ok());
        let left = file.metadata().map_or(0, |file| file.len().saturating_sub(at));
        let Some(kept) = kept.filter(|kept| *kept as u64 <= left) else {
            return;
        };
        let start = at + bytes.len() as u64 + 1;
        let mut content = vec![0; kept];
        if file.read_exact_at(&mut content, start).is_err() {
            return;
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&content);
    }
    if found.take(keyspace, &bytes) == Ok(true) {
        *report.loose.entry(keyspace).or_default() += 1;
    }
}

/// Reads a file from a place on.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
