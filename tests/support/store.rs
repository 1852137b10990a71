//! Records and questions that several store tests share.

use std::path::Path;

use agent_smith_core::message::{Message, ToolCall};
use agent_smith_core::persistence::{Batch, ConversationRecord, MessageRecord, Store, StoreError, StoreOptions};

pub fn store(path: &Path) -> Store {
    Store::new(StoreOptions::at(path))
}

pub fn conversation(id: &str, updated: u64) -> ConversationRecord {
    ConversationRecord {
        id: id.to_owned(),
        project_id: "p1".to_owned(),
        role: "direct".to_owned(),
        cwd: "/tmp".to_owned(),
        created: 1,
        updated,
        ..ConversationRecord::default()
    }
}

pub fn message(conversation_id: &str, id: &str, message: Message) -> MessageRecord {
    MessageRecord {
        id: id.to_owned(),
        conversation_id: conversation_id.to_owned(),
        turn_id: "t1".to_owned(),
        seq: 0,
        ts: 7,
        message,
    }
}

pub fn user(conversation_id: &str, id: &str) -> MessageRecord {
    message(conversation_id, id, Message::user(format!("text of {id}")))
}

/// A batch that appends one user message.
pub fn one(conversation_id: &str, id: &str) -> Batch {
    let mut batch = Batch::new();
    batch.append_message(user(conversation_id, id));
    batch
}

/// A whole tool round: the assistant's call and its result.
pub fn round(conversation_id: &str, id: &str) -> Batch {
    let mut assistant = Message::assistant("");
    assistant.tool_calls.push(ToolCall {
        id: format!("call-{id}"),
        name: "read".to_owned(),
        arguments: "{\"path\":\"a\"}".to_owned(),
        extra: serde_json::Map::new(),
    });
    let mut batch = Batch::new();
    batch.append_message(message(conversation_id, &format!("{id}-a"), assistant));
    batch.append_message(message(
        conversation_id,
        &format!("{id}-r"),
        Message::tool(format!("call-{id}"), "read", "content ".repeat(40)),
    ));
    batch
}

pub fn ids(store: &Store, conversation_id: &str) -> Result<Vec<String>, StoreError> {
    store.read_blocking(|reader| {
        let messages = reader.messages(conversation_id)?;
        Ok(messages.into_iter().map(|message| message.id).collect())
    })
}

/// Whether the messages are in order and each call has its result right after it.
pub fn is_valid_history(messages: &[MessageRecord]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut last = 0;
    for record in messages {
        if record.seq <= last {
            return Err(format!("{} has the place {} after {last}", record.id, record.seq));
        }
        last = record.seq;
        match &record.message.tool_call_id {
            Some(call) => {
                let at = open.iter().position(|id| id == call);
                open.remove(at.ok_or_else(|| format!("{} answers no open call", record.id))?);
            }
            None if !open.is_empty() => return Err(format!("{} comes before the results of {open:?}", record.id)),
            None => open.extend(record.message.tool_calls.iter().map(|call| call.id.clone())),
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("no results of {open:?}"))
    }
}
