//! The client against real servers that are running already: `tests/live/llm_servers.sh` gives their addresses. Without
//! them these tests say so and do nothing.

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::llm::{ChatResponse, Client, ClientConfig, FinishReason, LlmFailure, RequestParams, StreamEvent};
use agent_smith_core::message::{Message, ToolCall, ToolDefinition};
use serde_json::{Map, Value, json};

use crate::support::ask::Ask;
use crate::support::mock_server::MockServer;
use crate::support::quirk_cases::{case, tools};

/// The port at which the quirks are served for a gateway.
const CASES_PORT: u16 = 18090;

fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        println!("{variable} is not set: skipped");
    }
    url
}

async fn ask(
    client: &Client,
    model: &str,
    messages: &[Message],
    tools: &[ToolDefinition],
    stream: bool,
) -> Result<ChatResponse, LlmFailure> {
    let ask = Ask {
        model: model.to_owned(),
        messages: messages.to_vec(),
        tools: tools.to_vec(),
        params: RequestParams {
            temperature: Some(0.0),
            max_tokens: Some(64),
            ..RequestParams::default()
        },
        stream,
        ..Ask::default()
    };
    let mut pieces = 0;
    let outcome = ask.telling(client, |_| pieces += 1).await;
    match &outcome {
        Ok(response) => println!(
            "  {model}: {pieces} events, {:?}, {:?}, calls {:?}, thoughts {:?}, usage {:?}",
            response.message.content,
            response.finish,
            response
                .message
                .tool_calls
                .iter()
                .map(|call| (&call.name, &call.arguments))
                .collect::<Vec<_>>(),
            response.message.reasoning.as_ref().map(|reasoning| &reasoning.text),
            response.usage
        ),
        Err(failure) => println!("  {model}: {} ({})", failure.error.message, failure.error.code),
    }
    outcome
}

async fn first_model(client: &Client) -> String {
    let catalogue = client.models(&CancelToken::new_root()).await.unwrap();
    println!("  models: {:?}", catalogue.models);
    catalogue.models[0].id.clone()
}

#[tokio::test]
async fn llama_text() {
    let Some(url) = server("AGENT_SMITH_LIVE_LLAMA") else {
        return;
    };
    let client = Client::new(ClientConfig::new(url)).unwrap();
    let model = first_model(&client).await;
    let messages = [
        Message::system("Answer in one short sentence."),
        Message::user("What is the capital of France?"),
    ];
    let streamed = ask(&client, &model, &messages, &[], true).await.unwrap();
    assert!(!streamed.message.content.is_empty());
    assert!(matches!(streamed.finish, FinishReason::Stop | FinishReason::Length));
    assert!(streamed.usage.unwrap().prompt_tokens > 0);
    let whole = ask(&client, &model, &messages, &[], false).await.unwrap();
    assert_eq!(whole.message.content, streamed.message.content);

    let long = [Message::user("word ".repeat(20_000))];
    let failure = ask(&client, &model, &long, &[], true).await.unwrap_err();
    assert_eq!(&*failure.error.code, "context_length");
    assert!(failure.error.data.unwrap()["n_ctx"].as_u64().unwrap() > 0);

    // Cancelled after the first piece of text.
    let ask = Ask {
        model,
        messages: messages.to_vec(),
        ..Ask::default()
    };
    let stop = ask.cancel.clone();
    let stopped = ask.telling(&client, |event| {
        if let StreamEvent::Text(_) = event {
            stop.cancel();
        }
    });
    assert!(stopped.await.unwrap_err().error.is_cancelled());
}

/// Finished rounds that show a small model how to call.
fn shown_how(questions: &[(&str, &str)]) -> Vec<Message> {
    let mut messages = vec![Message::system("Use get_weather for questions about the weather.")];
    for (number, (city, weather)) in questions.iter().enumerate() {
        let id = format!("call_{number}");
        messages.push(Message::user(format!("What is the weather in {city}?")));
        messages.push(Message {
            tool_calls: vec![ToolCall {
                id: id.clone(),
                name: "get_weather".to_owned(),
                arguments: json!({ "city": city }).to_string(),
                extra: Map::new(),
            }],
            ..Message::assistant("")
        });
        messages.push(Message::tool(id, "get_weather", *weather));
        messages.push(Message::assistant(format!("In {city} it is {weather}.")));
    }
    messages
}

#[tokio::test]
async fn llama_tool_call() {
    let Some(url) = server("AGENT_SMITH_LIVE_LLAMA_TOOLS") else {
        return;
    };
    let client = Client::new(ClientConfig::new(url)).unwrap();
    let model = first_model(&client).await;
    let mut messages = shown_how(&[("Rome", "sunny"), ("Paris", "rainy"), ("Berlin", "cloudy")]);
    messages.push(Message::user("What is the weather in Oslo?"));
    let tools = tools(&json!(["get_weather"]));
    let response = ask(&client, &model, &messages, &tools, true).await.unwrap();
    let call = response.message.tool_calls.first().expect("the model calls the tool");
    assert_eq!(
        (call.name.as_str(), response.finish),
        ("get_weather", FinishReason::ToolCalls)
    );
    assert_eq!(serde_json::from_str::<Value>(&call.arguments).unwrap()["city"], "Oslo");
    // The round goes on: the call and its result are taken back.
    messages.push(response.message.clone());
    messages.push(Message::tool(&call.id, &call.name, "snowy"));
    let answer = ask(&client, &model, &messages, &tools, true).await.unwrap();
    assert!(!answer.is_empty());
}

#[tokio::test]
async fn llama_thinking() {
    let Some(url) = server("AGENT_SMITH_LIVE_LLAMA_THINKING") else {
        return;
    };
    let client = Client::new(ClientConfig::new(url)).unwrap();
    let model = first_model(&client).await;
    let messages = [Message::user("What is two plus three?")];
    let response = ask(&client, &model, &messages, &[], true).await.unwrap();
    assert!(
        response
            .message
            .reasoning
            .is_some_and(|reasoning| !reasoning.text.is_empty())
    );
}

#[tokio::test]
async fn litellm_mocks() {
    let Some(url) = server("AGENT_SMITH_LIVE_LITELLM") else {
        return;
    };
    let client = Client::new(ClientConfig::new(&url).with_key("sk-local")).unwrap();
    let messages = [Message::user("Go.")];
    let offered = tools(&json!(["get_weather"]));
    for stream in [true, false] {
        let response = ask(&client, "mock-ok", &messages, &[], stream).await.unwrap();
        assert_eq!(response.message.content, "The lighthouse keeper counts seven ships.");
    }
    for (model, code) in [
        ("mock-429", "rate_limit"),
        ("mock-500", "server"),
        ("mock-ctx", "context_length"),
    ] {
        let failure = ask(&client, model, &messages, &[], false).await.unwrap_err();
        assert_eq!(&*failure.error.code, code);
    }
    let response = ask(&client, "mock-tool", &messages, &offered, false).await.unwrap();
    assert_eq!(response.message.tool_calls[0].name, "get_weather");
    let wrong_key = Client::new(ClientConfig::new(&url).with_key("sk-wrong-key-here")).unwrap();
    let failure = ask(&wrong_key, "mock-ok", &messages, &[], true).await.unwrap_err();
    assert_eq!(&*failure.error.code, "auth");
    assert!(!failure.error.message.contains("sk-wrong-key-here"));
}

/// Cases that a gateway hands through whole.
const HANDED_THROUGH: [&str; 12] = [
    "frame-baseline",
    "frame-crlf",
    "frame-comment-keepalive",
    "frame-utf8-split",
    "frame-no-done",
    "tool-baseline",
    "tool-llamacpp",
    "tool-interleaved",
    "finish-length",
    "usage-trailing",
    "reason-deepseek",
    "shape-nulls",
];

/// Cases that fail, or end early.
const BROKEN: [&str; 6] = [
    "err-401",
    "err-429-seconds",
    "err-500",
    "tr-reset-mid-text",
    "tool-eof-mid-call",
    "serr-llamacpp-new",
];

#[tokio::test]
async fn litellm_in_front_of_the_cases() {
    let Some(url) = server("AGENT_SMITH_LIVE_LITELLM") else {
        return;
    };
    let cases = MockServer::start_at(CASES_PORT);
    cases.answer_with(|request| {
        let model = request.json()["model"].as_str().unwrap_or_default().to_owned();
        case(model.trim_start_matches("case-")).answer()
    });
    let client = Client::new(ClientConfig::new(&url).with_key("sk-local")).unwrap();
    let messages = [Message::user("Go.")];
    for id in HANDED_THROUGH {
        let case = case(id);
        let expect = case.expect();
        let offered = tools(&case.0["request"]["tools"]);
        let response = ask(&client, &format!("case-{id}"), &messages, &offered, true)
            .await
            .unwrap();
        assert_eq!(expect["text"], response.message.content, "{id}");
        let wanted = expect["tool_calls"].as_array().unwrap();
        assert_eq!(wanted.len(), response.message.tool_calls.len(), "{id}");
        for (wanted, call) in wanted.iter().zip(&response.message.tool_calls) {
            let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(
                arguments(wanted["arguments_json"].as_str().unwrap()),
                arguments(&call.arguments),
                "{id}"
            );
        }
    }
    for id in BROKEN {
        let case = case(id);
        let offered = tools(&case.0["request"]["tools"]);
        let outcome = ask(&client, &format!("case-{id}"), &messages, &offered, true).await;
        let text = case.expect()["text"].as_str().unwrap().to_owned();
        match outcome {
            Err(failure) => {
                let partial = failure
                    .partial
                    .map(|partial| partial.message.content)
                    .unwrap_or_default();
                assert!(text.starts_with(&partial), "{id}");
            }
            // LiteLLM closes a cut stream politely; what it cut must still not be run.
            Ok(response) => {
                assert!(response.message.tool_calls.is_empty(), "{id}");
                assert!(text.starts_with(&response.message.content), "{id}");
            }
        }
    }
}
