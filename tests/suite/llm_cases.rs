//! Every recorded quirk of a real server, played over a socket and compared with what its fixture expects.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::error::ErrorKind;
use agent_smith_core::llm::{
    ChatResponse, Client, ClientConfig, FinishReason, LlmFailure, ModelInfo, Quirks, StreamEvent, request,
};
use agent_smith_core::message::{Message, ToolDefinition};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::ask::Ask;
use crate::support::mock_server::MockServer;
use crate::support::quirk_cases::{Case, case_files, cases, repeated, tools};

/// How many cases there are; a lost file must not pass for a green test.
const COUNT: usize = 196;

/// The digest of all of them, names and contents: what they expect is not for us to change.
const DIGEST: &str = "99df05b04a32e4aaf63fe6ab48c89ef716deb3d8ab9dc7c48b714c91fb48003d";

#[test]
fn all_cases_are_here() {
    let all = cases();
    assert_eq!(all.len(), COUNT);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for case in &all {
        *kinds.entry(case.0["kind"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    println!("{COUNT} cases: {kinds:?}");
    let mut digest = Sha256::new();
    for (name, contents) in case_files() {
        digest.update(name.as_bytes());
        digest.update([0]);
        digest.update(contents.as_bytes());
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, DIGEST, "the cases were changed");
    let known: HashSet<&str> = KINDS.iter().copied().collect();
    assert!(
        kinds.keys().all(|kind| known.contains(kind.as_str())),
        "a kind has no test: {kinds:?}"
    );
}

const KINDS: [&str; 10] = [
    "framing",
    "shape",
    "tool_call",
    "reasoning",
    "usage",
    "finish",
    "http_error",
    "stream_error",
    "transport",
    "models",
];

macro_rules! kinds {
    ($($name:ident: $($kind:literal)|+;)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            run(&[$($kind),+]).await;
        }
    )* };
}

kinds! {
    framing_cases: "framing";
    shape_cases: "shape";
    tool_call_cases: "tool_call";
    reasoning_cases: "reasoning";
    usage_and_finish_cases: "usage" | "finish";
    http_error_cases: "http_error";
    stream_error_cases: "stream_error";
    transport_cases: "transport";
    models_cases: "models";
}

async fn run(kinds: &[&str]) {
    let chosen: Vec<Case> = cases()
        .into_iter()
        .filter(|case| kinds.contains(&case.0["kind"].as_str().unwrap()))
        .collect();
    assert!(!chosen.is_empty());
    let count = chosen.len();
    let running = chosen
        .into_iter()
        .map(|case| tokio::spawn(async move { (case.id().to_owned(), play(&case).await) }));
    let mut failed = Vec::new();
    for task in running.collect::<Vec<_>>() {
        let (id, problems) = task.await.unwrap();
        if !problems.is_empty() {
            failed.push(format!("{id}:\n    {}", problems.join("\n    ")));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} cases failed\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Plays a case; what differs from its expectation.
async fn play(case: &Case) -> Vec<String> {
    let server = MockServer::start();
    server.answer(case.answer());
    let mut config = ClientConfig::new(server.url());
    if let Some(limit) = case.timing("first_byte_timeout_ms") {
        config.timeouts.connect = limit;
    }
    if let Some(limit) = case.timing("idle_timeout_ms") {
        config.timeouts.stream_stall = limit;
    }
    let client = Client::new(config).unwrap();
    let cancel = CancelToken::new_root();
    let begun = Instant::now();
    let mut problems = Problems::default();
    if case.0.get("endpoint").is_some() {
        let outcome = client.models(&cancel).await.map(|catalogue| catalogue.models);
        compare_models(case.expect(), &outcome, &mut problems);
    } else {
        let tools = tools(&case.0["request"]["tools"]);
        let ask = request_with(vec![Message::user("Go.")], &tools);
        let (outcome, events) = ask.collecting(&client).await;
        compare(case.expect(), &outcome, &tools, &mut problems);
        compare_events(&outcome, &events, &mut problems);
    }
    if let Some(limit) = case.timing("must_end_within_ms") {
        problems.check("time", begun.elapsed() <= limit, || {
            format!("{:?} > {limit:?}", begun.elapsed())
        });
    }
    problems.0
}

/// A request to the cases' server.
fn request_with(messages: Vec<Message>, tools: &[ToolDefinition]) -> Ask {
    Ask {
        model: "demo-1".to_owned(),
        messages,
        tools: tools.to_vec(),
        ..Ask::default()
    }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn check(&mut self, what: &str, good: bool, shown: impl FnOnce() -> String) {
        if !good {
            self.0.push(format!("{what}: {}", shown()));
        }
    }
}

/// Compares an outcome with everything a fixture says.
fn compare(
    expect: &Value,
    outcome: &Result<ChatResponse, LlmFailure>,
    tools: &[ToolDefinition],
    problems: &mut Problems,
) {
    let nothing = ChatResponse::from_message(Message::assistant(""), FinishReason::Unknown);
    let response = match outcome {
        Ok(response) => response,
        Err(failure) => failure.partial.as_deref().unwrap_or(&nothing),
    };
    let message = &response.message;
    let text = message.content.as_str();
    let exact = match expect.get("text_repeat") {
        Some(repeat) => repeated(repeat),
        None => expect["text"].as_str().unwrap().to_owned(),
    };
    problems.check(
        "text",
        text == exact || is_one_of(expect, "text_any", &json!(text)),
        || format!("{text:?}"),
    );
    let reasoning = message
        .reasoning
        .as_ref()
        .map_or("", |reasoning| reasoning.text.as_str());
    let good = expect["reasoning"] == reasoning || is_one_of(expect, "reasoning_any", &json!(reasoning));
    problems.check("reasoning", good, || format!("{reasoning:?}"));
    compare_calls(expect, response, problems);

    let finish = match response.finish {
        FinishReason::Unknown => Value::Null,
        known => json!(known),
    };
    let good = expect["finish"] == finish || is_one_of(expect, "finish_any", &finish);
    problems.check("finish", good, || finish.to_string());
    if let Some(raw) = expect.get("finish_raw") {
        problems.check("finish_raw", json!(response.finish_raw) == *raw, || {
            format!("{:?}", response.finish_raw)
        });
    }
    if let Some(refusal) = expect.get("refusal") {
        problems.check("refusal", json!(response.refusal) == *refusal, || {
            format!("{:?}", response.refusal)
        });
    }
    if let Some(empty) = expect.get("empty_answer") {
        problems.check("empty_answer", json!(response.is_empty()) == *empty, || {
            response.is_empty().to_string()
        });
    }
    compare_usage(expect, response, problems);
    match (outcome, expect.get("error")) {
        (Ok(_), None) => {}
        (Ok(_), Some(error)) => problems.0.push(format!("no error, expected {error}")),
        (Err(failure), None) => problems.0.push(format!("error: {failure:?}")),
        (Err(failure), Some(error)) => compare_error(expect, error, failure, problems),
    }
    if let Some(echo) = expect.get("echo") {
        compare_echo(echo, message, tools, problems);
    }
}

fn is_one_of(expect: &Value, key: &str, value: &Value) -> bool {
    expect
        .get(key)
        .and_then(Value::as_array)
        .is_some_and(|list| list.contains(value))
}

fn compare_calls(expect: &Value, response: &ChatResponse, problems: &mut Problems) {
    let calls = &response.message.tool_calls;
    let fits = |wanted: &Value| {
        let wanted = wanted.as_array().unwrap();
        wanted.len() == calls.len()
            && wanted.iter().zip(calls).all(|(wanted, call)| {
                let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                wanted.get("id").is_none_or(|id| *id == call.id)
                    && wanted["name"] == call.name
                    && arguments(wanted["arguments_json"].as_str().unwrap()) == arguments(&call.arguments)
            })
    };
    let any = expect.get("tool_calls_any").and_then(Value::as_array);
    let good = fits(&expect["tool_calls"]) || any.is_some_and(|list| list.iter().any(fits));
    problems.check("tool_calls", good, || format!("{calls:?}"));
    let ids: HashSet<&str> = calls
        .iter()
        .map(|call| call.id.as_str())
        .chain(response.incomplete_calls.iter().map(|call| call.id.as_str()))
        .collect();
    let unique = ids.len() == calls.len() + response.incomplete_calls.len() && !ids.contains("");
    problems.check("ids", unique, || format!("{calls:?}"));
    let incomplete: Vec<Value> = response
        .incomplete_calls
        .iter()
        .map(|call| json!({"id": call.id, "name": call.name, "arguments_raw": call.arguments_raw}))
        .collect();
    let wanted = expect.get("incomplete_tool_calls").cloned().unwrap_or(json!([]));
    // Where a case lets none run, what was not run is reported as incomplete.
    let free = any.is_some() && calls.is_empty() && expect["tool_calls"] != json!([]);
    problems.check("incomplete_tool_calls", free || json!(incomplete) == wanted, || {
        format!("{incomplete:?}")
    });
}

fn compare_usage(expect: &Value, response: &ChatResponse, problems: &mut Problems) {
    let Some(wanted) = expect.get("usage") else { return };
    let usage = response.usage.as_ref();
    let fits = |wanted: &Value| match (wanted, usage) {
        (Value::Null, None) => true,
        (Value::Object(members), Some(usage)) => {
            let mut known = serde_json::to_value(usage).unwrap();
            known["total_tokens"] = json!(usage.total_tokens());
            members.iter().all(|(key, value)| {
                known.get(key).is_some_and(|known| {
                    known == value
                        || known
                            .as_f64()
                            .zip(value.as_f64())
                            .is_some_and(|(a, b)| (a - b).abs() < 1e-12)
                })
            })
        }
        _ => false,
    };
    let any = expect.get("usage_any").and_then(Value::as_array);
    let good = fits(wanted) || any.is_some_and(|list| list.iter().any(fits));
    problems.check("usage", good, || format!("{usage:?}"));
}

fn compare_error(expect: &Value, error: &Value, failure: &LlmFailure, problems: &mut Problems) {
    // In the cases, two codes have the names of our kinds.
    let ours = |kind: &Value| match kind.as_str().unwrap() {
        "transport" => "connection".to_owned(),
        "protocol" => "unreadable".to_owned(),
        other => other.to_owned(),
    };
    let code = &*failure.error.code;
    let any = expect.get("error_kind_any").and_then(Value::as_array);
    let good = ours(&error["kind"]) == code || any.is_some_and(|list| list.iter().any(|kind| ours(kind) == code));
    problems.check("error code", good, || format!("{:?}", failure.error));
    let transport = [
        "connection",
        "timeout",
        "server",
        "overloaded",
        "rate_limit",
        "quota",
        "auth",
    ];
    let kind = if transport.contains(&code) {
        ErrorKind::Transport
    } else {
        ErrorKind::Protocol
    };
    problems.check("error kind", failure.error.kind == kind, || {
        format!("{:?}", failure.error)
    });
    let retryable = json!(failure.error.retryable);
    let good = error["retryable"] == retryable || is_one_of(expect, "retryable_any", &retryable);
    problems.check("retryable", good, || format!("{:?}", failure.error));
    let wait = failure.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap());
    let tolerance = expect["retry_after_tolerance_ms"].as_u64().unwrap_or(0);
    let good = match (wait, error["retry_after_ms"].as_u64()) {
        (Some(wait), Some(wanted)) => wait.abs_diff(wanted) <= tolerance,
        (wait, wanted) => wait == wanted,
    };
    problems.check("retry_after", good, || format!("{wait:?}"));
    let shown = &failure.error.message;
    if let Some(part) = error["message_contains"].as_str() {
        problems.check("message", shown.contains(part), || shown.clone());
    }
    if let Some(part) = expect["message_lacks"].as_str() {
        problems.check("message", !shown.to_lowercase().contains(part), || shown.clone());
    }
    problems.check(
        "message's form",
        shown.ends_with(['.', '!', '?', '…']) && !shown.contains("  ("),
        || shown.clone(),
    );
    if let Some(context) = expect["context"].as_object() {
        let data = failure.error.data.as_deref().cloned().unwrap_or_default();
        let good = context.iter().all(|(key, value)| data.get(key) == Some(value));
        problems.check("context", good, || data.to_string());
    }
}

/// What must go back stands unchanged in the next request.
fn compare_echo(echo: &Value, message: &Message, tools: &[ToolDefinition], problems: &mut Problems) {
    let mut messages = vec![Message::user("Go."), message.clone()];
    messages.extend(
        message
            .tool_calls
            .iter()
            .map(|call| Message::tool(&call.id, &call.name, "done")),
    );
    let ask = request_with(messages, tools);
    let served_by = message.served_by.as_deref().unwrap();
    let body = request::body(&ask.request(), &Quirks::default(), served_by, 0).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    for (path, wanted) in echo.as_object().unwrap() {
        let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        let sent = body["messages"][1].pointer(&pointer);
        problems.check(path, sent == Some(wanted), || format!("{sent:?}"));
    }
}

/// The events of the stream tell the same as the answer.
fn compare_events(outcome: &Result<ChatResponse, LlmFailure>, events: &[StreamEvent], problems: &mut Problems) {
    let (mut text, mut thoughts, mut told) = (String::new(), String::new(), 0);
    for event in events {
        match event {
            StreamEvent::HeadersReceived => {}
            StreamEvent::Text(piece) => text.push_str(piece),
            StreamEvent::Thinking(piece) => thoughts.push_str(piece),
            StreamEvent::TextWasThinking => thoughts.push_str(&std::mem::take(&mut text)),
            StreamEvent::ToolCallDetected { .. } => told += 1,
        }
    }
    let response = match outcome {
        Ok(response) => Some(response),
        Err(failure) => failure.partial.as_deref(),
    };
    let content = response.map_or("", |response| response.message.content.as_str());
    problems.check("text events", text == content, || {
        format!("{text:?} against {content:?}")
    });
    let reasoning = response.and_then(|response| response.message.reasoning.as_ref());
    let reasoning = reasoning.map_or("", |reasoning| reasoning.text.as_str());
    problems.check("thinking events", thoughts == reasoning, || {
        format!("{thoughts:?} against {reasoning:?}")
    });
    let calls = response.map_or(0, |response| {
        let named = response.incomplete_calls.iter().filter(|call| call.name.is_some());
        response.message.tool_calls.len() + named.count()
    });
    problems.check("call events", told == calls, || format!("{told} against {calls}"));
}

fn compare_models(expect: &Value, outcome: &Result<Vec<ModelInfo>, LlmFailure>, problems: &mut Problems) {
    match (outcome, expect.get("error")) {
        (Ok(models), None) => {
            let wanted = expect["models"].as_array().unwrap();
            let good = wanted.len() == models.len()
                && wanted.iter().zip(models).all(|(wanted, model)| {
                    let length = json!(model.context_length);
                    wanted["id"] == model.id
                        && (wanted.get("context_length").is_none_or(|known| *known == length)
                            || is_one_of(expect, "context_length_any", &length))
                });
            problems.check("models", good, || format!("{models:?}"));
        }
        (Err(failure), Some(error)) => compare_error(expect, error, failure, problems),
        (outcome, _) => problems.0.push(format!("{outcome:?}")),
    }
}
