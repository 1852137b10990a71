//! What a session does for a client that works off one line at a time: it tells when a line was worked off, asks
//! questions, shows views, and answers by itself where there is no server yet.

use std::collections::BTreeMap;

use agent_smith_core::protocol::{CancelScope, EventKind, NoticeLevel, StopReason};
use agent_smith_core::runtime::SessionOptions;
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;

fn shell() -> SessionOptions {
    SessionOptions {
        shell: true,
        ..SessionOptions::default()
    }
}

#[track_caller]
fn settled(session: &mut TestSession, expected: u64) {
    let is_settled = |kind: &EventKind| matches!(kind, EventKind::InputSettled { inputs, .. } if *inputs == expected);
    session.wait("the lines worked off", is_settled);
}

#[track_caller]
fn question(session: &mut TestSession, part: &str) -> String {
    let asked = |kind: &EventKind| matches!(kind, EventKind::Question { text, .. } if text.contains(part));
    let EventKind::Question { id, .. } = session.wait(part, asked) else {
        unreachable!()
    };
    id
}

#[track_caller]
fn output(session: &mut TestSession, name: &str) -> (String, bool) {
    let is_output = |kind: &EventKind| matches!(kind, EventKind::CommandOutput { command, .. } if command == name);
    let EventKind::CommandOutput { text, ok, .. } = session.wait(name, is_output) else {
        unreachable!()
    };
    (text, ok)
}

#[test]
fn each_line_is_told_to_be_worked_off_once_and_lines_that_join_a_turn_with_it() {
    let server = MockServer::start();
    server.answer(
        Answer::sse()
            .text("One.")
            .gate("held")
            .text(" Two.")
            .finish("stop")
            .done(),
    );
    server.answer(Answer::says("And three."));
    let home = Home::with_server(&server.url());
    let mut session = home.session(shell());
    session.submit("/usage");
    settled(&mut session, 1);
    session.submit("   ");
    settled(&mut session, 2);
    session.submit("/no-such-command");
    settled(&mut session, 3);
    session.submit("go");
    session.wait("the first words", |kind| matches!(kind, EventKind::LlmTextDelta { .. }));
    session.submit("and this");
    session.wait("the line waits", |kind| matches!(kind, EventKind::InputQueued { .. }));
    server.gate("held").open();
    settled(&mut session, 5);
    let all = session
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::InputSettled { .. }));
    assert_eq!(all.count(), 4, "{:#?}", session.events);
    session.submit("/quit");
    session.wait("the end", |kind| {
        matches!(
            kind,
            EventKind::InputSettled {
                inputs: 6,
                closing: true
            }
        )
    });
}

#[test]
fn a_cancelled_turn_is_worked_off_too() {
    let server = MockServer::start();
    server.answer(Answer::sse().text("One.").gate("held").finish("stop").done());
    let home = Home::with_server(&server.url());
    let mut session = home.session(shell());
    session.submit("go");
    session.wait("the first words", |kind| matches!(kind, EventKind::LlmTextDelta { .. }));
    session.session.cancel(CancelScope::Turn, "test");
    settled(&mut session, 1);
}

#[test]
fn without_a_server_a_terminal_gets_the_demo_and_is_told_once_how_to_connect_one() {
    let home = Home::new();
    let mut session = home.session(shell());
    assert_eq!(session.session.status().model, "demo");
    for line in 1..=2 {
        session.submit("hello");
        settled(&mut session, line);
    }
    let told = session.events.iter().filter(
        |event| matches!(&event.kind, EventKind::Notice { level: NoticeLevel::Info, text, .. } if text.contains("/setup")),
    );
    assert_eq!(told.count(), 1);
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!(end.stop_reason, StopReason::Completed);
    // A script that forgot to name a server is not answered by a demo.
    let mut session = home.session(SessionOptions::default());
    session.submit("hello");
    session.wait("the refusal", |kind| {
        matches!(kind, EventKind::Notice { level: NoticeLevel::Error, text, .. } if text.contains("no model server"))
    });
}

#[test]
fn setup_asks_refuses_keys_tries_and_is_in_force_at_once() {
    let server = MockServer::start();
    server.on_path(
        "/v1/models",
        Answer::json(200, &json!({"data": [{"id": "tiny"}, {"id": "large"}]})),
    );
    server.answer(Answer::error(401, "invalid api key"));
    server.answer(Answer::says("ready"));
    server.answer(Answer::says("From the server."));
    let home = Home::new();
    home.configure(&json!({"index_file": "NOTES.md"}));
    let mut session = home.session(shell());
    session.submit("/setup");
    let answer = |session: &mut TestSession, id: String, value: &str| {
        session.session.answer(id, value.into()).unwrap();
        session.forget();
    };
    let id = question(&mut session, "Which server?");
    session
        .session
        .answer("question-of-another-time".to_owned(), json!("x"))
        .unwrap();
    session.wait(
        "the stray answer",
        |kind| matches!(kind, EventKind::Notice { text, .. } if text.contains("is not open")),
    );
    // A server of this machine may be offered first.
    let offered = session.events.iter().any(
        |event| matches!(&event.kind, EventKind::Question { choices, .. } if choices.contains(&"another".to_owned())),
    );
    let id = if offered {
        answer(&mut session, id, "another");
        question(&mut session, "The address")
    } else {
        id
    };
    answer(&mut session, id, "not an address");
    let id = question(&mut session, "The address");
    answer(&mut session, id, &server.url());
    let id = question(&mut session, "Which environment variable");
    answer(&mut session, id, "sk-abcdefghijklmnop");
    session.wait("the key refused", |kind| {
        matches!(kind, EventKind::Notice { text, .. } if text.contains("not written into files") && !text.contains("sk-"))
    });
    let id = question(&mut session, "Which environment variable");
    answer(&mut session, id, "");
    let id = question(&mut session, "Which model?");
    answer(&mut session, id, "large");
    let id = question(&mut session, "did not work");
    answer(&mut session, id, "again");
    // The earlier answers are the defaults now.
    let id = question(&mut session, "Which server?");
    let id = if offered {
        answer(&mut session, id, "another");
        question(&mut session, "The address")
    } else {
        id
    };
    answer(&mut session, id, "");
    let id = question(&mut session, "Which environment variable");
    answer(&mut session, id, "");
    let id = question(&mut session, "Which model?");
    answer(&mut session, id, "");
    let (text, ok) = output(&mut session, "setup");
    assert!(
        ok && text.contains("Written to `~/.config/lilush/agent_smith.json`"),
        "{text}"
    );
    settled(&mut session, 1);
    assert_eq!(session.session.status().model, "large");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(home.config_file()).unwrap()).unwrap();
    assert_eq!(
        written,
        json!({"index_file": "NOTES.md", "default_model": "large", "llm_config": {"api_url": server.url()}})
    );
    session.forget();
    session.submit("hello");
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!(end.text, "From the server.");
}

#[test]
fn a_cancelled_or_closed_setup_changes_nothing_and_a_line_meanwhile_comes_back() {
    let home = Home::new();
    let mut session = home.session(shell());
    session.submit("/setup");
    question(&mut session, "Which server?");
    session.submit("a line of mine");
    session.wait(
        "the line back",
        |kind| matches!(kind, EventKind::Prefill { text } if text == "a line of mine"),
    );
    session.submit("/setup");
    let (text, ok) = output(&mut session, "setup");
    assert!(!ok && text.contains("asking something"), "{text}");
    session.session.cancel(CancelScope::Turn, "test");
    session.wait(
        "its end",
        |kind| matches!(kind, EventKind::CommandOutput { text, ok: true, .. } if text == "Nothing was changed."),
    );
    settled(&mut session, 3);
    assert!(!home.config_file().exists());
    session.submit("/setup");
    session.forget();
    question(&mut session, "Which server?");
    session.session.close("test");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !session.session.is_closed() {
        assert!(std::time::Instant::now() < deadline, "it does not end");
        let _ = session.session.poll(std::time::Duration::from_millis(20));
    }
}

#[test]
fn the_pager_is_a_view_whose_keys_are_each_answered_by_a_picture() {
    let server = MockServer::start();
    let long: String = (1..=60).map(|n| format!("Line {n}.\n\n")).collect();
    server.answer(Answer::says(&long));
    let home = Home::with_server(&server.url());
    let mut session = home.rendered_session(shell());
    session.submit("count");
    settled(&mut session, 1);
    session.forget();
    session.submit("/pager");
    let opened = session.wait("the view", |kind| matches!(kind, EventKind::OpenView { .. }));
    let EventKind::OpenView { view_id, title } = opened else {
        unreachable!()
    };
    assert_eq!(title, "count");
    let frame = |session: &mut TestSession| {
        let EventKind::ViewFrame { rows, done, .. } =
            session.wait("a picture", |kind| matches!(kind, EventKind::ViewFrame { .. }))
        else {
            unreachable!()
        };
        session.forget();
        (rows.join("\n"), done)
    };
    let (end, _) = frame(&mut session);
    assert!(end.contains("Line 60."), "{end}");
    for (key, part) in [("g", "count"), ("x", "count"), ("G", "Line 60.")] {
        session.session.call(view_key(&view_id, key)).unwrap();
        let (rows, done) = frame(&mut session);
        assert!(rows.contains(part) && !done, "{key}: {rows}");
    }
    session.session.call(resize(30, 8)).unwrap();
    let (rows, _) = frame(&mut session);
    assert_eq!(rows.lines().count(), 8, "{rows}");
    session.session.call(view_key(&view_id, "q")).unwrap();
    assert!(frame(&mut session).1);
    session.session.call(view_key(&view_id, "q")).unwrap();
    session.wait(
        "the closed view told",
        |kind| matches!(kind, EventKind::Notice { text, .. } if text.contains("no open view")),
    );
    // A client without a screen is told so.
    let mut session = home.session(shell());
    session.submit("/pager");
    let (text, ok) = output(&mut session, "pager");
    assert!(!ok && text.contains("no screen"), "{text}");
}

fn view_key(view_id: &str, key: &str) -> agent_smith_core::protocol::Op {
    agent_smith_core::protocol::Op::ViewKey {
        view_id: view_id.to_owned(),
        key: key.to_owned(),
    }
}

fn resize(cols: u16, rows: u16) -> agent_smith_core::protocol::Op {
    agent_smith_core::protocol::Op::Resize { cols, rows }
}

#[test]
fn the_keys_a_user_chose_are_in_the_status() {
    let home = Home::new();
    assert_eq!(home.session(shell()).session.status().keys, BTreeMap::new());
    home.configure(&json!({"keys": {"cancel": "ctrl-x"}}));
    let keys = home.session(shell()).session.status().keys;
    assert_eq!(keys, BTreeMap::from([("cancel".to_owned(), "ctrl-x".to_owned())]));
}
