//! The store through the executable: `db`, `doctor --repair`.

use std::path::PathBuf;

use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;

fn files_beside(home: &Home) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.database().parent().unwrap()).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn sizes_are_shown_everything_is_exported_and_space_given_back() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("the answer"));
    let home = Home::with_server(&server.url());
    home.run(&["exec", "the question"]);
    let stats = home.run(&["db", "stats"]);
    assert_eq!(stats.code, Some(0), "{}", stats.stderr);
    for word in [
        "agent_smith.redb",
        "schema version 2",
        "message",
        "conversation",
        "usage",
        "records",
    ] {
        assert!(stats.stdout.contains(word), "{word}: {}", stats.stdout);
    }
    let export = home.run(&["db", "export"]);
    let lines: Vec<serde_json::Value> = export
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(export.stdout.contains("the question") && export.stdout.contains("the answer") && lines.len() >= 5);
    let compact = home.run(&["db", "compact"]);
    assert!(
        compact.code == Some(0) && compact.stdout.contains("before"),
        "{}",
        compact.stderr
    );
    assert_eq!(home.messages().len(), 2);
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let home = Home::new();
    let fresh = home.run(&["doctor"]);
    assert_eq!(fresh.code, Some(0), "{}", fresh.stdout);
    assert!(
        fresh.stdout.contains("warn model server") && fresh.stdout.contains("ok   store"),
        "{}",
        fresh.stdout
    );
    home.configure(&json!({"llm_config": {"api_url": "https://api.example.org/v1", "api_key_env": "MY_KEY"}}));
    let mut command = home.command(["doctor", "--json"]);
    let output = command.env("MY_KEY", "sk-secret").output().unwrap();
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        checks
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["name"] == "key" && check["verdict"] == "ok")
    );
    assert!(!String::from_utf8(output.stdout).unwrap().contains("sk-secret"));
    home.configure_text("{");
    let broken = home.run(&["doctor"]);
    assert_eq!(broken.code, Some(1));
    assert!(broken.stdout.contains("FAIL configuration"), "{}", broken.stdout);
}

#[test]
fn the_doctor_brings_a_damaged_database_back() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("yes"));
    let home = Home::with_server(&server.url());
    (0..3).for_each(|index| assert_eq!(home.run(&["exec", &format!("question {index}")]).code, Some(0)));
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[..512].fill(0xee);
    std::fs::write(home.database(), &bytes).unwrap();
    let report = home.run(&["doctor", "--repair"]);
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);
    assert!(
        report.stdout.contains("damaged") && report.stdout.contains("message: 6"),
        "{}",
        report.stdout
    );
    assert!(
        files_beside(&home)
            .iter()
            .any(|path| std::fs::read(path).is_ok_and(|kept| kept == bytes)),
        "kept aside"
    );
    let mut said: Vec<_> = home
        .messages()
        .into_iter()
        .map(|record| record.message.content)
        .collect();
    said.sort();
    assert_eq!(said, ["question 0", "question 1", "question 2", "yes", "yes", "yes"]);
    assert!(home.run(&["doctor", "--repair"]).stdout.contains("is sound"));
}
