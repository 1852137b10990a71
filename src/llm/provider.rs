//! What the rest of the product sees of a model server: one request, a stream of events, one answer or failure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cassette::Recorder;
use crate::cancel::CancelToken;
use crate::error::AgentError;
use crate::message::{Message, ToolCall, ToolDefinition, Usage};

/// A boxed future, so that the trait can be used as `Arc<dyn Provider>`.
pub type BoxFuture<'a, T> = futures_util::future::BoxFuture<'a, T>;

/// Something that answers chat requests: a server over HTTP, the embedded demo model, a cassette, a test's script.
pub trait Provider: Send + Sync {
    /// Makes one request, without any retry. `sink` gets the events in order while they come; the answer holds the
    /// same once more, whole. Cancelling `cancel` drops the connection at once and ends with the `cancelled` error.
    fn chat<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: &'a mut (dyn FnMut(StreamEvent) + Send),
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmFailure>>;

    /// Writes each exchange to `recorder` from now on. What has no wire has nothing to write.
    fn record_to(&self, recorder: &Arc<Recorder>) {
        let _ = recorder;
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The model's id as the server knows it.
    pub model: &'a str,
    /// The whole transcript for the model, the system message first.
    pub messages: &'a [Message],
    /// The tools on offer; a call of any other is not runnable.
    pub tools: &'a [ToolDefinition],
    /// Everything that is optional.
    pub params: &'a RequestParams,
    /// Whether the answer is asked for in pieces.
    pub stream: bool,
}

/// The optional members of a request. What is `None` is not sent, so the server's own default holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestParams {
    /// 0 (most likely token) to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    pub top_p: Option<f64>,
    /// The most tokens the answer may take.
    pub max_tokens: Option<u64>,
    /// `low`, `medium`, `high` or what else the server knows.
    pub reasoning_effort: Option<String>,
    /// `auto`, `none`, `required`, or the object that names one tool.
    pub tool_choice: Option<Value>,
    /// Whether the model may ask for several calls at once.
    pub parallel_tool_calls: Option<bool>,
    /// Members for this server alone; they are added last, replace what has the same name, and `null` removes it.
    pub extra_body: Map<String, Value>,
}

/// What happens while an answer comes. The texts of all [`StreamEvent::Text`] joined are the answer's text, unless a
/// [`StreamEvent::TextWasThinking`] moved the start of it.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The server has accepted the request and begins to answer.
    HeadersReceived,
    /// A piece of the answer.
    Text(String),
    /// A piece of the model's thoughts.
    Thinking(String),
    /// All text that came so far was thoughts: the model closed a block that its prompt had opened unseen.
    TextWasThinking,
    /// The model asks for a tool; its arguments may still be on their way.
    ToolCallDetected {
        /// Place among this answer's calls, from 0.
        index: usize,
        /// The id that links the call to its result.
        id: String,
        /// The tool's name.
        name: String,
    },
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// It was cut by a limit of tokens, or arguments of a call were cut whatever the server said.
    Length,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// A filter of the server ended it.
    ContentFilter,
    /// The server says it failed.
    Error,
    /// A word nobody has seen yet; [`ChatResponse::finish_raw`] has it.
    Other,
    /// The server did not say.
    Unknown,
}

impl FinishReason {
    /// The word used in events and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Error => "error",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncompleteReason {
    /// The arguments end in the middle.
    Cut,
    /// The arguments are not a JSON object.
    Malformed,
    /// There is no name.
    Nameless,
    /// No tool of that name was on offer.
    UnknownTool,
}

/// A call the model began and that must not be run: it is kept so that the model and the user can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncompleteCall {
    /// The id the server gave, or one made here.
    pub id: String,
    /// The name, as far as it came.
    pub name: Option<String>,
    /// The arguments exactly as they came.
    pub arguments_raw: String,
    /// What is wrong with it.
    pub reason: IncompleteReason,
    /// How many runnable calls the model wrote before it.
    pub after: usize,
}

impl IncompleteCall {
    /// The call as a part of a transcript, for whoever wants to answer it with an error like any other call. What
    /// servers would refuse in it is set right when it is sent.
    #[must_use]
    pub fn as_tool_call(&self) -> ToolCall {
        ToolCall {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_default(),
            arguments: self.arguments_raw.clone(),
            extra: Map::new(),
        }
    }

    /// One sentence that tells the model what happened to its call.
    #[must_use]
    pub fn explain(&self) -> String {
        let what = match &self.name {
            Some(name) => format!("the call of `{name}`"),
            None => "a tool call".to_owned(),
        };
        match self.reason {
            IncompleteReason::Cut => {
                format!("{what} was not run: its arguments were cut off before their end; send it again, shorter")
            }
            IncompleteReason::Malformed => format!("{what} was not run: its arguments are not a JSON object"),
            IncompleteReason::Nameless => format!("{what} was not run: it names no tool"),
            IncompleteReason::UnknownTool => format!("{what} was not run: there is no such tool"),
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatResponse {
    /// The assistant's message: its text, the runnable calls, the thoughts, and what must go back.
    pub message: Message,
    /// Calls that must not be run and must not vanish.
    pub incomplete_calls: Vec<IncompleteCall>,
    /// Why it ended.
    pub finish: FinishReason,
    /// The server's own word for it.
    pub finish_raw: Option<String>,
    /// What it cost, where the server told.
    pub usage: Option<Usage>,
    /// The model that answered, in the server's words.
    pub model: Option<String>,
    /// The words of a refusal that came in a member of its own; they are part of the text too.
    pub refusal: Option<String>,
}

impl ChatResponse {
    /// An answer that is only text: for providers that make theirs up.
    #[must_use]
    pub fn from_message(message: Message, finish: FinishReason) -> Self {
        Self {
            message,
            incomplete_calls: Vec::new(),
            finish,
            finish_raw: None,
            usage: None,
            model: None,
            refusal: None,
        }
    }

    /// Whether it holds neither text nor any call, so that there is nothing to show and nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.message.content.trim().is_empty() && self.message.tool_calls.is_empty() && self.incomplete_calls.is_empty()
    }
}

/// A request that failed.
#[derive(Clone, Debug)]
pub struct LlmFailure {
    /// What happened; its `retryable` says whether the same request may work later.
    pub error: AgentError,
    /// What had come before it, marked as incomplete.
    pub partial: Option<Box<ChatResponse>>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the sink was given text, thoughts or a call: a retry must replace or mark them.
    pub emitted_output: bool,
}

impl LlmFailure {
    /// A failure before anything came.
    #[must_use]
    pub fn new(error: AgentError) -> Self {
        Self {
            error,
            partial: None,
            retry_after: None,
            emitted_output: false,
        }
    }
}

impl fmt::Display for LlmFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for LlmFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<LlmFailure> for AgentError {
    fn from(failure: LlmFailure) -> Self {
        failure.error
    }
}

impl From<AgentError> for LlmFailure {
    fn from(error: AgentError) -> Self {
        Self::new(error)
    }
}
