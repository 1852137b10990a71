//! The one validator of transcripts: what goes on the wire is a copy that the server will take, whatever happened to
//! the transcript (cut, edited, dropped, from another model). The transcript itself is never changed.
//!
//! Each message's form depends only on itself, on what stands before it and on the results of its own calls, so that
//! the beginning of a request is the same bytes in each round.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::ids;
use super::json::repair;
use super::quirks::{CallIds, Quirks, ReasoningEcho, RoleOrder};
use crate::message::{Message, Speaker};

/// Stands for the result of a call that has none.
const NO_RESULT: &str = "[The call was interrupted: no result was recorded.]";
/// Stands for a result without text; some servers refuse empty contents.
const NO_OUTPUT: &str = "[no output]";
/// Stands for a user message without text.
const NO_TEXT: &str = "[no text]";
/// Separates a tool's result from a user message where a server wants something in between.
const GO_ON: &str = "OK.";
/// Begins a conversation whose first user message was dropped, where a server insists on one.
const LEFT_OUT: &str = "[The beginning of this conversation is left out.]";
/// Asks for more where a server takes no assistant message at the end.
const CONTINUE: &str = "Continue.";
/// Stands for thoughts where a server insists on some and none were kept.
const NO_THOUGHTS: &str = "[not recorded]";
/// The most characters of a tool's name that servers take.
const LONGEST_NAME: usize = 64;

/// A message as it goes on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireMessage<'a> {
    pub role: Speaker,
    pub content: Cow<'a, str>,
    pub calls: Vec<WireCall<'a>>,
    pub call_id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    /// The member's name and the thoughts.
    pub reasoning: Option<(Cow<'a, str>, Cow<'a, str>)>,
    pub details: &'a [Value],
    pub extra: Vec<(&'a str, &'a Value)>,
    pub cache_mark: bool,
}

/// A call as it goes on the wire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireCall<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
    pub extra: Option<&'a Map<String, Value>>,
}

impl<'a> WireMessage<'a> {
    fn new(role: Speaker, content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: content.into(),
            calls: Vec::new(),
            call_id: None,
            name: None,
            reasoning: None,
            details: &[],
            extra: Vec::new(),
            cache_mark: false,
        }
    }
}

/// What was wrong with a transcript, and was set right in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A tool result that answers no call was left out.
    OrphanResult {
        /// Place of the message.
        at: usize,
    },
    /// A call without a result got one that says so.
    MissingResult {
        /// Place of the assistant message.
        at: usize,
        /// The call's id.
        call_id: String,
    },
    /// A result that did not stand right after its call was moved there.
    MovedResult {
        /// Place of the result.
        at: usize,
    },
    /// Arguments that are no JSON object were wrapped into one.
    BrokenArguments {
        /// Place of the assistant message.
        at: usize,
        /// The call's id.
        call_id: String,
    },
    /// An id or a name that no server takes was replaced.
    BadName {
        /// Place of the message.
        at: usize,
    },
    /// A message without anything in it was left out, or got a word in it.
    EmptyMessage {
        /// Place of the message.
        at: usize,
    },
}

/// Checks a transcript by the protocol's own rules, without regard to any server's deviations.
#[must_use]
pub fn check(messages: &[Message]) -> Vec<Repair> {
    pair(messages, &Quirks::default(), None).1
}

/// The wire copy of a transcript. `served_by` names the server and model that will read it.
pub(crate) fn prepare<'a>(messages: &'a [Message], quirks: &Quirks, served_by: &str) -> Vec<WireMessage<'a>> {
    let (mut wire, _) = pair(messages, quirks, Some(served_by));
    if quirks.one_system || quirks.roles == RoleOrder::Alternate {
        wire = join_system(wire);
    }
    match quirks.roles {
        RoleOrder::Free => {}
        RoleOrder::NoUserAfterTool => wire = separate_tools(wire),
        RoleOrder::Alternate => wire = take_turns(wire),
    }
    if quirks.cache_control {
        if let Some(system) = wire.first_mut().filter(|message| message.role == Speaker::System) {
            system.cache_mark = true;
        }
        if let Some(last) = wire.last_mut() {
            last.cache_mark = true;
        }
    }
    wire
}

/// Puts each result right after its call and sets right what the protocol itself refuses.
fn pair<'a>(messages: &'a [Message], quirks: &Quirks, served_by: Option<&str>) -> (Vec<WireMessage<'a>>, Vec<Repair>) {
    let mut wire = Vec::with_capacity(messages.len());
    let mut repairs = Vec::new();
    let mut used = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Speaker::System | Speaker::User if message.content.trim().is_empty() => {
                repairs.push(Repair::EmptyMessage { at });
                if message.role == Speaker::User {
                    wire.push(WireMessage::new(Speaker::User, NO_TEXT));
                }
            }
            Speaker::System | Speaker::User => wire.push(WireMessage::new(message.role, message.content.as_str())),
            Speaker::Tool if used.contains(&at) => {}
            Speaker::Tool => repairs.push(Repair::OrphanResult { at }),
            Speaker::Assistant if message.content.trim().is_empty() && message.tool_calls.is_empty() => {
                repairs.push(Repair::EmptyMessage { at });
            }
            Speaker::Assistant => {
                let (assistant, results) = round(messages, at, quirks, served_by, &mut used, &mut repairs);
                wire.push(assistant);
                wire.extend(results);
            }
        }
    }
    (wire, repairs)
}

/// An assistant message and the results of its calls.
fn round<'a>(
    messages: &'a [Message],
    at: usize,
    quirks: &Quirks,
    served_by: Option<&str>,
    used: &mut HashSet<usize>,
    repairs: &mut Vec<Repair>,
) -> (WireMessage<'a>, Vec<WireMessage<'a>>) {
    let message = &messages[at];
    let mut assistant = WireMessage::new(Speaker::Assistant, message.content.as_str());
    let ours = served_by.is_none() || message.served_by.is_none() || message.served_by.as_deref() == served_by;
    attach_thoughts(&mut assistant, message, quirks, ours);
    let mut results = Vec::with_capacity(message.tool_calls.len());
    // Where a search for results starts, and where the next result stands if all is well.
    let mut expected = at + 1;
    for (nth, call) in message.tool_calls.iter().enumerate() {
        let mut id = wire_id(&call.id, at, nth, quirks.call_ids);
        while assistant.calls.iter().any(|other| other.id == id) {
            id = Cow::Owned(ids::hashed(&format!("{id}\n{nth}")));
        }
        let name = wire_name(&call.name);
        if id.is_empty() || call.id.is_empty() || matches!(name, Cow::Owned(_)) {
            repairs.push(Repair::BadName { at });
        }
        let arguments = wire_arguments(&call.arguments);
        if arguments.is_none() {
            repairs.push(Repair::BrokenArguments {
                at,
                call_id: call.id.clone(),
            });
        }
        let mut result = WireMessage::new(Speaker::Tool, NO_RESULT);
        let found = find_result(messages, at, &call.id, used);
        match found {
            Some(place) => {
                used.insert(place);
                if place != expected {
                    repairs.push(Repair::MovedResult { at: place });
                }
                expected = place + 1;
                let text = messages[place].content.as_str();
                result.content = Cow::Borrowed(if text.is_empty() { NO_OUTPUT } else { text });
            }
            None => repairs.push(Repair::MissingResult {
                at,
                call_id: call.id.clone(),
            }),
        }
        result.call_id = Some(id.clone());
        result.name = quirks.tool_name.then(|| name.clone());
        results.push(result);
        assistant.calls.push(WireCall {
            id,
            name,
            arguments: arguments
                .unwrap_or_else(|| Cow::Owned(json!({ "malformed_arguments": call.arguments }).to_string())),
            extra: Some(&call.extra).filter(|extra| quirks.extras && ours && !extra.is_empty()),
        });
    }
    (assistant, results)
}

/// The first unused result of the call `id` after `at`, and before another message calls with the same id.
fn find_result(messages: &[Message], at: usize, id: &str, used: &HashSet<usize>) -> Option<usize> {
    for (place, message) in messages.iter().enumerate().skip(at + 1) {
        match message.role {
            Speaker::Tool if message.tool_call_id.as_deref() == Some(id) && !used.contains(&place) => {
                return Some(place);
            }
            Speaker::Assistant if message.tool_calls.iter().any(|call| call.id == id) => return None,
            _ => {}
        }
    }
    None
}

/// Thoughts and opaque members that go back with a message.
fn attach_thoughts<'a>(wire: &mut WireMessage<'a>, message: &'a Message, quirks: &Quirks, ours: bool) {
    let reasoning = message.reasoning.as_ref();
    let calls = !message.tool_calls.is_empty();
    if ours
        && quirks.details
        && let Some(reasoning) = reasoning
    {
        wire.details = &reasoning.details;
    }
    let own = reasoning.filter(|reasoning| ours && !reasoning.field.is_empty() && !reasoning.text.is_empty());
    let wanted = match quirks.reasoning {
        ReasoningEcho::Never | ReasoningEcho::Required => false,
        ReasoningEcho::WithCalls => calls,
        ReasoningEcho::Always => true,
    };
    if let Some(own) = own.filter(|_| wanted && wire.details.is_empty()) {
        wire.reasoning = Some((own.field.as_str().into(), own.text.as_str().into()));
    }
    if quirks.reasoning == ReasoningEcho::Required && calls {
        let text = reasoning
            .map(|reasoning| reasoning.text.as_str())
            .filter(|text| !text.is_empty());
        wire.reasoning = Some(("reasoning_content".into(), text.unwrap_or(NO_THOUGHTS).into()));
    }
    for (key, value) in message.extra.iter().filter(|_| ours) {
        let sealed = matches!(key.as_str(), "thinking_blocks" | "reasoning_opaque");
        if if sealed { quirks.details } else { quirks.extras } {
            wire.extra.push((key, value));
        }
    }
}

/// An id the server takes.
fn wire_id(id: &str, at: usize, nth: usize, rule: CallIds) -> Cow<'_, str> {
    let nine = id.len() == ids::LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if id.is_empty() {
        Cow::Owned(ids::hashed(&format!("{at}\n{nth}")))
    } else if rule == CallIds::Nine && !nine {
        Cow::Owned(ids::hashed(id))
    } else {
        Cow::Borrowed(id)
    }
}

/// A name the server takes: letters, digits, `_` and `-`, not longer than 64.
fn wire_name(name: &str) -> Cow<'_, str> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= LONGEST_NAME && name.chars().all(good) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(
        name.chars()
            .take(LONGEST_NAME)
            .map(|c| if good(c) { c } else { '_' })
            .collect(),
    )
}

/// Arguments the server can decode; `None` where they are no object.
fn wire_arguments(arguments: &str) -> Option<Cow<'_, str>> {
    if arguments.trim().is_empty() {
        return Some(Cow::Borrowed("{}"));
    }
    let is_object = arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    is_object.then(|| repair(arguments))
}

/// One system message in front, made of all of them.
fn join_system(wire: Vec<WireMessage<'_>>) -> Vec<WireMessage<'_>> {
    let (system, mut rest): (Vec<_>, Vec<_>) = wire.into_iter().partition(|message| message.role == Speaker::System);
    if let Some(joined) = system.into_iter().reduce(join) {
        rest.insert(0, joined);
    }
    rest
}

/// Two messages of one role as one.
fn join<'a>(mut first: WireMessage<'a>, second: WireMessage<'a>) -> WireMessage<'a> {
    if first.content.is_empty() {
        first.content = second.content;
    } else if !second.content.is_empty() {
        let text = first.content.to_mut();
        text.push_str("\n\n");
        text.push_str(&second.content);
    }
    first.calls.extend(second.calls);
    first.reasoning = second.reasoning.or(first.reasoning);
    if first.details.is_empty() {
        first.details = second.details;
    }
    first.extra.extend(second.extra);
    first
}

/// No user message right after a tool message, and the last one is not the assistant's.
fn separate_tools(wire: Vec<WireMessage<'_>>) -> Vec<WireMessage<'_>> {
    let mut out: Vec<WireMessage<'_>> = Vec::with_capacity(wire.len());
    for message in wire {
        let after_tool = out.last().is_some_and(|last| last.role == Speaker::Tool);
        if after_tool && message.role == Speaker::User {
            out.push(WireMessage::new(Speaker::Assistant, GO_ON));
        }
        out.push(message);
    }
    if !matches!(out.last().map(|last| last.role), Some(Speaker::User | Speaker::Tool)) {
        out.push(WireMessage::new(Speaker::User, CONTINUE));
    }
    out
}

/// User and assistant take turns; results of tools count as the user's turn.
fn take_turns(wire: Vec<WireMessage<'_>>) -> Vec<WireMessage<'_>> {
    let mut out: Vec<WireMessage<'_>> = Vec::with_capacity(wire.len());
    for message in wire {
        let last = out.last().map(|last| (last.role, last.calls.is_empty()));
        match (last, message.role) {
            (Some((Speaker::User, _)), Speaker::User) | (Some((Speaker::Assistant, true)), Speaker::Assistant) => {
                if let Some(last) = out.pop() {
                    out.push(join(last, message));
                }
                continue;
            }
            (Some((Speaker::Tool, _)), Speaker::User) => out.push(WireMessage::new(Speaker::Assistant, GO_ON)),
            (None | Some((Speaker::System, _)), Speaker::Assistant) => {
                out.push(WireMessage::new(Speaker::User, LEFT_OUT));
            }
            _ => {}
        }
        out.push(message);
    }
    out
}
