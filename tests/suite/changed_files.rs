//! What tools changed: told at a turn's end, kept with the conversation, and shown by `/diff`.

use agent_smith_core::protocol::{ChangedFile, EventKind};
use agent_smith_core::runtime::{ConversationStart, SessionOptions};
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

fn replace(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    (
        "edit",
        json!({"path": path, "op": "replace_text", "old": old, "new": new}),
    )
}

/// Lets the next turn make these calls, one a round, and then end.
fn turn_of(server: &MockServer, calls: &[(&str, Value)]) {
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let id = format!("call-{index}");
        server.answer(Answer::calls(&[(&id, name, arguments.clone())]));
    }
    server.answer(Answer::says("done"));
}

/// Works a turn and gives the files it told as changed.
fn changed(session: &mut TestSession) -> Vec<ChangedFile> {
    session.ask("go");
    let files = session.events.iter().find_map(|event| match &event.kind {
        EventKind::FilesChanged { files } => Some(files.clone()),
        _ => None,
    });
    session.forget();
    files.unwrap_or_default()
}

#[test]
fn the_files_a_turn_changed_are_told_and_can_be_compared_afterwards() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    let file = |name: &str| home.project().join(name);
    std::fs::write(file("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(file("b.txt"), "same\n").unwrap();
    std::fs::write(file("picture"), b"\x89PNG\0\xff").unwrap();
    let mut session = home.session(SessionOptions::default());
    let told = |path: &str, new, added, removed| ChangedFile {
        path: path.to_owned(),
        new,
        added: Some(added),
        removed: Some(removed),
    };

    assert!(session.command("/diff").1.contains("changed no file"));

    let calls = [
        replace("a.txt", "two", "2"),
        replace("a.txt", "three", "3\nfour"),
        write("new.md", "# New\n\n```sh\nls\n```\n"),
        // There and back again is no change.
        replace("b.txt", "same", "other"),
        replace("b.txt", "other", "same"),
    ];
    turn_of(&server, &calls);
    let expected = [told("a.txt", false, 3, 2), told("new.md", true, 5, 0)];
    assert_eq!(changed(&mut session), expected);
    let first = session.command("/diff").1;

    turn_of(&server, &[replace("a.txt", "one", "1")]);
    assert_eq!(changed(&mut session), [told("a.txt", false, 1, 1)]);
    let second = session.command("/diff").1;
    // What commands change is not told, and a turn without changes tells nothing.
    turn_of(&server, &[("bash", json!({"command": "echo x > by-hand"}))]);
    assert_eq!(changed(&mut session), []);
    let third = session.command("/diff").1;
    assert!(!session.command("/diff both").0);
    drop(session);

    // Another session of the conversation knows all of it, and compares with what is there now.
    std::fs::write(file("new.md"), "").unwrap();
    let options = SessionOptions {
        start: ConversationStart::Latest,
        ..SessionOptions::default()
    };
    let all = home.session(options).command("/diff all").1;
    let shown = [
        ("/diff", first),
        ("/diff", second),
        ("/diff", third),
        ("/diff all", all),
    ];
    let shown = shown.map(|(line, answer)| format!("> {line}\n{}\n", answer.trim_end()));
    insta::assert_snapshot!("diff", shown.join("\n"));
}

#[test]
fn content_too_long_to_be_kept_is_told_and_does_not_stop_the_change() {
    let server = MockServer::start();
    let home = Home::new();
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {"api_url": server.url()},
        "persistence": {"max_blob_bytes": 8},
    }));
    std::fs::write(home.project().join("long"), "far too long\n").unwrap();
    let mut session = home.session(SessionOptions::default());
    turn_of(&server, &[write("long", "short\n")]);
    let files = changed(&mut session);
    assert_eq!((files[0].path.as_str(), files[0].added), ("long", None));
    let result = server.request(1).json()["messages"].to_string();
    assert!(result.contains("persistence.max_blob_bytes"), "{result}");
    assert_eq!(std::fs::read_to_string(home.project().join("long")).unwrap(), "short\n");
    assert!(session.command("/diff").1.contains("cannot be compared"));
}
