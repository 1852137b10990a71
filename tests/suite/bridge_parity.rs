//! The same scenarios through every carrier: the module in a Lua process, the sidecar with its pure-Lua client, and
//! `exec --json`. The events are the same, and so is what is kept.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use agent_smith_core::protocol::order::OrderCheck;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, transcript};
use crate::support::lua::{CARRIERS, Carrier, Script};
use crate::support::masked::{masked, readable, without_times};
use crate::support::mock_server::MockServer;

/// What a run showed and kept.
#[derive(Debug, PartialEq)]
struct Played {
    events: Vec<Value>,
    records: String,
}

impl Played {
    #[track_caller]
    fn of(home: &Home, events: &[Value]) -> Self {
        let mut order = OrderCheck::default();
        for event in events {
            order.next(&serde_json::from_value(event.clone()).unwrap()).unwrap();
        }
        Self {
            events: masked(home, events),
            records: without_times(&transcript(&home.messages())),
        }
    }
}

/// Something that happens on the server's side when an event is seen.
type OnEvent = fn(&MockServer, &Value);

/// A scenario: what the server answers, what the user has configured, and what the client does.
struct Scenario {
    name: &'static str,
    server: fn() -> MockServer,
    config: Value,
    steps: Value,
    on_event: OnEvent,
}

impl Scenario {
    fn home(&self, server: &MockServer) -> Home {
        let home = Home::new();
        let mut config =
            json!({"default_model": "mock", "llm_config": {"api_url": server.url(), "retry_backoff_ms": [1]}});
        config
            .as_object_mut()
            .unwrap()
            .extend(self.config.as_object().unwrap().clone());
        home.configure(&config);
        std::fs::write(home.project().join("notes.txt"), "first\nsecond\n").unwrap();
        home
    }

    /// Through a Lua process.
    #[track_caller]
    fn lua(&self, carrier: Carrier) -> Option<Played> {
        let server = (self.server)();
        let home = self.home(&server);
        let mut lua = Script::new(&home, carrier, "scenario", &json!({"steps": self.steps}))?.start();
        let mut events = Vec::new();
        while let Some(mut line) = lua.next() {
            if line.get("event").is_some() {
                let event = line["event"].take();
                (self.on_event)(&server, &event);
                events.push(event);
            } else {
                assert_eq!(line["answer"]["ok"], true, "{line}");
            }
        }
        assert_eq!(lua.end(), (Some(0), String::new()));
        Some(Played::of(&home, &events))
    }

    /// Through one `exec --json` a prompt.
    #[track_caller]
    fn exec(&self, prompts: &[&str], mut meanwhile: Meanwhile) -> Played {
        let server = (self.server)();
        let home = self.home(&server);
        let mut events = Vec::new();
        for prompt in prompts {
            let mut command = home.command(["exec", "--json", prompt]);
            if let Meanwhile::Type(..) = meanwhile {
                command.arg("--steer").stdin(Stdio::piped());
            }
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take();
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
                if event["type"] == "turn_result" {
                    continue;
                }
                match meanwhile {
                    Meanwhile::Interrupt(kind) if event["type"] == kind => kill_process(pid, Signal::INT).unwrap(),
                    Meanwhile::Type(kind, line) if event["type"] == kind => {
                        writeln!(stdin.as_mut().unwrap(), "{line}").unwrap();
                        meanwhile = Meanwhile::Nothing;
                    }
                    _ => {}
                }
                (self.on_event)(&server, &event);
                events.push(event);
            }
            child.wait().unwrap();
        }
        Played::of(&home, &events)
    }

    /// All Lua carriers show and keep what `reference` did; and a person can read it.
    #[track_caller]
    fn assert_same(&self, reference: &Played, left_out: &[&str]) {
        for carrier in CARRIERS {
            let Some(mut played) = self.lua(carrier) else { return };
            played
                .events
                .retain(|event| !left_out.iter().any(|kind| event["type"] == *kind));
            assert_eq!(
                readable(&played.events),
                readable(&reference.events),
                "{} through {carrier:?}",
                self.name
            );
            assert_eq!(&played, reference, "{} through {carrier:?}", self.name);
        }
        insta::with_settings!({filters => vec![(r"\b[0-9a-f]{12}\b", "<hash>")]}, {
            insta::assert_snapshot!(format!("bridge_{}", self.name), readable(&reference.events));
        });
    }
}

/// What the user of an `exec` does when an event of this type is seen.
#[derive(Clone, Copy)]
enum Meanwhile {
    Nothing,
    Interrupt(&'static str),
    /// Once.
    Type(&'static str, &'static str),
}

fn nothing(_: &MockServer, _: &Value) {}

fn line(text: &str) -> Value {
    json!({"do": "submit", "args": {"line": text}})
}

fn wait(kind: &str) -> Value {
    json!({ "wait": kind })
}

#[test]
fn tools() {
    let scenario = Scenario {
        name: "tools",
        server: || {
            let server = MockServer::start();
            server
                .answer(Answer::calls(&[
                    ("c1", "read", json!({"path": "notes.txt"})),
                    ("c2", "bash", json!({"command": "echo one; echo two; exit 3"})),
                ]))
                .answer(Answer::calls(&[(
                    "c3",
                    "write",
                    json!({"path": "new.txt", "content": "é\n"}),
                )]))
                .answer(
                    Answer::sse()
                        .thinking("Well.")
                        .text("All ")
                        .text("done: ☕")
                        .finish("stop")
                        .usage(30, 7)
                        .done(),
                );
            server
        },
        config: json!({}),
        steps: json!([line("Look around."), wait("input_settled")]),
        on_event: nothing,
    };
    scenario.assert_same(&scenario.exec(&["Look around."], Meanwhile::Nothing), &[]);
}

#[test]
fn retry() {
    let scenario = Scenario {
        name: "retry",
        server: || {
            let server = MockServer::start();
            server.answer(Answer::error(503, "busy")).answer(Answer::says("Now."));
            server
        },
        config: json!({}),
        steps: json!([line("Try."), wait("input_settled")]),
        on_event: nothing,
    };
    scenario.assert_same(&scenario.exec(&["Try."], Meanwhile::Nothing), &[]);
}

#[test]
fn cancel() {
    let scenario = Scenario {
        name: "cancel",
        server: || {
            let server = MockServer::start();
            server.answer(Answer::calls(&[
                ("c1", "bash", json!({"command": "echo started; sleep 1000"})),
                ("c2", "bash", json!({"command": "echo never"})),
            ]));
            server
        },
        config: json!({}),
        steps: json!([line("Run."), wait("tool_output_delta"), {"do": "cancel"}, wait("input_settled")]),
        on_event: nothing,
    };
    scenario.assert_same(
        &scenario.exec(&["Run."], Meanwhile::Interrupt("tool_output_delta")),
        &[],
    );
}

#[test]
fn budget() {
    let scenario = Scenario {
        name: "budget",
        server: || {
            let server = MockServer::start();
            server.answer_with(|_| Answer::calls(&[("c1", "bash", json!({"command": "echo again"}))]));
            server
        },
        config: json!({"tool_step_budget": 2}),
        steps: json!([line("Go on for ever."), wait("input_settled")]),
        on_event: nothing,
    };
    scenario.assert_same(&scenario.exec(&["Go on for ever."], Meanwhile::Nothing), &[]);
}

#[test]
fn failure() {
    let scenario = Scenario {
        name: "failure",
        server: || {
            let server = MockServer::start();
            server.answer(Answer::error(401, "no such key"));
            server
        },
        config: json!({}),
        steps: json!([line("Try."), wait("input_settled")]),
        on_event: nothing,
    };
    scenario.assert_same(&scenario.exec(&["Try."], Meanwhile::Nothing), &[]);
}

#[test]
fn two_conversations() {
    let scenario = Scenario {
        name: "two_conversations",
        server: || {
            let server = MockServer::start();
            server.answer(Answer::says("One.")).answer(Answer::says("Two."));
            server
        },
        config: json!({}),
        steps: json!([
            line("one"),
            wait("input_settled"),
            line("/new"),
            wait("input_settled"),
            line("two"),
            wait("input_settled"),
        ]),
        on_event: nothing,
    };
    // The command is typed in a shell only, where lines are counted on.
    let mut reference = scenario.exec(&["one", "two"], Meanwhile::Nothing);
    reference.events.retain(|event| event["type"] != "input_settled");
    scenario.assert_same(&reference, &["command_output", "input_settled"]);
}

#[test]
fn steering() {
    let scenario = Scenario {
        name: "steering",
        server: || {
            let server = MockServer::start();
            server
                .answer(
                    Answer::sse()
                        .text("First ")
                        .gate("typed")
                        .text("this.")
                        .tool_call(0, "c1", "bash", r#"{"command":"echo tool"}"#)
                        .finish("tool_calls")
                        .usage(10, 5)
                        .done(),
                )
                .answer(Answer::says("Then that."));
            server
        },
        config: json!({}),
        steps: json!([
            line("Do this."),
            wait("llm_text_delta"),
            line("And that."),
            wait("input_queued"),
            wait("input_settled"),
        ]),
        on_event: |server, event| {
            if event["type"] == "input_queued" {
                server.gate("typed").open();
            }
        },
    };
    let typing = Meanwhile::Type("llm_text_delta", "And that.");
    scenario.assert_same(&scenario.exec(&["Do this."], typing), &[]);
}
