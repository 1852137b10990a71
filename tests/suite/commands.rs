//! What each command answers and does. The answers are snapshots.

use agent_smith_core::persistence::{Store, StoreOptions};
use agent_smith_core::protocol::EventKind;
use agent_smith_core::runtime::SessionOptions;
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;

/// A home with a server and a configuration that has something of everything.
fn home(server: &MockServer) -> Home {
    let home = Home::new();
    home.configure(&json!({
        "default_model": "big",
        "llm_config": {"api_url": server.url(), "retry_backoff_ms": [1], "extra_headers": {"X-Key": "hidden"}},
        "profiles": {"local": {"default_model": "tiny"}, "other": {"api_url": "http://127.0.0.1:9/v1"}},
        "tools": {"disabled": ["job_kill"]},
    }));
    home
}

fn patch(home: &Home) -> Option<Value> {
    let store = Store::new(StoreOptions::at(home.database()));
    store.read_blocking(|reader| reader.config_patch()).unwrap()
}

/// The answers to lines, one after the other, as a person reads them.
fn answers(session: &mut TestSession, lines: &[&str]) -> String {
    let mut out = String::new();
    for line in lines {
        let (ok, text) = session.command(line);
        let mark = if ok { "" } else { " (refused)" };
        out.push_str(&format!("> {line}{mark}\n{}\n\n", text.trim_end()));
    }
    out
}

fn snapshot(name: &str, home: &Home, server: &MockServer, text: &str) {
    let text = text
        .replace(&server.url(), "<server>")
        .replace(home.path().to_str().unwrap(), "<home>");
    insta::assert_snapshot!(name, text);
}

#[test]
fn config_shows_and_changes_settings() {
    let server = MockServer::start();
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    let lines = [
        "/config",
        "/config tool_step",
        "/config get llm_config.retry_max_retries",
        "/config get tools",
        "/config set llm_config.retry_max_retries 4",
        "/config get llm_config.retry_max_retries",
        "/config set llm_config.models.\"a/b:c d\".temperature 0.5",
        "/config unset llm_config.models.\"a/b:c d\".temperature",
        "/config unset llm_config.retry_max_retries",
        "/config set llm_config.retry_max_retries many",
        "/config set llm_config.timout 5",
        "/config set services.x 1",
        "/config unset default_model",
        "/config get llm_config.timout",
        "/config set default_model",
        "/config nonsense",
    ];
    let text = answers(&mut session, &lines);
    assert!(!text.contains("hidden"), "{text}");
    snapshot("config", &home, &server, &text);
    assert_eq!(patch(&home), None, "what became empty is gone");
}

#[test]
fn a_setting_is_kept_and_holds_from_the_next_turn_on() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    session.ask("one");
    // The line right behind the command finds it done.
    session.submit("/config set models.direct small");
    session.ask("two");
    assert_eq!(session.session.status().model, "small");
    assert_eq!(patch(&home), Some(json!({"models": {"direct": "small"}})));
    let models: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.json()["model"].clone())
        .collect();
    assert_eq!(models, ["big", "small"]);
    let mut another = home.session(SessionOptions::default());
    let refused = another.command("/config set tool_step_budget 0");
    assert!(!refused.0);
    assert_eq!(
        patch(&home),
        Some(json!({"models": {"direct": "small"}})),
        "nothing is written that is not valid"
    );
    another.ask("three");
    assert_eq!(server.request(2).json()["model"], "small");
    // What the other session set since is kept too.
    session.command("/config set index_file DOC.md");
    another.command("/config set tool_step_budget 9");
    let all = json!({"models": {"direct": "small"}, "index_file": "DOC.md", "tool_step_budget": 9});
    assert_eq!(patch(&home), Some(all));
}

#[test]
fn an_ephemeral_session_changes_only_itself() {
    let server = MockServer::start();
    let home = home(&server);
    let mut session = home.session(SessionOptions {
        ephemeral: true,
        ..SessionOptions::default()
    });
    let (ok, text) = session.command("/config set default_model other");
    assert!(ok && text.contains("until this session ends"), "{text}");
    assert_eq!(session.session.status().model, "other");
    session.command("/config set tool_step_budget 5");
    assert!(session.command("/config get default_model").1.contains("other"));
    assert!(!home.database().exists());
}

#[test]
fn reload_reads_the_file_again_and_a_bad_one_changes_nothing() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = home(&server);
    std::fs::create_dir_all(home.project().join(".git")).unwrap();
    std::fs::write(home.project().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let mut session = home.session(SessionOptions::default());
    session.ask("one");
    std::fs::write(home.project().join("INDEX.md"), "The index of the project.\n").unwrap();
    home.configure_text("{\"default_model\": 5");
    let bad = session.command("/reload");
    assert!(bad.0 && bad.1.contains("agent_smith.json:1:"), "{}", bad.1);
    assert_eq!(session.session.status().model, "big");
    home.configure(&json!({"default_model": "new", "llm_config": {"api_url": server.url()}}));
    let good = session.command("/reload");
    assert_eq!(
        good,
        (
            true,
            "Read again: the configuration, the index file, the memories and your commands.".to_owned()
        )
    );
    session.ask("two");
    let (first, second) = (server.request(0).json(), server.request(1).json());
    assert_eq!(second["model"], "new");
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(!system(&first).contains("The index of the project."));
    assert!(
        system(&second).contains("The index of the project."),
        "the system prompt is built anew"
    );
}

#[test]
fn models_are_chosen_and_the_step_is_told() {
    let server = MockServer::start();
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    let lines = [
        "/model",
        "/model a/b:c",
        "/model --reset",
        "/model small --save",
        "/model --reset --save",
        "/model a b",
        "/model --best",
        "/role",
        "/role orchestrator",
        "/model",
        "/role worker",
        "/role smith",
        "/profile",
        "/profile local",
        "/profile lokal",
        "/profile --off",
        "/profile --nothing",
    ];
    let text = answers(&mut session, &lines);
    snapshot("model_role_profile", &home, &server, &text);
    assert_eq!(patch(&home), Some(json!({"models": {"direct": "small"}})));
    let status = session.session.status();
    assert_eq!(
        (status.role.as_str(), status.label.as_str(), status.model.as_str()),
        ("orchestrator", "Tank", "big")
    );
}

#[test]
fn the_servers_models_are_asked_for_here_alone_and_kept() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let list = json!({"data": [
        {"id": "big", "context_length": 131_072, "supported_parameters": ["tools"], "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
        {"id": "tiny", "meta": {"n_ctx": 4096}},
    ]});
    server.on_path("/v1/models", Answer::json(200, &list));
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    session.ask("hello");
    assert!(server.requests().iter().all(|request| !request.path.contains("models")));
    let text = answers(
        &mut session,
        &["/models", "/models tin", "/model tinny", "/models --fast"],
    );
    snapshot("models", &home, &server, &text);
    session.command("/models");
    let asked = || {
        server
            .requests()
            .iter()
            .filter(|request| request.path.ends_with("/models"))
            .count()
    };
    assert_eq!(asked(), 1, "a fresh list is not asked for again");
    // Another session knows it, and what it says of a model counts.
    server.on_path("/v1/models", Answer::error(500, "no"));
    let mut another = home.session(SessionOptions {
        model: Some("tiny".into()),
        ..SessionOptions::default()
    });
    another.ask("hello");
    let window = another.wait("usage", |kind| matches!(kind, EventKind::UsageUpdated { .. }));
    assert!(
        matches!(
            window,
            EventKind::UsageUpdated {
                context_window: 4096,
                ..
            }
        ),
        "{window:?}"
    );
    let (ok, text) = another.command("/models --refresh");
    assert!(
        ok && text.contains("did not answer") && text.contains("`tiny` (in use)"),
        "{text}"
    );
}

#[test]
fn asking_for_models_can_be_cancelled_and_lines_wait_meanwhile() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    server.on_path("/v1/models", Answer::hang());
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    session.submit("/models");
    session.submit("hello");
    crate::support::gates::wait_until("the request for models", || !server.requests().is_empty());
    session
        .session
        .cancel(agent_smith_core::protocol::CancelScope::Turn, "test");
    let output = session.wait("the answer", |kind| matches!(kind, EventKind::CommandOutput { .. }));
    assert!(
        matches!(output, EventKind::CommandOutput { ok: false, .. }),
        "{output:?}"
    );
    let EventKind::TurnCompleted(end) = session.wait_end() else {
        panic!("the line behind it was not cancelled")
    };
    assert_eq!(end.text, "ok");
}

#[test]
fn what_the_model_has_is_shown() {
    let server = MockServer::start();
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    let lines = [
        "/tools",
        "/readonly",
        "/tools",
        "/readonly off",
        "/readonly maybe",
        "/usage",
        "/clear",
        "/copy",
        "/retry",
        "/new",
    ];
    let text = answers(&mut session, &lines);
    snapshot("tools_and_others", &home, &server, &text);
    let help = answers(&mut session, &["/help", "/help config", "/help nonsens"]);
    snapshot("help", &home, &server, &help);
    let (_, prompt) = session.command("/prompt");
    assert!(prompt.contains(home.project().to_str().unwrap()), "{prompt}");
}

#[test]
fn what_was_said_is_counted_copied_and_asked_again() {
    let server = MockServer::start();
    server
        .answer(
            Answer::sse()
                .text("The first answer.")
                .finish("stop")
                .usage(1200, 34)
                .done(),
        )
        .answer(Answer::says("Another one."));
    let home = home(&server);
    let mut session = home.terminal_session(SessionOptions::default());
    session.ask("hello");
    let mut text = answers(
        &mut session,
        &["/usage", "/pager", "/prompt", "/reload", "/diff", "/copy"],
    );
    let clipboard = session.events.iter().find_map(|event| match &event.kind {
        EventKind::Render { ansi, .. } => Some(ansi.strip_prefix("\x1b]52;c;")?.strip_suffix("\x1b\\")?.to_owned()),
        _ => None,
    });
    assert_eq!(
        clipboard.as_deref(),
        Some("VGhlIGZpcnN0IGFuc3dlci4="),
        "the answer in base64"
    );
    text.push_str(&answers(&mut session, &["/model tiny", "/retry"]));
    let project_id = text.lines().find_map(|line| line.strip_prefix("- Project ID: "));
    let project_id = project_id.unwrap().to_owned();
    text = text.replace(&project_id, "<project id>");
    session.forget();
    text.push_str(&answers(&mut session, &["/clear", "/clear now", "/quit"]));
    snapshot("conversation", &home, &server, &text);
    assert_eq!(server.request(1).json()["model"], "tiny");
}

#[test]
fn jobs_of_the_background_are_listed_and_ended() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[(
            "c1",
            "bash",
            json!({"command": "echo begun; exec sleep 600", "background": true}),
        )]))
        .answer_with(|_| Answer::says("ok"));
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    let mut text = answers(&mut session, &["/jobs"]);
    session.ask("serve it");
    let completed = |session: &TestSession, line: &str| {
        let found = session.session.complete(line, line.len()).into_iter();
        found.map(|candidate| candidate.text).collect::<Vec<_>>()
    };
    let jobs = completed(&session, "/jobs kill ");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let kill = format!("/jobs kill {}", jobs[0]);
    crate::support::gates::wait_until("its output", || session.command("/jobs").1.contains("6 bytes"));
    text.push_str(&answers(
        &mut session,
        &["/jobs", "/jobs kill nothing", &kill, "/jobs stop", "/jobs kill"],
    ));
    assert!(completed(&session, "/jobs kill ").is_empty(), "it has ended");
    // Times and numbers of processes are never the same.
    let masked: Vec<String> = text
        .split_inclusive(' ')
        .map(|word| match word.trim_end().trim_end_matches(['.', ',']) {
            number if number.contains('.') && number.parse::<f64>().is_ok() => word.replace(number, "N.N"),
            number if number.len() > 1 && number.parse::<u32>().is_ok() => word.replace(number, "PID"),
            _ => word.to_owned(),
        })
        .collect();
    snapshot("jobs", &home, &server, &masked.concat());
}

#[test]
fn a_server_is_set_up_by_questions() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ready"));
    server.on_path(
        "/v1/models",
        Answer::json(200, &json!({"data": [{"id": "big"}, {"id": "tiny"}]})),
    );
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    let mut text = String::from("> /setup\n");
    session.submit("/setup");
    let mut answered = 0;
    let output = loop {
        let next = session.wait("a question or the end", |kind| match kind {
            EventKind::Question { id, .. } => *id == format!("question-{}", answered + 1),
            EventKind::CommandOutput { .. } => true,
            _ => false,
        });
        match next {
            EventKind::Question {
                id,
                text: question,
                choices,
                default,
            } => {
                answered += 1;
                let choices = if choices.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", choices.join(", "))
                };
                let default = default.unwrap_or_default();
                let answer = match answered {
                    1 if !choices.is_empty() => "another".to_owned(),
                    _ if question.contains("variable") => "none".to_owned(),
                    _ if question.contains("model") => "tiny".to_owned(),
                    _ => server.url(),
                };
                // What runs on this machine is no matter of the test.
                if answer != "another" {
                    text.push_str(&format!("? {question}{choices} [{default}]\n{answer}\n"));
                }
                session.session.answer(id, answer.into()).unwrap();
            }
            EventKind::CommandOutput { text, .. } => break text,
            _ => unreachable!(),
        }
    };
    text.push_str(&output);
    snapshot("setup", &home, &server, &text);
    assert_eq!(session.session.status().model, "tiny");
}

#[test]
fn every_command_answers_in_a_snapshot() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/snapshots");
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ["__commands__", "__changed_files__"]
            .iter()
            .any(|part| name.contains(part))
        {
            all.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    let typed: std::collections::BTreeSet<&str> = all
        .lines()
        .filter_map(|line| line.strip_prefix("> /")?.split_whitespace().next())
        .collect();
    for command in agent_smith_core::command::Registry::builtin().list() {
        assert!(
            typed.contains(command.name),
            "no snapshot has the answer of /{}",
            command.name
        );
    }
}

#[test]
fn a_new_conversation_has_the_configured_model_and_is_told_what_holds() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    session.command("/model small");
    session.command("/readonly on");
    session.ask("one");
    session.command("/new");
    assert_eq!(
        session.session.status().model,
        "big",
        "a model is chosen for one conversation"
    );
    session.ask("two");
    let request = server.request(1).json();
    assert_eq!(request["model"], "big");
    let said = request["messages"][1]["content"].as_str().unwrap();
    assert!(said.contains("Read-only") && said.ends_with("two"), "{said}");
    session.ask("three");
    let said = server.request(2).json()["messages"][3]["content"].to_string();
    assert!(!said.contains("Read-only"), "told once: {said}");
}

#[test]
fn a_cleared_conversation_is_gone_for_good() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("ok"));
    let home = home(&server);
    let mut session = home.session(SessionOptions::default());
    session.ask("a secret");
    assert_eq!(home.messages().len(), 2);
    assert_eq!(session.command("/clear").1, "Cleared: 2 messages are gone.");
    assert!(home.messages().is_empty());
    session.ask("again");
    assert!(!String::from_utf8_lossy(&server.request(1).body).contains("a secret"));
    session.command("/clear");
    drop(session);
    home.run(&["exec", "--resume", "more"]);
    let body = server.request(2).json();
    assert_eq!(body["messages"].as_array().unwrap().len(), 2, "{body}");
}
