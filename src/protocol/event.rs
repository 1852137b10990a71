//! Events: what happens while ops are worked on.
//!
//! On the wire an event is `{"type", "ts", "turn_id"?, "source_role"?, "job_id"?, "data"}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::AgentError;
use crate::message::Usage;
use crate::protocol::payload::{
    CallOutcome, ChangedFile, Durability, NoticeLevel, RequestFinish, SessionState, ToolFinish, TurnEnd, ViewCursor,
};

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What happened, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
    /// When, in milliseconds since the epoch; never runs backwards within a session.
    pub ts: u64,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The role of the delegated child it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_role: Option<String>,
    /// The delegated job it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// A turn began.
    TurnStarted {
        /// The conversation it continues.
        conversation_id: String,
        /// The active role.
        role: String,
        /// The model of its requests.
        model: String,
        /// What the user typed.
        input: String,
    },
    /// The model-bound messages are ready.
    PromptBuilt {
        /// How many messages.
        messages: usize,
        /// How many tools are offered.
        tools: usize,
        /// Their estimated size in tokens.
        tokens: u64,
    },
    /// A request goes out.
    LlmRequestStarted {
        /// Which round of the turn, from 1.
        round: u32,
        /// Which try of this round's request, from 1.
        attempt: u32,
        /// The model asked.
        model: String,
    },
    /// Text of the answer.
    LlmTextDelta {
        /// The piece.
        text: String,
    },
    /// Thoughts of the model.
    LlmThinkingDelta {
        /// The piece.
        text: String,
    },
    /// The text of this request's answer so far was thoughts: the model closed a block that its template had opened.
    LlmTextWasThinking {},
    /// A call began to arrive.
    LlmToolCallDetected {
        /// The call's id, as far as known.
        call_id: String,
        /// The tool's name, as far as known.
        name: String,
    },
    /// A request's answer is complete.
    LlmRequestCompleted(RequestFinish),
    /// A request was given up because the turn was cancelled.
    LlmRequestCancelled {
        /// Which round of the turn, from 1.
        round: u32,
    },
    /// A request failed and will be tried again. What its answer had shown so far is void.
    LlmRetryScheduled {
        /// Which retry this will be, from 1.
        attempt: u32,
        /// How many there may be.
        max: u32,
        /// The wait before it.
        delay_ms: u64,
        /// Why.
        error: AgentError,
    },
    /// A tool begins.
    ToolExecutionStarted {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// Output of a running tool.
    ToolOutputDelta {
        /// The call.
        call_id: String,
        /// The piece.
        text: String,
        /// Bytes left out before it because they came too fast to be watched.
        #[serde(default, skip_serializing_if = "is_zero")]
        skipped: u64,
    },
    /// A tool ended, well or not.
    ToolExecutionFinished(ToolFinish),
    /// A tool was stopped because the turn was cancelled.
    ToolExecutionCancelled(CallOutcome),
    /// A delegated child was asked to stop.
    DispatchCancelRequested {
        /// The job.
        job: String,
    },
    /// Token counts changed.
    UsageUpdated {
        /// This turn so far.
        turn: Usage,
        /// This conversation so far, its delegated children included.
        conversation: Usage,
        /// Tokens of the last prompt.
        context_tokens: u64,
        /// The model's window; a common size where nobody says.
        context_window: u64,
    },
    /// The model's copy of the transcript was made smaller.
    ContextTrimmed {
        /// Which layer did it: `elide`, `drop`.
        layer: String,
        /// Estimated tokens before.
        before: u64,
        /// Estimated tokens after.
        after: u64,
    },
    /// A turn ended without an error: completed, cancelled, or out of budget. Terminal.
    TurnCompleted(TurnEnd),
    /// A turn ended in an error. Terminal.
    TurnFailed(TurnEnd),
    /// Everything of the turn is kept.
    TurnPersisted {
        /// How safely.
        durability: Durability,
        /// The conversation it was kept in.
        conversation_id: String,
    },
    /// Somebody asked the turn to stop.
    TurnCancelRequested {
        /// Why, for the log.
        reason: String,
    },
    /// A command's answer.
    CommandOutput {
        /// The command's name without the slash.
        command: String,
        /// The answer as Markdown.
        text: String,
        /// Whether it did what was asked.
        ok: bool,
        /// The same as data, where a program may want it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// Something the user should know.
    Notice {
        /// How serious.
        level: NoticeLevel,
        /// What, in a sentence.
        text: String,
        /// What to do next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A question to the user; answered by the `answer` op.
    Question {
        /// The question's id.
        id: String,
        /// The question.
        text: String,
        /// What may be chosen; empty where anything may be typed.
        choices: Vec<String>,
        /// The answer of an empty line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<String>,
    },
    /// Text to put into the input line.
    Prefill {
        /// The text.
        text: String,
    },
    /// What the tools of the turn changed, before the turn ends. What commands changed is not known.
    FilesChanged {
        /// The files that are not as they were when the turn began.
        files: Vec<ChangedFile>,
    },
    /// A line typed during a turn waits to join it.
    InputQueued {
        /// The line.
        text: String,
        /// How many wait now.
        queued: usize,
    },
    /// Every line handed over so far was worked off: no turn runs, no question is open, the session waits for the next
    /// line. How a client that works off one line at a time knows that it is done.
    InputSettled {
        /// How many lines were handed over so far, the ones that joined a turn included.
        inputs: u64,
        /// Whether the session ends now instead.
        closing: bool,
    },
    /// What is going on changed.
    StatusChanged {
        /// The new state.
        state: SessionState,
    },
    /// A full-screen view wants to be opened.
    OpenView {
        /// Its id for `view_key`.
        view_id: String,
        /// Its title.
        title: String,
    },
    /// A view's whole picture.
    ViewFrame {
        /// The view.
        view_id: String,
        /// One styled string a row.
        rows: Vec<String>,
        /// Where the cursor is to be shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<ViewCursor>,
        /// Whether the view is finished and to be closed.
        done: bool,
    },
    /// Styled bytes to write.
    Render {
        /// The bytes, lines ended by `\n`.
        ansi: String,
        /// Whether the next `render` replaces it.
        transient: bool,
    },
    /// A notification for the desktop.
    Notify {
        /// Its title.
        title: String,
        /// Its text.
        body: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl EventKind {
    /// Whether it ends a turn.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::TurnCompleted(_) | Self::TurnFailed(_))
    }

    /// The text of a delta, which may be joined with the next one of the same stream.
    pub(crate) fn delta_mut(&mut self) -> Option<(DeltaStream<'_>, &mut String)> {
        match self {
            Self::LlmTextDelta { text } => Some((DeltaStream::Text, text)),
            Self::LlmThinkingDelta { text } => Some((DeltaStream::Thinking, text)),
            Self::ToolOutputDelta { call_id, text, .. } => Some((DeltaStream::Tool(call_id), text)),
            Self::Render { ansi, transient: false } => Some((DeltaStream::Render, ansi)),
            _ => None,
        }
    }
}

/// Which stream a delta belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeltaStream<'a> {
    /// The answer.
    Text,
    /// The thoughts.
    Thinking,
    /// A tool's output, by call.
    Tool(&'a str),
    /// Rendered bytes.
    Render,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::payload::MutationState;
    use serde_json::json;

    #[test]
    fn the_envelope_is_type_ts_turn_and_data() {
        let event = Event {
            kind: EventKind::LlmTextDelta { text: "hi".into() },
            ts: 5,
            turn_id: Some("t1".into()),
            source_role: None,
            job_id: None,
        };
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(
            value,
            json!({"type": "llm_text_delta", "data": {"text": "hi"}, "ts": 5, "turn_id": "t1"})
        );
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }

    #[test]
    fn a_tool_finish_names_its_call_beside_its_result() {
        let outcome = CallOutcome {
            call_id: "c".into(),
            name: "bash".into(),
            mutation_state: MutationState::Attempted,
        };
        let finish = ToolFinish {
            outcome,
            ok: true,
            content: "x".into(),
            content_chars: 1,
            error: None,
            duration_ms: 2,
            metadata: serde_json::Map::new(),
        };
        assert_eq!(
            serde_json::to_value(EventKind::ToolExecutionFinished(finish)).unwrap(),
            json!({"type": "tool_execution_finished", "data": {"call_id": "c", "name": "bash",
                "mutation_state": "attempted", "ok": true, "content": "x", "content_chars": 1, "duration_ms": 2}})
        );
    }
}
