//! The client against a gated server: streaming, cancellation, time limits, connections, secrets.

use std::time::{Duration, Instant};

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::error::ErrorKind;
use agent_smith_core::llm::{Client, ClientConfig, FinishReason, StreamEvent};
use agent_smith_core::message::Message;
use serde_json::json;

use crate::support::answers::{Answer, End};
use crate::support::ask::{Ask, Asked, client, tool};
use crate::support::mock_server::MockServer;

/// Asks once; the outcome and the events.
async fn ask_with(client: &Client, stream: bool, cancel: &CancelToken) -> Asked {
    let ask = Ask {
        messages: vec![Message::system("Be brief."), Message::user("Hello?")],
        tools: vec![tool("look")],
        stream,
        cancel: cancel.clone(),
        ..Ask::default()
    };
    ask.collecting(client).await
}

async fn ask(client: &Client) -> Asked {
    ask_with(client, true, &CancelToken::new_root()).await
}

#[tokio::test]
async fn text_arrives_piece_by_piece_and_once_more_whole() {
    let server = MockServer::start();
    server.answer(
        Answer::sse()
            .thinking("Hm. ")
            .text("Hel")
            .gate("middle")
            .text("lo")
            .finish("stop")
            .usage(12, 7)
            .done(),
    );
    let client = client(&server);
    let (seen, mut events) = tokio::sync::mpsc::unbounded_channel();
    let asking = tokio::spawn(async move {
        let ask = Ask {
            messages: vec![Message::user("Hello?")],
            ..Ask::default()
        };
        ask.telling(&client, |event| seen.send(event).unwrap()).await
    });
    assert_eq!(events.recv().await, Some(StreamEvent::HeadersReceived));
    assert_eq!(events.recv().await, Some(StreamEvent::Thinking("Hm. ".to_owned())));
    // The first text is here while the server still holds the second back.
    assert_eq!(events.recv().await, Some(StreamEvent::Text("Hel".to_owned())));
    server.gate("middle").reached().await;
    server.gate("middle").open();
    assert_eq!(events.recv().await, Some(StreamEvent::Text("lo".to_owned())));
    let response = asking.await.unwrap().unwrap();
    assert_eq!(response.message.content, "Hello");
    assert_eq!(response.message.reasoning.unwrap().text, "Hm. ");
    assert_eq!(response.finish, FinishReason::Stop);
    assert_eq!(response.usage.unwrap().completion_tokens, 7);
    let body = server.request(0).json();
    assert_eq!(body["stream"], true);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Hello?"}]));
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_the_same_answer() {
    let server = MockServer::start();
    server.answer(Answer::completion(
        &json!({"role": "assistant", "content": "Whole.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}),
        "tool_calls",
    ));
    let (outcome, events) = ask_with(&client(&server), false, &CancelToken::new_root()).await;
    let response = outcome.unwrap();
    assert_eq!(response.message.content, "Whole.");
    assert_eq!(response.message.tool_calls[0].id, "c1");
    assert_eq!(response.finish, FinishReason::ToolCalls);
    assert!(events.contains(&StreamEvent::Text("Whole.".to_owned())));
    let body = server.request(0).json();
    assert_eq!(body["stream"], false);
    assert!(body.get("stream_options").is_none());
    assert_eq!(body["tools"][0]["function"]["name"], "look");
}

#[tokio::test]
async fn a_call_is_told_when_it_begins_and_runnable_when_it_is_whole() {
    let server = MockServer::start();
    server.answer(
        Answer::sse()
            .tool_call(0, "c1", "look", "{\"at\":")
            .tool_arguments(0, "1}")
            .finish("tool_calls")
            .done(),
    );
    let (outcome, events) = ask(&client(&server)).await;
    let response = outcome.unwrap();
    assert_eq!(response.message.tool_calls[0].arguments, "{\"at\":1}");
    let told = StreamEvent::ToolCallDetected {
        index: 0,
        id: "c1".to_owned(),
        name: "look".to_owned(),
    };
    assert_eq!(events.iter().filter(|event| **event == told).count(), 1);
}

#[tokio::test]
async fn cancelling_in_the_stream_drops_the_connection_and_keeps_what_came() {
    let server = MockServer::start();
    server.answer(Answer::sse().text("Hel").gate("held").text("lo").finish("stop").done());
    let client = client(&server);
    let cancel = CancelToken::new_root();
    let canceller = {
        let (gate, cancel) = (server.gate("held"), cancel.clone());
        tokio::spawn(async move {
            gate.reached().await;
            // The gate is reached when the bytes are written; they are read a moment later.
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.cancel();
            Instant::now()
        })
    };
    let (outcome, _) = ask_with(&client, true, &cancel).await;
    let ended = Instant::now();
    let cancelled = canceller.await.unwrap();
    let failure = outcome.unwrap_err();
    assert!(failure.error.is_cancelled());
    assert!(ended.duration_since(cancelled) < Duration::from_millis(50));
    let partial = failure.partial.unwrap();
    assert_eq!(
        (partial.message.content.as_str(), partial.message.incomplete),
        ("Hel", true)
    );
    let request = server.request(0);
    tokio::task::spawn_blocking(move || request.wait_closed())
        .await
        .unwrap();
}

#[tokio::test]
async fn cancelling_before_any_answer_drops_the_connection() {
    let server = std::sync::Arc::new(MockServer::start());
    server.answer(Answer::hang());
    let client = client(&server);
    let cancel = CancelToken::new_root();
    let request = {
        let (server, cancel) = (std::sync::Arc::clone(&server), cancel.clone());
        tokio::task::spawn_blocking(move || {
            let request = server.request(0);
            cancel.cancel();
            request
        })
    };
    let failure = ask_with(&client, true, &cancel).await.0.unwrap_err();
    assert!(failure.error.is_cancelled() && failure.partial.is_none());
    let request = request.await.unwrap();
    tokio::task::spawn_blocking(move || request.wait_closed())
        .await
        .unwrap();
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = MockServer::start();
    for _ in 0..5 {
        server.answer(Answer::says("hi"));
    }
    let client = client(&server);
    for _ in 0..5 {
        assert_eq!(ask(&client).await.0.unwrap().message.content, "hi");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_the_server_gave_up_is_no_failure() {
    let server = MockServer::start();
    server
        .answer(Answer::says("One."))
        .answer(Answer::reset())
        .answer(Answer::says("Two."))
        .answer(Answer::reset())
        .answer(Answer::says("Three."));
    let client = client(&server);
    for text in ["One.", "Two.", "Three."] {
        assert_eq!(ask(&client).await.0.unwrap().message.content, text);
    }
    // Each was sent again on a connection of its own, and once.
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1, 2]);

    // A server that breaks a new connection is a failure, and so is one that breaks the second, too.
    let server = MockServer::start();
    server.answer(Answer::reset()).answer(Answer::says("One."));
    let client = self::client(&server);
    assert_eq!(&*ask(&client).await.0.unwrap_err().error.code, "connection");
    assert_eq!(ask(&client).await.0.unwrap().message.content, "One.");
    server.answer(Answer::reset()).answer(Answer::reset());
    assert_eq!(&*ask(&client).await.0.unwrap_err().error.code, "connection");
    assert_eq!(server.requests().len(), 4);
    // What broke in the middle of an answer is not sent again.
    server.answer(Answer::says("Two."));
    ask(&client).await.0.unwrap();
    server.answer(Answer::sse().text("Half").end(End::Reset));
    assert!(ask(&client).await.0.unwrap_err().emitted_output);
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn silence_ends_in_a_timeout_with_what_came() {
    let server = MockServer::start();
    server.answer(Answer::sse().text("Hel").end(End::Hang));
    let mut config = ClientConfig::new(server.url());
    config.timeouts.stream_stall = Duration::from_millis(100);
    let (outcome, _) = ask(&Client::new(config).unwrap()).await;
    let failure = outcome.unwrap_err();
    assert_eq!(
        (failure.error.kind, &*failure.error.code),
        (ErrorKind::Transport, "timeout")
    );
    assert_eq!(failure.error.data.unwrap()["reason"], "stream_stalled");
    assert!(failure.emitted_output);
    assert_eq!(failure.partial.unwrap().message.content, "Hel");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::new(ClientConfig::new(format!("http://{address}/v1"))).unwrap();
    let failure = ask(&client).await.0.unwrap_err();
    assert_eq!((&*failure.error.code, failure.error.retryable), ("connection", true));
    assert!(
        failure.error.message.contains("cannot be reached"),
        "{}",
        failure.error.message
    );
    assert!(failure.error.message.contains(&address.to_string()));
}

#[tokio::test]
async fn a_key_goes_in_the_header_and_never_into_a_message() {
    let server = MockServer::start();
    server.answer(Answer::error(
        401,
        "Incorrect API key provided: sk-very-secret. Get one.",
    ));
    let config = ClientConfig {
        api_key_name: Some("LLM_API_KEY".to_owned()),
        ..ClientConfig::new(server.url()).with_key("sk-very-secret\n")
    };
    let failure = ask(&Client::new(config).unwrap()).await.0.unwrap_err();
    assert_eq!(server.request(0).header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!((&*failure.error.code, failure.error.retryable), ("auth", false));
    assert!(!format!("{failure:?}").contains("very-secret"));
    assert_eq!(failure.error.hint.as_deref(), Some("check the key in LLM_API_KEY"));
}
