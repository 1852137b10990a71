//! The forms in which models write tool calls as text, each as its chat template teaches it.

use serde_json::{Map, Value};

use super::calls::Offered;
use super::json;

/// One way to mark calls in text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// What begins it.
    pub open: &'static str,
    /// What ends it; without one it goes on to the end of the answer.
    pub close: Option<&'static str>,
    /// Only at the very start of an answer.
    pub at_start: bool,
    /// The opening is part of what is read.
    keep_open: bool,
}

const fn tagged(open: &'static str, close: &'static str) -> Form {
    Form {
        open,
        close: Some(close),
        at_start: false,
        keep_open: false,
    }
}

const fn to_the_end(open: &'static str) -> Form {
    Form {
        open,
        close: None,
        at_start: false,
        keep_open: false,
    }
}

/// All forms. A longer opening stands before one that it begins with.
pub(crate) const FORMS: [Form; 14] = [
    // Hermes, Qwen, GLM.
    tagged("<tool_call>", "</tool_call>"),
    tagged("<tool_calls>", "</tool_calls>"),
    tagged("<function_calls>", "</function_calls>"),
    tagged("<function_call>", "</function_call>"),
    tagged("<minimax:tool_call>", "</minimax:tool_call>"),
    // Qwen coder and Llama, without a wrapper.
    Form {
        keep_open: true,
        ..tagged("<function=", "</function>")
    },
    Form {
        keep_open: true,
        ..tagged("<invoke name=", "</invoke>")
    },
    // DeepSeek.
    tagged("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    // Kimi.
    tagged("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    // Granite, Phi.
    to_the_end("<|tool_call|>"),
    // Llama.
    to_the_end("<|python_tag|>"),
    // Mistral.
    to_the_end("[TOOL_CALLS]"),
    Form {
        at_start: true,
        ..to_the_end("functools")
    },
    // The call's JSON alone.
    Form {
        at_start: true,
        keep_open: true,
        ..to_the_end("{")
    },
];

/// The form that is the call's JSON alone.
pub(crate) fn is_bare(form: &Form) -> bool {
    form.open == "{"
}

/// A call as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenCall {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// What a marked piece of text holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Reading {
    /// Calls, all of tools on offer.
    Calls(Vec<WrittenCall>),
    /// More must come before it can be read.
    Unfinished,
    /// No calls that can be run.
    Nothing,
}

/// Reads a block of this form, with its opening and, if it came, its end.
pub(crate) fn read(form: &Form, block: &str, offered: Offered<'_>) -> Reading {
    let mut inner = block;
    if !form.keep_open {
        inner = inner.strip_prefix(form.open).unwrap_or(inner);
        if let Some(close) = form.close {
            inner = inner.strip_suffix(close).unwrap_or(inner);
        }
    }
    let inner = inner.trim();
    let calls = if inner.starts_with(['{', '[']) && !inner.starts_with("[ARGS]") {
        match from_json(inner, is_bare(form)) {
            Ok(calls) => Some(calls),
            Err(unfinished) if unfinished => return Reading::Unfinished,
            Err(_) => None,
        }
    } else if inner.contains("<function=") {
        functions(inner, offered)
    } else if inner.contains("<invoke name=") {
        invocations(inner, offered)
    } else if inner.contains("<｜tool▁call▁begin｜>") {
        between(
            inner,
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            |text| {
                let (kind, rest) = text.split_once("<｜tool▁sep｜>")?;
                let is_kind = kind.trim() == "function";
                named_json(
                    if is_kind {
                        rest.to_owned()
                    } else {
                        format!("{kind}\n{rest}")
                    }
                    .as_str(),
                )
            },
        )
    } else if inner.contains("<|tool_call_begin|>") {
        between(inner, "<|tool_call_begin|>", "<|tool_call_end|>", |text| {
            let (id, arguments) = text.split_once("<|tool_call_argument_begin|>")?;
            let name = id.trim().trim_start_matches("functions.").split(':').next()?;
            named_json(&format!("{name}\n{arguments}"))
        })
    } else {
        keys_and_values(inner, offered).map(|call| vec![call]).or_else(|| {
            let calls: Option<Vec<_>> = inner.split("[TOOL_CALLS]").map(named_json).collect();
            calls
        })
    };
    match calls {
        Some(calls) if !calls.is_empty() && calls.iter().all(|call| offered.has(&call.name)) => Reading::Calls(calls),
        _ => Reading::Nothing,
    }
}

/// The name of the tool that an unfinished block calls.
pub(crate) fn name_in<'a>(block: &str, offered: Offered<'a>) -> Option<&'a str> {
    let after = [
        "\"name\"",
        "<function=",
        "<invoke name=",
        "<｜tool▁sep｜>",
        "functions.",
        "[TOOL_CALLS]",
        "<tool_call>",
    ]
    .iter()
    .find_map(|lead| block.find(lead).map(|at| &block[at + lead.len()..]))?;
    let after = after.trim_start_matches([' ', ':', '"', '\n', '\'', '[', '{']);
    let end = after
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .unwrap_or(after.len());
    offered.get(&after[..end]).map(|tool| tool.name.as_str())
}

/// Whether text that begins an answer may still become the JSON of a call.
pub(crate) fn may_be_bare(text: &str, offered: Offered<'_>) -> bool {
    let compact: String = text.chars().take(200).filter(|c| !c.is_whitespace()).collect();
    for lead in [
        "{\"name\":\"",
        "{\"type\":\"function\",\"name\":\"",
        "{\"type\":\"function\",\"function\":{\"name\":\"",
        "{\"function\":{\"name\":\"",
    ] {
        if lead.starts_with(compact.as_str()) {
            return true;
        }
        if let Some(rest) = compact.strip_prefix(lead) {
            return match rest.split_once('"') {
                Some((name, _)) => offered.has(name),
                None => offered.0.iter().any(|tool| tool.name.starts_with(rest)),
            };
        }
    }
    false
}

/// Calls as JSON: one object, a list, or several after each other. `Err(true)` if the text ends in the middle.
fn from_json(text: &str, alone: bool) -> Result<Vec<WrittenCall>, bool> {
    let repaired = json::repair(text);
    let mut calls = Vec::new();
    let mut values = serde_json::Deserializer::from_str(&repaired).into_iter::<Value>();
    loop {
        match values.next() {
            None => return Ok(calls),
            Some(Ok(Value::Array(list))) => {
                for entry in &list {
                    calls.push(call_of(entry).ok_or(false)?);
                }
            }
            Some(Ok(value)) => calls.push(call_of(&value).ok_or(false)?),
            Some(Err(error)) if error.is_eof() => return Err(true),
            // What a template puts after the JSON does no harm, but an answer that is more than a call is none.
            Some(Err(_))
                if !calls.is_empty()
                    && !alone
                    && repaired[values.byte_offset()..].trim_start().starts_with(['<', ';']) =>
            {
                return Ok(calls);
            }
            Some(Err(_)) => return Err(false),
        }
    }
}

fn call_of(value: &Value) -> Option<WrittenCall> {
    let function = value.get("function");
    let place = function.filter(|function| function.is_object()).unwrap_or(value);
    let name = place
        .get("name")
        .or_else(|| function.filter(|function| function.is_string()))
        .or_else(|| place.get("tool_name"))?
        .as_str()?;
    let arguments = ["arguments", "parameters", "args", "input"]
        .iter()
        .find_map(|key| place.get(*key));
    Some(WrittenCall {
        name: name.to_owned(),
        arguments: match arguments {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
            Some(Value::String(text)) => json::parse(text).ok()?,
            Some(_) => return None,
        },
    })
}

/// `name` and JSON after it, with whatever a template puts between them.
fn named_json(text: &str) -> Option<WrittenCall> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let arguments = rest.replace("[ARGS]", "").replace("```json", "").replace("```", "");
    let arguments = arguments.trim();
    if name.is_empty() || !arguments.starts_with('{') {
        return None;
    }
    Some(WrittenCall {
        name: name.to_owned(),
        arguments: json::parse(arguments).ok()?,
    })
}

/// The pieces between two marks, each read as a call.
fn between(
    text: &str,
    open: &str,
    close: &str,
    read: impl Fn(&str) -> Option<WrittenCall>,
) -> Option<Vec<WrittenCall>> {
    let pieces = text.split(open).skip(1);
    pieces
        .map(|piece| read(piece.split(close).next().unwrap_or(piece)))
        .collect()
}

/// `<function=name>` with `<parameter=key>value</parameter>`, or with JSON.
fn functions(text: &str, offered: Offered<'_>) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    for piece in text.split("<function=").skip(1) {
        let (name, body) = piece.split_once('>')?;
        let body = body.split("</function>").next().unwrap_or(body);
        let name = name.trim().trim_matches('"').to_owned();
        let arguments = if body.trim_start().starts_with('{') {
            json::parse(body.trim()).ok()?
        } else {
            let pairs = body.split("<parameter=").skip(1).map(|parameter| {
                let (key, value) = parameter.split_once('>')?;
                Some((
                    key.trim().trim_matches('"'),
                    value.rsplit_once("</parameter>").map_or(value, |(value, _)| value),
                ))
            });
            typed(&name, pairs.collect::<Option<Vec<_>>>()?, offered)
        };
        calls.push(WrittenCall { name, arguments });
    }
    Some(calls)
}

/// `<invoke name="x"><parameter name="key">value</parameter></invoke>`.
fn invocations(text: &str, offered: Offered<'_>) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    for piece in text.split("<invoke name=").skip(1) {
        let (name, body) = piece.split_once('>')?;
        let name = name.trim().trim_matches('"').to_owned();
        let body = body.split("</invoke>").next().unwrap_or(body);
        let pairs = body.split("<parameter name=").skip(1).map(|parameter| {
            let (key, value) = parameter.split_once('>')?;
            let key = key.trim().trim_start_matches('"').split('"').next()?;
            Some((key, value.rsplit_once("</parameter>").map_or(value, |(value, _)| value)))
        });
        let arguments = typed(&name, pairs.collect::<Option<Vec<_>>>()?, offered);
        calls.push(WrittenCall { name, arguments });
    }
    Some(calls)
}

/// GLM: the name, then `<arg_key>` and `<arg_value>` in turn.
fn keys_and_values(text: &str, offered: Offered<'_>) -> Option<WrittenCall> {
    let (name, body) = match text.find("<arg_key>") {
        Some(at) => (text[..at].trim(), &text[at..]),
        None => (text.trim(), ""),
    };
    if !offered.has(name) {
        return None;
    }
    let pairs = body.split("<arg_key>").skip(1).map(|pair| {
        let (key, rest) = pair.split_once("</arg_key>")?;
        let (_, value) = rest.split_once("<arg_value>")?;
        Some((
            key.trim(),
            value.rsplit_once("</arg_value>").map_or(value, |(value, _)| value),
        ))
    });
    Some(WrittenCall {
        name: name.to_owned(),
        arguments: typed(name, pairs.collect::<Option<Vec<_>>>()?, offered),
    })
}

/// Values of a form that has no types get those of the tool's schema: text stays text, anything else is read as JSON.
fn typed(name: &str, pairs: Vec<(&str, &str)>, offered: Offered<'_>) -> Map<String, Value> {
    let schema = offered.get(name).map(|tool| &tool.parameters);
    let pairs = pairs.into_iter().map(|(key, value)| {
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let kind = schema
            .and_then(|schema| schema.get("properties")?.get(key)?.get("type"))
            .and_then(Value::as_str);
        let read = match kind {
            None | Some("string") => None,
            Some(_) => json::parse(value.trim()).ok(),
        };
        (key.to_owned(), read.unwrap_or_else(|| Value::String(value.to_owned())))
    });
    pairs.collect()
}
