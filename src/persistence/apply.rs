//! Applies a batch to a write transaction.

use redb::WriteTransaction;

use super::batch::{Batch, Op, sha256_hex};
use super::blobs;
use super::codec::Record;
use super::error::StoreError;
use super::keys;
use super::problem::Problem;
use super::records::{
    ConfigPatch, ConversationRecord, LiveTerminal, MessageIdRecord, MessageRecord, NoteRecord, OpenTurn, StoredMessage,
};
use super::tables::WriteKeyspace;

/// Where a batch comes from: what waited in a spool may be older than what is stored by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Live,
    Spool,
}

/// Applies every operation in order. Records that are not valid are left out and returned; a failure of the engine ends
/// the transaction.
pub(crate) fn apply(
    txn: &WriteTransaction,
    batch: &Batch,
    origin: Origin,
    max_blob_bytes: u64,
) -> Result<Vec<StoreError>, Problem> {
    let mut refused = Vec::new();
    for op in &batch.ops {
        match apply_one(txn, op, origin, max_blob_bytes) {
            Ok(()) => {}
            Err(Problem::Record(error)) => refused.push(error),
            Err(problem) => return Err(problem),
        }
    }
    Ok(refused)
}

fn apply_one(txn: &WriteTransaction, op: &Op, origin: Origin, max_blob_bytes: u64) -> Result<(), Problem> {
    let open = |keyspace| WriteKeyspace::open(txn, keyspace);
    match op {
        Op::PutConversation { record } => put_conversation(txn, record, origin),
        Op::DeleteConversation { conversation_id } => delete_conversation(txn, conversation_id),
        Op::AppendMessage { record } => append_message(txn, record, max_blob_bytes),
        Op::ReplaceMessage {
            conversation_id,
            id,
            message,
        } => {
            let Some(key) = message_key(txn, conversation_id, id)? else {
                return Ok(());
            };
            let old = open(keys::MESSAGE)?.read::<StoredMessage>(&key)?;
            if let Some(old) = old {
                let record = MessageRecord {
                    message: (**message).clone(),
                    ..old.record
                };
                put_message(txn, record, max_blob_bytes)?;
            }
            Ok(())
        }
        Op::DeleteMessage { conversation_id, id } => {
            if let Some(key) = message_key(txn, conversation_id, id)? {
                open(keys::MESSAGE)?.remove(&key)?;
                open(keys::MESSAGE_ID)?.remove(&keys::message_id(conversation_id, id)?)?;
            }
            Ok(())
        }
        Op::ClearMessages { conversation_id } => {
            let scope = keys::conversation_scope(conversation_id)?;
            open(keys::MESSAGE)?.remove_scope(&scope)?;
            open(keys::MESSAGE_ID)?.remove_scope(&scope)
        }
        Op::PutNote {
            conversation_id,
            note_id,
            value,
        } => open(keys::NOTE)?.put(&NoteRecord {
            conversation_id: conversation_id.clone(),
            note_id: note_id.clone(),
            value: value.clone(),
        }),
        Op::DeleteNote {
            conversation_id,
            note_id,
        } => open(keys::NOTE)?.remove(&keys::note(conversation_id, note_id)?),
        Op::PutUsage { record } => open(keys::USAGE)?.put(&**record),
        Op::SetActiveConversation { conversation_id } => {
            let mut meta = open(keys::META)?;
            match conversation_id {
                Some(id) => meta.insert(
                    keys::META_ACTIVE_CONVERSATION,
                    keys::segment("conversation_id", id)?.as_bytes(),
                ),
                None => meta.remove(keys::META_ACTIVE_CONVERSATION),
            }
        }
        Op::OpenTurn { record } => open(keys::OPEN_TURN)?.put(&**record),
        Op::CloseTurn {
            conversation_id,
            turn_id,
        } => open(keys::OPEN_TURN)?.remove(&keys::open_turn(conversation_id, turn_id)?),
        Op::PutConfigPatch { patch } => open(keys::CONFIG)?.put(&ConfigPatch { patch: patch.clone() }),
        Op::ClearConfigPatch => open(keys::CONFIG)?.remove(keys::CONFIG_OVERRIDES),
        Op::PutMemory { record } => open(keys::MEMORY)?.put(&**record),
        Op::DeleteMemory { project_id, id } => open(keys::MEMORY)?.remove(&keys::memory(project_id, id)?),
        Op::PutTerminal { record } => open(keys::TERMINAL)?.put(&**record),
        Op::RemoveTerminal { pid, start } => open(keys::TERMINAL)?.remove(&keys::terminal(*pid, *start)),
        Op::PutBlob { content } => {
            put_blob(txn, &content.0, max_blob_bytes)?;
            Ok(())
        }
    }
}

/// Writes a conversation's record and its places in the order of use.
pub(crate) fn put_conversation(
    txn: &WriteTransaction,
    record: &ConversationRecord,
    origin: Origin,
) -> Result<(), Problem> {
    let mut table = WriteKeyspace::open(txn, keys::CONVERSATION)?;
    let stored = table.read::<ConversationRecord>(&record.key()?)?;
    if origin == Origin::Spool
        && let Some(stored) = &stored
        && stored.updated > record.updated
    {
        return Ok(());
    }
    table.put(record)?;
    let mut recent = WriteKeyspace::open(txn, keys::RECENT)?;
    for key in stored.iter().map(recent_keys).collect::<Result<Vec<_>, _>>()?.concat() {
        recent.remove(&key)?;
    }
    for key in recent_keys(record)? {
        recent.insert(&key, b"")?;
    }
    Ok(())
}

/// Where a conversation stands in the order of use. What a child led is not offered for going on with.
fn recent_keys(record: &ConversationRecord) -> Result<Vec<String>, StoreError> {
    let mut keys = vec![keys::recent(keys::ANY_PROJECT, record.updated, &record.id)?];
    if record.parent.is_none() {
        keys.push(keys::recent(&record.project_id, record.updated, &record.id)?);
    }
    Ok(keys)
}

fn delete_conversation(txn: &WriteTransaction, id: &str) -> Result<(), Problem> {
    let scope = keys::conversation_scope(id)?;
    for keyspace in [
        keys::MESSAGE,
        keys::MESSAGE_ID,
        keys::NOTE,
        keys::USAGE,
        keys::OPEN_TURN,
    ] {
        WriteKeyspace::open(txn, keyspace)?.remove_scope(&scope)?;
    }
    let key = keys::conversation(id)?;
    let mut table = WriteKeyspace::open(txn, keys::CONVERSATION)?;
    if let Some(stored) = table.read::<ConversationRecord>(&key)? {
        let mut recent = WriteKeyspace::open(txn, keys::RECENT)?;
        for key in recent_keys(&stored)? {
            recent.remove(&key)?;
        }
    }
    table.remove(&key)?;
    let mut meta = WriteKeyspace::open(txn, keys::META)?;
    if meta.get(keys::META_ACTIVE_CONVERSATION)?.as_deref() == Some(id.as_bytes()) {
        meta.remove(keys::META_ACTIVE_CONVERSATION)?;
    }
    Ok(())
}

fn append_message(txn: &WriteTransaction, record: &MessageRecord, max_blob_bytes: u64) -> Result<(), Problem> {
    let id_key = keys::message_id(&record.conversation_id, &record.id)?;
    let mut ids = WriteKeyspace::open(txn, keys::MESSAGE_ID)?;
    if ids.get(&id_key)?.is_some() {
        return Ok(());
    }
    let scope = keys::conversation_scope(&record.conversation_id)?;
    let seq = WriteKeyspace::open(txn, keys::MESSAGE)?
        .last_key(&scope)?
        .and_then(|key| keys::message_seq(&key))
        .map_or(1, |last| last.saturating_add(1));
    put_message(txn, MessageRecord { seq, ..record.clone() }, max_blob_bytes)?;
    ids.put(&MessageIdRecord {
        conversation_id: record.conversation_id.clone(),
        id: record.id.clone(),
        seq,
    })
}

/// Writes a message under its place; long content goes to a blob.
pub(crate) fn put_message(
    txn: &WriteTransaction,
    mut record: MessageRecord,
    max_blob_bytes: u64,
) -> Result<(), Problem> {
    // Checked before its content is moved, so that a message that is refused leaves nothing behind.
    record.validate().map_err(|detail| StoreError::Record {
        keyspace: keys::MESSAGE,
        key: record.id.clone(),
        detail,
    })?;
    let mut content_blob = None;
    if record.message.content.len() > blobs::INLINE_BYTES {
        let content = std::mem::take(&mut record.message.content);
        content_blob = Some(put_blob(txn, content.as_bytes(), max_blob_bytes)?);
    }
    WriteKeyspace::open(txn, keys::MESSAGE)?.put(&StoredMessage { record, content_blob })
}

/// Keeps content once and returns its name.
pub(crate) fn put_blob(txn: &WriteTransaction, content: &[u8], max_blob_bytes: u64) -> Result<String, Problem> {
    let name = sha256_hex(content);
    let mut table = WriteKeyspace::open(txn, keys::BLOB)?;
    if table.get(&name)?.is_none() {
        table.insert(&name, &blobs::pack(&name, content, max_blob_bytes))?;
    }
    Ok(name)
}

fn message_key(txn: &WriteTransaction, conversation_id: &str, id: &str) -> Result<Option<String>, Problem> {
    let ids = WriteKeyspace::open(txn, keys::MESSAGE_ID)?;
    let key = keys::message_id(conversation_id, id)?;
    match ids.read::<MessageIdRecord>(&key)? {
        Some(found) => Ok(Some(keys::message(conversation_id, found.seq)?)),
        None => Ok(None),
    }
}

/// How much dead processes left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    pub turns: usize,
    pub terminals: usize,
}

/// Closes every turn whose process is dead as aborted, and frees its terminals.
pub(crate) fn close_dead(txn: &WriteTransaction, now: u64) -> Result<Closed, Problem> {
    let mut closed = Closed::default();
    let mut turns = WriteKeyspace::open(txn, keys::OPEN_TURN)?;
    for key in turns.keys("")? {
        let turn = turns.read::<OpenTurn>(&key)?;
        if turn
            .as_ref()
            .is_some_and(|turn| turn.process.is_alive(turn.opened, now))
        {
            continue;
        }
        turns.remove(&key)?;
        closed.turns += 1;
        // A marker that cannot be read marks nothing.
        let Some(turn) = turn else { continue };
        WriteKeyspace::open(txn, keys::NOTE)?.put(&NoteRecord {
            note_id: keys::turn_record_note(&turn.turn_id),
            value: serde_json::json!({
                "turn_id": turn.turn_id,
                "conversation_id": turn.conversation_id,
                "stop_reason": "aborted",
                "opened": turn.opened,
                "closed": now,
                "detail": "The process ended before the turn did; everything of its finished rounds is kept.",
            }),
            conversation_id: turn.conversation_id,
        })?;
    }
    let mut terminals = WriteKeyspace::open(txn, keys::TERMINAL)?;
    for key in terminals.keys("")? {
        let live = terminals.read::<LiveTerminal>(&key)?;
        if !live.is_some_and(|live| live.process.is_alive(live.opened, now)) {
            terminals.remove(&key)?;
            closed.terminals += 1;
        }
    }
    Ok(closed)
}
