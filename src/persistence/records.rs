//! The records of each keyspace, and what makes one valid.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::codec::Record;
use super::error::StoreError;
use super::keys;
use super::process::ProcessStamp;
use crate::message::{Message, Usage};

/// A conversation: what does not belong to one message. Times are milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationRecord {
    /// Its id; holds no `:`.
    pub id: String,
    /// The project it belongs to.
    pub project_id: String,
    /// The role it is led in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// The working directory of its last turn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// The conversation that dispatched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// A line that tells it apart in lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// When it began.
    #[serde(default)]
    pub created: u64,
    /// When it was last written to.
    #[serde(default)]
    pub updated: u64,
    /// The system message, frozen at the first turn so that the provider's cache lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The model chosen for this conversation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// Turns begun so far.
    #[serde(default)]
    pub turns: u64,
    /// Members that this version does not know; they are kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Record for ConversationRecord {
    const KEYSPACE: &'static str = keys::CONVERSATION;

    fn key(&self) -> Result<String, StoreError> {
        keys::conversation(&self.id)
    }

    fn validate(&self) -> Result<(), String> {
        keys::segment("project_id", &self.project_id).map_err(|error| error.to_string())?;
        if self.project_id == keys::ANY_PROJECT {
            return Err("its project_id stands for every project".to_owned());
        }
        match &self.parent {
            Some(parent) if *parent == self.id => Err("it is its own parent".to_owned()),
            Some(parent) => keys::segment("parent", parent)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Its own id, unique in its conversation; appending the same id again changes nothing.
    pub id: String,
    /// The conversation it belongs to.
    pub conversation_id: String,
    /// The turn it belongs to.
    pub turn_id: String,
    /// Its place in the conversation. Given inside the transaction; what a new record says here does not matter.
    #[serde(default)]
    pub seq: u64,
    /// When it came to be, in milliseconds since the epoch.
    pub ts: u64,
    /// What was said.
    pub message: Message,
}

impl Record for MessageRecord {
    const KEYSPACE: &'static str = keys::MESSAGE;

    fn key(&self) -> Result<String, StoreError> {
        keys::message(&self.conversation_id, self.seq)
    }

    fn validate(&self) -> Result<(), String> {
        keys::segment("message_id", &self.id).map_err(|error| error.to_string())?;
        keys::segment("turn_id", &self.turn_id).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredMessage {
    #[serde(flatten)]
    pub record: MessageRecord,
    /// The blob that holds the content, where that is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_blob: Option<String>,
}

impl Record for StoredMessage {
    const KEYSPACE: &'static str = keys::MESSAGE;

    fn key(&self) -> Result<String, StoreError> {
        self.record.key()
    }

    fn validate(&self) -> Result<(), String> {
        self.record.validate()
    }
}

/// Where a message with a given id stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageIdRecord {
    pub conversation_id: String,
    pub id: String,
    pub seq: u64,
}

impl Record for MessageIdRecord {
    const KEYSPACE: &'static str = keys::MESSAGE_ID;

    fn key(&self) -> Result<String, StoreError> {
        keys::message_id(&self.conversation_id, &self.id)
    }
}

/// A note of a conversation: a turn's record, an entry of the scratchpad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoteRecord {
    /// The conversation it belongs to.
    pub conversation_id: String,
    /// Its id; opaque, may hold `:`.
    pub note_id: String,
    /// Its content.
    pub value: Value,
}

impl Record for NoteRecord {
    const KEYSPACE: &'static str = keys::NOTE;

    fn key(&self) -> Result<String, StoreError> {
        keys::note(&self.conversation_id, &self.note_id)
    }
}

/// What a turn, or a child's job in it, used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// The conversation it belongs to.
    pub conversation_id: String,
    /// The turn it belongs to.
    pub turn_id: String,
    /// The dispatch job, where a child used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_job: Option<String>,
    /// The role that used it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The count.
    pub usage: Usage,
    /// When, in milliseconds since the epoch.
    #[serde(default)]
    pub ts: u64,
}

impl Record for UsageRecord {
    const KEYSPACE: &'static str = keys::USAGE;

    fn key(&self) -> Result<String, StoreError> {
        keys::usage(&self.conversation_id, &self.turn_id, self.child_job.as_deref())
    }

    fn validate(&self) -> Result<(), String> {
        match self.usage.cost {
            Some(cost) if !cost.is_finite() => Err(format!("its cost is {cost}")),
            _ => Ok(()),
        }
    }
}

/// One thing to remember about a project, shared by all its conversations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProjectMemory {
    /// The project.
    pub project_id: String,
    /// Its id within the project; holds no `:`.
    pub id: String,
    /// The text.
    pub content: String,
    /// When it was first written, in milliseconds since the epoch.
    #[serde(default)]
    pub created: u64,
    /// When it was last written, in milliseconds since the epoch.
    #[serde(default)]
    pub updated: u64,
}

impl Record for ProjectMemory {
    const KEYSPACE: &'static str = keys::MEMORY;

    fn key(&self) -> Result<String, StoreError> {
        keys::memory(&self.project_id, &self.id)
    }
}

/// The marker of a turn in progress. Where its process is dead, the turn was aborted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The conversation it belongs to.
    pub conversation_id: String,
    /// The turn.
    pub turn_id: String,
    /// The process that runs it.
    pub process: ProcessStamp,
    /// When it began, in milliseconds since the epoch.
    pub opened: u64,
}

impl OpenTurn {
    /// The marker of a turn that this process begins at `opened`.
    #[must_use]
    pub fn new(conversation_id: impl Into<String>, turn_id: impl Into<String>, opened: u64) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            turn_id: turn_id.into(),
            process: ProcessStamp::current(),
            opened,
        }
    }
}

impl Record for OpenTurn {
    const KEYSPACE: &'static str = keys::OPEN_TURN;

    fn key(&self) -> Result<String, StoreError> {
        keys::open_turn(&self.conversation_id, &self.turn_id)
    }
}

/// Which conversation a live process has open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveTerminal {
    /// The process; there is one record a process.
    pub process: ProcessStamp,
    /// The conversation it has open.
    pub conversation_id: String,
    /// The project that conversation belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project_id: String,
    /// When it was opened, in milliseconds since the epoch.
    #[serde(default)]
    pub opened: u64,
}

impl LiveTerminal {
    /// The record of this process having `conversation_id` open since `opened`.
    #[must_use]
    pub fn new(conversation_id: impl Into<String>, project_id: impl Into<String>, opened: u64) -> Self {
        Self {
            process: ProcessStamp::current(),
            conversation_id: conversation_id.into(),
            project_id: project_id.into(),
            opened,
        }
    }
}

impl Record for LiveTerminal {
    const KEYSPACE: &'static str = keys::TERMINAL;

    fn key(&self) -> Result<String, StoreError> {
        Ok(keys::terminal(self.process.pid, self.process.start))
    }

    fn validate(&self) -> Result<(), String> {
        keys::segment("conversation_id", &self.conversation_id)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

/// The patch of runtime overrides: a part of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConfigPatch {
    pub patch: Value,
}

impl Record for ConfigPatch {
    const KEYSPACE: &'static str = keys::CONFIG;

    fn key(&self) -> Result<String, StoreError> {
        Ok(keys::CONFIG_OVERRIDES.to_owned())
    }

    fn validate(&self) -> Result<(), String> {
        if self.patch.is_object() {
            Ok(())
        } else {
            Err("the patch is not an object".to_owned())
        }
    }
}
