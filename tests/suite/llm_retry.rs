//! The two retry layers over a server that fails in turn.

use std::time::{Duration, Instant};

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::llm::retry::{self, RetryNotice};
use agent_smith_core::llm::{
    ChatRequest, ChatResponse, Client, ClientConfig, EmptyRetryPolicy, LlmFailure, RequestParams, Retries, RetryPolicy,
};
use agent_smith_core::message::Message;

use crate::support::answers::{Answer, End};
use crate::support::mock_server::MockServer;
use crate::support::quirk_cases::case;

fn quick() -> Retries {
    Retries {
        transport: RetryPolicy {
            backoff_ms: vec![1],
            ..RetryPolicy::default()
        },
        empty: EmptyRetryPolicy {
            backoff_ms: vec![1],
            ..EmptyRetryPolicy::default()
        },
    }
}

async fn ask(
    server: &MockServer,
    retries: &Retries,
    cancel: &CancelToken,
) -> (Result<ChatResponse, LlmFailure>, Vec<RetryNotice>) {
    let client = Client::new(ClientConfig::new(server.url())).unwrap();
    let messages = [Message::user("Go.")];
    let params = RequestParams::default();
    let request = ChatRequest {
        model: "m",
        messages: &messages,
        tools: &[],
        params: &params,
        stream: true,
    };
    let mut notices = Vec::new();
    let outcome = retry::chat(
        &client,
        request,
        retries,
        &mut |_| {},
        &mut |notice| notices.push(notice),
        cancel,
    )
    .await;
    (outcome, notices)
}

#[tokio::test]
async fn failures_and_empty_answers_are_repeated_in_their_layers() {
    let server = MockServer::start();
    let empty = || Answer::sse().finish("stop").usage(10, 0).done();
    server
        .answer(Answer::error(500, "Broke."))
        .answer(Answer::reset())
        .answer(empty())
        .answer(Answer::error(503, "Loading model"))
        .answer(Answer::says("At last."));
    let (outcome, notices) = ask(&server, &quick(), &CancelToken::new_root()).await;
    let response = outcome.unwrap();
    assert_eq!(response.message.content, "At last.");
    // The answer that was thrown away was paid for.
    let usage = response.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.requests), (20, 2));
    let told: Vec<_> = notices
        .iter()
        .map(|notice| (&*notice.error.code, notice.attempt, notice.max))
        .collect();
    assert_eq!(
        told,
        [
            ("server", 1, 2),
            ("connection", 2, 2),
            ("empty_answer", 1, 2),
            ("overloaded", 1, 2)
        ]
    );
}

#[tokio::test]
async fn nine_requests_at_most() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::sse().finish("stop").done());
    let (outcome, _) = ask(&server, &quick(), &CancelToken::new_root()).await;
    assert!(outcome.unwrap().is_empty());
    assert_eq!(server.requests().len(), 3);
    let server = MockServer::start();
    server.answer_with(|_| Answer::error(500, "Broke."));
    let (outcome, notices) = ask(&server, &quick(), &CancelToken::new_root()).await;
    assert_eq!(&*outcome.unwrap_err().error.code, "server");
    assert_eq!((server.requests().len(), notices.len()), (3, 2));
}

#[tokio::test]
async fn refusals_are_asked_for_once() {
    for id in [
        "err-400-no-body",
        "err-400-unknown-param",
        "err-401",
        "err-402-credits",
        "err-403-moderation",
        "err-404-model",
        "err-422-detail",
        "err-429-quota",
        "err-429-long",
        "err-429-openrouter-day",
    ] {
        let server = MockServer::start();
        server.answer(case(id).answer()).answer(Answer::says("never asked for"));
        let (outcome, notices) = ask(&server, &quick(), &CancelToken::new_root()).await;
        assert!(outcome.is_err() && notices.is_empty(), "{id}");
        assert_eq!(server.requests().len(), 1, "{id}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told() {
    let server = MockServer::start();
    server.answer(case("err-429-long").answer());
    let failure = ask(&server, &quick(), &CancelToken::new_root()).await.0.unwrap_err();
    assert!(
        failure.error.message.contains("It asks to wait 3 h."),
        "{}",
        failure.error.message
    );
}

#[tokio::test]
async fn shown_output_is_asked_for_again_only_if_wanted() {
    let server = MockServer::start();
    server
        .answer(Answer::sse().text("Half").end(End::Reset))
        .answer(Answer::says("Whole"));
    let (outcome, notices) = ask(&server, &quick(), &CancelToken::new_root()).await;
    assert_eq!(outcome.unwrap_err().partial.unwrap().message.content, "Half");
    assert!(notices.is_empty());

    let server = MockServer::start();
    server
        .answer(Answer::sse().text("Half").end(End::Reset))
        .answer(Answer::says("Whole"));
    let mut retries = quick();
    retries.transport.after_output = true;
    let (outcome, notices) = ask(&server, &retries, &CancelToken::new_root()).await;
    assert_eq!(outcome.unwrap().message.content, "Whole");
    assert!(notices[0].output_void);
}

#[tokio::test]
async fn cancelling_ends_a_wait_at_once() {
    let server = MockServer::start();
    server.answer(Answer::error(500, "Broke."));
    let cancel = CancelToken::new_root();
    let mut retries = quick();
    retries.transport.backoff_ms = vec![60_000];
    let client = Client::new(ClientConfig::new(server.url())).unwrap();
    let messages = [Message::user("Go.")];
    let params = RequestParams::default();
    let request = ChatRequest {
        model: "m",
        messages: &messages,
        tools: &[],
        params: &params,
        stream: true,
    };
    let canceller = cancel.clone();
    let begun = Instant::now();
    // The wait is announced, and then cancelled.
    let outcome = retry::chat(
        &client,
        request,
        &retries,
        &mut |_| {},
        &mut |_| canceller.cancel(),
        &cancel,
    )
    .await;
    assert!(outcome.unwrap_err().error.is_cancelled());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_member_that_is_refused_by_name_is_left_out_next_time() {
    let server = MockServer::start();
    server
        .answer(case("err-400-unknown-param").answer())
        .answer(Answer::says("Now."));
    let client = Client::new(ClientConfig::new(server.url())).unwrap();
    let messages = [Message::user("Go.")];
    let params = RequestParams::default();
    let request = ChatRequest {
        model: "m",
        messages: &messages,
        tools: &[],
        params: &params,
        stream: true,
    };
    let cancel = CancelToken::new_root();
    let failure = retry::chat(&client, request, &quick(), &mut |_| {}, &mut |_| {}, &cancel)
        .await
        .unwrap_err();
    assert!(
        failure
            .error
            .hint
            .as_deref()
            .unwrap()
            .contains("stream_options is left out")
    );
    retry::chat(&client, request, &quick(), &mut |_| {}, &mut |_| {}, &cancel)
        .await
        .unwrap();
    assert!(server.request(0).json().get("stream_options").is_some());
    assert!(server.request(1).json().get("stream_options").is_none());
}
