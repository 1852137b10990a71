//! Living in, or beside, somebody else's Lua process: forks, deaths, panics, interrupts, misuse, many sessions.
//!
//! Each test is a script of `tests/lua/bridge/hazards.lua` in a process of its own; what it says is judged here.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::gates::wait_until;
use crate::support::home::Home;
use crate::support::lua::{CARRIERS, Carrier, Script};
use crate::support::mock_server::MockServer;
use crate::support::skip;
use crate::support::tools::carriers;

fn hazard<'a>(home: &'a Home, carrier: Carrier, name: &str, more: &Value) -> Option<Script<'a>> {
    let mut plan = json!({ "hazard": name });
    plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Script::new(home, carrier, "hazards", &plan)
}

/// A home whose server answers everything with a short text.
fn answering() -> (MockServer, Home) {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Yes."));
    let home = Home::with_server(&server.url());
    (server, home)
}

#[test]
fn sessions_come_and_go_and_leave_no_thread_and_no_descriptor() {
    for carrier in CARRIERS {
        let (_server, home) = answering();
        let Some(script) = hazard(&home, carrier, "cycles", &json!({"cycles": 100, "progress": true})) else {
            return;
        };
        let said = script.run().pop().unwrap();
        let count = |name: &str| said[name].as_u64().unwrap();
        assert!(count("threads") <= count("first_threads"), "{carrier:?}: {said:?}");
        assert!(count("fds") <= count("first_fds"), "{carrier:?}: {said:?}");
    }
}

#[test]
fn a_whole_cycle_under_valgrind_touches_no_memory_that_is_not_its_own() {
    let Some(valgrind) = skip::find("valgrind") else { return };
    let (_server, home) = answering();
    let plan = json!({"cycles": 1, "wait": "turn_persisted", "progress": true});
    let Some(script) = hazard(&home, Carrier::Native, "cycles", &plan) else {
        return;
    };
    let valgrind_options = ["-q", "--fair-sched=yes", "--error-exitcode=99"];
    let mut lua = script.under(&valgrind, &valgrind_options).start();
    // Six seconds of work before the first word, on one of however few processors are left.
    lua.silence *= 5;
    let said: Vec<_> = std::iter::from_fn(|| lua.next()).collect();
    let (code, stderr) = lua.end();
    assert_eq!(code, Some(0), "{stderr}");
    let seen = |step: &str| said.iter().any(|line| line["step"] == step);
    assert!(seen("turn_completed") && seen("turn_persisted"), "{said:?}");
    assert!(said.last().unwrap()["fds"].is_number(), "{said:?}");
}

#[test]
fn a_forked_child_is_told_at_once_and_the_parent_goes_on() {
    for carrier in CARRIERS {
        let (_server, home) = answering();
        let Some(script) = hazard(&home, carrier, "fork", &json!({})) else {
            return;
        };
        let said = script.run().remove(0);
        let child = said["child"].as_object().unwrap();
        let expected = if carrier == Carrier::Native { 6 } else { 5 };
        assert_eq!(child.len(), expected, "{carrier:?}: {said}");
        assert!(
            child.values().all(|answer| answer["code"] == "forked"),
            "{carrier:?}: {said}"
        );
        // It closed its Lua state, sessions and all, and ended as it wished.
        assert_eq!(said["status"], 7, "{carrier:?}: {said}");
        assert_eq!(said["parent"], "turn_persisted", "{carrier:?}: {said}");
    }
}

#[test]
fn a_panic_is_an_internal_error_and_the_next_turn_works() {
    for carrier in CARRIERS {
        for (point, first, ends) in [
            ("bridge.call", "internal", vec![("turn_completed", None)]),
            (
                "llm.stream",
                "",
                vec![("turn_failed", Some("internal")), ("turn_completed", None)],
            ),
            (
                "tool.run",
                "",
                vec![
                    ("tool_execution_finished", Some("internal")),
                    ("turn_completed", None),
                    ("turn_completed", None),
                ],
            ),
        ] {
            let server = MockServer::start();
            if point == "tool.run" {
                server.answer(Answer::calls(&[("c1", "bash", json!({"command": "true"}))]));
            }
            server.answer_with(|_| Answer::says("Fine."));
            let home = Home::with_server(&server.url());
            let Some(script) = hazard(&home, carrier, "panic", &json!({})) else {
                return;
            };
            let said = script
                .env("AGENT_SMITH_FAILPOINT", &format!("{point}=panic"))
                .run_on_terminal()
                .remove(0);
            assert_eq!(
                said["first"]["kind"].as_str().unwrap_or(""),
                first,
                "{carrier:?}, {point}: {said}"
            );
            assert_eq!(said["second"]["ok"], true, "{carrier:?}, {point}: {said}");
            let seen: Vec<_> = said["ends"]
                .as_array()
                .unwrap()
                .iter()
                .map(|end| (end["type"].as_str().unwrap(), end["error"].as_str()))
                .collect();
            assert_eq!(seen, ends, "{carrier:?}, {point}");
        }
    }
}

#[test]
fn a_panic_at_an_entry_of_the_bridge_is_an_internal_error_there() {
    for carrier in CARRIERS {
        // Polls of the sidecar's client are its own: what its threads do stands below.
        for point in ["bridge.new", "bridge.poll"] {
            if (carrier, point) == (Carrier::Sidecar, "bridge.poll") {
                continue;
            }
            let (_server, home) = answering();
            let Some(script) = hazard(&home, carrier, "panic_at_entry", &json!({})) else {
                return;
            };
            let said = script
                .env("AGENT_SMITH_FAILPOINT", &format!("{point}=panic"))
                .run_on_terminal()
                .remove(0);
            assert_eq!(said["failed"]["kind"], "internal", "{carrier:?}, {point}: {said}");
            let message = said["failed"]["message"].as_str().unwrap();
            assert!(message.contains(point), "{carrier:?}, {point}: {message}");
            assert_eq!(said["next"], "Yes.", "{carrier:?}, {point}: {said}");
        }
    }
}

#[test]
fn a_panic_of_the_sidecars_own_ends_it_with_a_reason_and_another_one_works() {
    for point in ["sidecar.read", "sidecar.write"] {
        let (_server, home) = answering();
        let Some(script) = hazard(&home, Carrier::Sidecar, "panic_in_sidecar", &json!({})) else {
            return;
        };
        // The second passing: the first is the hello, or an event that opening the session brings.
        let said = script
            .env("AGENT_SMITH_FAILPOINT", &format!("{point}@2=panic"))
            .run_on_terminal()
            .remove(0);
        assert_eq!(
            (&said["failed"]["kind"], &said["failed"]["code"]),
            (&json!("internal"), &json!("sidecar_died")),
            "{point}: {said}"
        );
        let message = said["failed"]["message"].as_str().unwrap();
        assert!(
            message.contains("status 1") && message.contains(point),
            "{point}: {message}"
        );
        assert_eq!(said["next"], "Yes.", "{point}: {said}");
    }
}

#[test]
fn a_poll_can_be_interrupted_by_the_hosts_own_means() {
    for carrier in CARRIERS {
        let (_server, home) = answering();
        let Some(script) = hazard(&home, carrier, "interrupt", &json!({})) else {
            return;
        };
        let mut lua = script.start();
        assert_eq!(lua.next().unwrap()["polling"], true);
        // It may not be in the poll yet: a signal before it would be another test.
        std::thread::sleep(Duration::from_millis(100));
        kill_process(Pid::from_raw(lua.pid()).unwrap(), Signal::INT).unwrap();
        let said = lua.next().unwrap();
        assert_eq!(said["ok"], false, "{carrier:?}: {said}");
        assert_eq!(said["err"], "interrupted", "{carrier:?}");
        assert!(said["took"].as_f64().unwrap() < 2.0, "{carrier:?}: {said}");
        assert_eq!(lua.end(), (Some(0), String::new()), "{carrier:?}");
    }
}

#[test]
fn what_a_caller_gets_wrong_is_told_the_same_through_both() {
    let mut told = Vec::new();
    for carrier in CARRIERS {
        let (_server, home) = answering();
        let Some(script) = hazard(&home, carrier, "misuse", &json!({})) else {
            return;
        };
        told.push(script.run().remove(0));
    }
    assert_eq!(told[0], told[1]);
    insta::assert_snapshot!(
        "bridge_misuse",
        serde_json::to_string_pretty(&sorted(&told[0])).unwrap()
    );
}

/// The same with its members in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[test]
fn a_host_that_leaves_in_the_middle_takes_its_tools_along() {
    for carrier in CARRIERS {
        let server = MockServer::start();
        // A tool that does not listen to TERM.
        let command = "trap '' TERM; env | grep -a NONCE > nonce; echo up; while :; do sleep 0.1; done";
        server.answer(Answer::calls(&[("c1", "bash", json!({ "command": command }))]));
        let home = Home::with_server(&server.url());
        let Some(script) = hazard(&home, carrier, "leave", &json!({})) else {
            return;
        };
        let mut lua = script.start();
        assert_eq!(lua.next().unwrap()["leaving"], true);
        let left = Instant::now();
        let nonce = std::fs::read_to_string(home.project().join("nonce")).unwrap();
        let nonce = nonce.trim().split('=').nth(1).unwrap().to_owned();
        assert_eq!(lua.end(), (Some(0), String::new()), "{carrier:?}");
        wait_until("the tool is gone", || carriers(&nonce).is_empty());
        assert!(
            left.elapsed() < Duration::from_secs(3),
            "{carrier:?}: it took {:?}",
            left.elapsed()
        );
    }
}

#[test]
fn a_dead_sidecar_is_an_error_and_never_the_death_of_its_host() {
    let (_server, home) = answering();
    let Some(script) = hazard(&home, Carrier::Sidecar, "dead_sidecar", &json!({})) else {
        return;
    };
    let said = script.run().remove(0);
    for op in ["submit", "again", "poll"] {
        assert_eq!(said[op]["code"], "sidecar_died", "{said}");
    }
    assert_eq!(said["close"]["ok"], true);
}

#[test]
fn a_sidecar_that_dies_in_the_middle_of_a_line_is_an_error() {
    let (_server, home) = answering();
    let dying = r#"read hello; echo '{"id":1,"ok":{"protocol":1}}'; sleep 0.2; echo gone >&2; exit 9"#;
    let more = json!({"command": "sh", "sidecar": {"command": "sh", "args": ["-c", dying]}});
    let Some(script) = hazard(&home, Carrier::Sidecar, "dead_in_the_middle", &more) else {
        return;
    };
    let said = script.run().remove(0);
    assert_eq!(said["submit"]["code"], "sidecar_died", "{said}");
    let message = said["submit"]["message"].as_str().unwrap();
    assert!(message.contains("status 9") && message.contains("gone"), "{message}");
}

#[test]
fn a_sidecar_that_does_not_read_blocks_nobody() {
    let (_server, home) = answering();
    let more = json!({"sidecar": {"answer_ms": 300}});
    let Some(script) = hazard(&home, Carrier::Sidecar, "stopped_sidecar", &more) else {
        return;
    };
    let said = script.run().remove(0);
    // That it comes back at all is the point: a blocked write never would. How soon is the machine's business.
    assert_eq!(said["submit"]["code"], "sidecar_stuck", "{said}");
}

#[test]
fn an_interrupt_in_the_middle_of_a_line_spoils_no_later_one() {
    let (_server, home) = answering();
    let Some(script) = hazard(&home, Carrier::Sidecar, "interrupted_line", &json!({})) else {
        return;
    };
    let said = script.run().remove(0);
    assert_eq!(said, json!({"err": "interrupted", "status": true, "input": 1_000_000}));
}

#[test]
fn a_missing_or_foreign_program_is_told_clearly() {
    for (command, args, code, words) in [
        (
            "/nowhere/agent-smith",
            json!(["serve"]),
            "sidecar_missing",
            "/nowhere/agent-smith",
        ),
        ("cat", json!({}), "unreadable", "cat"),
        ("false", json!({}), "sidecar_died", "status 1"),
    ] {
        let (_server, home) = answering();
        let more = json!({"sidecar": {"command": command, "args": args, "start_ms": 2000}});
        let Some(script) = hazard(&home, Carrier::Sidecar, "no_session", &more) else {
            return;
        };
        let said = script.run().remove(0);
        assert_eq!(said["code"], code, "{said}");
        assert!(said["message"].as_str().unwrap().contains(words), "{said}");
    }
}
