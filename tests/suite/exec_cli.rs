//! `agent-smith exec` as a program: exit codes, what goes where, bad input, interruption.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, Ran};
use crate::support::mock_server::MockServer;
use crate::support::tools::carriers;

/// A failure is one line on stderr, nothing on stdout, this exit code, and it says all of this.
#[track_caller]
fn assert_fails(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{}", ran.stderr);
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    for what in says {
        assert!(ran.stderr.contains(what), "not said: {what}\n{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("panicked"));
}

#[test]
fn help_and_version_are_no_failure_and_a_wrong_line_is_usage() {
    let home = Home::new();
    let version = home.run(&["--version"]);
    assert_eq!(
        (version.code, version.stdout.trim()),
        (Some(0), concat!("agent-smith ", env!("CARGO_PKG_VERSION")))
    );
    let help = home.run(&["exec", "--help"]);
    assert_eq!(help.code, Some(0));
    for option in [
        "--json",
        "--new",
        "--resume",
        "--conversation",
        "--role",
        "--model",
        "--cwd",
        "--ephemeral",
        "--steer",
        "130",
    ] {
        assert!(help.stdout.contains(option), "{option}");
    }
    for wrong in [
        &["exec"][..],
        &["exec", "--nonsense", "x"],
        &["fly"],
        &["exec", "--new", "--resume", "x"],
    ] {
        assert_eq!(home.run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn lines_of_stdin_join_the_turn_and_none_is_no_matter() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Done."));
    let home = Home::with_server(&server.url());
    // Stdin is at its end from the start.
    let ran = home.run(&["exec", "--steer", "Go."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
    let ran = home.run(&["exec", "--steer", "-"]);
    assert_fails(&ran, 2, &["--steer reads lines from stdin", "as an argument"]);
    // While the answer is held back, lines come: blank ones are none, and the last needs no end.
    server.answer(
        Answer::sse()
            .text("Wait")
            .gate("go")
            .text(".")
            .finish("stop")
            .usage(1, 1)
            .done(),
    );
    let mut command = home.command(["exec", "--steer", "--json", "First."]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    events.find(|event| event["type"] == "llm_text_delta").unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"second\n\n  \nthird\xff").unwrap();
    drop(stdin);
    for queued in ["second", "third\u{fffd}"] {
        let event = events.find(|event| event["type"] == "input_queued").unwrap();
        assert_eq!(event["data"]["text"], queued);
    }
    server.gate("go").open();
    let settled = events.find(|event| event["type"] == "input_settled").unwrap();
    assert_eq!(settled["data"]["inputs"], 3);
    assert_eq!(events.last().unwrap()["data"]["text"], "Done.");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_server_it_says_how_to_set_one_up() {
    let ran = Home::new().run(&["exec", "hello"]);
    assert_fails(&ran, 2, &["no model server is configured", "api_url", "--model demo"]);
}

#[test]
fn a_bad_configuration_is_told_with_its_place() {
    let home = Home::new();
    home.configure_text("{\n  \"default_model\": \"x\",\n  oops\n}");
    assert_fails(&home.run(&["exec", "hello"]), 2, &["agent_smith.json:3:3: "]);
    home.configure(&json!({"llm_config": {"api_ulr": "http://127.0.0.1:1/v1"}}));
    assert_fails(
        &home.run(&["exec", "hello"]),
        2,
        &["llm_config.api_ulr", "did you mean `llm_config.api_url`"],
    );
    home.configure(&json!({"llm_config": {"timeout": "soon"}}));
    assert_fails(&home.run(&["exec", "hello"]), 2, &["llm_config.timeout"]);
    std::fs::remove_file(home.config_file()).unwrap();
    std::fs::create_dir(home.config_file()).unwrap();
    assert_fails(&home.run(&["exec", "hello"]), 2, &["agent_smith.json"]);
}

#[test]
fn a_bad_prompt_role_directory_or_conversation_is_usage() {
    let home = Home::with_server("http://127.0.0.1:1/v1");
    assert_fails(&home.run(&["exec", ""]), 2, &["the prompt is empty"]);
    assert_fails(&home.run(&["exec", " \n\t "]), 2, &["the prompt is empty"]);
    let arguments = [OsStr::new("exec"), OsStr::from_bytes(b"caf\xe9")];
    assert_fails(
        &Ran::of(home.command(arguments).output().unwrap()),
        2,
        &["not valid UTF-8"],
    );
    assert_fails(
        &home.run(&["exec", "--role", "root", "x"]),
        2,
        &["no role `root`", "direct, orchestrator"],
    );
    assert_fails(&home.run(&["exec", "--role", "worker", "x"]), 2, &["worker"]);
    assert_fails(
        &home.run(&["exec", "--cwd", "/nowhere/at/all", "x"]),
        2,
        &["/nowhere/at/all"],
    );
    assert_fails(
        &home.run(&["exec", "--conversation", "none", "x"]),
        2,
        &["no conversation `none`"],
    );
    assert_fails(&home.run(&["exec", "--resume", "x"]), 2, &["no conversation to resume"]);
}

#[test]
fn the_prompt_may_come_from_stdin_and_must_be_text() {
    let server = MockServer::start();
    server.answer(Answer::says("yes"));
    let home = Home::with_server(&server.url());
    let feed = |bytes: &[u8]| {
        let mut command = home.command(["exec", "-"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    };
    assert_eq!(feed("Grüße\nzweite Zeile".as_bytes()).stdout, "yes\n");
    let body = server.request(0).json();
    assert_eq!(body["messages"][1]["content"], "Grüße\nzweite Zeile");
    assert_fails(&feed(b"\xff\xfe"), 2, &["not valid UTF-8"]);
    assert_fails(&feed(b""), 2, &["the prompt is empty"]);
}

#[test]
fn a_server_that_cannot_be_reached_or_refuses_is_one_clear_line() {
    let home = Home::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    home.configure(&json!({"llm_config": {"api_url": format!("http://127.0.0.1:{port}/v1"), "retry_max_retries": 0}}));
    assert_fails(&home.run(&["exec", "x"]), 1, &["127.0.0.1"]);
    let server = MockServer::start();
    server.answer_with(|_| Answer::error(401, "Invalid key"));
    home.configure(&json!({"llm_config": {"api_url": server.url(), "api_key_env": "MY_KEY"}}));
    let mut command = home.command(["exec", "x"]);
    let ran = Ran::of(command.env("MY_KEY", "sk-very-secret-key").output().unwrap());
    assert_fails(&ran, 1, &["MY_KEY"]);
    assert!(!ran.stderr.contains("sk-very-secret"));
    assert_eq!(server.requests().len(), 1, "a refusal is not tried again");
    assert_eq!(
        server.request(0).header("authorization"),
        Some("Bearer sk-very-secret-key")
    );
}

#[test]
fn a_failure_that_may_pass_is_tried_again() {
    let server = MockServer::start();
    server.answer(Answer::error(503, "busy")).answer(Answer::says("back"));
    let home = Home::with_server(&server.url());
    let ran = home.run(&["exec", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "back\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("trying again"), "{}", ran.stderr);
}

#[test]
fn a_corrupt_database_is_moved_aside_and_told() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("yes"));
    let home = Home::with_server(&server.url());
    std::fs::create_dir_all(home.database().parent().unwrap()).unwrap();
    std::fs::write(home.database(), "this is no database, but somebody may want it back").unwrap();
    let ran = home.run(&["exec", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "yes\n"), "{}", ran.stderr);
    let aside: Vec<_> = std::fs::read_dir(home.database().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"this is no database")))
        .collect();
    assert_eq!(aside.len(), 1);
    assert!(ran.stderr.contains(aside[0].to_str().unwrap()), "{}", ran.stderr);
    assert_eq!(home.messages().len(), 2, "the new database works");
    assert_eq!(home.run(&["exec", "again"]).stderr, "", "told once");
}

#[test]
fn a_locked_database_does_not_stop_the_turn_and_nothing_is_lost() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("yes"));
    let home = Home::with_server(&server.url());
    home.run(&["exec", "first"]);
    let lock = std::fs::File::open(home.database().with_extension("redb.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let ran = home.run(&["exec", "second"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "yes\n"), "{}", ran.stderr);
    assert!(!ran.stderr.is_empty(), "the user is told");
    flock(&lock, FlockOperation::Unlock).unwrap();
    home.run(&["exec", "third"]);
    let said: Vec<_> = home
        .messages()
        .into_iter()
        .map(|record| record.message.content)
        .collect();
    assert_eq!(said, ["first", "yes", "second", "yes", "third", "yes"]);
}

#[test]
fn an_unwritable_home_does_not_stop_the_turn() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("yes"));
    let home = Home::with_server(&server.url());
    std::fs::write(home.path().join(".local"), "a file where a directory should be").unwrap();
    let ran = home.run(&["exec", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "yes\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("not saved") || ran.stderr.contains("in memory"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_interrupt_in_a_tool_ends_everything_and_exits_130() {
    let server = MockServer::start();
    let command = "env | grep -a NONCE; trap '' TERM; (setsid bash -c 'echo ready; exec sleep 1000' &) ; sleep 1000";
    server.answer(Answer::calls(&[("a", "bash", json!({"command": command}))]));
    let home = Home::with_server(&server.url());
    let mut child = home
        .command(["exec", "--json", "x"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = String::new();
    while !output.contains("ready") {
        let event: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["type"] == "tool_output_delta" {
            output.push_str(event["data"]["text"].as_str().unwrap());
        }
    }
    let nonce = output
        .lines()
        .find(|line| line.contains("NONCE"))
        .unwrap()
        .split('=')
        .nth(1)
        .unwrap()
        .to_owned();
    assert!(
        carriers(&nonce).len() >= 2,
        "the shell and its escaped child carry the nonce"
    );
    let started = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    // The shell ignores TERM, so the whole grace of two seconds passes before KILL; a busy machine gets its share.
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert_eq!(status.code(), Some(130));
    assert_eq!(carriers(&nonce), Vec::<i32>::new());
    let last: serde_json::Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(last["data"]["stop_reason"], "cancelled");
}

/// What the test above would see of a killer that ends only the process group: proof that it has teeth.
#[test]
fn a_killer_of_the_group_alone_would_leave_processes() {
    let nonce = format!("control-{}", std::process::id());
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", "(setsid bash -c 'echo ready; exec sleep 1000' &) ; sleep 1000"])
        .stdout(Stdio::piped());
    command.env(agent_smith_core::process::NONCE_VARIABLE, &nonce);
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut String::new())
        .unwrap();
    rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let left = carriers(&nonce);
    assert_eq!(left.len(), 1, "the child that left the group");
    left.into_iter()
        .for_each(|pid| kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap());
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::calls(&[("a", "bash", json!({"command": "echo x"}))]));
    let home = Home::with_server(&server.url());
    let mut child = home
        .command(["exec", "--json", "x"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_log_holds_what_happened_and_no_secret_and_no_word_of_the_user() {
    let server = MockServer::start();
    server
        .answer(Answer::error(503, "busy"))
        .answer(Answer::says("the answer itself"));
    let home = Home::with_server(&server.url());
    home.configure(&json!({"llm_config": {"api_url": server.url(), "api_key_env": "MY_KEY", "retry_backoff_ms": [1]}}));
    let log = home.path().join("debug.log");
    let mut command = home.command(["--log", log.to_str().unwrap(), "exec", "my private question"]);
    assert!(
        command
            .env("MY_KEY", "sk-very-secret-key")
            .output()
            .unwrap()
            .status
            .success()
    );
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.contains("tried again"), "{text}");
    for secret in ["sk-very-secret", "private question", "answer itself"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let ran = home.run(&["--log", "/nowhere/x.log", "exec", "x"]);
    assert_fails(&ran, 2, &["/nowhere/x.log"]);
}

#[test]
fn no_command_sees_a_key_or_what_the_user_hides() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[("c1", "bash", json!({"command": "env"}))]));
    server.answer(Answer::says("done"));
    let home = Home::new();
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {"api_url": server.url(), "api_key_env": "MY_KEY"},
        "profiles": {"other": {"api_url": "http://127.0.0.1:9/v1", "api_key_env": "OTHER_KEY"}},
        "tools": {"bash": {"scrub_env": ["DEPLOY_*"]}},
    }));
    let mut command = home.command(["exec", "--json", "which variables are there?"]);
    command.envs([
        ("MY_KEY", "sk-1-hidden"),
        ("OTHER_KEY", "sk-2-hidden"),
        ("DEPLOY_TOKEN", "sk-3-hidden"),
        ("SHOWN", "sk-4-shown"),
    ]);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.request(0).header("authorization"), Some("Bearer sk-1-hidden"));
    let result = server.request(1).json()["messages"].to_string();
    assert!(result.contains("SHOWN=sk-4-shown"), "{result}");
    for text in [&result, &ran.stdout, &ran.stderr] {
        assert!(!text.contains("-hidden"), "{text}");
    }
}
