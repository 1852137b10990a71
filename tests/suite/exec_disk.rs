//! Runs of `exec` that cannot keep anything: a full disk, a home that cannot be written. The turn is answered all the same,
//! and the user is told.

use std::process::Command;

use crate::support::answers::Answer;
use crate::support::home::{Home, Ran};
use crate::support::mock_server::MockServer;

fn with_server() -> (MockServer, Home) {
    let (server, home) = Home::and_server();
    server.answer_with(|_| Answer::says("The answer."));
    (server, home)
}

/// A run whose files may not grow beyond `kilobytes`, with the signal that comes with it as it is by default.
fn on_a_full_disk(home: &Home, kilobytes: u32, arguments: &[&str]) -> Ran {
    let plain = home.command(arguments);
    let mut limited = Command::new("sh");
    limited
        // In units of 512 bytes.
        .args(["-c", &format!("ulimit -f {}; exec \"$@\"", kilobytes * 2), "sh"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(home.project())
        .env_clear()
        .envs(home.env());
    Ran::of(limited.output().unwrap())
}

#[test]
fn a_full_disk_costs_the_record_not_the_answer() {
    let (_server, home) = with_server();
    let ran = on_a_full_disk(&home, 0, &["exec", "question"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "The answer.\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("not saved"), "{}", ran.stderr);
    // With a little room it waits beside the database, and the next run with room enough keeps it.
    let ran = on_a_full_disk(&home, 16, &["exec", "question two"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "The answer.\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("for now"), "{}", ran.stderr);
    let ran = home.run(&["exec", "question three"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let kept = home.messages();
    let questions: Vec<_> = kept
        .iter()
        .map(|record| record.message.content.as_str())
        .filter(|content| content.starts_with("question"))
        .collect();
    assert_eq!(questions, ["question two", "question three"]);
}

#[test]
fn a_home_that_cannot_be_written_costs_the_record_not_the_answer() {
    let (_server, home) = with_server();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut command = home.command(["exec", "question"]);
    command.env("XDG_DATA_HOME", file.join("data"));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "The answer.\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("not saved"), "{}", ran.stderr);
    // Without a home of any kind there is the embedded model, which needs none.
    let mut command = home.command(["exec", "--model", "demo", "which files are here?"]);
    command.env("HOME", file.join("home"));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        !ran.stdout.is_empty() && ran.stderr.contains("not saved"),
        "{}",
        ran.stderr
    );
}
