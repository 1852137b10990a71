//! Calls of an answer that cannot run: cut off, broken, of a tool that is not there, or without a name.
//!
//! They neither run nor vanish. One with a name stays in the transcript, in its place and as the model wrote it, and gets
//! a result that says what was wrong with it; one without is told in a message after the answer. An answer with nothing
//! but such calls counts towards [`MAX_IN_A_ROW`], so that a model that cannot do better does not loop for ever.

use crate::error::{AgentError, ErrorKind};
use crate::llm::{IncompleteCall, IncompleteReason};
use crate::message::{ToolCall, ToolDefinition};

/// Answers in a row with nothing but unusable calls before the turn fails.
pub(super) const MAX_IN_A_ROW: u32 = 3;

/// A call of an answer: to be run, or refused for a reason.
#[derive(Debug)]
pub(super) struct Planned {
    pub call: ToolCall,
    pub refused: Option<AgentError>,
}

/// The calls of one answer in the model's order, and a message to the model about those without a name.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub calls: Vec<Planned>,
    pub note: Option<String>,
}

impl Plan {
    /// Whether the model asked for something, and nothing of it can run.
    pub(super) fn is_unusable(&self) -> bool {
        let any = !self.calls.is_empty() || self.note.is_some();
        any && self.calls.iter().all(|planned| planned.refused.is_some())
    }

    /// Whether the model asked for nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.note.is_none()
    }
}

/// Puts the runnable calls and the others back into one order.
pub(super) fn plan(runnable: Vec<ToolCall>, incomplete: Vec<IncompleteCall>, offered: &[ToolDefinition]) -> Plan {
    let mut out = Plan::default();
    let mut nameless = 0;
    let mut incomplete = incomplete.into_iter().enumerate().peekable();
    let taken: Vec<String> = runnable.iter().map(|call| call.id.clone()).collect();
    let total = runnable.len();
    let mut runnable = runnable.into_iter();
    for position in 0..=total {
        while let Some((index, call)) = incomplete.next_if(|(_, call)| call.after <= position) {
            match refused(call, index, &taken, &out.calls, offered) {
                Some(planned) => out.calls.push(planned),
                None => nameless += 1,
            }
        }
        out.calls
            .extend(runnable.next().map(|call| Planned { call, refused: None }));
    }
    if nameless > 0 {
        out.note = Some(format!(
            "[{nameless} tool call(s) in your last answer had no tool name and were not run. Send them again in full.]"
        ));
    }
    out
}

fn refused(
    call: IncompleteCall,
    index: usize,
    taken: &[String],
    planned: &[Planned],
    offered: &[ToolDefinition],
) -> Option<Planned> {
    let mut message = call.explain();
    let (code, kind) = match call.reason {
        IncompleteReason::Cut => ("truncated", ErrorKind::Protocol),
        IncompleteReason::Malformed => ("malformed_arguments", ErrorKind::Schema),
        IncompleteReason::UnknownTool => {
            let names: Vec<_> = offered.iter().map(|tool| tool.name.as_str()).collect();
            message = format!("{message}; there are: {}", names.join(", "));
            ("unknown_tool", ErrorKind::Tool)
        }
        IncompleteReason::Nameless => return None,
    };
    let name = call.name.filter(|name| !name.is_empty())?;
    let used = |id: &str| taken.iter().any(|other| other == id) || planned.iter().any(|other| other.call.id == id);
    let id = if call.id.is_empty() || used(&call.id) {
        format!("unusable_{index}")
    } else {
        call.id
    };
    let call = ToolCall {
        id,
        name,
        arguments: call.arguments_raw,
        extra: Default::default(),
    };
    Some(Planned {
        call,
        refused: Some(AgentError::new(kind, code, message).from_origin("turn")),
    })
}

/// The turn's error after too many such answers.
pub(super) fn too_many(finish_cut: bool) -> AgentError {
    let (code, hint) = if finish_cut {
        ("truncated", "raise llm_config.max_tokens, or ask for smaller steps")
    } else {
        ("unreadable", "try another model, or see the debug log for what it sent")
    };
    let message = format!("the model sent {MAX_IN_A_ROW} answers in a row whose tool calls were cut off or unreadable");
    AgentError::new(ErrorKind::Protocol, code, message)
        .from_origin("turn")
        .with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(id: &str, name: &str, after: usize) -> IncompleteCall {
        let name = (!name.is_empty()).then(|| name.to_owned());
        let reason = if name.is_some() {
            IncompleteReason::Cut
        } else {
            IncompleteReason::Nameless
        };
        IncompleteCall {
            id: id.into(),
            name,
            arguments_raw: "{\"a".into(),
            reason,
            after,
        }
    }

    fn whole(id: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments: "{}".into(),
            extra: Default::default(),
        }
    }

    #[test]
    fn the_models_order_and_words_are_kept_and_ids_are_unique() {
        let plan = plan(
            vec![whole("a"), whole("b")],
            vec![
                broken("x", "bash", 0),
                broken("a", "bash", 1),
                broken("", "edit", 2),
                broken("y", "", 2),
            ],
            &[],
        );
        let order: Vec<_> = plan.calls.iter().map(|planned| planned.call.id.as_str()).collect();
        assert_eq!(order, ["x", "a", "unusable_1", "b", "unusable_2"]);
        let refused = plan.calls.iter().filter(|planned| planned.refused.is_some());
        assert!(refused.clone().all(|planned| planned.call.arguments == "{\"a") && refused.count() == 3);
        assert!(plan.note.as_ref().unwrap().starts_with("[1 tool call(s)") && !plan.is_unusable());
    }

    #[test]
    fn an_answer_of_broken_calls_alone_is_unusable_and_one_without_calls_is_empty() {
        assert!(plan(Vec::new(), vec![broken("x", "bash", 0)], &[]).is_unusable());
        assert!(plan(Vec::new(), vec![broken("x", "", 0)], &[]).is_unusable());
        let none = plan(Vec::new(), Vec::new(), &[]);
        assert!(none.is_empty() && !none.is_unusable());
    }
}
