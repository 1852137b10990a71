//! Which conversation a session works in: a new one, the latest, a named one, or the one this terminal left.

use crate::error::{AgentError, ErrorKind};
use crate::message::{Message, Speaker};
use crate::persistence::{ConversationRecord, MessageRecord, Reader, Store, StoreError, UsageRecord};
use crate::runtime::{clock, ids};

/// Which conversation to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConversationStart {
    /// A new one.
    #[default]
    New,
    /// The latest of this project.
    Latest,
    /// This one.
    Id(String),
    /// What a shell resumes: the last of this project that no live terminal has open, else a new one.
    Auto,
}

/// An opened conversation with what is kept of it.
#[derive(Clone, Debug, Default)]
pub struct OpenedConversation {
    /// Its record.
    pub record: ConversationRecord,
    /// Its messages in order.
    pub messages: Vec<Message>,
    /// What it has used so far.
    pub usage: Vec<UsageRecord>,
    /// Its last turn.
    pub last_turn: Option<LastTurn>,
    /// Whether it was there before.
    pub resumed: bool,
    /// Whether it is new only because other terminals have those that could be resumed.
    pub others_taken: bool,
}

impl OpenedConversation {
    /// What a shell says of the conversation it came to by itself; nothing where it is the first of its project.
    #[must_use]
    pub fn greeting(&self) -> Option<String> {
        if self.resumed {
            let count = self.messages.len();
            let title = &self.record.title;
            return Some(format!(
                "Going on with \u{201c}{title}\u{201d} ({count} messages); /new starts another conversation."
            ));
        }
        self.others_taken
            .then(|| "The last conversation here is open in another terminal; this is a new one.".to_owned())
    }
}

/// The last turn of a conversation, as far as `/retry` needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastTurn {
    /// Where it begins among the messages: with what the user said.
    pub start: usize,
    /// The ids of its messages in the store, in order.
    pub message_ids: Vec<String>,
    /// What the user typed.
    pub line: String,
}

/// Opens conversations.
pub trait ConversationService: Send + Sync {
    /// Opens the conversation `start` names, for the project `project_id`.
    ///
    /// # Errors
    /// `persistence` where the store cannot be read, `schema` where the named conversation does not exist.
    fn open(&self, start: &ConversationStart, project_id: &str) -> Result<OpenedConversation, AgentError>;
}

/// Conversations of the store.
pub struct StoredConversations {
    store: Store,
}

impl StoredConversations {
    /// Conversations kept in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

impl ConversationService for StoredConversations {
    fn open(&self, start: &ConversationStart, project_id: &str) -> Result<OpenedConversation, AgentError> {
        let found = match start {
            ConversationStart::New => None,
            ConversationStart::Latest => {
                let found = self.store.read_blocking(|reader| {
                    let record = reader.latest_conversation(project_id)?;
                    record.map(|record| load(reader, record)).transpose()
                });
                let found = found.map_err(AgentError::from)?;
                let missing = || {
                    AgentError::new(
                        ErrorKind::Schema,
                        "no_conversation",
                        "this project has no conversation to resume",
                    )
                    .from_origin("conversation")
                    .with_hint("start one without --resume")
                };
                Some(found.ok_or_else(missing)?)
            }
            ConversationStart::Id(id) => Some(self.named(id)?),
            ConversationStart::Auto => {
                let found = self.store.read_blocking(|reader| {
                    if let Some(record) = reader.latest_free_conversation(project_id)? {
                        return load(reader, record);
                    }
                    let mut opened = fresh(project_id);
                    opened.others_taken = reader.latest_conversation(project_id)?.is_some();
                    Ok(opened)
                });
                Some(found.map_err(AgentError::from)?)
            }
        };
        Ok(found.unwrap_or_else(|| fresh(project_id)))
    }
}

impl StoredConversations {
    fn named(&self, id: &str) -> Result<OpenedConversation, AgentError> {
        let unknown = || {
            AgentError::new(
                ErrorKind::Schema,
                "unknown_conversation",
                format!("there is no conversation `{id}`"),
            )
            .from_origin("conversation")
        };
        if !ids::is_valid(id) {
            return Err(unknown());
        }
        let found = self.store.read_blocking(|reader| {
            let record = reader.conversation(id)?;
            record.map(|record| load(reader, record)).transpose()
        });
        found.map_err(AgentError::from)?.ok_or_else(unknown)
    }
}

fn load(reader: &Reader<'_>, record: ConversationRecord) -> Result<OpenedConversation, StoreError> {
    let records = reader.messages(&record.id)?;
    let last_turn = last_turn(&records);
    let messages = records.into_iter().map(|record| record.message).collect();
    let usage = reader.usage(&record.id)?;
    Ok(OpenedConversation {
        record,
        messages,
        usage,
        last_turn,
        resumed: true,
        others_taken: false,
    })
}

fn last_turn(records: &[MessageRecord]) -> Option<LastTurn> {
    let turn_id = &records.last()?.turn_id;
    let start = records
        .iter()
        .rposition(|record| record.turn_id != *turn_id)
        .map_or(0, |at| at + 1);
    let first = records
        .get(start)
        .filter(|record| record.message.role == Speaker::User)?;
    Some(LastTurn {
        start,
        message_ids: records[start..].iter().map(|record| record.id.clone()).collect(),
        // Notes and files went with it; what was typed alone is not kept.
        line: first.message.content.clone(),
    })
}

/// A conversation that nobody has spoken in; it reaches the store with its first turn.
#[must_use]
pub fn fresh(project_id: &str) -> OpenedConversation {
    let now = clock::now_ms();
    let record = ConversationRecord {
        id: ids::conversation(),
        project_id: project_id.to_owned(),
        created: now,
        updated: now,
        ..ConversationRecord::default()
    };
    OpenedConversation {
        record,
        ..OpenedConversation::default()
    }
}
