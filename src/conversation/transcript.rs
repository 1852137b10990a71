//! What was said in a conversation, in order, verbatim.

use crate::message::{Message, Speaker};

/// The transcript of one conversation. The system prompt stands apart: it is frozen at the first turn.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The conversation.
    pub conversation_id: String,
    /// The frozen system prompt; `None` before the first turn.
    pub system: Option<String>,
    messages: Vec<Message>,
}

impl Transcript {
    /// An empty transcript.
    #[must_use]
    pub fn new(conversation_id: impl Into<String>) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            system: None,
            messages: Vec::new(),
        }
    }

    /// A transcript with what was kept of it.
    #[must_use]
    pub fn resumed(conversation_id: impl Into<String>, system: Option<String>, messages: Vec<Message>) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            system,
            messages,
        }
    }

    /// Everything after the system prompt.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Takes out everything from message `start` on.
    pub fn truncate(&mut self, start: usize) {
        self.messages.truncate(start);
    }

    /// Whether nothing was said yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The last text of the model, empty where it said nothing. An answer of calls alone is not looked at.
    #[must_use]
    pub fn last_answer(&self) -> &str {
        let last = self
            .messages
            .iter()
            .rev()
            .find(|message| message.role == Speaker::Assistant && !message.content.trim().is_empty());
        last.map_or("", |message| message.content.as_str())
    }
}

/// Whether the message opens a tool round: an assistant message with calls, which the results follow.
#[must_use]
pub fn is_tool_round(message: &Message) -> bool {
    message.role == Speaker::Assistant && !message.tool_calls.is_empty()
}
