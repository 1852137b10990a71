//! The beginning of requests stays the same bytes: over turns, over midnight and days, over `cd`. Servers keep what they
//! made of it only then.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agent_smith_core::protocol::Submit;
use agent_smith_core::runtime::SessionOptions;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, Ran};
use crate::support::mock_server::{MockServer, Recorded};
use crate::support::skip;

/// Half a minute before the end of 31 December 2026, UTC.
const BEFORE_MIDNIGHT_MS: u64 = 1_798_761_570_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// The members of a request in their bytes.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(borrow)]
    tools: &'a RawValue,
}

/// Each request's messages begin with the bytes of the last one's, and its tools are the same bytes.
#[track_caller]
fn assert_one_prefix(requests: &[Recorded]) {
    let bodies: Vec<Body<'_>> = requests
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    for pair in bodies.windows(2) {
        let beginning = pair[0].messages.get().strip_suffix(']').unwrap();
        let next = pair[1].messages.get();
        assert!(
            next.starts_with(beginning),
            "{beginning}\nis not the beginning of\n{next}"
        );
        assert!(next.len() > beginning.len() + 1, "nothing new is asked");
        assert_eq!(pair[0].tools.get(), pair[1].tools.get());
    }
}

fn last_text(request: &Recorded) -> String {
    let messages = request.json()["messages"].as_array().unwrap().clone();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// The library that pins the clock, built once a run; `None` where there is no compiler.
fn pinned_clock(home: &Home) -> Option<PathBuf> {
    let compiler = skip::find("cc")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clock/pinned.c");
    let library = home.path().join("pinned.so");
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(built.success());
    Some(library)
}

/// Runs `exec --json` with the clock starting at `clock_ms`; the times of its first and last event.
fn exec_at(home: &Home, clock: &Path, clock_ms: u64, arguments: &[&str], meanwhile: impl FnOnce(&Path)) -> (u64, u64) {
    let jump = home.path().join("jump");
    let mut command = home.command(["exec", "--json"].iter().chain(arguments));
    command
        .env("LD_PRELOAD", clock)
        .env("PINNED_CLOCK_MS", clock_ms.to_string())
        .env("CLOCK_JUMP", &jump)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    meanwhile(&jump);
    let ran = Ran::of(running.wait_with_output().unwrap());
    let _ = std::fs::remove_file(&jump);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let (events, _) = ran.events();
    let times: Vec<u64> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["ts"].as_u64().unwrap())
        .collect();
    (times[0], times[times.len() - 1])
}

#[cfg(target_os = "linux")]
#[test]
fn over_midnight_days_and_directories() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    let Some(clock) = pinned_clock(&home) else { return };
    // One project, wherever in it one is.
    std::fs::create_dir_all(home.project().join(".git/objects")).unwrap();
    std::fs::create_dir_all(home.project().join(".git/refs")).unwrap();
    std::fs::write(home.project().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let below = home.project().join("below");
    std::fs::create_dir(&below).unwrap();
    std::fs::write(home.project().join("note.txt"), "seven ships\n").unwrap();
    let read = json!({"path": "note.txt"});

    // A turn that goes over midnight: the first request before it, the second after.
    let call = Answer::sse()
        .gate("night")
        .tool_call(0, "c1", "read", &read.to_string());
    server
        .answer(call.finish("tool_calls").done())
        .answer(Answer::says("Seven ships."));
    let (first, last) = exec_at(
        &home,
        &clock,
        BEFORE_MIDNIGHT_MS,
        &["What does the note say?"],
        |jump| {
            server.gate("night").wait_reached();
            std::fs::write(jump, "").unwrap();
            server.gate("night").open();
        },
    );
    let day = |ms: u64| ms / DAY_MS;
    assert_eq!(day(last), day(first) + 1, "{first} {last}");
    // The next day in another directory, and a month later back in the first.
    let below = below.to_str().unwrap();
    for (days, arguments) in [
        (1, &["--resume", "--cwd", below, "And here?"][..]),
        (1, &["--resume", "--cwd", below, "And here again?"]),
        (31, &["--resume", "And there?"]),
    ] {
        server.answer(Answer::says("The same."));
        let (first, _) = exec_at(&home, &clock, BEFORE_MIDNIGHT_MS + days * DAY_MS, arguments, |_| {});
        assert_eq!(day(first), day(BEFORE_MIDNIGHT_MS) + days);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert_one_prefix(&requests);
    // What changed was told, where it changed, in the new message.
    assert!(last_text(&requests[2]).contains(below), "{}", last_text(&requests[2]));
    assert_eq!(last_text(&requests[3]), "And here again?");
    assert!(last_text(&requests[4]).ends_with("And there?") && last_text(&requests[4]) != "And there?");
}

#[test]
fn over_turns_tools_and_cd_in_one_session() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    let below = home.project().join("below");
    std::fs::create_dir(&below).unwrap();
    let list = json!({"command": "ls"});
    server
        .answer(Answer::says("Hello."))
        .answer(Answer::calls(&[("a", "bash", list.clone()), ("b", "bash", list)]))
        .answer(Answer::says("Two lists."))
        .answer(Answer::sse().thinking("Hm.").text("Back.").finish("stop").done())
        .answer(Answer::says("Good."));
    let mut session = home.session(SessionOptions::default());
    for (line, cwd) in [
        ("Hello?", home.project()),
        ("List.", below),
        ("And back.", home.project()),
        ("Good?", home.project()),
    ] {
        session.forget();
        let submit = Submit {
            line: line.to_owned(),
            cwd: cwd.to_str().unwrap().to_owned(),
            ..Submit::default()
        };
        session.session.submit(submit).unwrap();
        session.wait_end();
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert_one_prefix(&requests);
}

/// The check has teeth: a request that tells the time in its first message fails it.
#[test]
#[should_panic(expected = "is not the beginning of")]
fn the_check_finds_a_changed_beginning() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Yes."));
    for minute in 0..2 {
        let home = Home::with_server(&server.url());
        let told: Value = json!(format!("It is minute {minute}."));
        std::fs::write(home.project().join("AGENTS.md"), told.as_str().unwrap()).unwrap();
        assert_eq!(home.run(&["exec", "Go."]).code, Some(0));
    }
    assert_one_prefix(&server.requests());
}
