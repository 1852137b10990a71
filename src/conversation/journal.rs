//! Keeps a turn: each finished round in one durable commit, the end in one atomic transaction.

use serde::{Deserialize, Serialize};

use crate::conversation::transcript::Transcript;
use crate::error::AgentError;
use crate::message::Usage;
use crate::persistence::{
    Batch, ConversationRecord, MessageRecord, NoticeKind, OpenTurn, Store, StoreNotice, UsageRecord,
};
use crate::protocol::{Durability, EventKind, NoticeLevel, StopReason};

/// The note that says how a turn went, kept under `turn_record-<turn_id>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The turn.
    pub turn_id: String,
    /// The role it ran under.
    pub role: String,
    /// The model it asked.
    pub model: String,
    /// The directory it ran in.
    pub cwd: String,
    /// The project it ran in.
    pub project_id: String,
    /// When it began, in milliseconds since the epoch.
    pub started: u64,
    /// When it ended.
    pub ended: u64,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Requests answered.
    pub rounds: u32,
    /// Tools that ran.
    pub tool_calls: u32,
    /// What it took.
    pub usage: Usage,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
}

/// How a commit went.
#[derive(Debug)]
pub struct JournalReport {
    /// How safely it is kept.
    pub durability: Durability,
    /// What the user should know of it, as events.
    pub notices: Vec<EventKind>,
}

/// Keeps one turn.
pub struct Journal {
    store: Store,
    conversation: ConversationRecord,
    turn_id: String,
    /// Whether the store knows that the turn is open.
    open: bool,
    /// Messages of the transcript that are kept.
    kept: usize,
    /// What goes before everything else of the first commit.
    first: Batch,
    clock: fn() -> u64,
}

impl Journal {
    /// A journal for the turn `turn_id` of `conversation`; the first `kept` messages of its transcript are kept already.
    #[must_use]
    pub fn new(
        store: Store,
        conversation: ConversationRecord,
        turn_id: String,
        kept: usize,
        clock: fn() -> u64,
    ) -> Self {
        Self {
            store,
            conversation,
            turn_id,
            open: false,
            kept,
            first: Batch::default(),
            clock,
        }
    }

    /// The id in the store of message `index` of a transcript, where the turn `turn_id` brought it.
    #[must_use]
    pub fn message_id(turn_id: &str, index: usize) -> String {
        format!("{turn_id}.{index}")
    }

    /// Lets the first commit begin with `batch`: what the turn replaces goes only when something of the turn is kept.
    #[must_use]
    pub fn replacing(mut self, batch: Batch) -> Self {
        self.first = batch;
        self
    }

    /// Makes every new message of the transcript durable.
    pub async fn keep_round(&mut self, transcript: &Transcript) -> JournalReport {
        let mut batch = std::mem::take(&mut self.first);
        if !self.open {
            batch.put_conversation(self.conversation.clone());
            batch.open_turn(OpenTurn::new(&self.conversation.id, &self.turn_id, (self.clock)()));
            self.open = true;
        }
        self.append_new(transcript, &mut batch);
        self.commit(batch).await
    }

    /// Keeps the turn's end in one transaction: the last messages, what was used, the turn's record, and, where `active`,
    /// that this conversation is the one to come back to.
    pub async fn finish(&mut self, transcript: &Transcript, record: &TurnRecord, active: bool) -> JournalReport {
        let mut batch = std::mem::take(&mut self.first);
        self.conversation.updated = record.ended;
        self.conversation.turns += 1;
        batch.put_conversation(self.conversation.clone());
        self.append_new(transcript, &mut batch);
        batch.put_usage(UsageRecord {
            conversation_id: self.conversation.id.clone(),
            turn_id: self.turn_id.clone(),
            child_job: None,
            role: record.role.clone(),
            model: record.model.clone(),
            usage: record.usage.clone(),
            ts: record.ended,
        });
        match serde_json::to_value(record) {
            Ok(note) => {
                batch.put_note(&self.conversation.id, format!("turn_record-{}", self.turn_id), note);
            }
            Err(error) => tracing::error!(%error, "the turn's record could not be written"),
        }
        if active {
            batch.set_active_conversation(&self.conversation.id);
        }
        batch.close_turn(&self.conversation.id, &self.turn_id);
        self.commit(batch).await
    }

    /// The conversation's record as it is kept now.
    #[must_use]
    pub fn conversation(&self) -> &ConversationRecord {
        &self.conversation
    }

    fn append_new(&mut self, transcript: &Transcript, batch: &mut Batch) {
        let now = (self.clock)();
        for (index, message) in transcript.messages().iter().enumerate().skip(self.kept) {
            batch.append_message(MessageRecord {
                id: Self::message_id(&self.turn_id, index),
                conversation_id: self.conversation.id.clone(),
                turn_id: self.turn_id.clone(),
                seq: 0,
                ts: now,
                message: message.clone(),
            });
        }
        self.kept = transcript.messages().len();
    }

    async fn commit(&self, batch: Batch) -> JournalReport {
        let report = self.store.commit(batch).await;
        JournalReport {
            durability: report.durability,
            notices: report.notices.into_iter().map(notice).collect(),
        }
    }
}

/// What the store has to tell, as an event.
#[must_use]
pub fn notice(notice: StoreNotice) -> EventKind {
    let level = match notice.kind {
        NoticeKind::SavedAgain | NoticeKind::AbortedTurns => NoticeLevel::Info,
        NoticeKind::NotSaved | NoticeKind::MovedAside => NoticeLevel::Error,
        NoticeKind::Spooled | NoticeKind::Refused | NoticeKind::Unreadable | NoticeKind::Cut | NoticeKind::Spool => {
            NoticeLevel::Warn
        }
    };
    EventKind::Notice {
        level,
        text: notice.message,
        hint: notice.hint,
    }
}
