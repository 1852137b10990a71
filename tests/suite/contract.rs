//! docs/EMBEDDING.md names every op, every event and every member of them.

use std::collections::{BTreeMap, BTreeSet};

use agent_smith_core::error::{AgentError, ErrorKind};
use agent_smith_core::message::Usage;
use agent_smith_core::protocol::{
    CallOutcome, CancelScope, Candidate, ChangedFile, Durability, EventKind, HELLO_TERM_DEFAULT, Hello, HostInfo,
    MutationState, NoticeLevel, Op, RequestFinish, SessionState, Status, StopReason, Submit, Theme, ToolFinish,
    TurnEnd, ViewCursor, Welcome,
};
use serde_json::{Map, Value, json};

fn document() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/EMBEDDING.md")).unwrap()
}

fn text() -> String {
    "x".to_owned()
}

fn usage() -> Usage {
    Usage {
        cached_tokens: Some(1),
        reasoning_tokens: Some(1),
        cost: Some(0.5),
        estimated: true,
        ..Usage::default()
    }
}

fn error() -> AgentError {
    AgentError::new(ErrorKind::Tool, "x", "x")
        .from_origin("x")
        .with_data(json!("x"))
        .with_cause(&std::fmt::Error)
        .with_hint("x")
}

fn end() -> TurnEnd {
    TurnEnd {
        stop_reason: StopReason::Completed,
        text: text(),
        rounds: 1,
        tool_calls: 1,
        usage: usage(),
        error: Some(error()),
        duration_ms: 1,
    }
}

fn outcome() -> CallOutcome {
    CallOutcome {
        call_id: text(),
        name: text(),
        mutation_state: MutationState::None,
    }
}

/// One of each, with every member there.
fn events() -> Vec<EventKind> {
    use EventKind::*;
    vec![
        TurnStarted {
            conversation_id: text(),
            role: text(),
            model: text(),
            input: text(),
        },
        PromptBuilt {
            messages: 1,
            tools: 1,
            tokens: 1,
        },
        LlmRequestStarted {
            round: 1,
            attempt: 1,
            model: text(),
        },
        LlmTextDelta { text: text() },
        LlmThinkingDelta { text: text() },
        LlmTextWasThinking {},
        LlmToolCallDetected {
            call_id: text(),
            name: text(),
        },
        LlmRequestCompleted(RequestFinish {
            round: 1,
            finish: Some(text()),
            finish_raw: Some(text()),
            tool_calls: 1,
            usage: Some(usage()),
            duration_ms: 1,
        }),
        LlmRequestCancelled { round: 1 },
        LlmRetryScheduled {
            attempt: 1,
            max: 1,
            delay_ms: 1,
            error: error(),
        },
        ToolExecutionStarted {
            call_id: text(),
            name: text(),
            arguments: text(),
        },
        ToolOutputDelta {
            call_id: text(),
            text: text(),
            skipped: 1,
        },
        ToolExecutionFinished(ToolFinish {
            outcome: outcome(),
            ok: true,
            content: text(),
            content_chars: 1,
            error: Some(error()),
            duration_ms: 1,
            metadata: Map::from_iter([(text(), json!(1))]),
        }),
        ToolExecutionCancelled(outcome()),
        DispatchCancelRequested { job: text() },
        UsageUpdated {
            turn: usage(),
            conversation: usage(),
            context_tokens: 1,
            context_window: 1,
        },
        ContextTrimmed {
            layer: text(),
            before: 1,
            after: 1,
        },
        TurnCompleted(end()),
        TurnFailed(end()),
        TurnPersisted {
            durability: Durability::Durable,
            conversation_id: text(),
        },
        TurnCancelRequested { reason: text() },
        CommandOutput {
            command: text(),
            text: text(),
            ok: true,
            value: Some(json!(1)),
        },
        Notice {
            level: NoticeLevel::Info,
            text: text(),
            hint: Some(text()),
        },
        Question {
            id: text(),
            text: text(),
            choices: vec![text()],
            default: Some(text()),
        },
        Prefill { text: text() },
        FilesChanged {
            files: vec![ChangedFile {
                path: "a".to_owned(),
                new: true,
                added: Some(1),
                removed: Some(1),
            }],
        },
        InputQueued {
            text: text(),
            queued: 1,
        },
        InputSettled {
            inputs: 1,
            closing: true,
        },
        StatusChanged {
            state: SessionState::Idle,
        },
        OpenView {
            view_id: text(),
            title: text(),
        },
        ViewFrame {
            view_id: text(),
            rows: vec![text()],
            cursor: Some(ViewCursor { row: 1, col: 1 }),
            done: true,
        },
        Render {
            ansi: text(),
            transient: true,
        },
        Notify {
            title: text(),
            body: text(),
        },
    ]
}

fn ops() -> Vec<Op> {
    let map = || Some(BTreeMap::from([(text(), json!("x"))]));
    vec![
        Op::Hello(Box::new(Hello {
            protocol: 1,
            client: text(),
            host: HostInfo::default(),
            term: HELLO_TERM_DEFAULT,
            palette: map(),
            cwd: text(),
            env: Some(BTreeMap::from([(text(), text())])),
            pid: 1,
            render: true,
        })),
        Op::Submit(Submit {
            line: text(),
            cwd: text(),
            env: BTreeMap::from([(text(), Some(text()))]),
            attachments: vec![text()],
        }),
        Op::Cancel {
            scope: CancelScope::Turn,
        },
        Op::Answer {
            question_id: text(),
            value: json!(1),
        },
        Op::Complete {
            line: text(),
            cursor: 1,
        },
        Op::Status,
        Op::Resize { cols: 1, rows: 1 },
        Op::Theme(Theme {
            palette: map(),
            styles: Some(Map::new()),
        }),
        Op::ViewKey {
            view_id: text(),
            key: text(),
        },
        Op::Close { reason: text() },
    ]
}

/// The words serde knows for a tagged enum.
fn variants<T: serde::de::DeserializeOwned>(tag: &str) -> BTreeSet<String> {
    let Err(error) = serde_json::from_value::<T>(json!({ tag: "?", "data": {} })) else {
        panic!("`?` is a variant")
    };
    let error = error.to_string();
    let known = error.split("expected one of").nth(1).unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Names of members at any depth, but not what a map of any names holds.
fn members(value: &Value, out: &mut BTreeSet<String>) {
    if let Value::Object(object) = value {
        for (name, value) in object.iter().filter(|(name, _)| *name != "x") {
            out.insert(name.clone());
            members(value, out);
        }
    }
}

/// The table rows whose first cell names `word`.
fn row<'a>(document: &'a str, word: &str) -> Option<&'a str> {
    document.lines().find(|line| {
        line.starts_with("| `")
            && line
                .split('|')
                .nth(1)
                .is_some_and(|cell| cell.contains(&format!("`{word}`")))
    })
}

#[track_caller]
fn assert_described(document: &str, word: &str, value: &Value, elsewhere: &BTreeSet<String>) {
    let row = row(document, word).unwrap_or_else(|| panic!("docs/EMBEDDING.md has no row for `{word}`"));
    let mut names = BTreeSet::new();
    members(value, &mut names);
    for name in names.difference(elsewhere) {
        let described = row.contains(&format!("`{name}`")) || row.contains(&format!("`{name}?`"));
        assert!(described, "docs/EMBEDDING.md does not tell of `{name}` in `{word}`");
    }
}

fn shared(values: &[Value]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    values.iter().for_each(|value| members(value, &mut names));
    names
}

#[test]
fn every_event_is_described_with_its_members() {
    let document = document();
    let samples: Vec<Value> = events()
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    let sampled: BTreeSet<_> = samples
        .iter()
        .map(|sample| sample["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sampled, variants::<EventKind>("type"), "the samples of this test");
    // Usage and errors have places of their own.
    for sample in &samples {
        let mut data = sample["data"].clone();
        for (name, value) in data.as_object_mut().into_iter().flatten() {
            if ["usage", "turn", "conversation", "error", "metadata"].contains(&name.as_str()) {
                *value = Value::Null;
            }
        }
        assert_described(&document, sample["type"].as_str().unwrap(), &data, &BTreeSet::new());
    }
}

#[test]
fn every_op_is_described_with_its_members() {
    let document = document();
    let samples: Vec<Value> = ops().iter().map(|op| serde_json::to_value(op).unwrap()).collect();
    let sampled: BTreeSet<_> = samples
        .iter()
        .map(|sample| sample["op"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sampled, variants::<Op>("op"), "the samples of this test");
    for sample in &samples {
        assert_described(
            &document,
            sample["op"].as_str().unwrap(),
            sample,
            &BTreeSet::from(["op".to_owned()]),
        );
    }
}

#[test]
fn answers_usage_and_errors_are_described_with_their_members() {
    let document = document();
    let usage_names = shared(&[json!(usage())]);
    let welcome = Welcome {
        protocol: 1,
        version: text(),
        capabilities: vec![],
    };
    assert_described(&document, "hello", &json!(welcome), &BTreeSet::new());
    let status = Status {
        prompt: text(),
        state: SessionState::Idle,
        role: text(),
        label: text(),
        model: text(),
        conversation_id: text(),
        queued: 1,
        usage: usage(),
        context_pct: Some(1),
        keys: BTreeMap::from([(text(), text())]),
    };
    assert_described(&document, "status", &json!(status), &usage_names);
    let candidate = Candidate {
        text: text(),
        start: 0,
        end: 0,
        display: Some(text()),
        kind: text(),
        hint: Some(text()),
    };
    assert_described(&document, "complete", &json!(candidate), &BTreeSet::new());
    for (line_start, value) in [("Usage is {", json!(usage())), ("`{kind, code, ", json!(error()))] {
        let line = document.lines().find(|line| line.starts_with(line_start)).unwrap();
        for name in shared(&[value]) {
            assert!(
                line.contains(&name),
                "docs/EMBEDDING.md does not tell of `{name}` in: {line}"
            );
        }
    }
}
