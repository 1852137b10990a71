//! Assembly of tool calls from the pieces servers send.
//!
//! The rules:
//! 1. A piece belongs to the call at its index; without an index, to the call with its id; without either, to the last
//!    call (unless that one is whole and a name comes: then it is a new call).
//! 2. It starts a new call when nothing is there yet, or when it has a name and an id other than the call's; or a
//!    name, arguments and no id while the call's arguments are already a whole object.
//! 3. The first id stays. An equal name is a repetition, anything else is appended; the offered tools settle doubt.
//! 4. Arguments: an object is taken as its JSON; `{}` followed by an object is replaced; a whole object sent again is
//!    dropped; two different whole objects are two calls; the rest is appended. Empty means `{}`.
//! 5. Runnable only if the arguments are a JSON object and the name is on offer, whatever the finish reason says.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ids::IdMaker;
use super::json::{self, Carry, lenient_object};
use super::merge;
use super::provider::{IncompleteCall, IncompleteReason, StreamEvent};
use crate::message::{ToolCall, ToolDefinition};

lenient_object! {
    /// A piece of a call.
    struct Piece {
        index: &'a RawValue = "index",
        id: &'a RawValue = "id",
        function: FunctionPiece<'a> = "function",
        /// Flat calls have these beside the id.
        name: &'a RawValue = "name",
        arguments: &'a RawValue = "arguments" | "parameters",
        extra_content: &'a RawValue = "extra_content",
        provider_specific_fields: &'a RawValue = "provider_specific_fields",
    }
}

lenient_object! {
    /// The function of a piece.
    struct FunctionPiece {
        name: &'a RawValue = "name",
        arguments: &'a RawValue = "arguments" | "parameters",
    }
}

/// The tools on offer.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Offered<'a>(pub &'a [ToolDefinition]);

impl<'a> Offered<'a> {
    pub fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn get(self, name: &str) -> Option<&'a ToolDefinition> {
        self.0.iter().find(|tool| tool.name == name)
    }
}

/// A call while its pieces come.
#[derive(Debug, Default)]
struct Building {
    index: Option<u64>,
    /// The id the server gave.
    server_id: String,
    /// The id that was told to the sink.
    told_id: Option<String>,
    /// The name as far as it makes sense.
    name: String,
    /// All that came of a name, repetitions left out.
    name_pieces: String,
    arguments: String,
    carry: Carry,
    extra: Map<String, Value>,
}

impl Building {
    fn is_whole(&self) -> bool {
        is_object(&self.arguments)
    }

    fn take_name(&mut self, piece: &str, offered: Offered<'_>) {
        if piece.is_empty() || piece == self.name || piece == self.name_pieces {
            return;
        }
        if piece.starts_with(self.name_pieces.as_str()) && offered.has(piece) {
            piece.clone_into(&mut self.name_pieces);
        } else {
            self.name_pieces.push_str(piece);
        }
        if offered.has(&self.name_pieces) || !offered.has(&self.name) {
            self.name.clone_from(&self.name_pieces);
        }
    }

    fn take_arguments(&mut self, raw: &RawValue) {
        match json::text(raw, &mut self.carry) {
            Some(text) => self.arguments.push_str(&text),
            None => self.arguments.push_str(raw.get()),
        }
    }
}

/// All calls of one answer while they come.
#[derive(Debug, Default)]
pub(crate) struct CallAssembly {
    calls: Vec<Building>,
    /// Whether a call came as the deprecated `function_call`; then all of them do.
    legacy: bool,
}

/// What became of the calls.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    pub runnable: Vec<ToolCall>,
    pub incomplete: Vec<IncompleteCall>,
    /// Events for calls that were not told before.
    pub events: Vec<StreamEvent>,
}

impl CallAssembly {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the `tool_calls` member of a piece: a list, or one object.
    pub fn apply(&mut self, raw: &RawValue, offered: Offered<'_>, ids: &IdMaker, events: &mut Vec<StreamEvent>) {
        let text = raw.get();
        if text.starts_with('[') {
            let pieces: Vec<Piece<'_>> = serde_json::from_str(text).unwrap_or_default();
            for piece in pieces.into_iter().filter(|piece| piece.present) {
                self.take(&piece, offered, ids, events);
            }
        } else if let Ok(piece) = serde_json::from_str::<Piece<'_>>(text)
            && piece.present
        {
            self.take(&piece, offered, ids, events);
        }
    }

    /// Takes the deprecated `function_call` member, unless calls come in the newer form.
    pub fn apply_legacy(&mut self, raw: &RawValue, offered: Offered<'_>, ids: &IdMaker, events: &mut Vec<StreamEvent>) {
        if !self.legacy && !self.calls.is_empty() {
            return;
        }
        let function: FunctionPiece<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        if function.present {
            self.legacy = true;
            let piece = Piece {
                present: true,
                function: Some(function),
                ..Piece::default()
            };
            self.take(&piece, offered, ids, events);
        }
    }

    fn take(&mut self, piece: &Piece<'_>, offered: Offered<'_>, ids: &IdMaker, events: &mut Vec<StreamEvent>) {
        let function = piece.function.as_ref();
        let name = function.and_then(|function| function.name).or(piece.name);
        let arguments = function.and_then(|function| function.arguments).or(piece.arguments);
        let name = name.and_then(json::whole_text).unwrap_or_default();
        let id = piece.id.map(id_text).unwrap_or_default();
        let index = piece.index.and_then(|raw| json::number(&json::value(raw)));
        let has_arguments = arguments.is_some_and(|raw| raw.get() != "\"\"");

        let at = match self.place(index, &id, &name, has_arguments) {
            Some(at) => at,
            None => {
                self.calls.push(Building {
                    index,
                    ..Building::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.server_id.is_empty() {
            call.server_id = id;
        }
        call.take_name(&name, offered);
        if let Some(raw) = arguments {
            call.take_arguments(raw);
        }
        for (key, raw) in [
            ("extra_content", piece.extra_content),
            ("provider_specific_fields", piece.provider_specific_fields),
        ] {
            if let Some(raw) = raw {
                merge::member(&mut call.extra, key, json::value(raw));
            }
        }
        let certain = offered.has(&call.name) || has_arguments;
        if call.told_id.is_none() && certain && !call.name.is_empty() {
            events.push(self.tell(at, ids));
        }
    }

    /// The existing call a piece belongs to, by rules 1 and 2.
    fn place(&self, index: Option<u64>, id: &str, name: &str, has_arguments: bool) -> Option<usize> {
        let by_id = || {
            self.calls
                .iter()
                .rposition(|call| !id.is_empty() && call.server_id == id)
        };
        let at = match index {
            Some(_) => {
                let by_index = self.calls.iter().rposition(|call| call.index == index);
                let by_index = by_index.or_else(|| if name.is_empty() { by_id() } else { None })?;
                // A bare continuation that names another call by its id has a wrong index.
                let stray = name.is_empty() && !id.is_empty() && self.calls[by_index].server_id != id;
                if stray { by_id().unwrap_or(by_index) } else { by_index }
            }
            None => by_id().or_else(|| self.calls.len().checked_sub(1))?,
        };
        let call = &self.calls[at];
        let starts_new = if name.is_empty() {
            false
        } else if id.is_empty() {
            (has_arguments || index.is_none()) && call.is_whole()
        } else {
            id != call.server_id && (!call.server_id.is_empty() || call.is_whole())
        };
        (!starts_new).then_some(at)
    }

    /// Settles the id of a call and makes the event that tells of it.
    fn tell(&mut self, at: usize, ids: &IdMaker) -> StreamEvent {
        let taken = |calls: &[Building], id: &str| {
            calls
                .iter()
                .enumerate()
                .any(|(other, call)| other != at && call.told_id.as_deref() == Some(id))
        };
        let mut id = self.calls[at].server_id.clone();
        let mut attempt = 0;
        while id.is_empty() || taken(&self.calls, &id) {
            id = ids.make(at, attempt);
            attempt += 1;
        }
        let call = &mut self.calls[at];
        call.told_id = Some(id.clone());
        StreamEvent::ToolCallDetected {
            index: at,
            id,
            name: call.name.clone(),
        }
    }

    /// Sorts the calls into those that can be run and those that cannot. Where the answer was `cut`, arguments of which
    /// nothing came are missing, not empty.
    pub fn finish(mut self, cut: bool, offered: Offered<'_>, ids: &IdMaker) -> Assembled {
        let mut done = Assembled::default();
        for at in 0..self.calls.len() {
            if let Some(rest) = self.calls[at].carry.flush() {
                self.calls[at].arguments.push(rest);
            }
            if self.calls[at].told_id.is_none() {
                let event = self.tell(at, ids);
                if !self.calls[at].name.is_empty() {
                    done.events.push(event);
                }
            }
        }
        let count = self.calls.len();
        for (at, call) in self.calls.into_iter().enumerate() {
            let id = call.told_id.unwrap_or_default();
            let objects = if call.name.is_empty() {
                Err(IncompleteReason::Nameless)
            } else if cut && call.arguments.trim().is_empty() {
                Err(IncompleteReason::Cut)
            } else {
                objects(&call.arguments)
            };
            match objects {
                Ok(objects) if offered.has(&call.name) => {
                    for (nth, arguments) in objects.into_iter().enumerate() {
                        let id = if nth == 0 {
                            id.clone()
                        } else {
                            ids.make(count + at, nth)
                        };
                        if nth > 0 {
                            done.events.push(StreamEvent::ToolCallDetected {
                                index: count + nth - 1,
                                id: id.clone(),
                                name: call.name.clone(),
                            });
                        }
                        done.runnable.push(ToolCall {
                            id,
                            name: call.name.clone(),
                            arguments,
                            extra: call.extra.clone(),
                        });
                    }
                }
                other => done.incomplete.push(IncompleteCall {
                    id,
                    name: Some(call.name).filter(|name| !name.is_empty()),
                    arguments_raw: call.arguments,
                    reason: other.err().unwrap_or(IncompleteReason::UnknownTool),
                    after: done.runnable.len(),
                }),
            }
        }
        done
    }
}

/// An id as text; a number is one too.
fn id_text(raw: &RawValue) -> String {
    json::whole_text(raw).map_or_else(
        || {
            let text = raw.get();
            if text.starts_with(['{', '[', 't', 'f']) {
                String::new()
            } else {
                text.to_owned()
            }
        },
        std::borrow::Cow::into_owned,
    )
}

/// Whether `text` is one whole JSON object.
fn is_object(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The objects that `arguments` holds by rule 4.
pub(crate) fn objects(arguments: &str) -> Result<Vec<String>, IncompleteReason> {
    let text = arguments.trim();
    if text.is_empty() {
        return Ok(vec!["{}".to_owned()]);
    }
    let mut found: Vec<(String, Map<String, Value>)> = Vec::new();
    for part in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let part = part.map_err(|error| {
            if error.is_eof() {
                IncompleteReason::Cut
            } else {
                IncompleteReason::Malformed
            }
        })?;
        let part = json::repair(part.get());
        let object: Map<String, Value> = serde_json::from_str(&part).map_err(|_| IncompleteReason::Malformed)?;
        if found.last().is_some_and(|(_, last)| last.is_empty()) {
            found.pop();
        }
        if !found.iter().any(|(_, known)| *known == object) {
            found.push((part.into_owned(), object));
        }
    }
    Ok(found.into_iter().map(|(text, _)| text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_by_rule_four() {
        assert_eq!(objects(" ").unwrap(), ["{}"]);
        assert_eq!(objects(r#"{}{"a":1}"#).unwrap(), [r#"{"a":1}"#]);
        assert_eq!(objects(r#"{"a":1} {"a": 1}"#).unwrap(), [r#"{"a":1}"#]);
        assert_eq!(objects(r#"{"a":1}{"a":2}"#).unwrap(), [r#"{"a":1}"#, r#"{"a":2}"#]);
        assert_eq!(objects(r#"{"a":"\ud83d"}"#).unwrap(), [r#"{"a":"\ufffd"}"#]);
        assert_eq!(objects(r#"{"a":"#).unwrap_err(), IncompleteReason::Cut);
        assert_eq!(objects(r#"{"a":1}{"a"#).unwrap_err(), IncompleteReason::Cut);
        for broken in ["{'a':1}", "[1]", "7", "\"{}\"", "{\"a\":1}}"] {
            assert_eq!(objects(broken).unwrap_err(), IncompleteReason::Malformed, "{broken}");
        }
    }

    fn assemble(pieces: &[Value], tools: &[&str]) -> Assembled {
        let tools: Vec<_> = tools
            .iter()
            .map(|name| ToolDefinition {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: json!({}),
            })
            .collect();
        let offered = Offered(&tools);
        let ids = IdMaker::new("r", 1);
        let mut calls = CallAssembly::default();
        let mut events = Vec::new();
        for piece in pieces {
            let raw = serde_json::value::to_raw_value(piece).unwrap();
            calls.apply(&raw, offered, &ids, &mut events);
        }
        let mut done = calls.finish(false, offered, &ids);
        events.append(&mut done.events);
        done.events = events;
        done
    }

    #[test]
    fn a_known_name_may_begin_a_longer_known_one() {
        let pieces = [
            json!([{"index": 0, "id": "a", "function": {"name": "get"}}]),
            json!([{"index": 0, "function": {"name": "_weather"}}]),
            json!([{"index": 0, "function": {"name": "_now", "arguments": "{}"}}]),
        ];
        let done = assemble(&pieces, &["get", "get_weather_now"]);
        assert_eq!(done.runnable[0].name, "get_weather_now");
        // Without the longer one on offer, what cannot belong to the name does not spoil it.
        assert_eq!(assemble(&pieces, &["get"]).runnable[0].name, "get");
    }

    #[test]
    fn a_bare_continuation_with_the_id_of_another_call_goes_there() {
        let done = assemble(
            &[
                json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"v\":"}}]),
                json!([{"index": 1, "id": "b", "function": {"name": "x", "arguments": "{\"v\":"}}]),
                json!([{"index": 0, "id": "b", "function": {"arguments": "2}"}}]),
                json!([{"index": 0, "id": "a", "function": {"arguments": "1}"}}]),
            ],
            &["x"],
        );
        let arguments: Vec<_> = done.runnable.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, ["{\"v\":1}", "{\"v\":2}"]);
    }

    #[test]
    fn arguments_that_never_came_are_not_empty_ones() {
        let tools = [ToolDefinition {
            name: "x".to_owned(),
            description: String::new(),
            parameters: json!({}),
        }];
        for (cut, runnable) in [(false, 1), (true, 0)] {
            let ids = IdMaker::new("r", 1);
            let mut calls = CallAssembly::default();
            let raw = serde_json::value::to_raw_value(&json!([{"id": "a", "function": {"name": "x"}}])).unwrap();
            calls.apply(&raw, Offered(&tools), &ids, &mut Vec::new());
            let done = calls.finish(cut, Offered(&tools), &ids);
            assert_eq!((done.runnable.len(), done.incomplete.len()), (runnable, 1 - runnable));
        }
    }

    #[test]
    fn equal_ids_are_told_apart_and_each_call_is_told_once() {
        let done = assemble(
            &[json!([
                {"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}},
                {"index": 1, "id": "a", "function": {"name": "x", "arguments": "{}"}},
                {"index": 2, "function": {"name": "y", "arguments": "{}"}}
            ])],
            &["x"],
        );
        assert_eq!(done.runnable.len(), 2);
        assert_ne!(done.runnable[0].id, done.runnable[1].id);
        assert_eq!(done.incomplete[0].reason, IncompleteReason::UnknownTool);
        assert_eq!(done.events.len(), 3);
    }
}
