//! What picky servers refuse in a request: ten rules, each of which names what is wrong.

use serde_json::{Map, Value, json};

/// The names of all rules.
pub const RULES: [&str; 10] = [
    "openai",
    "mistral",
    "alternate",
    "one_system",
    "reasoning_back",
    "no_extra_fields",
    "signature_back",
    "reasoning_details_back",
    "surrogates",
    "old_params",
];

/// The signature that `signature_back` wants.
pub const SIGNATURE: &str = "c2lnLWxpZ2h0aG91c2U=";

/// The blocks that `reasoning_details_back` wants.
pub fn wanted_details() -> Value {
    json!([{"type": "reasoning.text", "text": "Count the lamps first.", "signature": "sig-7f3a",
        "format": "anthropic-claude-v1", "index": 0}])
}

/// Checks a request's body; why it is refused.
pub fn refuses(rule: &str, body: &str) -> Option<String> {
    if rule == "surrogates" {
        return has_lone_surrogate(body).then(|| "lone surrogate in the request".to_owned());
    }
    let body: Value = match serde_json::from_str(body) {
        Ok(body) => body,
        Err(error) => return Some(format!("unreadable request: {error}")),
    };
    let messages: Vec<&Map<String, Value>> = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect();
    match rule {
        "openai" => common(&messages),
        "mistral" => mistral(&messages).or_else(|| common(&messages)),
        "alternate" => alternate(&messages),
        "one_system" => {
            let count = messages
                .iter()
                .filter(|message| matches!(role(message), "system" | "developer"))
                .count();
            (count > 1).then(|| format!("{count} system messages; at most one is taken"))
        }
        "reasoning_back" => each(&messages, |message| {
            let lacks = role(message) == "assistant"
                && !calls(message).is_empty()
                && !is_truthy(message.get("reasoning_content"));
            lacks.then(|| "reasoning_content must be sent back with tool calls".to_owned())
        }),
        "no_extra_fields" => each(&messages, |message| {
            let known = ["role", "content", "name", "tool_calls", "tool_call_id"];
            let extra: Vec<&String> = message.keys().filter(|key| !known.contains(&key.as_str())).collect();
            (!extra.is_empty()).then(|| format!("unknown field(s) {extra:?}"))
        }),
        "signature_back" => each(&messages, |message| {
            let first = calls(message).first()?;
            let signature = &first["extra_content"]["google"]["thought_signature"];
            (signature != SIGNATURE).then(|| "thought_signature of the first call is missing".to_owned())
        }),
        "reasoning_details_back" => each(&messages, |message| {
            let bad = role(message) == "assistant" && message.get("reasoning_details") != Some(&wanted_details());
            bad.then(|| "reasoning_details changed or missing".to_owned())
        }),
        "old_params" => [
            "stream_options",
            "parallel_tool_calls",
            "reasoning_effort",
            "max_completion_tokens",
            "service_tier",
            "store",
            "metadata",
        ]
        .iter()
        .find(|key| body.get(**key).is_some())
        .map(|key| format!("unknown parameter {key}")),
        other => panic!("no rule {other}"),
    }
}

fn each(messages: &[&Map<String, Value>], check: impl Fn(&Map<String, Value>) -> Option<String>) -> Option<String> {
    messages
        .iter()
        .enumerate()
        .find_map(|(at, message)| check(message).map(|why| format!("messages[{at}]: {why}")))
}

fn role(message: &Map<String, Value>) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn calls(message: &Map<String, Value>) -> &[Value] {
    message
        .get("tool_calls")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn is_truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

/// What OpenAI itself insists on.
fn common(messages: &[&Map<String, Value>]) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if role(message) == "tool" {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            match open.iter().position(|known| known == id) {
                Some(place) => open.remove(place),
                None => return Some(format!("messages[{at}]: tool message answers no open call")),
            };
            continue;
        }
        if !open.is_empty() {
            return Some(format!("messages[{at}]: calls {open:?} have no tool message"));
        }
        for call in calls(message) {
            let function = &call["function"];
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || call["type"] != "function" || !is_truthy(function.get("name")) {
                return Some(format!("messages[{at}]: a tool call lacks id, type or name"));
            }
            let Some(arguments) = function["arguments"].as_str() else {
                return Some(format!("messages[{at}]: arguments must be a string"));
            };
            match serde_json::from_str::<Value>(arguments) {
                Ok(Value::Object(_)) => {}
                Ok(_) => return Some(format!("messages[{at}]: arguments is not a JSON object")),
                Err(_) => return Some(format!("messages[{at}]: arguments is not JSON")),
            }
            open.push(id.to_owned());
        }
        if message.contains_key("tool_calls") && calls(message).is_empty() {
            return Some(format!("messages[{at}]: tool_calls must not be an empty list"));
        }
        if role(message) == "assistant" && calls(message).is_empty() && !is_truthy(message.get("content")) {
            return Some(format!(
                "messages[{at}]: assistant message has neither content nor calls"
            ));
        }
    }
    (!open.is_empty()).then(|| format!("calls {open:?} have no tool message"))
}

fn mistral(messages: &[&Map<String, Value>]) -> Option<String> {
    let nine = |id: Option<&Value>| {
        id.and_then(Value::as_str)
            .is_some_and(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let mut last = "";
    for (at, message) in messages.iter().enumerate() {
        if let Some(call) = calls(message).iter().find(|call| !nine(call.get("id"))) {
            return Some(format!(
                "messages[{at}]: call id must be nine of a-z A-Z 0-9, got {}",
                call["id"]
            ));
        }
        if role(message) == "tool" && !nine(message.get("tool_call_id")) {
            return Some(format!("messages[{at}]: tool_call_id must be nine of a-z A-Z 0-9"));
        }
        if (last, role(message)) == ("tool", "user") {
            return Some(format!("messages[{at}]: role user may not follow role tool"));
        }
        if (last, role(message)) == ("user", "tool") {
            return Some(format!("messages[{at}]: role tool may not follow role user"));
        }
        last = role(message);
    }
    (!matches!(last, "user" | "tool")).then(|| format!("the last role must be user or tool, got {last}"))
}

/// Chat templates that raise unless user and assistant take turns after one system message.
fn alternate(messages: &[&Map<String, Value>]) -> Option<String> {
    let mut want = "user";
    for (at, message) in messages.iter().enumerate() {
        match role(message) {
            "system" if at == 0 => {}
            "tool" => want = "assistant",
            got if got != want => return Some(format!("messages[{at}]: expected role {want}, got {got}")),
            "assistant" => want = if calls(message).is_empty() { "user" } else { "tool" },
            _ => want = "assistant",
        }
    }
    None
}

/// Whether JSON text holds an escape that is half of a character.
fn has_lone_surrogate(json: &str) -> bool {
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let hex = json.get(at + 2..at + 6).filter(|_| bytes[at..].starts_with(b"\\u"))?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) if at + 12 <= bytes.len() && matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => {
                at += 12
            }
            Some(0xD800..=0xDFFF) => return true,
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    false
}
