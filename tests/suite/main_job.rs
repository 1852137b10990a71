//! The main job: a line becomes a turn that asks a server, runs tools in a loop, answers, and is kept.

use agent_smith_core::protocol::{EventKind, StopReason};
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, transcript, types};
use crate::support::mock_server::{MockServer, Recorded};

/// The text of the last message of a request.
fn last_message(request: &Recorded) -> String {
    let body = request.json();
    body["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The file hash that a result of the read tool tells.
fn hash_in(text: &str) -> String {
    text.split("hash ")
        .nth(1)
        .unwrap()
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .collect()
}

/// A server that writes, reads, edits and runs a file, then says what the run printed.
fn working_server() -> MockServer {
    let server = MockServer::start();
    server.answer_with(|request| {
        let results = request.json()["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|m| m["role"] == "tool")
            .count();
        match results {
            0 => Answer::calls(&[(
                "c1",
                "write",
                json!({"path": "hello.sh", "content": "echo one\necho two\n"}),
            )]),
            1 => Answer::calls(&[("c2", "read", json!({"path": "hello.sh"}))]),
            2 => {
                let edit = json!({"path": "hello.sh", "hash": hash_in(&last_message(request)), "op": "replace",
                    "start_line": 2, "end_line": 2, "text": "echo three"});
                Answer::calls(&[("c3", "edit", edit)])
            }
            3 => Answer::calls(&[("c4", "bash", json!({"command": "sh hello.sh"}))]),
            _ => Answer::says(&format!(
                "It prints: {}",
                last_message(request).trim().replace('\n', ", ")
            )),
        }
    });
    server
}

#[test]
fn a_turn_writes_reads_edits_runs_and_answers() {
    let server = working_server();
    let home = Home::with_server(&server.url());
    let ran = home.run(&["exec", "Make a script that prints one and three, and run it."]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "It prints: one, three\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("> bash sh hello.sh"), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(home.project().join("hello.sh")).unwrap(),
        "echo one\necho three\n"
    );
    let records = home.messages();
    assert!(records.iter().all(|record| record.turn_id == records[0].turn_id));
    let order: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    insta::with_settings!({filters => vec![(r"\b[0-9a-f]{12}\b", "<hash>")]}, {
        insta::assert_snapshot!("main_job_records", transcript(&records));
    });
}

#[test]
fn the_events_tell_the_turn_in_order_and_last_comes_the_result() {
    let server = working_server();
    let home = Home::with_server(&server.url());
    let ran = home.run(&["exec", "--json", "Do it."]);
    let (events, result) = ran.events();
    assert_eq!(result["stop_reason"], "completed");
    assert_eq!(result["text"], "It prints: one, three");
    assert_eq!(result["conversation_id"], home.messages()[0].conversation_id);
    let names = types(&events);
    insta::assert_snapshot!("main_job_event_types", names.join("\n"));
    let tools: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionFinished(finish) => Some((finish.outcome.name.as_str(), finish.ok)),
            _ => None,
        })
        .collect();
    assert_eq!(tools, [("write", true), ("read", true), ("edit", true), ("bash", true)]);
}

#[test]
fn a_conversation_goes_on_where_it_was_left() {
    let server = MockServer::start();
    server
        .answer(Answer::says("one"))
        .answer(Answer::says("two"))
        .answer(Answer::says("three"));
    let home = Home::with_server(&server.url());
    let first = home.run(&["exec", "--json", "first"]).events().1;
    let resumed = home.run(&["exec", "--json", "--resume", "second"]).events().1;
    assert_eq!(first["conversation_id"], resumed["conversation_id"]);
    let id = first["conversation_id"].as_str().unwrap();
    assert_eq!(home.run(&["exec", "--conversation", id, "third"]).stdout, "three\n");
    let (second, third) = (server.request(1).json(), server.request(2).json());
    let said: Vec<_> = third["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    assert_eq!(said[1..], ["first", "one", "second", "two", "third"]);
    // What was sent before is sent again byte for byte: a provider's cache depends on it.
    assert_eq!(second["messages"][0], third["messages"][0]);
    assert_eq!(home.messages().len(), 6);
}

#[test]
fn nothing_of_an_ephemeral_conversation_is_kept() {
    let server = MockServer::start();
    server.answer(Answer::says("hi"));
    let home = Home::with_server(&server.url());
    assert_eq!(home.run(&["exec", "--ephemeral", "hello"]).stdout, "hi\n");
    assert!(!home.database().exists());
}

#[test]
fn every_call_gets_a_result_whatever_is_wrong_with_it() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[
        ("a", "read", json!({"path": "missing.txt"})),
        ("b", "teleport", json!({"to": "mars"})),
        ("c", "bash", json!({"command": "exit 3"})),
        ("d", "bash", json!({"cmd": "wrong name"})),
        ("e", "git", json!({"subcommand": "status"})),
    ]));
    server.answer(
        Answer::sse()
            .tool_call(0, "f", "bash", "{\"command\": \"ech")
            .finish("tool_calls")
            .done(),
    );
    server.answer(Answer::says("I see."));
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("try");
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the turn failed")
    };
    assert_eq!((end.stop_reason, end.text.as_str()), (StopReason::Completed, "I see."));
    assert!(!home.project().join("ech").exists());
    insta::with_settings!({filters => vec![(r"there are: .*", "there are: <tools>")]}, {
        insta::assert_snapshot!("main_job_broken_calls", transcript(&home.messages()));
    });
    // What goes back to the server is readable JSON for every call, and each has its result.
    let body = server.request(2).json();
    let messages = body["messages"].as_array().unwrap();
    let calls: Vec<_> = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .collect();
    for call in &calls {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(
            serde_json::from_str::<serde_json::Value>(arguments)
                .unwrap()
                .is_object(),
            "{arguments}"
        );
        assert_eq!(
            messages
                .iter()
                .filter(|message| message["tool_call_id"] == call["id"])
                .count(),
            1,
            "{call}"
        );
    }
    assert_eq!(calls.len(), 6);
}

#[test]
fn a_model_that_only_sends_broken_calls_is_stopped() {
    let server = MockServer::start();
    server.answer_with(|_| {
        Answer::sse()
            .tool_call(0, "x", "bash", "{\"command\": ")
            .finish("length")
            .done()
    });
    let home = Home::with_server(&server.url());
    let ran = home.run(&["exec", "try"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("3 answers in a row"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_tool_budget_ends_the_turn_and_every_call_has_its_result() {
    let server = MockServer::start();
    server.answer_with(|_| {
        Answer::calls(&[
            ("a", "bash", json!({"command": "echo x"})),
            ("b", "bash", json!({"command": "echo y"})),
        ])
    });
    let home = Home::with_server(&server.url());
    home.configure(&json!({"tool_step_budget": 3, "llm_config": {"api_url": server.url()}}));
    let ran = home.run(&["exec", "go"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 tool calls"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 2);
    insta::assert_snapshot!("main_job_budget", transcript(&home.messages()));
}

#[test]
fn a_budget_that_is_just_enough_lets_the_model_answer() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[("a", "bash", json!({"command": "echo x"}))]))
        .answer(Answer::says("done"));
    let home = Home::with_server(&server.url());
    home.configure(&json!({"tool_step_budget": 1, "llm_config": {"api_url": server.url()}}));
    let ran = home.run(&["exec", "go"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
}

#[test]
fn an_empty_answer_is_asked_for_again_and_then_told() {
    let server = MockServer::start();
    server.answer(Answer::says("")).answer(Answer::says("here"));
    let home = Home::with_server(&server.url());
    home.configure(&json!({"empty_response_retry_backoff_ms": [1], "llm_config": {"api_url": server.url()}}));
    assert_eq!(home.run(&["exec", "go"]).stdout, "here\n");
    server.answer_with(|_| Answer::says(""));
    let ran = home.run(&["exec", "go"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("empty answer, 3 times in a row"), "{}", ran.stderr);
}

#[test]
fn a_line_typed_during_a_turn_joins_it_before_the_next_request() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[("a", "bash", json!({"command": "echo x"}))]).gate("late"));
    server.answer(Answer::says("both done"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(Default::default());
    session.submit("first");
    server.wait_requests(1);
    session.submit("and this too");
    session.wait("the queued line", |kind| {
        matches!(kind, EventKind::InputQueued { queued: 1, .. })
    });
    server.gate("late").open();
    session.wait_end();
    let body = server.request(1).json();
    let said = body["messages"].as_array().unwrap();
    assert_eq!(said.last().unwrap()["content"], "and this too");
    assert_eq!(said[said.len() - 2]["role"], "tool");
}
