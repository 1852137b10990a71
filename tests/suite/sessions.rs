//! Sessions: what they are composed of, and what a turn sees of the place it runs in.

use std::sync::Arc;

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::error::AgentError;
use agent_smith_core::llm::{
    BoxFuture, ChatRequest, ChatResponse, FinishReason, LlmFailure, Provider, RequestParams, StreamEvent,
};
use agent_smith_core::message::Message;
use agent_smith_core::protocol::{EventKind, Op, PROTOCOL_VERSION, SessionState, Submit};
use agent_smith_core::role::{ModelLimits, ModelOptions, ModelRequest, Role, SelectedModel, select_model};
use agent_smith_core::runtime::{ModelService, ServiceHandles, Session, SessionOptions};
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;

/// A provider that says how many messages it was sent.
struct Counter;

impl Provider for Counter {
    fn chat<'a>(
        &'a self,
        request: ChatRequest<'a>,
        _: &'a mut (dyn FnMut(StreamEvent) + Send),
        _: &'a CancelToken,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmFailure>> {
        let text = format!("{} messages for {}", request.messages.len(), request.model);
        Box::pin(async move { Ok(ChatResponse::from_message(Message::assistant(text), FinishReason::Stop)) })
    }
}

impl ModelService for Counter {
    fn select(&self, role: Role, model_override: Option<&str>) -> SelectedModel {
        let request = ModelRequest {
            model_override: model_override.map(str::to_owned),
            ..ModelRequest::default()
        };
        select_model(&request, role.spec(), &ModelOptions::default(), |_| {
            ModelLimits::default()
        })
    }

    fn provider(&self, _: &str) -> Result<Arc<dyn Provider>, AgentError> {
        Ok(Arc::new(Self))
    }

    fn params(&self, _: &str) -> RequestParams {
        RequestParams::default()
    }
}

#[test]
fn an_injected_service_is_used_instead_of_the_built_in_one() {
    let home = Home::new();
    let handles = ServiceHandles {
        model: Some(Arc::new(Counter)),
        ..ServiceHandles::default()
    };
    let mut session = home.session(SessionOptions {
        handles,
        model: Some("mine".into()),
        ..SessionOptions::default()
    });
    session.submit("hello");
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!(end.text, "2 messages for mine");
    assert!(end.usage.estimated && end.usage.requests == 1);
}

#[test]
fn a_services_options_come_from_its_table() {
    let server = MockServer::start();
    server.answer(Answer::says("ok"));
    let home = Home::with_server(&server.url());
    home.configure(&json!({
        "default_model": "of the configuration",
        "services": {"model": {"models": {"direct": "of the options"}}},
        "llm_config": {"api_url": server.url()},
    }));
    home.run(&["exec", "x"]);
    assert_eq!(server.request(0).json()["model"], "of the options");
}

#[test]
fn what_changes_between_turns_is_told_in_the_message_and_the_prefix_stays() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    std::fs::create_dir(home.project().join("below")).unwrap();
    let mut session = home.session(SessionOptions::default());
    session.submit("one");
    session.wait_end();
    session.forget();
    let cwd = home.project().join("below").to_str().unwrap().to_owned();
    session
        .session
        .submit(Submit {
            line: "two".into(),
            cwd,
            ..Submit::default()
        })
        .unwrap();
    session.wait_end();
    session.forget();
    session.submit("three");
    session.wait_end();
    let bodies: Vec<_> = (0..3).map(|index| server.request(index).json()).collect();
    for body in &bodies {
        assert_eq!(body["messages"][0], bodies[0]["messages"][0]);
        assert_eq!(body["tools"], bodies[0]["tools"]);
    }
    let said = |index: usize| bodies[2]["messages"][index]["content"].as_str().unwrap().to_owned();
    assert_eq!(said(1), "one");
    assert!(
        said(3).contains("context_note") && said(3).contains("below") && said(3).ends_with("two"),
        "{}",
        said(3)
    );
    assert_eq!(said(5), "three", "told once");
    // What was sent is sent again byte for byte.
    let (second, third) = (server.request(1).body, server.request(2).body);
    let prefix = |body: &[u8]| {
        String::from_utf8(body.to_vec())
            .unwrap()
            .split("\"two\"")
            .next()
            .unwrap()
            .to_owned()
    };
    let shared = second.iter().zip(&third).take_while(|(a, b)| a == b).count();
    let two = prefix(&second).find("two").unwrap_or(second.len() / 2);
    assert!(shared > two, "only {shared} bytes of {} are the same", second.len());
}

#[test]
fn a_client_of_another_contract_is_refused_with_the_side_to_update() {
    let open = |protocol: u32| {
        let hello = serde_json::from_value(json!({"protocol": protocol, "cwd": "/", "env": {"HOME": "/nonexistent"}}));
        Session::open(hello.unwrap(), SessionOptions::default()).err().unwrap()
    };
    let (older, newer) = (open(PROTOCOL_VERSION - 1), open(PROTOCOL_VERSION + 1));
    assert_eq!((&*older.code, &*newer.code), ("protocol_mismatch", "protocol_mismatch"));
    assert!(older.hint.unwrap().contains("client") && newer.hint.unwrap().contains("core"));
}

#[test]
fn commands_answer_and_unknown_ones_are_not_guessed() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    for (line, ok, says) in [
        ("/help", true, "/usage"),
        ("/hepl", false, "did you mean /help?"),
        ("/new", true, "new"),
    ] {
        session.submit(line);
        let output = session.wait(line, |kind| matches!(kind, EventKind::CommandOutput { .. }));
        let EventKind::CommandOutput { text, ok: did, .. } = output else {
            unreachable!()
        };
        assert_eq!(did, ok, "{line}");
        assert!(text.contains(says), "{line}: {text}");
        session.forget();
    }
    assert!(server.requests().is_empty());
}

#[test]
fn ops_pass_through_and_a_closed_session_says_so() {
    let server = MockServer::start();
    server.answer(Answer::says("hi"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    let call = |session: &Session, op: serde_json::Value| session.call(serde_json::from_value::<Op>(op).unwrap());
    let completed = call(&session.session, json!({"op": "complete", "line": "/he", "cursor": 3})).unwrap();
    assert_eq!(
        (&completed[0]["text"], &completed[0]["start"], &completed[0]["end"]),
        (&json!("/help"), &json!(0), &json!(3))
    );
    let status = call(&session.session, json!({"op": "status"})).unwrap();
    assert_eq!(
        (&status["role"], &status["label"], &status["state"]),
        (&json!("direct"), &json!("Smith"), &json!("idle"))
    );
    assert_eq!(
        call(&session.session, json!({"op": "hello", "protocol": 1}))
            .unwrap_err()
            .code,
        "second_hello"
    );
    call(&session.session, json!({"op": "submit", "line": "hello"})).unwrap();
    session.wait_end();
    session.wait("idle again", |kind| {
        matches!(
            kind,
            EventKind::StatusChanged {
                state: SessionState::Idle
            }
        )
    });
    call(&session.session, json!({"op": "close"})).unwrap();
    while !session.session.is_closed() {
        let _ = session.session.poll(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        call(&session.session, json!({"op": "submit", "line": "x"}))
            .unwrap_err()
            .code,
        "session_closed"
    );
}
