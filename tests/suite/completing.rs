//! What completion offers, from the registries of a session.

use agent_smith_core::runtime::SessionOptions;
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;

/// The candidates at the end of a line, as `text (hint)`.
fn at_end(session: &TestSession, line: &str) -> Vec<String> {
    let found = session.session.complete(line, line.len());
    found
        .into_iter()
        .map(|candidate| match candidate.hint {
            Some(hint) => format!("{} ({hint})", candidate.text),
            None => candidate.text,
        })
        .collect()
}

#[test]
fn every_argument_is_completed_from_what_there_is() {
    let server = MockServer::start();
    server.on_path(
        "/v1/models",
        Answer::json(
            200,
            &json!({"data": [{"id": "big"}, {"id": "listed", "context_length": 9000}]}),
        ),
    );
    let home = Home::new();
    home.configure(&json!({
        "default_model": "big", "models": {"worker": "small"}, "llm_config": {"api_url": server.url()},
        "profiles": {"local": {"default_model": "tiny"}},
    }));
    let folder = home.path().join(".config/lilush/agent_smith/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("review.md"),
        "---\ndescription: Look\nargument-hint: PATH\n---\nx",
    )
    .unwrap();
    let mut session = home.session(SessionOptions::default());
    session.command("/models");
    session.command("/config set tool_step_budget 7");
    assert_eq!(at_end(&session, "/rev"), ["/review (PATH: Look)"]);
    assert_eq!(
        at_end(&session, "/mo")[..2],
        [
            "/model (Show the model in use and what chose it, or choose one for this conversation)",
            "/models (List the models of the server)",
        ]
    );
    assert_eq!(at_end(&session, "/help rev"), ["review (PATH: Look)"]);
    assert_eq!(at_end(&session, "/config "), ["get", "set", "unset"]);
    assert_eq!(
        at_end(&session, "/config set tool_st"),
        ["tool_step_budget (7 [/config set])"]
    );
    assert_eq!(
        at_end(&session, "/config unset "),
        ["tool_step_budget (7 [/config set])"]
    );
    assert_eq!(
        at_end(&session, "/config set context_management.enabled "),
        ["true", "false"]
    );
    assert_eq!(at_end(&session, "/config set default_model lis"), ["listed"]);
    assert_eq!(at_end(&session, "/config set active_role o"), ["orchestrator"]);
    assert_eq!(
        at_end(&session, "/model "),
        [
            "big (configured)",
            "small (configured)",
            "listed (9000 tokens)",
            "--save",
            "--reset"
        ]
    );
    assert_eq!(at_end(&session, "/model listed "), ["--save", "--reset"]);
    assert_eq!(at_end(&session, "/role "), ["direct (Smith)", "orchestrator (Tank)"]);
    assert_eq!(at_end(&session, "/profile "), ["local", "--off", "--reset"]);
    assert_eq!(at_end(&session, "/readonly o"), ["on", "off"]);
    assert_eq!(at_end(&session, "hello wor"), Vec::<String>::new());
}

#[test]
fn files_are_completed_below_the_directory_one_is_in() {
    let home = Home::new();
    for (path, text) in [
        ("src/main.rs", ""),
        ("my file.md", ""),
        (".hidden", ""),
        ("my dir/x", ""),
    ] {
        let path = home.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let session = home.session(SessionOptions::default());
    assert_eq!(at_end(&session, "see @"), ["@\"my dir/", "@\"my file.md\"", "@src/"]);
    assert_eq!(at_end(&session, "see @src/m"), ["@src/main.rs"]);
    assert_eq!(at_end(&session, "@.")[0], "@.hidden");
    assert_eq!(at_end(&session, "@nowhere/"), Vec::<String>::new());
    let found = session.session.complete("see @sr and", 7);
    assert_eq!(
        (found[0].start, found[0].end, found[0].display.as_deref()),
        (4, 7, Some("src/"))
    );
}
