//! What events carry that has a shape of its own.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::AgentError;
use crate::message::Usage;

/// A file that tools changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The path, relative to the working directory where it lies below it.
    pub path: String,
    /// Whether there was no file before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
    /// Lines that were not there before; none where the contents could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// Lines that are not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestFinish {
    /// Which round of the turn, from 1.
    pub round: u32,
    /// Why the answer ended, in our words: `stop`, `tool_calls`, `length`, `content_filter`, `error`, `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The server's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_raw: Option<String>,
    /// How many calls it asks for.
    pub tool_calls: usize,
    /// What it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long it took.
    pub duration_ms: u64,
}

/// How a tool ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolFinish {
    /// The call and what is known of its effects.
    #[serde(flatten)]
    pub outcome: CallOutcome,
    /// Whether it did what was asked.
    pub ok: bool,
    /// What the model is told, cut to a screenful where it is long.
    pub content: String,
    /// The whole length in characters.
    pub content_chars: usize,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// How long it took.
    pub duration_ms: u64,
    /// Facts of the tool: hashes, ranges, status.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Which call, and what is known of its effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Whether it may have changed something.
    pub mutation_state: MutationState,
}

/// Whether a tool may have changed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MutationState {
    /// It changed nothing.
    #[default]
    None,
    /// It changed, or was about to change, what it was asked to.
    Attempted,
    /// Nobody can say.
    Unknown,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Why.
    pub stop_reason: StopReason,
    /// The last text of the model.
    pub text: String,
    /// How many requests were answered.
    pub rounds: u32,
    /// How many tools ran.
    pub tool_calls: u32,
    /// What it took.
    pub usage: Usage,
    /// What went wrong, or which limit was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model stopped, or a terminal tool succeeded.
    Completed,
    /// Somebody asked to stop.
    Cancelled,
    /// Something failed.
    Error,
    /// A limit was reached.
    BudgetExhausted,
}

impl StopReason {
    /// The word used in events and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::BudgetExhausted => "budget_exhausted",
        }
    }
}

/// How safely something is kept, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Only in this process: gone when it ends.
    MemoryOnly,
    /// On the disk beside the database; whoever next writes to the database merges it.
    Spooled,
    /// In the database, on the disk.
    Durable,
}

/// What is going on in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing.
    #[default]
    Idle,
    /// A request is out, nothing came back yet, or only thoughts.
    Thinking,
    /// The answer arrives.
    Streaming,
    /// A tool runs.
    Tool,
    /// The last turn failed.
    Error,
    /// The last turn was cancelled.
    Cancelled,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be; the work goes on.
    Warn,
    /// Something the user relied on does not work.
    Error,
}

/// A place on the screen, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewCursor {
    /// Row from the top.
    pub row: u16,
    /// Column from the left.
    pub col: u16,
}
