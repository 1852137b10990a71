//! What a tool returns, and what the engine gets of a call.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{AgentError, ErrorKind};

/// What a tool returns when it did its work, even where the work's outcome is a failure (a command that exits with 1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The text for the model.
    pub content: String,
    /// Facts for screens and records; what is there depends on the tool's renderer.
    pub metadata: Map<String, Value>,
    /// Where the full text can be had again when it is elided.
    pub recall_key: Option<String>,
    /// Set where the outcome is a failure although the tool itself worked; the content tells it.
    pub failure: Option<Failure>,
    /// Set where the tool stopped halfway because it was asked to; the content is what there was by then.
    pub interrupted: bool,
}

/// A failure in one word and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable word in snake case.
    pub code: Cow<'static, str>,
    /// The sentence.
    pub message: String,
}

impl ToolOutput {
    /// An output of only text.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Marks the outcome as a failure.
    #[must_use]
    pub fn failed(mut self, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        self.failure = Some(Failure {
            code: code.into(),
            message: message.into(),
        });
        self
    }
}

/// Why a tool could not do its work. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can act on it: another path, another argument, another way.
    #[error("{message}")]
    ToModel {
        /// A stable word in snake case.
        code: Cow<'static, str>,
        /// What happened and what to do, for the model.
        message: String,
    },
    /// Nothing the model does can help: the turn should stop.
    #[error(transparent)]
    Fatal(AgentError),
}

impl ToolError {
    /// An error for the model.
    #[must_use]
    pub fn to_model(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::ToModel {
            code: code.into(),
            message: message.into(),
        }
    }
}

pub use crate::protocol::MutationState;

/// What came of one call. There is always one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub call_id: String,
    /// The tool's name as it was called.
    pub name: String,
    /// Whether the tool worked and its outcome is no failure.
    pub ok: bool,
    /// The text for the model, also of an error.
    pub content: String,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// Whether it was asked to stop before or while it ran.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether it may have changed something.
    #[serde(default)]
    pub mutation_state: MutationState,
    /// Facts for screens and records.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Where the full text can be had again when it is elided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall_key: Option<String>,
    /// Whether it succeeded and ends the turn.
    #[serde(default)]
    pub is_terminal: bool,
    /// Whether the turn should stop with its error.
    #[serde(default)]
    pub fatal: bool,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

impl ToolResult {
    /// The result of a call that did not run because of `error`; its message is what the model reads.
    #[must_use]
    pub fn failed(call_id: &str, name: &str, error: AgentError) -> Self {
        Self {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            ok: false,
            content: error.to_string(),
            cancelled: error.is_cancelled(),
            error: Some(error),
            mutation_state: MutationState::None,
            metadata: Map::new(),
            recall_key: None,
            is_terminal: false,
            fatal: false,
            duration_ms: 0,
        }
    }

    /// The result of a call that was announced and then never run: a cancelled turn, a budget at its end.
    #[must_use]
    pub fn not_run(call_id: &str, name: &str, why: AgentError) -> Self {
        let content = format!("Not run: {why}");
        Self {
            content,
            ..Self::failed(call_id, name, why)
        }
    }

    pub(super) fn took(mut self, duration: Duration) -> Self {
        self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self
    }
}

impl From<Failure> for AgentError {
    fn from(failure: Failure) -> Self {
        Self::new(ErrorKind::Tool, failure.code, failure.message).from_origin("tool")
    }
}
