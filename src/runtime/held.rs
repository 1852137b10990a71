//! A conversation as a session holds it in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::conversation::{Transcript, Window};
use crate::llm::history;
use crate::message::Usage;
use crate::persistence::ConversationRecord;
use crate::prompt::PromptState;
use crate::role::Role;
use crate::runtime::conversations::{LastTurn, OpenedConversation};
use crate::runtime::usage::UsageTracker;

/// The conversation.
#[derive(Default)]
pub(super) struct Conversation {
    pub record: ConversationRecord,
    pub transcript: Transcript,
    pub window: Window,
    /// Messages of the transcript that the store has.
    pub kept: usize,
    pub usage: Arc<Mutex<UsageTracker>>,
    /// What the model was last told of its place and role.
    pub told: Option<PromptState>,
    /// The last turn, for `/retry`.
    pub last_turn: Option<LastTurn>,
}

/// The member of a conversation's record that holds what the model was last told.
const PROMPT_STATE: &str = "prompt_state";

impl Conversation {
    /// The conversation as it was opened.
    pub(super) fn new(opened: OpenedConversation) -> Self {
        let OpenedConversation {
            record,
            messages,
            usage,
            last_turn,
            ..
        } = opened;
        let mut parent = Usage::default();
        let mut children: BTreeMap<Role, Usage> = BTreeMap::new();
        for used in usage {
            match (&used.child_job, Role::from_name(&used.role)) {
                (Some(_), Some(role)) => children.entry(role).or_default().add(&used.usage),
                _ => parent.add(&used.usage),
            }
        }
        // Nothing is written back: what a server would refuse is set right in each request's copy.
        for repair in history::check(&messages) {
            tracing::info!(conversation = %record.id, ?repair, "the transcript is set right whenever it is sent");
        }
        let kept = messages.len();
        let told = record
            .extra
            .get(PROMPT_STATE)
            .cloned()
            .and_then(|state| serde_json::from_value(state).ok());
        Self {
            transcript: Transcript::resumed(record.id.clone(), record.system_prompt.clone(), messages),
            record,
            window: Window::default(),
            kept,
            usage: Arc::new(Mutex::new(UsageTracker::resumed(parent, children))),
            told,
            last_turn,
        }
    }

    /// Notes that the model is being told `state`, here and in the record.
    pub(super) fn tell(&mut self, state: PromptState) {
        if let Ok(value) = serde_json::to_value(&state) {
            self.record.extra.insert(PROMPT_STATE.to_owned(), value);
        }
        self.told = Some(state);
    }

    /// Lets go of the frozen system prompt: the next turn builds it anew.
    pub(super) fn thaw(&mut self) {
        self.transcript.system = None;
        self.record.system_prompt = None;
        self.record.extra.shift_remove(PROMPT_STATE);
        self.told = None;
    }

    /// Takes everything from message `start` on out of the transcript.
    pub(super) fn cut(&mut self, start: usize) {
        self.transcript.truncate(start);
        self.window = Window::default();
        self.kept = self.kept.min(start);
        self.last_turn = None;
    }
}
