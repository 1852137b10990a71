//! The two retry layers of a turn over a server that fails in turn, by the keys of the configuration.

use std::time::{Duration, Instant};

use agent_smith_core::error::AgentError;
use agent_smith_core::protocol::{CancelScope, EventKind, StopReason, TurnEnd};
use agent_smith_core::runtime::SessionOptions;
use serde_json::{Value, json};

use crate::support::answers::{Answer, End};
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;
use crate::support::quirk_cases::case;

/// A session of this server, with these settings of `llm_config` besides.
fn session(home: &Home, server: &MockServer, llm_config: &Value) -> TestSession {
    let mut config = json!({
        "default_model": "m",
        "llm_config": {"api_url": server.url(), "retry_backoff_ms": [1]},
        "empty_response_retry_backoff_ms": [1],
    });
    for (key, value) in llm_config.as_object().unwrap() {
        config["llm_config"][key] = value.clone();
    }
    home.configure(&config);
    home.session(SessionOptions {
        ephemeral: true,
        ..SessionOptions::default()
    })
}

/// A repetition as it was told.
#[derive(Debug)]
struct Told {
    code: String,
    attempt: u32,
    max: u32,
    delay_ms: u64,
}

/// Runs one turn; its end and the repetitions that were told.
fn ask(session: &mut TestSession) -> (TurnEnd, Vec<Told>) {
    session.forget();
    session.submit("Go.");
    let end = match session.wait_end() {
        EventKind::TurnCompleted(end) | EventKind::TurnFailed(end) => end,
        other => panic!("no end: {other:?}"),
    };
    // A line typed before that would join the turn.
    session.wait("the end of the line", |kind| {
        matches!(kind, EventKind::InputSettled { .. })
    });
    let told = session.events.iter().filter_map(|event| match &event.kind {
        EventKind::LlmRetryScheduled {
            attempt,
            max,
            delay_ms,
            error,
        } => Some(Told {
            code: error.code.to_string(),
            attempt: *attempt,
            max: *max,
            delay_ms: *delay_ms,
        }),
        _ => None,
    });
    (end, told.collect())
}

/// The same with a home and session of its own.
fn ask_once(server: &MockServer, llm_config: &Value) -> (TurnEnd, Vec<Told>) {
    let home = Home::new();
    ask(&mut session(&home, server, llm_config))
}

#[track_caller]
fn failed(end: TurnEnd) -> AgentError {
    assert_eq!(end.stop_reason, StopReason::Error);
    end.error.unwrap()
}

fn empty() -> Answer {
    Answer::sse().finish("stop").usage(10, 0).done()
}

#[test]
fn failures_and_empty_answers_are_repeated_in_their_layers() {
    let server = MockServer::start();
    server
        .answer(Answer::reset())
        .answer(Answer::error(500, "Broke."))
        .answer(empty())
        .answer(Answer::error(503, "Loading model"))
        .answer(Answer::says("At last."));
    let (end, told) = ask_once(&server, &json!({}));
    assert_eq!(
        (end.stop_reason, end.text.as_str()),
        (StopReason::Completed, "At last.")
    );
    // The answer that was thrown away was paid for.
    assert_eq!((end.usage.prompt_tokens, end.usage.requests), (20, 2));
    let told: Vec<_> = told
        .iter()
        .map(|told| (told.code.as_str(), told.attempt, told.max))
        .collect();
    assert_eq!(
        told,
        [
            ("connection", 1, 2),
            ("server", 2, 2),
            ("empty_response", 1, 2),
            ("overloaded", 1, 2)
        ]
    );
}

#[test]
fn nine_requests_at_most() {
    let server = MockServer::start();
    for _ in 0..3 {
        server
            .answer(Answer::error(500, "Broke."))
            .answer(Answer::error(500, "Broke."))
            .answer(empty());
    }
    let (end, told) = ask_once(&server, &json!({}));
    assert_eq!(&*failed(end).code, "empty_response");
    assert_eq!((server.requests().len(), told.len()), (9, 8));

    let server = MockServer::start();
    server.answer_with(|_| Answer::error(500, "Broke."));
    let (end, told) = ask_once(&server, &json!({}));
    assert_eq!(&*failed(end).code, "server");
    assert_eq!((server.requests().len(), told.len()), (3, 2));
}

#[test]
fn the_keys_set_how_often_and_how_long() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::error(500, "Broke."));
    let (_, told) = ask_once(&server, &json!({"retry_max_retries": 4, "retry_backoff_ms": [4, 40]}));
    // A quarter more or less.
    let bounds = [(3, 5), (30, 50), (30, 50), (30, 50)];
    assert_eq!(told.len(), bounds.len());
    for (told, (least, most)) in told.iter().zip(bounds) {
        assert!((least..=most).contains(&told.delay_ms) && told.max == 4, "{told:?}");
    }
    let (_, told) = ask_once(&server, &json!({"retry_max_retries": 0}));
    assert!(told.is_empty());
}

#[test]
fn refusals_are_asked_for_once() {
    let home = Home::new();
    let server = MockServer::start();
    let mut session = session(&home, &server, &json!({}));
    for (count, id) in [
        "err-400-no-body",
        "err-401",
        "err-402-credits",
        "err-403-moderation",
        "err-404-model",
        "err-422-detail",
        "err-429-quota",
        "err-429-long",
        "err-429-openrouter-day",
        "err-400-unknown-param",
    ]
    .into_iter()
    .enumerate()
    {
        server.answer(case(id).answer());
        let (end, told) = ask(&mut session);
        assert!(end.error.is_some() && told.is_empty(), "{id}");
        assert_eq!(server.requests().len(), count + 1, "{id}");
    }
}

#[test]
fn a_wait_that_the_server_asks_for_is_kept_or_told() {
    let server = MockServer::start();
    let busy = || Answer::error(429, "Slow down.").header("retry-after-ms", "30");
    server.answer(busy()).answer(Answer::says("Now."));
    let (end, told) = ask_once(&server, &json!({}));
    assert_eq!((end.text.as_str(), told[0].code.as_str()), ("Now.", "rate_limit"));
    assert!((30..=33).contains(&told[0].delay_ms), "{told:?}");

    server.answer(busy());
    let (end, told) = ask_once(&server, &json!({"retry_after_max_ms": 20}));
    assert!(end.error.is_some() && told.is_empty());

    server.answer(case("err-429-long").answer());
    let error = failed(ask_once(&server, &json!({})).0);
    assert!(error.message.contains("It asks to wait 3 h."), "{}", error.message);
}

#[test]
fn shown_output_is_asked_for_again_only_if_wanted() {
    let half = || Answer::sse().text("Half").end(End::Reset);
    let server = MockServer::start();
    server.answer(half());
    let (end, told) = ask_once(&server, &json!({}));
    assert_eq!(end.text, "Half");
    assert!(end.error.is_some() && told.is_empty());

    server.answer(half()).answer(Answer::says("Whole"));
    let (end, told) = ask_once(&server, &json!({"stream_retry_after_output": true}));
    assert_eq!((end.text.as_str(), told.len()), ("Whole", 1));
}

#[test]
fn cancelling_ends_a_wait_at_once() {
    for (answer, key) in [
        (Answer::error(500, "Broke."), "llm_config.retry_backoff_ms"),
        (empty(), "empty_response_retry_backoff_ms"),
    ] {
        let server = MockServer::start();
        server.answer(answer);
        let home = Home::new();
        let mut config = json!({"default_model": "m", "llm_config": {"api_url": server.url()}});
        match key.split_once('.') {
            Some((table, key)) => config[table][key] = json!([600_000]),
            None => config[key] = json!([600_000]),
        }
        home.configure(&config);
        let mut session = home.session(SessionOptions {
            ephemeral: true,
            ..SessionOptions::default()
        });
        session.submit("Go.");
        session.wait("the wait", |kind| matches!(kind, EventKind::LlmRetryScheduled { .. }));
        let begun = Instant::now();
        session.session.cancel(CancelScope::Turn, "test");
        let end = session.wait_end();
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(
            matches!(&end, EventKind::TurnCompleted(end) if end.stop_reason == StopReason::Cancelled),
            "{end:?}"
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn the_time_limits_are_those_of_the_configuration() {
    for (answer, key, reason) in [
        (Answer::hang(), "connect_timeout", None),
        (
            Answer::sse().text("Hel").end(End::Hang),
            "stream_stall_timeout",
            Some("stream_stalled"),
        ),
        (Answer::sse().text("Hel").end(End::Hang), "timeout", Some("timeout")),
    ] {
        let server = MockServer::start();
        server.answer(answer);
        let error = failed(ask_once(&server, &json!({key: 0.1, "retry_max_retries": 0})).0);
        assert_eq!(&*error.code, "timeout", "{key}: {error}");
        if let Some(reason) = reason {
            assert_eq!(error.data.as_ref().unwrap()["reason"], reason, "{key}");
        }
    }
}

#[test]
fn a_member_that_is_refused_by_name_is_left_out_next_time() {
    let server = MockServer::start();
    server
        .answer(case("err-400-unknown-param").answer())
        .answer(Answer::says("Now."));
    let home = Home::new();
    let mut session = session(&home, &server, &json!({}));
    let hint = failed(ask(&mut session).0).hint.unwrap();
    assert!(hint.contains("stream_options is left out"), "{hint}");
    assert_eq!(ask(&mut session).0.text, "Now.");
    assert!(server.request(0).json().get("stream_options").is_some());
    assert!(server.request(1).json().get("stream_options").is_none());
}

#[test]
fn each_model_has_the_parameters_that_the_configuration_gives_it() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Yes."));
    let settings = json!({
        "temperature": 0.5, "max_tokens": 100, "extra_body": {"route": {"a": 1}, "seed": 7},
        "extra_headers": {"X-Team": "blue"},
        "models": {"a/b:c": {
            "temperature": 0.0, "max_tokens": 9, "reasoning_effort": "low", "extra_body": {"route": {"b": 2}},
            "extra_headers": {"X-Model": "c"}
        }},
    });
    let home = Home::new();
    drop(session(&home, &server, &settings));
    for model in ["m", "a/b:c"] {
        let mut session = home.session(SessionOptions {
            ephemeral: true,
            model: Some(model.to_owned()),
            ..SessionOptions::default()
        });
        ask(&mut session);
    }
    let sent = |n: usize| {
        let request = server.request(n);
        let body = request.json();
        let limit = [&body["max_tokens"], &body["max_completion_tokens"]];
        let limit = limit.iter().find_map(|value| value.as_u64());
        json!({
            "model": body["model"], "temperature": body["temperature"], "max_tokens": limit,
            "reasoning_effort": body["reasoning_effort"], "route": body["route"], "seed": body["seed"],
            "team": request.header("x-team"), "of_model": request.header("x-model"),
        })
    };
    assert_eq!(
        sent(0),
        json!({"model": "m", "temperature": 0.5, "max_tokens": 100, "reasoning_effort": null,
            "route": {"a": 1}, "seed": 7, "team": "blue", "of_model": null})
    );
    assert_eq!(
        sent(1),
        json!({"model": "a/b:c", "temperature": 0.0, "max_tokens": 9, "reasoning_effort": "low",
            "route": {"a": 1, "b": 2}, "seed": 7, "team": "blue", "of_model": "c"})
    );
}
