//! What a turn is given, and what it gives back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cancel::CancelToken;
use crate::conversation::WindowPolicy;
use crate::error::AgentError;
use crate::llm::usage::Price;
use crate::llm::{EmptyRetryPolicy, Provider, RequestParams, RetryPolicy};
use crate::message::{ToolDefinition, Usage};
use crate::protocol::{EventKind, StopReason};
use crate::tool::{Registry, ToolContext};

/// Takes the events of a turn.
pub type EventSink = Arc<dyn Fn(EventKind) + Send + Sync>;

/// Limits of one turn.
#[derive(Clone, Debug, Default)]
pub struct TurnLimits {
    /// Tools that may run; unlimited where absent.
    pub tool_steps: Option<u64>,
    /// Tokens that may be used.
    pub tokens: Option<u64>,
    /// Money that may be spent by the conversation, in US dollars, and what it has spent before this turn.
    pub cost: Option<(f64, f64)>,
}

/// A server with the model that is asked there.
#[derive(Clone)]
pub struct Server {
    /// The profile it stands in, where it is one to fall back to.
    pub profile: Option<String>,
    /// Answers the requests.
    pub provider: Arc<dyn Provider>,
    /// The model asked.
    pub model: String,
    /// Parameters of each request.
    pub params: RequestParams,
    /// How many tokens the model can see.
    pub context_window: u64,
    /// What its tokens cost by the server's list, for answers that do not tell.
    pub price: Option<Price>,
}

/// The server of a turn, and those to go on with when it is down. A turn that went on to another one stays there.
pub struct Servers {
    first: Server,
    others: Vec<Server>,
    /// How many of the others were gone on to.
    moved: AtomicUsize,
}

impl Servers {
    /// A server, and others in the order to try them.
    pub fn new(first: Server, others: impl IntoIterator<Item = Server>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
            moved: AtomicUsize::new(0),
        }
    }

    /// The one in use.
    #[must_use]
    pub fn current(&self) -> &Server {
        let moved = self.moved.load(Ordering::Relaxed);
        moved
            .checked_sub(1)
            .and_then(|index| self.others.get(index))
            .unwrap_or(&self.first)
    }

    /// Goes on to the next one, if there is one.
    pub fn advance(&self) -> Option<&Server> {
        let next = self.others.get(self.moved.load(Ordering::Relaxed))?;
        self.moved.fetch_add(1, Ordering::Relaxed);
        Some(next)
    }
}

/// Everything a turn works with; nothing in it changes while it runs, but which of its servers answers.
pub struct TurnContext {
    /// The turn.
    pub turn_id: String,
    /// Who answers the requests.
    pub servers: Servers,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Retries after a failed request.
    pub retry: RetryPolicy,
    /// Retries after an answer without text and calls.
    pub empty_retry: EmptyRetryPolicy,
    /// The tools there are.
    pub registry: Arc<Registry>,
    /// The tools offered.
    pub definitions: Vec<ToolDefinition>,
    /// What each tool gets; `call_id`, `cancel` and `progress` are set for each call.
    pub tool_context: ToolContext,
    /// What is left out of requests, and when.
    pub window_policy: WindowPolicy,
    /// Limits.
    pub limits: TurnLimits,
    /// The turn's cancellation.
    pub cancel: CancelToken,
    /// Where events go.
    pub events: EventSink,
    /// Takes the lines typed since the last time, to join the turn.
    pub steering: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Adds what a request used and tells the totals.
    pub on_usage: Arc<dyn Fn(&Usage) + Send + Sync>,
}

impl TurnContext {
    /// The profile that the turn went on with, where its own server was down.
    #[must_use]
    pub fn fell_back_to(&self) -> Option<&str> {
        self.servers.current().profile.as_deref()
    }

    /// How the messages are fitted to the model that answers now.
    #[must_use]
    pub fn window_policy(&self) -> WindowPolicy {
        WindowPolicy {
            context_window: self.servers.current().context_window,
            ..self.window_policy
        }
    }

    /// Tells an event.
    pub fn emit(&self, kind: EventKind) {
        (self.events)(kind);
    }
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnResult {
    /// Why.
    pub stop_reason: StopReason,
    /// The model's last text.
    pub text: String,
    /// Requests answered.
    pub rounds: u32,
    /// Tools that ran.
    pub tool_calls: u32,
    /// What it took.
    pub usage: Usage,
    /// What went wrong, or which limit was reached.
    pub error: Option<AgentError>,
}
