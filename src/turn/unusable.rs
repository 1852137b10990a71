//! Calls of an answer that cannot run: cut off, broken, or without a name.
//!
//! They neither run nor vanish. One with a name stays in the transcript as the model wrote it and gets a result that
//! says what was wrong with it; one without is told in a message after the answer. An answer with nothing but such calls
//! counts towards [`MAX_IN_A_ROW`], so that a model that cannot do better does not loop for ever.

use crate::error::{AgentError, ErrorKind};
use crate::llm::IncompleteCall;
use crate::message::{Message, ToolCall};

/// Answers in a row with nothing but unusable calls before the turn fails.
pub(super) const MAX_IN_A_ROW: u32 = 3;

/// The unusable calls of one answer, sorted by what can be done about them.
#[derive(Debug, Default)]
pub(super) struct Unusable {
    /// Calls that stay in the assistant message, each with the reason it did not run.
    pub named: Vec<(ToolCall, String)>,
    /// A message to the model about the rest.
    pub note: Option<String>,
}

/// Sorts the unusable calls; `taken` are the ids of the usable ones beside them.
pub(super) fn sort(calls: Vec<IncompleteCall>, taken: &[ToolCall]) -> Unusable {
    let mut out = Unusable::default();
    let mut nameless = 0;
    for (index, call) in calls.into_iter().enumerate() {
        let reason = call.explain();
        let Some(name) = call.name.filter(|name| !name.is_empty()) else {
            nameless += 1;
            continue;
        };
        let used = |id: &str| taken.iter().any(|c| c.id == id) || out.named.iter().any(|(c, _)| c.id == id);
        let id = if call.id.is_empty() || used(&call.id) {
            format!("unusable_{index}")
        } else {
            call.id
        };
        let tool_call = ToolCall {
            id,
            name,
            arguments: call.arguments_raw,
            extra: Default::default(),
        };
        out.named.push((tool_call, reason));
    }
    if nameless > 0 {
        out.note = Some(format!(
            "[{nameless} tool call(s) in your last answer had no tool name and were not run. Send them again in full.]"
        ));
    }
    out
}

/// The result message of a call that did not run.
pub(super) fn result(call: &ToolCall, reason: &str) -> Message {
    Message::tool(&call.id, &call.name, format!("Error: {reason}"))
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
    use crate::llm::IncompleteReason;

    fn call(id: &str, name: &str) -> IncompleteCall {
        let name = (!name.is_empty()).then(|| name.to_owned());
        IncompleteCall {
            id: id.into(),
            name,
            arguments_raw: "{\"a".into(),
            reason: IncompleteReason::Cut,
        }
    }

    #[test]
    fn named_calls_keep_their_words_and_get_unique_ids() {
        let taken = [ToolCall {
            id: "a".into(),
            name: "read".into(),
            arguments: "{}".into(),
            extra: Default::default(),
        }];
        let out = sort(
            vec![call("a", "bash"), call("", "bash"), call("b", "edit"), call("x", "")],
            &taken,
        );
        let ids: Vec<_> = out.named.iter().map(|(call, _)| call.id.as_str()).collect();
        assert_eq!(ids, ["unusable_0", "unusable_1", "b"]);
        assert!(
            out.named
                .iter()
                .all(|(call, reason)| call.arguments == "{\"a" && reason.contains("cut"))
        );
        assert!(out.note.unwrap().starts_with("[1 tool call(s)"));
    }
}
