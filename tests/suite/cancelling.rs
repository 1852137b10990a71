//! Cancelling, wherever a turn happens to be.

use agent_smith_core::message::Speaker;
use agent_smith_core::persistence::{Store, StoreOptions};
use agent_smith_core::protocol::{CancelScope, EventKind, StopReason};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession, transcript};
use crate::support::mock_server::MockServer;
use crate::support::tools::carriers;

#[track_caller]
fn assert_cancelled(session: &mut TestSession) {
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!(end.stop_reason, StopReason::Cancelled);
}

#[test]
fn in_a_stream_the_connection_is_dropped_and_what_was_said_is_kept() {
    let server = MockServer::start();
    server.answer(
        Answer::sse()
            .text("The answer is ")
            .gate("held")
            .text("42")
            .finish("stop")
            .done(),
    );
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("what is it?");
    session.wait("the first words", |kind| matches!(kind, EventKind::LlmTextDelta { .. }));
    session.session.cancel(CancelScope::Turn, "test");
    assert_cancelled(&mut session);
    server.gate("held").open();
    server.request(0).wait_closed();
    session.wait("the request given up", |kind| {
        matches!(kind, EventKind::LlmRequestCancelled { .. })
    });
    assert_eq!(
        transcript(&home.messages()),
        "user: what is it?\nassistant (incomplete): The answer is\n"
    );
}

#[test]
fn after_it_the_next_turn_works() {
    let server = MockServer::start();
    server.answer(
        Answer::sse()
            .text("The ")
            .gate("held")
            .text("end")
            .finish("stop")
            .done(),
    );
    server.answer(Answer::says("Fine."));
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("one");
    session.wait("the first words", |kind| matches!(kind, EventKind::LlmTextDelta { .. }));
    session.session.cancel(CancelScope::Turn, "test");
    assert_cancelled(&mut session);
    session.forget();
    session.submit("two");
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!(end.text, "Fine.");
    let roles: Vec<_> = home.messages().iter().map(|record| record.message.role).collect();
    assert_eq!(
        roles,
        [Speaker::User, Speaker::Assistant, Speaker::User, Speaker::Assistant]
    );
}

#[test]
fn in_a_tool_its_processes_end_and_every_call_has_a_result() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[
        (
            "a",
            "bash",
            json!({"command": "env | grep -a NONCE; sleep 1000 & sleep 1000"}),
        ),
        ("b", "bash", json!({"command": "touch never"})),
    ]));
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("run");
    let EventKind::ToolOutputDelta { text, .. } = session.wait("the tool's output", |kind| {
        matches!(kind, EventKind::ToolOutputDelta { .. })
    }) else {
        unreachable!()
    };
    let nonce = text.trim().split('=').nth(1).expect("a nonce").to_owned();
    assert!(
        !carriers(&nonce).is_empty(),
        "nothing carries the nonce while the tool runs"
    );
    session.session.cancel(CancelScope::Turn, "test");
    assert_cancelled(&mut session);
    session.wait("the tool stopped", |kind| {
        matches!(kind, EventKind::ToolExecutionCancelled(_))
    });
    assert_eq!(carriers(&nonce), Vec::<i32>::new());
    assert!(!home.project().join("never").exists());
    let records = home.messages();
    let answered: Vec<_> = records
        .iter()
        .filter_map(|record| record.message.tool_call_id.as_deref())
        .collect();
    assert_eq!(answered, ["a", "b"]);
    assert_eq!(server.requests().len(), 1, "no request after the cancellation");
}

#[test]
fn in_a_commit_the_commit_is_whole_and_the_turn_ends() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[("a", "bash", json!({"command": "echo x"}))]));
    server.answer(Answer::says("never asked for"));
    let home = Home::with_server(&server.url());
    // The database must be there, so that its lock can be held.
    Store::new(StoreOptions::at(home.database())).commit_blocking({
        let mut batch = agent_smith_core::persistence::Batch::new();
        batch.clear_config_patch();
        batch
    });
    let mut session = home.session(Default::default());
    let lock = std::fs::File::open(home.database().with_extension("redb.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    session.submit("run");
    session.wait("the tool's end", |kind| {
        matches!(kind, EventKind::ToolExecutionFinished(_))
    });
    session.session.cancel(CancelScope::Turn, "test");
    session.wait("the wish to cancel", |kind| {
        matches!(kind, EventKind::TurnCancelRequested { .. })
    });
    flock(&lock, FlockOperation::Unlock).unwrap();
    assert_cancelled(&mut session);
    assert_eq!(
        transcript(&home.messages()),
        "user: run\nassistant: \n    calls bash as a with {\"command\":\"echo x\"}\ntool bash of a: x\n"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn in_a_wait_before_a_retry_it_ends_at_once() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::error(500, "down"));
    let home = Home::with_server(&server.url());
    home.configure(&json!({"llm_config": {"api_url": server.url(), "retry_backoff_ms": [600_000]}}));
    let mut session = home.session(Default::default());
    session.submit("go");
    session.wait("the retry", |kind| matches!(kind, EventKind::LlmRetryScheduled { .. }));
    session.session.cancel(CancelScope::Turn, "test");
    assert_cancelled(&mut session);
}

#[test]
fn lines_that_waited_come_back_to_the_user() {
    let server = MockServer::start();
    server.answer(Answer::sse().text("a").gate("held").text("b").finish("stop").done());
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("one");
    session.wait("the first words", |kind| matches!(kind, EventKind::LlmTextDelta { .. }));
    session.submit("two");
    session.submit("three");
    session.wait("two lines wait", |kind| {
        matches!(kind, EventKind::InputQueued { queued: 2, .. })
    });
    session.session.cancel(CancelScope::Turn, "test");
    assert_cancelled(&mut session);
    let back = session.wait("the lines", |kind| matches!(kind, EventKind::Prefill { .. }));
    assert_eq!(
        back,
        EventKind::Prefill {
            text: "two\nthree".into()
        }
    );
}
