//! `doctor --repair`: a database that cannot be trusted is moved aside, and what is readable in it, and in those that were
//! moved aside before, is brought into a new one.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use redb::WriteTransaction;

use super::apply;
use super::aside;
use super::blobs;
use super::codec::Record;
use super::error::StoreError;
use super::keys;
use super::lock::{self, Lock};
use super::maintenance::{damaged_files, path_of};
use super::migrations;
use super::open::{self, Verdict};
use super::problem::Problem;
use super::process::now_ms;
use super::records::{ConfigPatch, ConversationRecord, MessageIdRecord, ProjectMemory, StoredMessage};
use super::salvage::{self, SalvageReport, Salvaged};
use super::spool;
use super::store::StoreOptions;
use super::tables::WriteKeyspace;

/// The system's error for a disk that cannot be read.
const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// What a repair found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// The database.
    pub path: PathBuf,
    /// Whether the database was sound as it was found (none at all is sound, too).
    pub sound: bool,
    /// What is wrong with it, where it was not.
    pub damage: Option<String>,
    /// Where it was moved to, where it was not.
    pub moved_to: Option<PathBuf>,
    /// Each damaged file that was read, oldest first, with what was and was not readable in it.
    pub salvaged: Vec<SalvageReport>,
}

/// Checks the database; moves it aside if it is damaged; saves what is readable in it and in every file that was moved
/// aside before and not saved yet. Damaged files are kept, under a name that ends in `.saved`.
///
/// # Errors
/// A store without a file, that is busy or of a newer version; files that cannot be moved or written.
pub fn repair(options: &StoreOptions) -> Result<RepairReport, StoreError> {
    let path = path_of(options)?;
    open::guarded(|| run(options, &path)).map_err(|problem| problem.into_error(&path))
}

fn run(options: &StoreOptions, path: &Path) -> Result<RepairReport, Problem> {
    let mut lock = Lock::acquire(path, options.lock_deadline)?;
    let mut report = RepairReport {
        path: path.to_owned(),
        sound: true,
        damage: None,
        moved_to: None,
        salvaged: Vec::new(),
    };
    if open::exists(options, path)? {
        report.damage = match open::verdict(options, path) {
            Verdict::Sound => None,
            Verdict::Damaged(detail) => Some(detail),
            // The disk under the file is bad: what can still be read belongs on another part of it.
            Verdict::Unknown(Problem::Io(_, error)) if error.raw_os_error() == Some(EIO) => Some(error.to_string()),
            Verdict::Unknown(problem) => return Err(problem),
        };
        report.sound = report.damage.is_none();
        if report.sound {
            let view = open::view(options, path)?;
            let checked = view.check_schema();
            view.close();
            checked?;
        } else {
            let moved = aside::move_database_aside(path).map_err(|error| Problem::Io("move aside", error))?;
            report.moved_to = Some(moved);
        }
    }
    for damaged in damaged_files(path) {
        let (found, mut salvaged) =
            salvage::read(options, &damaged).map_err(|error| Problem::Io("read what was moved aside from", error))?;
        let synced = lock.mark_writing()?;
        let opened = open::for_writing(options, path, synced)?;
        let txn = opened.begin_write()?;
        migrations::bring_up_to_date(&txn)?;
        salvaged.added = bring_in(&txn, &found, options.max_blob_bytes)?;
        // What was in progress there is in progress no more.
        apply::close_dead(&txn, now_ms())?;
        opened.commit(txn)?;
        if opened.close() {
            lock.mark_synced();
        }
        salvaged.source = aside::rename_aside(&damaged, &lock::beside(&damaged, aside::SAVED))
            .map_err(|error| Problem::Io("rename what was moved aside from", error))?;
        if let Some(parent) = path.parent() {
            spool::sync_directory(parent).map_err(|error| Problem::Io("sync the directory of", error))?;
        }
        report.salvaged.push(salvaged);
    }
    Ok(report)
}

/// Adds what was found to what is there, and counts what is new. What is there and not older stays.
fn bring_in(
    txn: &WriteTransaction,
    found: &Salvaged,
    max_blob_bytes: u64,
) -> Result<BTreeMap<&'static str, u64>, Problem> {
    let mut added = BTreeMap::new();
    let mut count = |keyspace: &'static str, new: bool| {
        if new {
            *added.entry(keyspace).or_default() += 1;
        }
    };
    for (name, blob) in &found.blobs {
        let mut table = WriteKeyspace::open(txn, keys::BLOB)?;
        let new = table.get(name)?.is_none();
        if new {
            table.insert(
                name,
                &blobs::pack_cut(name, &blob.content, blob.full_bytes, max_blob_bytes),
            )?;
        }
        count(keys::BLOB, new);
    }
    for record in found.conversations.values() {
        let stored = WriteKeyspace::open(txn, keys::CONVERSATION)?.read::<ConversationRecord>(&record.key()?)?;
        if stored.as_ref().is_none_or(|stored| stored.updated < record.updated) {
            // With its places in the order of use, which are not salvaged but made anew.
            apply::put_conversation(txn, record, apply::Origin::Live)?;
        }
        count(keys::CONVERSATION, stored.is_none());
    }
    for record in found.notes.values() {
        count(keys::NOTE, put_unless(txn, record, |_| true)?);
    }
    for record in found.usage.values() {
        count(keys::USAGE, put_unless(txn, record, |_| true)?);
    }
    for record in found.memories.values() {
        let new = put_unless(txn, record, |stored: &ProjectMemory| stored.updated >= record.updated)?;
        count(keys::MEMORY, new);
    }
    for record in found.open_turns.values() {
        count(keys::OPEN_TURN, put_unless(txn, record, |_| true)?);
    }
    if let Some(patch) = &found.config {
        count(keys::CONFIG, put_unless(txn, patch, |_: &ConfigPatch| true)?);
    }
    if let Some(active) = &found.active {
        let mut meta = WriteKeyspace::open(txn, keys::META)?;
        if meta.get(keys::META_ACTIVE_CONVERSATION)?.is_none() {
            meta.insert(keys::META_ACTIVE_CONVERSATION, active.as_bytes())?;
        }
    }
    let mut conversations: BTreeMap<&str, Vec<&StoredMessage>> = BTreeMap::new();
    for ((conversation, _), message) in &found.messages {
        conversations.entry(conversation).or_default().push(message);
    }
    for (conversation, mut messages) in conversations {
        messages.sort_by_key(|message| (message.record.seq, message.record.ts));
        for _ in 0..bring_in_messages(txn, conversation, &messages)? {
            count(keys::MESSAGE, true);
        }
    }
    Ok(added)
}

/// Writes a record unless there is one that `keep` wants to stay; says whether there was none.
fn put_unless<R: Record>(txn: &WriteTransaction, record: &R, keep: impl Fn(&R) -> bool) -> Result<bool, Problem> {
    let mut table = WriteKeyspace::open(txn, R::KEYSPACE)?;
    let stored = table.read::<R>(&record.key()?)?;
    if !stored.as_ref().is_some_and(keep) {
        table.put(record)?;
    }
    Ok(stored.is_none())
}

/// Puts messages that were found before those that are there: a conversation that went on in a new database went on after
/// what was in the damaged one. Returns how many are new.
fn bring_in_messages(txn: &WriteTransaction, conversation: &str, found: &[&StoredMessage]) -> Result<u64, Problem> {
    let scope = keys::conversation_scope(conversation)?;
    let mut table = WriteKeyspace::open(txn, keys::MESSAGE)?;
    let mut there = Vec::new();
    for key in table.keys(&scope)? {
        if let Some(stored) = table.read::<StoredMessage>(&key)? {
            there.push(stored);
        }
    }
    let known: HashSet<&str> = there.iter().map(|stored| stored.record.id.as_str()).collect();
    let new: Vec<&StoredMessage> = found
        .iter()
        .copied()
        .filter(|stored| !known.contains(stored.record.id.as_str()))
        .collect();
    if new.is_empty() {
        return Ok(0);
    }
    let added = new.len() as u64;
    let all: Vec<StoredMessage> = new.into_iter().chain(&there).cloned().collect();
    table.remove_scope(&scope)?;
    let mut ids = WriteKeyspace::open(txn, keys::MESSAGE_ID)?;
    for (seq, mut stored) in (1..).zip(all) {
        stored.record.seq = seq;
        table.put(&stored)?;
        ids.put(&MessageIdRecord {
            conversation_id: conversation.to_owned(),
            id: stored.record.id,
            seq,
        })?;
    }
    Ok(added)
}
