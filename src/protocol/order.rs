//! The order every stream of events keeps, as a checker that tests (and a debug build's carriers) can run.
//!
//! - `turn_started` is a turn's first event; exactly one terminal event (`turn_completed` or `turn_failed`) ends it; after
//!   that only its `turn_persisted` may follow, once.
//! - A request is started before it is completed or cancelled, and one runs at a time within a turn.
//! - A tool is started before its output, and finished or cancelled exactly once after it.
//! - Time never runs backwards.

use std::collections::HashMap;

use crate::protocol::event::{Event, EventKind};

#[derive(Debug, Default)]
struct Turn {
    request_open: bool,
    tools_open: HashMap<String, bool>,
    ended: bool,
    persisted: bool,
}

/// Follows a stream of events and reports what breaks its order.
#[derive(Debug, Default)]
pub struct OrderCheck {
    turns: HashMap<(String, Option<String>), Turn>,
    last_ts: u64,
}

impl OrderCheck {
    /// Takes the next event.
    ///
    /// # Errors
    /// A sentence that says which rule it breaks.
    pub fn next(&mut self, event: &Event) -> Result<(), String> {
        if event.ts < self.last_ts {
            return Err(format!("time ran backwards: {} after {}", event.ts, self.last_ts));
        }
        self.last_ts = event.ts;
        let Some(turn_id) = event.turn_id.clone() else {
            return Ok(());
        };
        let key = (turn_id, event.job_id.clone());
        let fail = |what: &str| Err(format!("{what} in turn {:?}: {:?}", key, event.kind));
        if let EventKind::TurnStarted { .. } = event.kind {
            return match self.turns.insert(key.clone(), Turn::default()) {
                None => Ok(()),
                Some(_) => fail("a second turn_started"),
            };
        }
        let Some(turn) = self.turns.get_mut(&key) else {
            return fail("an event before turn_started");
        };
        if let EventKind::TurnPersisted { .. } = event.kind {
            if !turn.ended || turn.persisted {
                return fail("a misplaced turn_persisted");
            }
            turn.persisted = true;
            return Ok(());
        }
        if turn.ended && is_turn_work(&event.kind) {
            return fail("an event after the end");
        }
        match &event.kind {
            EventKind::LlmRequestStarted { .. } if std::mem::replace(&mut turn.request_open, true) => {
                fail("a second open request")
            }
            EventKind::LlmRequestCompleted(_)
            | EventKind::LlmRequestCancelled { .. }
            | EventKind::LlmRetryScheduled { .. } => {
                if std::mem::replace(&mut turn.request_open, false) {
                    Ok(())
                } else {
                    fail("the end of a request that is not open")
                }
            }
            EventKind::LlmTextDelta { .. } | EventKind::LlmThinkingDelta { .. } | EventKind::LlmTextWasThinking {}
                if !turn.request_open =>
            {
                fail("a delta without a request")
            }
            EventKind::ToolExecutionStarted { call_id, .. } => match turn.tools_open.insert(call_id.clone(), true) {
                Some(true) => fail("a tool started twice"),
                _ => Ok(()),
            },
            EventKind::ToolOutputDelta { call_id, .. } => {
                if turn.tools_open.get(call_id) == Some(&true) {
                    Ok(())
                } else {
                    fail("output of no running tool")
                }
            }
            EventKind::ToolExecutionFinished(finish) => {
                close_tool(turn, &finish.outcome.call_id).or_else(|()| fail("a tool that does not run ended"))
            }
            EventKind::ToolExecutionCancelled(outcome) => {
                close_tool(turn, &outcome.call_id).or_else(|()| fail("a tool that does not run ended"))
            }
            EventKind::TurnCompleted(_) | EventKind::TurnFailed(_) => {
                if turn.tools_open.values().any(|open| *open) {
                    return fail("the end while a tool runs");
                }
                turn.ended = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn close_tool(turn: &mut Turn, call_id: &str) -> Result<(), ()> {
    match turn.tools_open.get_mut(call_id) {
        Some(open) if *open => {
            *open = false;
            Ok(())
        }
        _ => Err(()),
    }
}

/// Events that belong to the work of a turn, as opposed to what is told beside it (notices, status, rendering).
fn is_turn_work(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Notice { .. }
            | EventKind::StatusChanged { .. }
            | EventKind::Render { .. }
            | EventKind::Prefill { .. }
            | EventKind::InputQueued { .. }
            | EventKind::UsageUpdated { .. }
            | EventKind::Notify { .. }
            | EventKind::TurnCancelRequested { .. }
    )
}
