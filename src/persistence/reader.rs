//! Reading: typed questions to one consistent snapshot.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;

use redb::ReadTransaction;
use serde_json::Value;

use super::blobs::{self, Blob};
use super::codec::{self, Record};
use super::error::StoreError;
use super::keys;
use super::problem::Problem;
use super::process::now_ms;
use super::records::{
    ConfigPatch, ConversationRecord, LiveTerminal, MessageIdRecord, MessageRecord, NoteRecord, OpenTurn, ProjectMemory,
    StoredMessage, UsageRecord,
};
use super::tables::ReadKeyspace;

/// Keys and values in key order, and the cursor to go on from.
pub(crate) type RawPage = (Vec<(String, Vec<u8>)>, Option<String>);

/// One consistent snapshot of the store, with everything this process wrote, saved or not.
///
/// A record that cannot be read is left out of lists, and told in a notice of the next commit; asked for by itself it
/// is an error.
pub struct Reader<'a> {
    txn: Option<&'a ReadTransaction>,
    path: &'a Path,
    unreadable: RefCell<Vec<StoreError>>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(txn: Option<&'a ReadTransaction>, path: &'a Path) -> Self {
        Self {
            txn,
            path,
            unreadable: RefCell::default(),
        }
    }

    pub(crate) fn into_unreadable(self) -> Vec<StoreError> {
        self.unreadable.into_inner()
    }

    /// A conversation's record.
    ///
    /// # Errors
    /// An id that cannot be one, a record that is not valid, a damaged file.
    pub fn conversation(&self, id: &str) -> Result<Option<ConversationRecord>, StoreError> {
        self.one(&keys::conversation(id)?)
    }

    /// The messages of a conversation, oldest first.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn messages(&self, conversation_id: &str) -> Result<Vec<MessageRecord>, StoreError> {
        let stored = self.list(&keys::conversation_scope(conversation_id)?)?;
        self.whole_messages(stored)
    }

    /// The last `limit` messages of a conversation, oldest first.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn last_messages(&self, conversation_id: &str, limit: usize) -> Result<Vec<MessageRecord>, StoreError> {
        let mut found = Vec::new();
        if limit > 0 {
            self.walk(&keys::conversation_scope(conversation_id)?, true, |message| {
                found.push(message);
                found.len() < limit
            })?;
        }
        found.reverse();
        self.whole_messages(found)
    }

    /// One message by its id.
    ///
    /// # Errors
    /// An id that cannot be one, a record that is not valid, a damaged file.
    pub fn message(&self, conversation_id: &str, id: &str) -> Result<Option<MessageRecord>, StoreError> {
        match self.one::<MessageIdRecord>(&keys::message_id(conversation_id, id)?)? {
            Some(found) => match self.one(&keys::message(conversation_id, found.seq)?)? {
                Some(stored) => self.whole_message(stored).map(Some),
                None => Ok(None),
            },
            None => Ok(None),
        }
    }

    /// Messages of all conversations in key order, `limit` at most, that come after `cursor`; the answer's second part is
    /// the cursor to go on from, `None` at the end. The way to go through everything without keeping other processes from
    /// writing: one question a page.
    ///
    /// # Errors
    /// A damaged file.
    pub fn page_of_messages(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<MessageRecord>, Option<String>), StoreError> {
        let (page, next) = self.page(keys::MESSAGE, cursor, limit)?;
        let mut found = Vec::with_capacity(page.len());
        for (key, value) in page {
            match codec::decode::<StoredMessage>(&key, &value) {
                Ok(stored) => found.push(stored),
                Err(error) => self.unreadable.borrow_mut().push(error),
            }
        }
        Ok((self.whole_messages(found)?, next))
    }

    /// Keys and values of a keyspace, like [`Reader::page_of_messages`].
    pub(crate) fn page(
        &self,
        keyspace: &'static str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<RawPage, StoreError> {
        let mut page: Vec<(String, Vec<u8>)> = Vec::new();
        let mut more = false;
        ReadKeyspace::open(self.txn, keyspace)
            .and_then(|table| {
                table.scan_from(cursor, |key, value| {
                    more = page.len() == limit;
                    if !more {
                        page.push((key.to_owned(), value.to_vec()));
                    }
                    Ok(!more)
                })
            })
            .map_err(|problem| self.error(problem))?;
        let next = page.last().filter(|_| more).map(|(key, _)| key.clone());
        Ok((page, next))
    }

    fn whole_messages(&self, stored: Vec<StoredMessage>) -> Result<Vec<MessageRecord>, StoreError> {
        stored.into_iter().map(|stored| self.whole_message(stored)).collect()
    }

    /// A message with its content, wherever that is kept.
    fn whole_message(&self, stored: StoredMessage) -> Result<MessageRecord, StoreError> {
        let StoredMessage {
            mut record,
            content_blob,
        } = stored;
        if let Some(name) = content_blob {
            record.message.content = match self.blob(&name) {
                Ok(Some(blob)) => blob.into_text(),
                Ok(None) => "[the content is missing in the store]".to_owned(),
                Err(error @ StoreError::Record { .. }) => {
                    self.unreadable.borrow_mut().push(error);
                    "[the content is damaged in the store]".to_owned()
                }
                Err(error) => return Err(error),
            };
        }
        Ok(record)
    }

    /// The conversations of all projects, children's included, last used first, `limit` at most.
    ///
    /// # Errors
    /// A damaged file.
    pub fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>, StoreError> {
        self.find_conversations(None, limit, |_| true)
    }

    /// The conversations that `keep` accepts, last used first, `limit` at most: of all projects, or of one; the latter
    /// without those that children led.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn find_conversations(
        &self,
        project_id: Option<&str>,
        limit: usize,
        mut keep: impl FnMut(&ConversationRecord) -> bool,
    ) -> Result<Vec<ConversationRecord>, StoreError> {
        let scope = keys::project_scope(project_id.unwrap_or(keys::ANY_PROJECT))?;
        let mut found = Vec::new();
        let records = self.keyspace(keys::CONVERSATION)?;
        self.keyspace(keys::RECENT)?
            .scan(&scope, true, |key, _| {
                let Some(id) = keys::recent_conversation(key).filter(|_| found.len() < limit) else {
                    return Ok(found.len() < limit);
                };
                if let Some(value) = records.get(id)? {
                    match codec::decode::<ConversationRecord>(id, &value) {
                        Ok(record) if keep(&record) => found.push(record),
                        Ok(_) => {}
                        Err(error) => self.unreadable.borrow_mut().push(error),
                    }
                }
                Ok(found.len() < limit)
            })
            .map_err(|problem| self.error(problem))?;
        Ok(found)
    }

    /// The last used conversation of a project that is not a child's.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn latest_conversation(&self, project_id: &str) -> Result<Option<ConversationRecord>, StoreError> {
        Ok(self.find_conversations(Some(project_id), 1, |_| true)?.pop())
    }

    /// The last used conversation of a project that no live process has open or runs a turn in.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn latest_free_conversation(&self, project_id: &str) -> Result<Option<ConversationRecord>, StoreError> {
        let now = now_ms();
        let mut turns = self.open_turns()?;
        turns.retain(|turn| turn.process.is_alive(turn.opened, now));
        let turns = turns.into_iter().map(|turn| turn.conversation_id);
        let terminals = self.terminals()?.into_iter().map(|live| live.conversation_id);
        let taken: HashSet<_> = terminals.chain(turns).collect();
        let is_free = |record: &ConversationRecord| !taken.contains(&record.id);
        Ok(self.find_conversations(Some(project_id), 1, is_free)?.pop())
    }

    /// The id of the conversation used last, whoever used it.
    ///
    /// # Errors
    /// A damaged file.
    pub fn active_conversation_id(&self) -> Result<Option<String>, StoreError> {
        let value = self.raw(keys::META, keys::META_ACTIVE_CONVERSATION)?;
        Ok(value.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// A note of a conversation.
    ///
    /// # Errors
    /// Ids that cannot be ones, a record that is not valid, a damaged file.
    pub fn note(&self, conversation_id: &str, note_id: &str) -> Result<Option<Value>, StoreError> {
        let note = self.one::<NoteRecord>(&keys::note(conversation_id, note_id)?)?;
        Ok(note.map(|note| note.value))
    }

    /// The notes of a conversation whose id starts with `prefix`, in the order of their ids.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn notes(&self, conversation_id: &str, prefix: &str) -> Result<Vec<(String, Value)>, StoreError> {
        let scope = keys::conversation_scope(conversation_id)? + prefix;
        let notes = self.list::<NoteRecord>(&scope)?;
        Ok(notes.into_iter().map(|note| (note.note_id, note.value)).collect())
    }

    /// What the turns of a conversation used.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn usage(&self, conversation_id: &str) -> Result<Vec<UsageRecord>, StoreError> {
        self.list(&keys::conversation_scope(conversation_id)?)
    }

    /// The memories of a project, in the order of their ids.
    ///
    /// # Errors
    /// An id that cannot be one, a damaged file.
    pub fn memories(&self, project_id: &str) -> Result<Vec<ProjectMemory>, StoreError> {
        self.list(&keys::project_scope(project_id)?)
    }

    /// One memory of a project.
    ///
    /// # Errors
    /// Ids that cannot be ones, a record that is not valid, a damaged file.
    pub fn memory(&self, project_id: &str, id: &str) -> Result<Option<ProjectMemory>, StoreError> {
        self.one(&keys::memory(project_id, id)?)
    }

    /// The patch of runtime overrides; always an object.
    ///
    /// # Errors
    /// A record that is not valid, a damaged file.
    pub fn config_patch(&self) -> Result<Option<Value>, StoreError> {
        let patch = self.one::<ConfigPatch>(keys::CONFIG_OVERRIDES)?;
        Ok(patch.map(|patch| patch.patch))
    }

    /// The turns in progress, of all processes.
    ///
    /// # Errors
    /// A damaged file.
    pub fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        self.list("")
    }

    /// The live processes and the conversation each has open.
    ///
    /// # Errors
    /// A damaged file.
    pub fn terminals(&self) -> Result<Vec<LiveTerminal>, StoreError> {
        let now = now_ms();
        let mut live = self.list::<LiveTerminal>("")?;
        live.retain(|terminal| terminal.process.is_alive(terminal.opened, now));
        Ok(live)
    }

    /// Content by its SHA-256 in hex.
    ///
    /// # Errors
    /// A value that is not valid, a damaged file.
    pub fn blob(&self, sha256: &str) -> Result<Option<Blob>, StoreError> {
        match self.raw(keys::BLOB, sha256)? {
            Some(value) => blobs::unpack(sha256, &value).map(Some),
            None => Ok(None),
        }
    }

    /// The stored bytes under a key of a keyspace.
    pub(crate) fn raw(&self, keyspace: &'static str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        ReadKeyspace::open(self.txn, keyspace)
            .and_then(|table| table.get(key))
            .map_err(|problem| self.error(problem))
    }

    fn keyspace(&self, keyspace: &'static str) -> Result<ReadKeyspace, StoreError> {
        ReadKeyspace::open(self.txn, keyspace).map_err(|problem| self.error(problem))
    }

    fn one<R: Record>(&self, key: &str) -> Result<Option<R>, StoreError> {
        match self.raw(R::KEYSPACE, key)? {
            Some(bytes) => codec::decode(key, &bytes).map(Some),
            None => Ok(None),
        }
    }

    fn list<R: Record>(&self, prefix: &str) -> Result<Vec<R>, StoreError> {
        let mut found = Vec::new();
        self.walk(prefix, false, |record| {
            found.push(record);
            true
        })?;
        Ok(found)
    }

    fn walk<R: Record>(&self, prefix: &str, reverse: bool, mut visit: impl FnMut(R) -> bool) -> Result<(), StoreError> {
        ReadKeyspace::open(self.txn, R::KEYSPACE)
            .and_then(|table| {
                table.scan(prefix, reverse, |key, value| match codec::decode::<R>(key, value) {
                    Ok(record) => Ok(visit(record)),
                    Err(error) => {
                        self.unreadable.borrow_mut().push(error);
                        Ok(true)
                    }
                })
            })
            .map_err(|problem| self.error(problem))
    }

    fn error(&self, problem: Problem) -> StoreError {
        problem.into_error(self.path)
    }
}
