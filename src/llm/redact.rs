//! What a recording must not hold: members that are named like secrets, and secrets that only show when the pieces of an
//! answer are put together.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::provider::{ChatResponse, IncompleteCall};
use super::secret::Secret;

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 8] = [
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "password",
    "secret",
    "credential",
    "private_key",
];

/// Whether a member, header or query parameter of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = ["key", "token", "code", "sig"].iter().any(|end| name == *end);
    ends || name.ends_with("_token") || name.ends_with("-token") || SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// The texts under secret names in `value`, at any depth.
pub(crate) fn secrets_in(value: &Value, found: &mut Vec<Secret>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if is_secret_name(name) && !text.is_empty() => found.push(Secret::new(text)),
                    value => secrets_in(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secrets_in(item, found)),
        _ => {}
    }
}

/// A request's body with the texts under secret names masked; what the messages and tools say is not named by us.
pub(crate) fn members(mut body: Value) -> Value {
    if let Value::Object(members) = &mut body {
        for (name, value) in members.iter_mut() {
            if !matches!(name.as_str(), "messages" | "tools") {
                mask(name, value);
            }
        }
    }
    body
}

fn mask(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if is_secret_name(name) && !text.is_empty() => *text = super::secret::MASK.to_owned(),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| mask(name, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(name, item)),
        _ => {}
    }
}

/// Whether an answer, put together, tells what `clean` takes out.
pub(crate) fn tells(answer: &ChatResponse, clean: &dyn Fn(&str) -> String) -> bool {
    let message = &answer.message;
    let thoughts = message.reasoning.iter().map(|reasoning| reasoning.text.as_str());
    let calls = message.tool_calls.iter().map(|call| call.arguments.as_str());
    let broken = answer.incomplete_calls.iter().map(|call| call.arguments_raw.as_str());
    std::iter::once(message.content.as_str())
        .chain(thoughts)
        .chain(calls)
        .chain(broken)
        .any(|text| clean(text) != text)
}

/// A stream that says what `answer` says, cleaned, in one event; `whole` adds the sentinel.
pub(crate) fn body(answer: &ChatResponse, whole: bool, clean: &dyn Fn(&str) -> String) -> String {
    let message = &answer.message;
    let mut delta = Map::new();
    delta.insert("content".to_owned(), json!(clean(&message.content)));
    if let Some(reasoning) = &message.reasoning {
        delta.insert("reasoning_content".to_owned(), json!(clean(&reasoning.text)));
    }
    let call = |index: usize, id: &str, name: &str, arguments: &str| {
        json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": clean(arguments)}})
    };
    let mut calls = Vec::new();
    let broken = |calls: &mut Vec<Value>, after: usize| {
        for IncompleteCall {
            id,
            name,
            arguments_raw,
            ..
        } in answer.incomplete_calls.iter().filter(|call| call.after == after)
        {
            let name = name.as_deref().unwrap_or_default();
            calls.push(call(calls.len(), id, name, arguments_raw));
        }
    };
    broken(&mut calls, 0);
    for (nth, known) in message.tool_calls.iter().enumerate() {
        calls.push(call(calls.len(), &known.id, &known.name, &known.arguments));
        broken(&mut calls, nth + 1);
    }
    if !calls.is_empty() {
        delta.insert("tool_calls".to_owned(), calls.into());
    }
    let mut chunk = json!({"model": answer.model, "choices": [
        {"index": 0, "delta": delta, "finish_reason": answer.finish_raw}
    ]});
    if let Some(usage) = &answer.usage {
        chunk["usage"] = json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "cost": usage.cost,
        });
    }
    let mut body = format!("data: {chunk}\n\n");
    if whole {
        let _ = write!(body, "data: [DONE]\n\n");
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_and_names_that_only_look_like_them() {
        for name in [
            "api_key",
            "X-API-Key",
            "Authorization",
            "access_token",
            "client_secret",
            "key",
            "sig",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["max_tokens", "monkey", "keyboard", "model", "encoding", "tokens"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_a_body_are_found_at_any_depth_and_masked() {
        let body = json!({"route": [{"api_key": "abcdefg"}], "messages": [{"password": "in words"}], "n": 1});
        let mut found = Vec::new();
        secrets_in(&body["route"], &mut found);
        assert_eq!(found, [Secret::new("abcdefg")]);
        let masked = members(body);
        assert_eq!(masked["route"][0]["api_key"], "[redacted]");
        assert_eq!(masked["messages"][0]["password"], "in words");
    }
}
