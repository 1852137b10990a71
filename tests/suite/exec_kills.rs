//! Runs of `exec` that are killed with SIGKILL, at every named step of a commit and at random points: what a request had
//! shown to the server is kept, and the next start goes on with a history a server takes.
//!
//! `EXEC_KILLS` is the number of random kills (6 without it; docs/STORE.md says how a run of 1,000 ended).

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use agent_smith_core::persistence::failpoint;
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::power::Random;
use crate::support::store::is_valid_history;
use crate::support::strict;

/// Rounds with a tool call before the model is done.
const ROUNDS: usize = 16;

/// What became of the runs.
#[derive(Debug, Default)]
struct Toll {
    kills: u64,
    /// Messages that a later request had shown to the server.
    acknowledged: usize,
    lost: Vec<String>,
    invalid: Vec<String>,
    /// How many died after passing a step and before the next one; outside the store's steps under "".
    steps: BTreeMap<String, u64>,
}

/// How a run is ended.
#[derive(Clone, Copy, Debug)]
enum End {
    /// By itself, at the n-th passing of a step.
    AtStep { step: &'static str, passing: u64 },
    /// By us, this long after the server has had so many requests.
    Killed { requests: usize, wait: Duration },
}

fn server() -> MockServer {
    let server = MockServer::start();
    server.answer_with(|request| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        let asked_to_go_on = messages.iter().any(|message| message["content"] == "go on");
        match messages.len() {
            sent if sent < 2 * ROUNDS && !asked_to_go_on => {
                let command = json!({"command": format!("echo {sent}")});
                Answer::calls(&[(&format!("call-{sent}"), "bash", command)])
            }
            _ => Answer::says("done"),
        }
    });
    server
}

/// Messages as the server sees them, without the system prompt.
fn conversation_of(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().skip(1).cloned().collect()
}

fn kill_one(end: End, arguments: &[&str], toll: &mut Toll) {
    let server = server();
    let home = Home::with_server(&server.url());
    let trace = home.path().join("trace");
    std::fs::write(&trace, "").unwrap();
    let mut command = home.command(arguments);
    command
        .env("AGENT_SMITH_FAILPOINT_TRACE", &trace)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Somebody else has the lock, so that what is to be kept goes to the spool.
    let held = matches!(end, End::AtStep { step, .. } if step.starts_with("spool.")).then(|| {
        std::fs::create_dir_all(home.database().parent().unwrap()).unwrap();
        let lock = File::create(home.database().with_extension("redb.lock")).unwrap();
        lock.lock().unwrap();
        lock
    });
    if let End::AtStep { step, passing } = end {
        command.env("AGENT_SMITH_FAILPOINT", format!("{step}@{passing}=kill"));
    }
    let mut child = command.spawn().unwrap();
    if let End::Killed { requests, wait } = end {
        server.wait_requests(requests);
        std::thread::sleep(wait);
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    drop(held);
    assert!(!status.success(), "{end:?}: the run came to its end");
    toll.kills += 1;
    let last = std::fs::read_to_string(&trace).unwrap().trim().to_owned();
    if let End::AtStep { step, .. } = end {
        assert_eq!(last, step, "the run did not end where it was told to");
    }
    *toll.steps.entry(last).or_default() += 1;

    // A round is kept before the next request shows it to the server: the first request shows nothing that was kept.
    let requests = server.requests();
    let shown = match requests.as_slice() {
        [] | [_] => Vec::new(),
        [.., last] => conversation_of(&last.json()),
    };
    toll.acknowledged += shown.len();
    if let Err(detail) = is_valid_history(&home.messages()) {
        toll.invalid.push(format!("{end:?}: {detail}"));
    }
    if shown.is_empty() {
        return;
    }
    let earlier = requests.len();
    let resumed = home.run(&["exec", "--resume", "go on"]);
    if resumed.code != Some(0) || server.requests().len() == earlier {
        toll.lost.push(format!("{end:?}: {}", resumed.stderr));
        return;
    }
    let next = server.request(earlier);
    let sent = conversation_of(&next.json());
    if sent.get(..shown.len()) != Some(&shown[..]) {
        toll.lost.push(format!("{end:?}: shown {shown:#?}, then {sent:#?}"));
    }
    // The next start sends nothing a server would refuse.
    for rule in ["openai", "one_system", "surrogates"] {
        if let Some(refusal) = strict::refuses(rule, &next.json().to_string()) {
            toll.invalid.push(format!("{end:?}: {rule}: {refusal}"));
        }
    }
}

#[test]
fn a_killed_run_loses_nothing_that_a_later_request_had_shown() {
    let kills: u64 = std::env::var("EXEC_KILLS").map_or(6, |text| text.parse().unwrap());
    let mut random = Random::new(11);
    let mut toll = Toll::default();
    for step in failpoint::STEPS {
        let passing = if step == "commit.grow" { 1 } else { 1 + random.below(3) };
        kill_one(End::AtStep { step, passing }, &["exec", "work"], &mut toll);
    }
    for _ in 0..kills {
        let end = End::Killed {
            requests: 1 + usize::try_from(random.below(ROUNDS as u64 / 2)).unwrap(),
            wait: Duration::from_micros(random.below(20_000)),
        };
        kill_one(end, &["exec", "work"], &mut toll);
    }
    println!(
        "{} kills, {} messages acknowledged, {} lost",
        toll.kills,
        toll.acknowledged,
        toll.lost.len()
    );
    for (step, count) in &toll.steps {
        let step = if step.is_empty() { "(before any step)" } else { step };
        println!("  died after {step:<24} {count:>5}");
    }
    assert!(toll.lost.is_empty() && toll.invalid.is_empty(), "{toll:#?}");
    assert!(
        failpoint::STEPS.iter().all(|step| toll.steps.contains_key(*step)),
        "{toll:#?}"
    );
}

#[test]
fn the_harness_finds_a_run_that_keeps_nothing() {
    let mut toll = Toll::default();
    let end = End::Killed {
        requests: 3,
        wait: Duration::ZERO,
    };
    kill_one(end, &["exec", "--ephemeral", "work"], &mut toll);
    assert_eq!(toll.lost.len(), 1, "{toll:#?}");
}
