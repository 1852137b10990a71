//! Writing a request's body: straight into bytes, in one pass, with what grows (the messages) last, so that the bytes
//! of one round are the beginning of the next round's.

use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use super::history::{self, WireCall, WireMessage};
use super::provider::ChatRequest;
use super::quirks::{EffortForm, MaxTokens, Quirks};
use crate::message::{Speaker, ToolDefinition};

/// Writes the body of `request` for a server with these deviations. `served_by` names the server and model for the
/// decision which signatures may go back. `capacity` is a guess of the size.
///
/// # Errors
/// Only where a number in the parameters cannot be written as JSON.
pub fn body(
    request: &ChatRequest<'_>,
    quirks: &Quirks,
    served_by: &str,
    capacity: usize,
) -> Result<Vec<u8>, serde_json::Error> {
    let messages = history::prepare(request.messages, quirks, served_by);
    let mut out = Vec::with_capacity(capacity);
    Body {
        request,
        quirks,
        messages,
    }
    .serialize(&mut serde_json::Serializer::new(&mut out))?;
    Ok(out)
}

struct Body<'a> {
    request: &'a ChatRequest<'a>,
    quirks: &'a Quirks,
    messages: Vec<WireMessage<'a>>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.request;
        let params = request.params;
        let extra = &params.extra_body;
        let mut map = serializer.serialize_map(None)?;
        // What `extra_body` names too is left to it.
        macro_rules! put {
            ($key:expr, $value:expr) => {
                if !extra.contains_key($key) {
                    map.serialize_entry($key, $value)?;
                }
            };
        }
        put!("model", &request.model);
        put!("stream", &request.stream);
        if request.stream && self.quirks.stream_options {
            put!("stream_options", &json!({"include_usage": true}));
        }
        if self.quirks.sampling {
            for (key, value) in [("temperature", params.temperature), ("top_p", params.top_p)] {
                if let Some(value) = value {
                    if !value.is_finite() {
                        return Err(S::Error::custom(format!("{key} is not a number")));
                    }
                    put!(key, &value);
                }
            }
        }
        if let Some(limit) = params.max_tokens {
            let key = match self.quirks.max_tokens {
                MaxTokens::MaxTokens => "max_tokens",
                MaxTokens::MaxCompletionTokens => "max_completion_tokens",
            };
            put!(key, &limit);
        }
        if let Some(effort) = params.reasoning_effort.as_deref() {
            match self.quirks.effort {
                EffortForm::Plain => put!("reasoning_effort", &effort),
                EffortForm::Object => put!("reasoning", &json!({ "effort": effort })),
                EffortForm::Off => {}
            }
        }
        if !request.tools.is_empty() {
            put!("tools", &Tools(request.tools));
            if let Some(choice) = &params.tool_choice {
                put!("tool_choice", choice);
            }
            if let Some(parallel) = params.parallel_tool_calls.filter(|_| self.quirks.parallel_tool_calls) {
                put!("parallel_tool_calls", &parallel);
            }
        }
        for (key, value) in extra
            .iter()
            .filter(|(key, value)| !value.is_null() && *key != "messages")
        {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("messages", &self.messages)?;
        map.end()
    }
}

struct Tools<'a>(&'a [ToolDefinition]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for tool in self.0 {
            seq.serialize_element(&Tool {
                kind: "function",
                function: tool,
            })?;
        }
        seq.end()
    }
}

#[derive(serde::Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: &'a ToolDefinition,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &self.role)?;
        if let Some(id) = &self.call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        if self.role == Speaker::Assistant && self.content.is_empty() {
            map.serialize_entry("content", &Value::Null)?;
        } else if self.cache_mark {
            let part = Part {
                kind: "text",
                text: &self.content,
                cache_control: Ephemeral { kind: "ephemeral" },
            };
            map.serialize_entry("content", &[part])?;
        } else {
            map.serialize_entry("content", &self.content)?;
        }
        if let Some((name, text)) = &self.reasoning {
            map.serialize_entry(name, text)?;
        }
        if !self.details.is_empty() {
            map.serialize_entry("reasoning_details", self.details)?;
        }
        if !self.calls.is_empty() {
            map.serialize_entry("tool_calls", &self.calls)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    cache_control: Ephemeral,
}

#[derive(serde::Serialize)]
struct Ephemeral {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(serde::Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: &self.name,
                arguments: &self.arguments,
            },
        )?;
        for (key, value) in self.extra.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
