//! Runs the calls of one answer, in order. Every announced call gets a result: its own, or one that says why it did
//! not run.

use std::sync::Arc;
use std::time::Instant;

use crate::error::AgentError;
use crate::message::{Message, ToolCall};
use crate::protocol::{CallOutcome, EventKind, SessionState, ToolFinish};
use crate::tool::{ToolContext, ToolProgress, ToolResult, execute};
use crate::turn::context::TurnContext;
use crate::turn::request::as_ms;
use crate::turn::unusable::Planned;

/// How much of a result an event shows; the whole of it goes to the model and the store.
const EVENT_CONTENT_CHARS: usize = 4000;

/// What came of the calls.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// One result a call, in the calls' order.
    pub results: Vec<Message>,
    /// Calls that ran.
    pub ran: u32,
    /// Whether a terminal tool succeeded, and what it said.
    pub terminal: Option<String>,
    /// Whether a call was left out because the tool budget was spent.
    pub budget_spent: bool,
    /// An error that ends the turn.
    pub fatal: Option<AgentError>,
}

/// Runs `calls` with at most `budget` of them.
pub(super) async fn run(turn: &TurnContext, calls: &[Planned], budget: Option<u64>) -> Batch {
    let mut batch = Batch::default();
    for Planned { call, refused } in calls {
        let reason = if turn.cancel.is_cancelled() {
            Some("not run: the turn was cancelled before it")
        } else if batch.fatal.is_some() {
            Some("not run: the turn ended on an error before it")
        } else if batch.terminal.is_some() {
            Some("not run: the turn had ended by an earlier call")
        } else if budget.is_some_and(|budget| u64::from(batch.ran) >= budget) {
            batch.budget_spent = true;
            Some("not run: the tool budget of this turn is spent")
        } else {
            None
        };
        if let Some(reason) = reason {
            batch
                .results
                .push(Message::tool(&call.id, &call.name, format!("[{reason}]")));
            continue;
        }
        let result = match refused {
            Some(error) => refuse(turn, call, error.clone()),
            None => {
                batch.ran += 1;
                run_one(turn, call).await
            }
        };
        if result.ok && result.is_terminal {
            batch.terminal = Some(result.content.clone());
        }
        if result.fatal {
            batch.fatal = result.error.clone();
        }
        let mut message = Message::tool(&call.id, &call.name, result.content);
        message.recall_key = result.recall_key;
        batch.results.push(message);
    }
    batch
}

/// Tells of a call that cannot run as of one that failed.
fn refuse(turn: &TurnContext, call: &ToolCall, error: AgentError) -> ToolResult {
    turn.emit(EventKind::ToolExecutionStarted {
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    let result = ToolResult::failed(&call.id, &call.name, error);
    turn.emit(EventKind::ToolExecutionFinished(finish(
        &result,
        outcome(call, &result),
        Instant::now(),
    )));
    result
}

fn outcome(call: &ToolCall, result: &ToolResult) -> CallOutcome {
    CallOutcome {
        call_id: call.id.clone(),
        name: call.name.clone(),
        mutation_state: result.mutation_state,
    }
}

async fn run_one(turn: &TurnContext, call: &ToolCall) -> ToolResult {
    turn.emit(EventKind::StatusChanged {
        state: SessionState::Tool,
    });
    turn.emit(EventKind::ToolExecutionStarted {
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    let events = Arc::clone(&turn.events);
    let call_id = call.id.clone();
    let context = ToolContext {
        call_id: call.id.clone(),
        cancel: turn.cancel.new_child(),
        progress: Arc::new(move |progress| match progress {
            ToolProgress::Output { text, skipped } => {
                events(EventKind::ToolOutputDelta {
                    call_id: call_id.clone(),
                    text,
                    skipped,
                });
            }
        }),
        ..turn.tool_context.clone()
    };
    let started = Instant::now();
    let result = execute(&turn.registry, call, &context).await;
    let outcome = outcome(call, &result);
    if result.cancelled {
        turn.emit(EventKind::ToolExecutionCancelled(outcome));
    } else {
        turn.emit(EventKind::ToolExecutionFinished(finish(&result, outcome, started)));
    }
    result
}

fn finish(result: &ToolResult, outcome: CallOutcome, started: Instant) -> ToolFinish {
    let content_chars = result.content.chars().count();
    let content = if content_chars > EVENT_CONTENT_CHARS {
        result.content.chars().take(EVENT_CONTENT_CHARS).collect()
    } else {
        result.content.clone()
    };
    ToolFinish {
        outcome,
        ok: result.ok,
        content,
        content_chars,
        error: result.error.clone(),
        duration_ms: as_ms(started.elapsed()),
        metadata: result.metadata.clone(),
    }
}
