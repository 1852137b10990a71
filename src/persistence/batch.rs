//! What one transaction writes: an ordered list of operations, applied all or none.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::records::{ConversationRecord, LiveTerminal, MessageRecord, OpenTurn, ProjectMemory, UsageRecord};
use crate::message::Message;

/// One operation. The form in which batches wait in the spool, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Op {
    PutConversation {
        record: Box<ConversationRecord>,
    },
    DeleteConversation {
        conversation_id: String,
    },
    AppendMessage {
        record: Box<MessageRecord>,
    },
    ReplaceMessage {
        conversation_id: String,
        id: String,
        message: Box<Message>,
    },
    DeleteMessage {
        conversation_id: String,
        id: String,
    },
    ClearMessages {
        conversation_id: String,
    },
    PutNote {
        conversation_id: String,
        note_id: String,
        value: Value,
    },
    DeleteNote {
        conversation_id: String,
        note_id: String,
    },
    PutUsage {
        record: Box<UsageRecord>,
    },
    SetActiveConversation {
        conversation_id: Option<String>,
    },
    OpenTurn {
        record: Box<OpenTurn>,
    },
    CloseTurn {
        conversation_id: String,
        turn_id: String,
    },
    PutConfigPatch {
        patch: Value,
    },
    ClearConfigPatch,
    PutMemory {
        record: Box<ProjectMemory>,
    },
    DeleteMemory {
        project_id: String,
        id: String,
    },
    PutTerminal {
        record: Box<LiveTerminal>,
    },
    RemoveTerminal {
        pid: u32,
        start: u64,
    },
    PutBlob {
        content: BlobContent,
    },
}

/// The bytes of a blob, as hex in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlobContent(pub Vec<u8>);

impl Serialize for BlobContent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for BlobContent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        unhex(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("not hex"))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

/// The SHA-256 of `bytes` in hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// An ordered set of writes that become durable together or not at all.
///
/// Building never fails; a record that is not valid is left out at commit, and the report says so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub(crate) ops: Vec<Op>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// How many operations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Adds everything of `other` after what is here.
    pub fn append(&mut self, other: Self) {
        self.ops.extend(other.ops);
    }

    fn push(&mut self, op: Op) -> &mut Self {
        self.ops.push(op);
        self
    }

    /// Writes a conversation's record, whole.
    pub fn put_conversation(&mut self, record: ConversationRecord) -> &mut Self {
        self.push(Op::PutConversation {
            record: Box::new(record),
        })
    }

    /// Removes a conversation with its messages, notes, usage and open turns.
    pub fn delete_conversation(&mut self, conversation_id: impl Into<String>) -> &mut Self {
        self.push(Op::DeleteConversation {
            conversation_id: conversation_id.into(),
        })
    }

    /// Appends a message. Its place is given inside the transaction; the same message id is appended once.
    pub fn append_message(&mut self, record: MessageRecord) -> &mut Self {
        self.push(Op::AppendMessage {
            record: Box::new(record),
        })
    }

    /// Changes what a message says; its place, turn and time stay.
    pub fn replace_message(
        &mut self,
        conversation_id: impl Into<String>,
        id: impl Into<String>,
        message: Message,
    ) -> &mut Self {
        self.push(Op::ReplaceMessage {
            conversation_id: conversation_id.into(),
            id: id.into(),
            message: Box::new(message),
        })
    }

    /// Removes one message.
    pub fn delete_message(&mut self, conversation_id: impl Into<String>, id: impl Into<String>) -> &mut Self {
        self.push(Op::DeleteMessage {
            conversation_id: conversation_id.into(),
            id: id.into(),
        })
    }

    /// Removes every message of a conversation and keeps the rest of it.
    pub fn clear_messages(&mut self, conversation_id: impl Into<String>) -> &mut Self {
        self.push(Op::ClearMessages {
            conversation_id: conversation_id.into(),
        })
    }

    /// Writes a note of a conversation.
    pub fn put_note(
        &mut self,
        conversation_id: impl Into<String>,
        note_id: impl Into<String>,
        value: Value,
    ) -> &mut Self {
        self.push(Op::PutNote {
            conversation_id: conversation_id.into(),
            note_id: note_id.into(),
            value,
        })
    }

    /// Removes a note of a conversation.
    pub fn delete_note(&mut self, conversation_id: impl Into<String>, note_id: impl Into<String>) -> &mut Self {
        self.push(Op::DeleteNote {
            conversation_id: conversation_id.into(),
            note_id: note_id.into(),
        })
    }

    /// Writes what a turn, or a child in it, used so far.
    pub fn put_usage(&mut self, record: UsageRecord) -> &mut Self {
        self.push(Op::PutUsage {
            record: Box::new(record),
        })
    }

    /// Says which conversation was used last.
    pub fn set_active_conversation(&mut self, conversation_id: impl Into<String>) -> &mut Self {
        self.push(Op::SetActiveConversation {
            conversation_id: Some(conversation_id.into()),
        })
    }

    /// Says that no conversation was used last.
    pub fn clear_active_conversation(&mut self) -> &mut Self {
        self.push(Op::SetActiveConversation { conversation_id: None })
    }

    /// Marks a turn as in progress.
    pub fn open_turn(&mut self, record: OpenTurn) -> &mut Self {
        self.push(Op::OpenTurn {
            record: Box::new(record),
        })
    }

    /// Takes the mark of a turn in progress away.
    pub fn close_turn(&mut self, conversation_id: impl Into<String>, turn_id: impl Into<String>) -> &mut Self {
        self.push(Op::CloseTurn {
            conversation_id: conversation_id.into(),
            turn_id: turn_id.into(),
        })
    }

    /// Writes the patch of runtime overrides, whole. It must be an object.
    pub fn put_config_patch(&mut self, patch: Value) -> &mut Self {
        self.push(Op::PutConfigPatch { patch })
    }

    /// Removes the patch of runtime overrides.
    pub fn clear_config_patch(&mut self) -> &mut Self {
        self.push(Op::ClearConfigPatch)
    }

    /// Writes one memory of a project.
    pub fn put_memory(&mut self, record: ProjectMemory) -> &mut Self {
        self.push(Op::PutMemory {
            record: Box::new(record),
        })
    }

    /// Removes one memory of a project.
    pub fn delete_memory(&mut self, project_id: impl Into<String>, id: impl Into<String>) -> &mut Self {
        self.push(Op::DeleteMemory {
            project_id: project_id.into(),
            id: id.into(),
        })
    }

    /// Says which conversation a process has open; replaces what that process said before.
    pub fn put_terminal(&mut self, record: LiveTerminal) -> &mut Self {
        self.push(Op::PutTerminal {
            record: Box::new(record),
        })
    }

    /// Says that a process has no conversation open any more.
    pub fn remove_terminal(&mut self, process: &super::process::ProcessStamp) -> &mut Self {
        self.push(Op::RemoveTerminal {
            pid: process.pid,
            start: process.start,
        })
    }

    /// Keeps `content` once, however often it is put, and returns the SHA-256 it is found by.
    ///
    /// Content longer than `max_blob_bytes` is not kept, and the report of the commit says so.
    pub fn put_blob(&mut self, content: Vec<u8>) -> String {
        let name = sha256_hex(&content);
        self.push(Op::PutBlob {
            content: BlobContent(content),
        });
        name
    }
}
