//! `agent-smith serve` and clients that send garbage, close half a pipe, or die.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::gates::{PATIENCE, wait_until};
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::tools::carriers;

/// From the death of one side to the end of the other.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// A client of a sidecar.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Client {
    fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output }
    }

    fn start(home: &Home) -> Self {
        Self::of(home.command(["serve"]))
    }

    fn send(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The answer to this line; events before it are passed over.
    #[track_caller]
    fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(line);
        std::iter::from_fn(|| self.next())
            .find(|said| said.get("event").is_none())
            .unwrap()
    }

    #[track_caller]
    fn event(&mut self, kind: &str) -> Value {
        std::iter::from_fn(|| self.next())
            .find_map(|mut said| (said["event"]["type"] == kind).then(|| said["event"].take()))
            .unwrap_or_else(|| panic!("no {kind}"))
    }

    #[track_caller]
    fn hello(&mut self, home: &Home) {
        let hello = json!({"id": 1, "op": "hello", "protocol": 1, "cwd": home.project()});
        assert_eq!(self.ask(hello.to_string())["ok"]["protocol"], 1);
    }

    /// Starts a tool that does not listen to TERM; its nonce.
    #[track_caller]
    fn stubborn_tool(&mut self, home: &Home) -> String {
        self.hello(home);
        self.send(r#"{"id":2,"op":"submit","line":"run"}"#);
        let output = self.event("tool_output_delta");
        output["data"]["text"]
            .as_str()
            .unwrap()
            .trim()
            .split('=')
            .nth(1)
            .unwrap()
            .to_owned()
    }

    #[track_caller]
    fn ends(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "the sidecar does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stubborn_server() -> MockServer {
    let server = MockServer::start();
    let command = "trap '' TERM; env | grep -a NONCE; while :; do sleep 0.1; done";
    server.answer(Answer::calls(&[("c1", "bash", json!({ "command": command }))]));
    server
}

#[test]
fn garbage_is_answered_and_the_session_goes_on() {
    let server = MockServer::start();
    server.answer(Answer::says("Still here."));
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    let mut said = Vec::new();
    for line in [
        &b"garbage"[..],
        b"{\"id\": 1, \"op\": \"hel",
        b"[1, 2]",
        b"\"text\"",
        b"{\"id\": 5}",
        b"{\"id\": \"a\", \"op\": 7}",
        b"{\"id\": {}, \"op\": \"status\"}",
        b"{\"id\": 6, \"op\": \"status\"}",
        b"{\"id\": 7, \"op\": \"hello\", \"protocol\": \"one\"}",
        b"\xff\xfe\x00",
        b"   ",
    ] {
        client.send(line);
    }
    client.hello_after(&home, &mut said);
    for line in [
        r#"{"id":10,"op":"hello","protocol":1}"#,
        r#"{"id":11,"op":"reboot"}"#,
        r#"{"id":12,"op":"resize","cols":"wide","rows":5}"#,
        r#"{"op":"cancel"}"#,
    ] {
        said.push(client.ask(line));
    }
    let lines: String = said.iter().map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!("sidecar_garbage", lines);
    client.send(r#"{"id":13,"op":"submit","line":"hello?"}"#);
    assert_eq!(client.event("turn_completed")["data"]["text"], "Still here.");
    assert_eq!(client.ask(r#"{"id":14,"op":"close"}"#), json!({"id": 14, "ok": true}));
    assert_eq!(client.ends(), Some(0));
}

impl Client {
    /// Says hello and keeps every answer before the welcome.
    #[track_caller]
    fn hello_after(&mut self, home: &Home, said: &mut Vec<Value>) {
        self.send(json!({"id": "h", "op": "hello", "protocol": 1, "cwd": home.project()}).to_string());
        loop {
            let line = self.next().unwrap();
            if line["id"] == "h" {
                assert_eq!(line["ok"]["protocol"], 1);
                return;
            }
            said.push(line);
        }
    }
}

#[test]
fn a_hello_without_a_directory_means_the_one_it_was_started_in() {
    let server = MockServer::start();
    server
        .answer(Answer::calls(&[("c1", "bash", json!({"command": "pwd -P"}))]))
        .answer(Answer::says("There."));
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    assert_eq!(client.ask(r#"{"id":1,"op":"hello","protocol":1}"#)["ok"]["protocol"], 1);
    client.send(r#"{"id":2,"op":"submit","line":"where?"}"#);
    let output = client.event("tool_execution_finished")["data"]["content"].take();
    let project = home.project().canonicalize().unwrap();
    assert_eq!(output, format!("{}\n", project.display()));
}

#[test]
fn text_that_is_no_utf8_loses_only_what_is_unreadable() {
    let server = MockServer::start();
    server.answer(Answer::says("Read."));
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    client.hello(&home);
    client.send(b"{\"id\":2,\"op\":\"submit\",\"line\":\"caf\xe9 au lait\"}");
    assert_eq!(client.event("turn_started")["data"]["input"], "caf\u{fffd} au lait");
}

#[test]
fn a_line_without_end_is_refused_and_not_kept() {
    let home = Home::new();
    let mut client = Client::start(&home);
    client.hello(&home);
    let megabyte = vec![b'x'; 1 << 20];
    let input = client.input.as_mut().unwrap();
    for _ in 0..64 {
        input.write_all(&megabyte).unwrap();
    }
    let answer = client.ask("");
    assert_eq!(
        (&answer["id"], &answer["err"]["code"]),
        (&Value::Null, &json!("line_too_long"))
    );
    assert!(client.ask(r#"{"id":3,"op":"status"}"#)["ok"].is_object());
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // A debug build is large by itself; 64 MB of it would not be hidden.
    assert!(peak < 100 * 1024, "{peak} kB");
}

#[test]
fn the_end_of_stdin_ends_it_and_a_tool_that_does_not_listen() {
    let server = stubborn_server();
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    let nonce = client.stubborn_tool(&home);
    let begun = Instant::now();
    client.input = None;
    assert_eq!(client.ends(), Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    wait_until("the tool is gone", || carriers(&nonce).is_empty());
    // What was going on is kept all the same.
    let kept = home.messages();
    assert_eq!(kept.last().unwrap().message.tool_call_id.as_deref(), Some("c1"));
}

#[test]
fn what_runs_in_the_background_ends_with_it() {
    let server = MockServer::start();
    let command = "trap '' TERM; env | grep -a NONCE > nonce; while :; do sleep 0.1; done";
    server
        .answer(Answer::calls(&[(
            "c1",
            "bash",
            json!({ "command": command, "background": true }),
        )]))
        .answer(Answer::says("It runs."));
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    client.hello(&home);
    client.send(r#"{"id":2,"op":"submit","line":"run"}"#);
    client.event("turn_persisted");
    let nonce = std::fs::read_to_string(home.project().join("nonce")).unwrap();
    let nonce = nonce.trim().split('=').nth(1).unwrap().to_owned();
    assert!(!carriers(&nonce).is_empty());
    let begun = Instant::now();
    client.input = None;
    assert_eq!(client.ends(), Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    wait_until("the tool is gone", || carriers(&nonce).is_empty());
}

#[test]
fn a_closed_stdout_ends_it_though_it_has_nothing_to_say() {
    let home = Home::new();
    let mut client = Client::start(&home);
    client.hello(&home);
    let begun = Instant::now();
    client.output = None;
    assert_eq!(client.ends(), Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[test]
fn the_death_of_its_parent_ends_it_though_others_hold_its_pipes() {
    let server = stubborn_server();
    let home = Home::with_server(&server.url());
    let mut shell = Command::new("sh");
    let serve = home.command(["serve"]);
    // The shell is the parent; both ends of the pipes stay open here. (A shell gives `/dev/null` to what it starts in the
    // background, unless told otherwise.)
    shell
        .args(["-c", r#"exec 3<&0; "$0" serve <&3 & wait"#])
        .arg(serve.get_program())
        .current_dir(home.project());
    shell.env_clear().envs(home.env());
    let mut client = Client::of(shell);
    let nonce = client.stubborn_tool(&home);
    let begun = Instant::now();
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    // Its end of stdout is closed when it has ended.
    while client.next().is_some() {}
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    wait_until("the tool is gone", || carriers(&nonce).is_empty());
}

#[test]
fn a_descriptor_it_inherits_does_not_keep_it_alive() {
    // As a host does that opens its pipes without close-on-exec: the child holds the other end of its own stdin.
    let home = Home::new();
    let serve = home.command(["serve"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"exec "$0" serve <"$1" 7>"$1""#])
        .arg(serve.get_program());
    let fifo = home.path().join("stdin");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    shell
        .arg(&fifo)
        .current_dir(home.project())
        .env_clear()
        .envs(home.env());
    // Opening the fifo for reading waits for this.
    let path = fifo.clone();
    let writer = std::thread::spawn(move || std::fs::OpenOptions::new().write(true).open(path).unwrap());
    let mut client = Client::of(shell);
    let mut writer = writer.join().unwrap();
    writeln!(writer, "{}", json!({"id": 1, "op": "hello", "protocol": 1})).unwrap();
    assert_eq!(client.next().unwrap()["id"], 1);
    drop(writer);
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn a_signal_ends_it_as_its_clients_death_does() {
    let server = stubborn_server();
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    let nonce = client.stubborn_tool(&home);
    let begun = Instant::now();
    kill_process(
        Pid::from_raw(i32::try_from(client.child.id()).unwrap()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    assert_eq!(client.ends(), Some(130));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    wait_until("the tool is gone", || carriers(&nonce).is_empty());
}

#[test]
fn a_client_that_stops_reading_stops_nothing() {
    let server = MockServer::start();
    server.answer(Answer::calls(&[(
        "c1",
        "bash",
        json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo done > done"}),
    )]));
    server.answer(Answer::says("x".repeat(300_000).as_str()));
    let home = Home::with_server(&server.url());
    let mut client = Client::start(&home);
    client.hello(&home);
    client.send(r#"{"id":2,"op":"submit","line":"write a lot"}"#);
    // Far more than a pipe holds, and nobody takes it.
    server.wait_requests(2);
    wait_until("the turn is kept", || {
        home.database().exists() && home.messages().len() == 4
    });
    client.event("turn_persisted");
    client.send(r#"{"id":3,"op":"close"}"#);
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn an_idle_sidecar_does_nothing_at_all() {
    let home = Home::new();
    let mut client = Client::start(&home);
    client.hello(&home);
    let switches = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", client.child.id())).unwrap();
        let count = |status: String| -> u64 {
            let lines = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
            lines.map(|(_, number)| number.trim().parse::<u64>().unwrap()).sum()
        };
        tasks
            .map(|task| count(std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()))
            .sum::<u64>()
    };
    let mut last = switches();
    // What the start still does comes to an end; then a whole half second has to be silent.
    wait_until("it is idle", || {
        std::thread::sleep(Duration::from_millis(500));
        let now = switches();
        std::mem::replace(&mut last, now) == now
    });
}
