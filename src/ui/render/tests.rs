use super::*;
use crate::error::{AgentError, ErrorKind};
use crate::message::Usage;
use crate::protocol::{CallOutcome, MutationState, NoticeLevel, RequestFinish};
use proptest::prelude::*;
use serde_json::Map;

fn term(cols: u16) -> TermInfo {
    TermInfo {
        cols,
        rows: 10,
        colors: 256,
        is_tty: true,
        ..TermInfo::default()
    }
}

fn renderer(cols: u16) -> Renderer {
    Renderer::for_client(&term(cols), &|_| None, &protocol::Theme::default()).unwrap()
}

fn event(ts: u64, kind: EventKind) -> Event {
    Event {
        kind,
        ts,
        turn_id: Some("t".into()),
        source_role: None,
        job_id: None,
    }
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    let text = || prop_oneof![any::<String>(), "[a-z`*#> -]{0,30}\n?"];
    let call = || prop_oneof![Just("a".to_owned()), Just("b".to_owned())];
    let error = || text().prop_map(|text| AgentError::new(ErrorKind::Tool, "x", text.clone()).with_hint(text));
    prop_oneof![
        8 => text().prop_map(|text| EventKind::LlmTextDelta { text }),
        2 => text().prop_map(|text| EventKind::LlmThinkingDelta { text }),
        1 => Just(EventKind::LlmTextWasThinking {}),
        1 => Just(EventKind::LlmRequestStarted { round: 1, attempt: 1, model: String::new() }),
        1 => Just(EventKind::LlmRequestCompleted(RequestFinish {
            round: 1, finish: None, finish_raw: None, tool_calls: 0, usage: None, duration_ms: 0,
        })),
        1 => (call(), text()).prop_map(|(call_id, name)| EventKind::LlmToolCallDetected { call_id, name }),
        2 => (call(), text(), text()).prop_map(|(call_id, name, arguments)| EventKind::ToolExecutionStarted {
            call_id, name, arguments,
        }),
        2 => (call(), text()).prop_map(|(call_id, text)| EventKind::ToolOutputDelta { call_id, text, skipped: 0 }),
        2 => (call(), text(), any::<bool>(), error()).prop_map(|(call_id, content, ok, error)| {
            EventKind::ToolExecutionFinished(ToolFinish {
                outcome: CallOutcome { call_id, name: content.clone(), mutation_state: MutationState::Unknown },
                ok,
                content_chars: 0,
                metadata: Map::from_iter([("diff".to_owned(), content.clone().into())]),
                content,
                error: Some(error),
                duration_ms: 1,
            })
        }),
        1 => error().prop_map(|error| EventKind::LlmRetryScheduled { attempt: 1, max: 2, delay_ms: 5, error }),
        1 => (text(), text()).prop_map(|(text, hint)| EventKind::Notice {
            level: NoticeLevel::Warn, text, hint: Some(hint),
        }),
        1 => (text(), text()).prop_map(|(text, choice)| EventKind::Question {
            id: String::new(), text, choices: vec![choice], default: None,
        }),
        1 => text().prop_map(|text| EventKind::CommandOutput { command: text.clone(), text, ok: false, value: None }),
        1 => text().prop_map(|text| EventKind::InputQueued { text, queued: 1 }),
        1 => text().prop_map(|role| EventKind::TurnStarted {
            conversation_id: String::new(), role, model: String::new(), input: String::new(),
        }),
        1 => error().prop_map(|error| EventKind::TurnFailed(TurnEnd {
            stop_reason: StopReason::Error, text: String::new(), rounds: 1, tool_calls: 0,
            usage: Usage { requests: 1, ..Usage::default() }, error: Some(error), duration_ms: 1,
        })),
    ]
}

/// The text of a piece without the styles; what else is in it that could act on a terminal is a failure.
fn bare(ansi: &str) -> Result<String, TestCaseError> {
    let mut out = String::new();
    let mut rest = ansi;
    while let Some((text, after)) = rest.split_once("\x1b[") {
        out.push_str(text);
        let end = after
            .find(|c: char| !(c.is_ascii_digit() || c == ';'))
            .unwrap_or(after.len());
        prop_assert_eq!(&after[end..=end], "m");
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    prop_assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{:?}", out);
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn any_events_at_all_give_whole_harmless_lines_that_fit(
        kinds in prop::collection::vec((any_kind(), 0u64..200, prop::option::of(Just("worker"))), 0..30),
        cols in 20u16..60,
    ) {
        let mut renderer = renderer(cols);
        let mut now = 0;
        for (kind, wait, child) in kinds {
            now += wait;
            let mut event = event(now, kind);
            event.source_role = child.map(str::to_owned);
            let mut chunks = renderer.on_event(&event);
            chunks.extend(renderer.tick(now + wait));
            for chunk in chunks {
                let text = bare(&chunk.ansi)?;
                prop_assert_eq!(text.ends_with('\n'), !chunk.transient, "{:?}", text);
                if chunk.transient {
                    prop_assert!(text.split('\n').count() <= 8);
                }
                for line in text.split('\n') {
                    prop_assert!(crate::ui::text::width(line) <= usize::from(cols), "{:?}", line);
                }
            }
        }
    }

    #[test]
    fn what_stays_does_not_depend_on_how_the_text_came(text in "([a-z`*#>. -]{0,12}\n?){0,20}", size in 1usize..9) {
        let log = |pieces: Vec<String>| {
            let mut renderer = renderer(30);
            let mut log = String::new();
            let texts = pieces.into_iter().map(|text| EventKind::LlmTextDelta { text });
            let end = EventKind::InputSettled { inputs: 1, closing: false };
            for (kind, ts) in texts.chain([end]).zip(0u64..) {
                let chunks = renderer.on_event(&event(20 * ts, kind));
                log.extend(chunks.into_iter().filter(|chunk| !chunk.transient).map(|chunk| chunk.ansi));
            }
            log
        };
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(size).map(|piece| piece.iter().collect()).collect();
        prop_assert_eq!(log(pieces), log(vec![text]));
    }
}
