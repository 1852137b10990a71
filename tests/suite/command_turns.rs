//! Lines that become turns in a way of their own: retries, commands of the user's own, the shell, attached files; and the
//! limits and servers a user sets for them.

use agent_smith_core::protocol::{CancelScope, EventKind, NoticeLevel, StopReason, Submit};
use agent_smith_core::runtime::SessionOptions;
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, transcript};
use crate::support::mock_server::{MockServer, Recorded};

/// The text of the last message of a request.
fn last(request: &Recorded) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn tools(request: &Recorded) -> Vec<String> {
    let body = request.json();
    let names = body["tools"].as_array().unwrap().iter();
    names
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_retried_line_takes_the_place_of_its_failed_turn() {
    let server = MockServer::start();
    server
        .answer(Answer::says("first"))
        .answer(Answer::error(400, "no"))
        .answer(Answer::says("second"))
        .answer(Answer::says("better"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.ask("one");
    session.ask("two");
    session.command("/model other");
    let retry = |session: &mut crate::support::home::TestSession| {
        session.forget();
        session.submit("/retry");
        session.wait_end();
        session.settled();
    };
    retry(&mut session);
    let body = server.request(2).json();
    assert_eq!(body["model"], "other");
    let said: Vec<_> = body["messages"].as_array().unwrap()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["one", "first", "two"]);
    drop(session);
    // A resumed conversation knows its last turn too.
    let mut session = home.session(SessionOptions {
        start: agent_smith_core::runtime::ConversationStart::Latest,
        ..SessionOptions::default()
    });
    retry(&mut session);
    insta::assert_snapshot!(transcript(&home.messages()), @r"
    user: one
    assistant: first
    user: two
    assistant: better
    ");
}

#[test]
fn a_retry_tells_the_model_what_the_earlier_attempt_may_have_done() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[(
            "c1",
            "write",
            json!({"path": "a.txt", "content": "x\n"}),
        )]))
        .answer(Answer::says("done"))
        .answer(Answer::says("done again"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.ask("write it");
    session.submit("/retry");
    session.forget();
    session.wait_end();
    let body = server.request(2).json();
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    let said = last(&server.request(2));
    assert!(said.contains("earlier attempt") && said.ends_with("write it"), "{said}");
    assert!(home.project().join("a.txt").exists());
    assert_eq!(home.messages().len(), 2);
}

#[test]
fn commands_of_the_users_own_are_prompts_with_a_role_and_a_model() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    let folder = home.path().join(".config/lilush/agent_smith/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("review.md"),
        "---\ndescription: Look at a file\nargument-hint: PATH\nrole: orchestrator\nmodel: judge\n---\nReview $1 well.",
    )
    .unwrap();
    std::fs::write(folder.join("bad.md"), "---\nrole: king\n---\nx").unwrap();
    let mut session = home.session(SessionOptions::default());
    session.ask("hello");
    session.ask("/review src/main.rs");
    let request = server.request(1);
    assert_eq!(request.json()["model"], "judge");
    assert!(
        last(&request).ends_with("Review src/main.rs well."),
        "{}",
        last(&request)
    );
    assert!(last(&request).contains("Your role is now orchestrator"));
    assert!(tools(&server.request(0)).contains(&"bash".to_owned()) && !tools(&request).contains(&"bash".to_owned()));
    // For that turn alone.
    session.ask("go on");
    let after = server.request(2);
    assert_eq!(after.json()["model"], "mock");
    assert!(tools(&after).contains(&"bash".to_owned()) && last(&after).contains("Your role is now direct"));
    assert_eq!(session.session.status().role, "direct");
    let help = session.command("/help").1;
    assert!(
        help.contains("`/review PATH`: Look at a file") && help.contains("bad.md"),
        "{help}"
    );
    let (ok, text) = session.command("/bad");
    assert!(!ok && text.contains("no command /bad"), "{text}");
    assert!(session.command("/reveiw").1.contains("no command"));
}

#[test]
fn a_line_of_the_shell_is_shown_and_goes_with_the_next_turn() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.submit("!echo \"hello there\"; exit 3");
    session.settled();
    let shown = session.wait("the output", |kind| matches!(kind, EventKind::ToolOutputDelta { .. }));
    assert!(matches!(shown, EventKind::ToolOutputDelta { text, .. } if text == "hello there\n"));
    assert!(server.requests().is_empty());
    session.ask("what was that?");
    let said = last(&server.request(0));
    insta::assert_snapshot!(said, @r#"
    <user_shell command="echo &quot;hello there&quot;; exit 3">
    hello there
    [Exit code 3.]
    </user_shell>

    what was that?
    "#);
    session.ask("and now?");
    assert_eq!(last(&server.request(1)), "and now?", "told once");
}

#[test]
fn a_line_of_the_shell_can_be_cancelled_and_waits_for_a_turn() {
    let server = MockServer::start();
    server.answer(Answer::sse().text("a").gate("g").finish("stop").usage(1, 1).done());
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.submit("!echo begun; sleep 600");
    session.wait("it runs", |kind| matches!(kind, EventKind::ToolOutputDelta { .. }));
    session.session.cancel(CancelScope::Turn, "test");
    session.wait("it ends", |kind| matches!(kind, EventKind::ToolExecutionCancelled(_)));
    session.settled();
    session.forget();
    session.submit("hello");
    server.gate("g").wait_reached();
    session.submit("!echo too early");
    let back = session.wait("it comes back", |kind| matches!(kind, EventKind::Prefill { .. }));
    assert!(matches!(back, EventKind::Prefill { text } if text == "!echo too early"));
    server.gate("g").open();
    session.wait_end();
}

#[test]
fn mentioned_files_go_with_the_line() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    std::fs::write(home.project().join("a.txt"), "alpha\n").unwrap();
    std::fs::write(home.project().join("b c.txt"), "beta\n").unwrap();
    std::fs::write(home.path().join("outside.txt"), "secret\n").unwrap();
    let mut session = home.session(SessionOptions::default());
    session
        .session
        .submit(Submit {
            line: "look at @a.txt, @../outside.txt and me@example.org".into(),
            attachments: vec!["b c.txt".into()],
            ..Submit::default()
        })
        .unwrap();
    session.wait_end();
    let said = last(&server.request(0));
    assert!(said.contains("<file path=\"a.txt\">\nalpha\n</file>"), "{said}");
    assert!(
        said.contains("<file path=\"b c.txt\">\nbeta\n</file>") && !said.contains("secret"),
        "{said}"
    );
    let told = |kind: &EventKind| matches!(kind, EventKind::Notice { level: NoticeLevel::Warn, text, .. } if text.contains("outside.txt"));
    session.wait("what was refused is told", told);
    // The budget is the user's.
    session.command("/config set prompt.attachment_chars 3");
    session.ask("again @a.txt");
    let said = last(&server.request(1));
    assert!(said.contains("alp\n[") && !said.contains("alpha"), "{said}");
}

#[test]
fn read_only_withholds_what_can_change_something() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[(
            "c1",
            "write",
            json!({"path": "a.txt", "content": "x"}),
        )]))
        .answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.command("/readonly on");
    session.ask("write it anyway");
    let offered = tools(&server.request(0));
    assert!(offered.contains(&"read".to_owned()), "{offered:?}");
    assert!(
        !["write", "edit", "bash"]
            .iter()
            .any(|name| offered.iter().any(|tool| tool == name)),
        "{offered:?}"
    );
    assert!(last(&server.request(0)).contains("Read-only"));
    assert!(
        !home.project().join("a.txt").exists(),
        "a call of what is not offered does not run"
    );
    session.command("/readonly off");
    session.ask("now");
    let request = server.requests().pop().unwrap();
    assert!(tools(&request).contains(&"write".to_owned()) && last(&request).contains("No longer read-only"));
}

#[test]
fn a_disabled_tool_is_not_offered_and_does_not_run() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[("c1", "bash", json!({"command": "touch made"}))]))
        .answer_with(|_| Answer::says("ok"));
    let home = Home::with_server(&server.url());
    let mut session = home.session(SessionOptions::default());
    session.command("/config set tools.disabled [\"bash\"]");
    session.ask("make it");
    let offered = tools(&server.request(0));
    assert!(
        offered.contains(&"read".to_owned()) && !offered.contains(&"bash".to_owned()),
        "{offered:?}"
    );
    assert!(!home.project().join("made").exists());
}

#[test]
fn limits_end_a_turn_as_budget_exhausted() {
    let cases: [(&str, Value, Answer); 3] = [
        ("tool_step_budget", json!({"tool_step_budget": 1}), Answer::calls(&[("c", "read", json!({"path": "."}))])),
        ("max_tokens_per_turn", json!({"limits": {"max_tokens_per_turn": 20}}), Answer::calls(&[("c", "read", json!({"path": "."}))])),
        (
            "max_cost_usd",
            json!({"limits": {"max_cost_usd": 0.01}}),
            Answer::sse().text("dear").finish("stop").event(&json!({
                "id": "x", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 0.02}
            })).done(),
        ),
    ];
    for (code, limit, answer) in cases {
        let server = MockServer::start();
        server.answer_with(move |_| answer.clone());
        let home = Home::new();
        let mut config = json!({"default_model": "mock", "llm_config": {"api_url": server.url()}});
        config
            .as_object_mut()
            .unwrap()
            .extend(limit.as_object().unwrap().clone());
        home.configure(&config);
        let mut session = home.session(SessionOptions::default());
        session.submit("go");
        let EventKind::TurnCompleted(end) = session.wait_end() else {
            panic!("{code}: the turn failed")
        };
        assert_eq!(end.stop_reason, StopReason::BudgetExhausted, "{code}");
        assert_eq!(end.error.unwrap().code, code);
        if code == "max_cost_usd" {
            // The next turn does not cost another request.
            let asked = server.requests().len();
            session.forget();
            session.submit("more");
            let EventKind::TurnCompleted(end) = session.wait_end() else {
                panic!("the turn failed")
            };
            assert_eq!(end.stop_reason, StopReason::BudgetExhausted);
            assert_eq!(server.requests().len(), asked);
        }
    }
}

#[test]
fn a_server_that_is_down_is_replaced_by_a_profile_and_that_is_told() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("here"));
    let home = Home::new();
    home.configure(&json!({
        "default_model": "far", "fallback_profiles": ["gone", "near"],
        "llm_config": {"api_url": "http://127.0.0.1:9/v1", "retry_max_retries": 1, "retry_backoff_ms": [1]},
        "profiles": {
            "gone": {"api_url": "http://127.0.0.1:9/v1", "default_model": "g"},
            "near": {"api_url": server.url(), "default_model": "n"},
        },
    }));
    let mut session = home.session(SessionOptions::default());
    assert_eq!(session.ask("hello"), "here");
    assert_eq!(server.request(0).json()["model"], "n");
    let told: Vec<String> = session
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Notice { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("the profile `near` and its model `n`"), "{told:?}");
    // It stays there, without asking the first one again.
    assert_eq!(session.session.status().model, "n");
    session.ask("more");
    let retries = session
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::LlmRetryScheduled { .. }));
    assert_eq!(retries.count(), 0);
    assert!(session.command("/profile").1.contains("`near` is in use"));
}

#[test]
fn exec_takes_a_profile() {
    let server = MockServer::start();
    server.answer(Answer::says("here"));
    let home = Home::new();
    home.configure(
        &json!({"default_model": "m", "profiles": {"near": {"api_url": server.url(), "default_model": "n"}}}),
    );
    assert_eq!(home.run(&["exec", "--profile", "near", "hello"]).stdout, "here\n");
    assert_eq!(server.request(0).json()["model"], "n");
    let wrong = home.run(&["exec", "--profile", "nea", "hello"]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("did you mean \"near\"?"),
        "{}",
        wrong.stderr
    );
}
