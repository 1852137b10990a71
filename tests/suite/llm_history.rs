//! Requests that picky servers take, made from transcripts of every kind.

use agent_smith_core::llm::history::{Repair, check};
use agent_smith_core::llm::quirks::Quirks;
use agent_smith_core::llm::{ChatRequest, RequestParams, request};
use agent_smith_core::message::{Message, Reasoning, Speaker, ToolCall};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::strict::{RULES, SIGNATURE, refuses, wanted_details};

/// The row of the quirk table that makes requests fit a rule.
fn row(rule: &str) -> Quirks {
    let name = match rule {
        // These two hold for every server.
        "openai" | "surrogates" => return Quirks::default(),
        "mistral" => "mistral",
        "alternate" => "alternate",
        "one_system" => "minimax",
        "reasoning_back" => "deepseek",
        "no_extra_fields" => "no-extra-fields",
        "signature_back" => "gemini",
        "reasoning_details_back" => "openrouter",
        "old_params" => "old-params",
        other => panic!("no row for {other}"),
    };
    Quirks::named(name).unwrap()
}

fn params() -> RequestParams {
    RequestParams {
        reasoning_effort: Some("high".to_owned()),
        parallel_tool_calls: Some(true),
        max_tokens: Some(100),
        ..RequestParams::default()
    }
}

fn body(messages: &[Message], quirks: &Quirks) -> String {
    let params = params();
    let request = ChatRequest {
        model: "demo-1",
        messages,
        tools: &[],
        params: &params,
        stream: true,
    };
    String::from_utf8(request::body(&request, quirks, "demo-1@here", 0).unwrap()).unwrap()
}

/// The body a client writes that takes the transcript as it is.
fn naive_body(messages: &[Message]) -> String {
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| {
            let mut wire = json!({"role": message.role, "content": message.content});
            if !message.tool_calls.is_empty() {
                let calls = message.tool_calls.iter().map(|call| {
                    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
                });
                wire["tool_calls"] = calls.collect();
            }
            if let Some(id) = &message.tool_call_id {
                wire["tool_call_id"] = json!(id);
            }
            wire
        })
        .collect();
    json!({"model": "demo-1", "messages": messages}).to_string()
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: arguments.to_owned(),
        extra: Map::new(),
    }
}

fn calling(text: &str, calls: Vec<ToolCall>) -> Message {
    Message {
        tool_calls: calls,
        ..Message::assistant(text)
    }
}

/// A round with everything a server may want back.
fn rich_round() -> Vec<Message> {
    let mut first = call("call_1", "{}");
    first.extra.insert(
        "extra_content".to_owned(),
        json!({"google": {"thought_signature": SIGNATURE}}),
    );
    let mut assistant = calling("Looking.", vec![first, call("call_2", "{\"at\":1}")]);
    assistant.reasoning = Some(Reasoning {
        text: "Count the lamps first.".to_owned(),
        field: "reasoning_content".to_owned(),
        details: wanted_details().as_array().unwrap().clone(),
    });
    vec![
        assistant,
        Message::tool("call_1", "look", "a"),
        Message::tool("call_2", "look", "b"),
    ]
}

/// A transcript that breaks the rule unless something is done about it.
fn hard(rule: &str) -> Vec<Message> {
    let mut messages = vec![Message::system("Be brief."), Message::user("Go.")];
    match rule {
        "openai" => messages.extend([
            calling("", vec![call("a", "{\"cut"), call("b", "{}")]),
            Message::user("And?"),
            Message::tool("b", "look", "late"),
            Message::tool("z", "look", "orphan"),
            Message::assistant(""),
            Message::user("Well?"),
        ]),
        "one_system" => messages.extend([Message::system("Another."), Message::user("Go on.")]),
        "reasoning_back" => messages.extend([
            calling("", vec![call("a", "{}")]),
            Message::tool("a", "look", "x"),
            Message::user("More."),
        ]),
        "alternate" => {
            messages.push(Message::user("Go on."));
            messages.extend(rich_round());
            messages.extend([
                Message::user("Now?"),
                Message::assistant("So."),
                Message::assistant("And so."),
                Message::system("Late."),
                Message::user("?"),
            ]);
        }
        _ => {
            messages.extend(rich_round());
            messages.push(Message::user("Now?"));
        }
    }
    messages
}

#[test]
fn each_rule_takes_what_its_row_makes_and_refuses_what_others_make() {
    for rule in RULES {
        let messages = hard(rule);
        let fitting = body(&messages, &row(rule));
        assert_eq!(refuses(rule, &fitting), None, "{rule}: {fitting}");
        // The control: without the row, or without the validator, the same transcript is refused.
        let control = match rule {
            "openai" => naive_body(&messages),
            "surrogates" => body(&messages, &Quirks::default()).replace("Now?", "\\ud83d"),
            "signature_back" | "reasoning_details_back" => body(&messages, &Quirks::named("no-extra-fields").unwrap()),
            _ => body(&messages, &Quirks::default()),
        };
        assert!(
            refuses(rule, &control).is_some(),
            "{rule} takes the control too: {control}"
        );
    }
}

#[test]
fn halves_of_characters_that_a_server_sent_do_not_go_back() {
    let messages = [
        Message::user("Go."),
        calling("", vec![call("a", "{\"text\":\"\\ud83d\"}")]),
        Message::tool("a", "look", "x"),
    ];
    // The arguments are JSON inside a JSON string: what the server decodes twice must be whole, too.
    let body: Value = serde_json::from_str(&body(&messages, &Quirks::default())).unwrap();
    let arguments = body["messages"][1]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    assert_eq!(refuses("surrogates", arguments), None, "{arguments}");
    assert!(refuses("surrogates", "{\"text\":\"\\ud83d\"}").is_some());
}

#[test]
fn repairs_are_told_and_the_transcript_is_not_touched() {
    let messages = hard("openai");
    let before = messages.clone();
    let repairs = check(&messages);
    assert_eq!(messages, before);
    for expected in [
        Repair::BrokenArguments {
            at: 2,
            call_id: "a".to_owned(),
        },
        Repair::MissingResult {
            at: 2,
            call_id: "a".to_owned(),
        },
        Repair::MovedResult { at: 4 },
        Repair::OrphanResult { at: 5 },
        Repair::EmptyMessage { at: 6 },
    ] {
        assert!(repairs.contains(&expected), "{expected:?} is not in {repairs:?}");
    }
    let mut good = vec![Message::system("s"), Message::user("u")];
    good.extend(rich_round());
    assert_eq!(check(&good), []);
}

#[test]
fn broken_arguments_stay_readable_for_the_model() {
    let body: Value = serde_json::from_str(&body(&hard("openai"), &Quirks::default())).unwrap();
    let arguments = body["messages"][2]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(arguments).unwrap(),
        json!({"malformed_arguments": "{\"cut"})
    );
}

#[test]
fn signatures_of_another_model_stay_here() {
    let mut messages = vec![Message::user("Go.")];
    messages.extend(rich_round());
    messages[1].served_by = Some("other@there".to_owned());
    let foreign = body(&messages, &Quirks::default());
    assert!(!foreign.contains(SIGNATURE) && !foreign.contains("sig-7f3a") && !foreign.contains("Count the lamps"));
    messages[1].served_by = Some("demo-1@here".to_owned());
    let own = body(&messages, &Quirks::default());
    assert!(own.contains(SIGNATURE) && own.contains("sig-7f3a"));
}

#[test]
fn the_cache_marks_stand_on_the_system_and_the_last_message_only() {
    let quirks = Quirks {
        cache_control: true,
        ..Quirks::default()
    };
    let mut messages = vec![Message::system("s"), Message::user("u")];
    let first = body(&messages, &quirks);
    messages.extend(rich_round());
    let second = body(&messages, &quirks);
    let marks = |body: &str| body.matches("cache_control").count();
    assert_eq!((marks(&first), marks(&second)), (2, 2));
    let body: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(body["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["messages"][4]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["messages"][1]["content"], "u");
}

/// One message of any kind, with small pools so that ids and roles meet in all ways.
fn any_message() -> impl Strategy<Value = Message> {
    let ids = prop::sample::select(vec!["a", "b", "", "call_xyz", "AbCdEf123", "functions.look:0"]);
    let text = prop::sample::select(vec!["", "x", " ", "long text", "\u{fffd}👋"]);
    let arguments = prop::sample::select(vec!["{}", "", "{\"a\":1}", "{\"a", "[1]", "{\"a\":\"\\ud83d\"}", "no"]);
    let names = prop::sample::select(vec!["look", "", "bad name.x", "ünï"]);
    let calls = prop::collection::vec((ids.clone(), arguments, names), 0..4);
    let thoughts = prop::option::of((
        "[ab]{0,2}",
        prop::sample::select(vec!["reasoning_content", "reasoning", ""]),
    ));
    (0..6u8, text, calls, ids, thoughts, any::<bool>()).prop_map(
        |(kind, text, calls, id, thoughts, extra)| match kind {
            0 => Message::system(text),
            1 | 2 => Message::user(text),
            3 => Message::tool(id, "look", text),
            _ => {
                let calls = calls.into_iter().map(|(id, arguments, name)| ToolCall {
                    name: name.to_owned(),
                    ..call(id, arguments)
                });
                let mut message = calling(text, calls.collect());
                message.reasoning = thoughts.map(|(text, field)| Reasoning {
                    text,
                    field: field.to_owned(),
                    details: Vec::new(),
                });
                if extra {
                    message.extra.insert("extra_content".to_owned(), json!({"x": 1}));
                }
                message
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever a transcript looks like and wherever it is cut, each server takes what is made of it for that server.
    #[test]
    fn random_transcripts_with_random_cuts_are_taken(
        messages in prop::collection::vec(any_message(), 0..14),
        cut in (0usize..14, 0usize..14),
    ) {
        let from = cut.0.min(messages.len());
        let to = cut.1.clamp(from, messages.len());
        let part = &messages[from..to];
        for rule in RULES.iter().filter(|rule| !matches!(**rule, "signature_back" | "reasoning_details_back")) {
            let body = body(part, &row(rule));
            prop_assert_eq!(refuses(rule, &body), None, "{}: {}", rule, body);
            prop_assert_eq!(refuses("openai", &body), None, "openai under {}: {}", rule, body);
            prop_assert_eq!(refuses("surrogates", &body), None);
        }
    }

    /// Nothing a user wrote or a tool said is lost, unless it answers no call.
    #[test]
    fn texts_are_kept(messages in prop::collection::vec(any_message(), 0..10)) {
        let body = body(&messages, &Quirks::default());
        for message in messages.iter().filter(|message| matches!(message.role, Speaker::User | Speaker::System)) {
            let text = serde_json::to_string(message.content.trim()).unwrap();
            prop_assert!(body.contains(text.trim_matches('"')));
        }
    }

    /// The beginning of a request is the same bytes in the next round, for every row.
    #[test]
    fn the_beginning_stays_the_same_bytes(rounds in prop::collection::vec((1usize..4, "[a-z\"\\\\é]{1,6}"), 1..6)) {
        for rule in RULES {
            let quirks = row(rule);
            let mut messages = vec![Message::system("Be brief."), Message::user("Go.")];
            let mut before = body(&messages, &quirks);
            for (number, (calls, text)) in rounds.iter().enumerate() {
                let ids: Vec<String> = (0..*calls).map(|at| format!("call_{number}_{at}")).collect();
                messages.push(calling(text, ids.iter().map(|id| call(id, "{\"a\": 1}")).collect()));
                messages.extend(ids.iter().map(|id| Message::tool(id, "look", text)));
                let now = body(&messages, &quirks);
                let beginning = before.strip_suffix("]}").unwrap();
                prop_assert!(now.starts_with(beginning), "{rule}\n{beginning}\n{now}");
                before = now;
            }
        }
    }
}
