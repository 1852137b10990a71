//! What a user sees: events through the renderer onto the screen of a terminal.

use std::num::NonZeroU16;

use agent_smith_core::error::{AgentError, ErrorKind};
use agent_smith_core::message::Usage;
use agent_smith_core::protocol::{
    CallOutcome, Event, EventKind, MutationState, NoticeLevel, RequestFinish, StopReason, TermInfo, Theme, ToolFinish,
    TurnEnd,
};
use agent_smith_core::role::ROLES;
use agent_smith_core::ui::lines::role_name;
use agent_smith_core::ui::render::{RenderChunk, Renderer, erase};
use serde_json::json;

/// A client with a terminal: it erases the transient piece before it writes anything else, and nothing more.
struct Screen {
    renderer: Renderer,
    parser: vt100::Parser,
    transient: String,
    /// Everything permanent, as it would stand in a file.
    log: String,
    now: u64,
    /// Pieces of both kinds.
    chunks: (usize, usize),
}

impl Screen {
    fn new(cols: u16, rows: u16, colors: u32, vars: &[(&str, &str)]) -> Self {
        let term = TermInfo {
            cols,
            rows,
            colors,
            is_tty: true,
            ..TermInfo::default()
        };
        Self::of(&term, vars)
    }

    fn of(term: &TermInfo, vars: &[(&str, &str)]) -> Self {
        let var = |name: &str| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let size = |cells: u16| NonZeroU16::new(cells).unwrap();
        Self {
            renderer: Renderer::for_client(term, &var, &Theme::default()).unwrap(),
            parser: vt100::Parser::new(size(term.rows), size(term.cols), 1000),
            transient: String::new(),
            log: String::new(),
            now: 1_000_000,
            chunks: (0, 0),
        }
    }

    fn write(&mut self, chunk: &RenderChunk) {
        let mut bytes = erase(&self.transient);
        bytes.push_str(&chunk.ansi);
        if chunk.transient {
            self.transient.clone_from(&chunk.ansi);
            self.chunks.1 += 1;
        } else {
            assert!(chunk.ansi.ends_with('\n'), "{chunk:?}");
            self.transient.clear();
            self.log.push_str(&chunk.ansi);
            self.chunks.0 += 1;
        }
        // The terminal is in raw mode.
        self.parser.process(bytes.replace('\n', "\r\n").as_bytes());
    }

    fn send_from(&mut self, source_role: Option<&str>, kind: EventKind) {
        let event = Event {
            kind,
            ts: self.now,
            turn_id: Some("t1".to_owned()),
            source_role: source_role.map(str::to_owned),
            job_id: source_role.map(|_| "j1".to_owned()),
        };
        for chunk in self.renderer.on_event(&event) {
            self.write(&chunk);
        }
    }

    fn send(&mut self, kind: EventKind) {
        self.send_from(None, kind);
    }

    fn wait(&mut self, ms: u64) {
        self.now += ms;
        if let Some(chunk) = self.renderer.tick(self.now) {
            self.write(&chunk);
        }
    }

    /// The screen's rows down to the last one with something on it.
    fn shows(&self) -> String {
        let contents = self.parser.screen().contents();
        contents
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    }

    fn start(&mut self) {
        self.send(EventKind::TurnStarted {
            conversation_id: "c".into(),
            role: "direct".into(),
            model: "m".into(),
            input: "hi".into(),
        });
        self.request();
    }

    fn request(&mut self) {
        self.send(EventKind::LlmRequestStarted {
            round: 1,
            attempt: 1,
            model: "m".into(),
        });
    }

    fn text(&mut self, text: &str) {
        self.send(EventKind::LlmTextDelta { text: text.into() });
    }

    fn complete(&mut self) {
        self.send(EventKind::LlmRequestCompleted(RequestFinish {
            round: 1,
            finish: Some("stop".into()),
            finish_raw: None,
            tool_calls: 0,
            usage: None,
            duration_ms: 1,
        }));
    }

    fn tool(&mut self, id: &str, command: &str) {
        self.send(EventKind::ToolExecutionStarted {
            call_id: id.into(),
            name: "bash".into(),
            arguments: json!({ "command": command }).to_string(),
        });
    }

    fn tool_done(&mut self, id: &str, ok: bool, content: &str) {
        let error = (!ok).then(|| AgentError::new(ErrorKind::Tool, "exit_code", "The command failed."));
        self.send(EventKind::ToolExecutionFinished(ToolFinish {
            outcome: CallOutcome {
                call_id: id.into(),
                name: "bash".into(),
                mutation_state: MutationState::None,
            },
            ok,
            content: content.into(),
            content_chars: content.len(),
            error,
            duration_ms: 2300,
            metadata: json!({"command": "x", "exit_code": i32::from(!ok)})
                .as_object()
                .cloned()
                .unwrap(),
        }));
    }

    fn end(&mut self, stop_reason: StopReason, error: Option<AgentError>) {
        let end = TurnEnd {
            stop_reason,
            text: String::new(),
            rounds: 2,
            tool_calls: 1,
            usage: Usage {
                prompt_tokens: 1500,
                completion_tokens: 80,
                requests: 2,
                ..Usage::default()
            },
            error,
            duration_ms: 5600,
        };
        self.send(match stop_reason {
            StopReason::Error => EventKind::TurnFailed(end),
            _ => EventKind::TurnCompleted(end),
        });
    }
}

#[test]
fn a_turn_from_the_first_spinner_to_the_last_count() {
    let mut screen = Screen::new(50, 30, 256, &[]);
    screen.start();
    assert_eq!(screen.shows(), "⠋ thinking");
    screen.wait(1200);
    assert_eq!(screen.shows(), "⠹ thinking 1 s");
    screen.send(EventKind::LlmThinkingDelta {
        text: "I look at the tests first.".into(),
    });
    screen.wait(100);
    assert_eq!(screen.shows(), "⠸ thinking 1 s · I look at the tests first.");
    screen.text("Let me run ");
    assert_eq!(screen.shows(), "Smith\nLet me run");
    screen.text("the **tests**");
    assert_eq!(
        screen.shows(),
        "Smith\nLet me run",
        "a second preview within the same moment"
    );
    screen.wait(100);
    assert_eq!(screen.shows(), "Smith\nLet me run the tests");
    screen.complete();
    screen.tool("c1", "cargo test");
    screen.send(EventKind::ToolOutputDelta {
        call_id: "c1".into(),
        text: "running 3 tests\n".into(),
        skipped: 0,
    });
    screen.wait(2300);
    assert_eq!(
        screen.shows(),
        "Smith\nLet me run the tests\n\n[bash] cargo test\n⠧ bash 2 s · running 3 tests"
    );
    screen.tool_done("c1", false, "Exit code 1.\nrunning 3 tests\nboom");
    screen.request();
    screen.text("They fail:\n\n```\nboom\n");
    screen.wait(100);
    screen.text("```\n");
    screen.complete();
    screen.end(StopReason::Completed, None);
    insta::assert_snapshot!(screen.shows(), @"
    Smith
    Let me run the tests

    [bash] cargo test
      Exit code 1.
      running 3 tests
      boom
      failed · exit 1 · 2.3 s

    They fail:

      boom

    2 requests · 1.5k in · 80 out · 5.6 s
    ");
    assert_eq!(screen.transient, "");
    assert!(!screen.renderer.wants_tick());
    let (row, col) = screen.parser.screen().cursor_position();
    assert_eq!(
        (usize::from(row), col),
        (screen.shows().lines().count(), 0),
        "the prompt stands on a fresh line"
    );
}

#[test]
fn an_answer_taller_than_the_screen_ends_up_whole_in_the_scrollback() {
    let mut screen = Screen::new(20, 6, 0, &[]);
    screen.start();
    let words: Vec<String> = (0..60).map(|n| format!("word{n}")).collect();
    for word in &words {
        screen.now += 40;
        screen.text(&format!("{word} "));
    }
    screen.complete();
    screen.end(StopReason::Completed, None);
    let mut seen = String::new();
    screen.parser.screen_mut().set_scrollback(1000);
    let scrolled = screen.parser.screen().scrollback();
    for back in (1..=scrolled).rev() {
        screen.parser.screen_mut().set_scrollback(back);
        let top = screen.parser.screen().rows(0, 20).next().unwrap();
        seen.push_str(&top);
        seen.push('\n');
    }
    screen.parser.screen_mut().set_scrollback(0);
    seen.push_str(&screen.shows());
    let seen: Vec<&str> = seen
        .split_whitespace()
        .filter(|word| word.starts_with("word"))
        .collect();
    let mut unique = seen.clone();
    unique.dedup();
    for word in &words {
        assert_eq!(
            unique.iter().filter(|seen| **seen == word).count(),
            1,
            "{word} in {seen:?}"
        );
    }
}

#[test]
fn retries_say_that_what_was_shown_does_not_count() {
    let mut screen = Screen::new(60, 20, 16, &[]);
    screen.start();
    screen.text("Half an ans");
    let busy = AgentError::new(ErrorKind::Transport, "overloaded", "The server is overloaded.").retryable(true);
    screen.send(EventKind::LlmRetryScheduled {
        attempt: 1,
        max: 3,
        delay_ms: 2000,
        error: busy,
    });
    screen.wait(100);
    insta::assert_snapshot!(screen.shows(), @"
    Smith
    Half an ans

    warning: The server is overloaded. Retry 1 of 3 in 2.0 s.
    What the answer had shown so far does not count.
    ⠙ next try in 2 s
    ");
}

#[test]
fn tools_side_by_side_name_themselves() {
    let mut screen = Screen::new(40, 20, 16, &[]);
    screen.start();
    screen.complete();
    screen.tool("a", "sleep 1");
    screen.tool("b", "sleep 2");
    screen.wait(1000);
    assert_eq!(
        screen.shows(),
        "Smith\n[bash] sleep 1\n[bash] sleep 2\n⠋ bash 1 s\n⠋ bash 1 s"
    );
    screen.tool_done("b", true, "");
    screen.tool_done("a", true, "");
    assert_eq!(
        screen.shows(),
        "Smith\n[bash] sleep 1\n[bash] sleep 2\n  ok · 2.3 s\n  [bash] ok · 2.3 s"
    );
}

#[test]
fn cancelling_failing_and_running_out_are_told_apart() {
    for (reason, error, says) in [
        (StopReason::Cancelled, Some(AgentError::cancelled("turn")), "cancelled"),
        (
            StopReason::BudgetExhausted,
            Some(AgentError::new(
                ErrorKind::BudgetExhausted,
                "tool_steps",
                "The budget of 3 calls is used up.",
            )),
            "error: The budget of 3 calls is used up.",
        ),
        (
            StopReason::Error,
            Some(AgentError::new(ErrorKind::Transport, "connection", "Nobody answers.").with_hint("Start it.")),
            "error: Nobody answers.\n  Start it.",
        ),
    ] {
        let mut screen = Screen::new(60, 20, 16, &[]);
        screen.start();
        screen.text("So far");
        screen.send(EventKind::TurnCancelRequested { reason: "key".into() });
        screen.end(reason, error);
        let counts = "2 requests · 1.5k in · 80 out · 5.6 s";
        assert_eq!(screen.shows(), format!("Smith\nSo far\n\n{says}\n{counts}"));
    }
}

#[test]
fn a_notice_in_the_middle_of_an_answer_leaves_the_answer_whole() {
    let mut screen = Screen::new(40, 20, 16, &[]);
    screen.start();
    screen.text("One two");
    screen.send(EventKind::Notice {
        level: NoticeLevel::Warn,
        text: "The disk is nearly full.".into(),
        hint: None,
    });
    screen.now += 40;
    screen.text(" three");
    assert_eq!(
        screen.shows(),
        "Smith\n\nwarning: The disk is nearly full.\nOne two three"
    );
    screen.complete();
    assert!(screen.shows().ends_with("nearly full.\n\nOne two three"));
}

#[test]
fn a_childs_calls_stand_under_its_label() {
    let mut screen = Screen::new(60, 20, 16, &[]);
    screen.start();
    screen.complete();
    screen.tool("a", "dispatch");
    let child = Some("explorer");
    screen.send_from(child, EventKind::LlmTextDelta { text: "I think".into() });
    screen.send_from(
        child,
        EventKind::ToolExecutionStarted {
            call_id: "x".into(),
            name: "read".into(),
            arguments: r#"{"path":"src/lib.rs"}"#.into(),
        },
    );
    screen.tool_done("a", true, "Found it.");
    insta::assert_snapshot!(screen.shows(), @"
    Smith
    [bash] dispatch
    Link [read] src/lib.rs
      Found it.
      [bash] ok · 2.3 s
    ");
    for spec in &ROLES {
        assert_eq!(role_name(spec.name), spec.label);
    }
}

#[test]
fn escape_sequences_of_models_and_tools_do_nothing() {
    let mut screen = Screen::new(60, 20, 1 << 24, &[("TERM", "xterm-kitty")]);
    screen.start();
    screen.text("a\x1b[2J\x1b]0;title\x07b [l](https://x.org/\x1b[3J)\n\n");
    screen.tool("c", "echo \x1b[5;5Hx\x1bc");
    screen.send(EventKind::ToolOutputDelta {
        call_id: "c".into(),
        text: "\x1b[?1049hx\n".into(),
        skipped: 0,
    });
    screen.wait(200);
    screen.tool_done("c", true, "\x1b[?1049h\x1b[10;10Hout\x1b]52;c;AA==\x07\u{9b}2J");
    screen.send(EventKind::CommandOutput {
        command: "x".into(),
        text: "`\x1b[2J`".into(),
        ok: true,
        value: None,
    });
    assert!(!screen.parser.screen().alternate_screen());
    insta::assert_snapshot!(screen.shows(), @"
    Smith
    a^[[2J^[]0;title^Gb [l](https://x.org/^[[3J)

    [bash] echo ^[[5;5Hx^[c
      out2J
      ok · 2.3 s

    ^[[2J
    ");
    // Only styles and the one link were ever sent.
    let mut left = screen.log.as_str();
    while let Some(at) = left.find('\x1b') {
        left = &left[at + 1..];
        assert!(
            left.starts_with('[') || left.starts_with("]8;;") || left.starts_with('\\'),
            "{left:?}"
        );
        if let Some(sequence) = left.strip_prefix('[') {
            let end = sequence.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap();
            assert_eq!(&sequence[end..=end], "m", "{left:?}");
        }
    }
}

#[test]
fn without_a_terminal_there_are_only_plain_permanent_lines() {
    let pipe = TermInfo::default();
    let dumb = TermInfo {
        is_tty: true,
        colors: 256,
        ..TermInfo::default()
    };
    for (term, vars) in [(&pipe, &[][..]), (&dumb, &[("TERM", "dumb")])] {
        let mut screen = Screen::of(term, vars);
        screen.start();
        screen.wait(500);
        screen.text("# Head\n\n`code` and more");
        screen.wait(500);
        screen.complete();
        screen.end(StopReason::Completed, None);
        assert_eq!(screen.chunks.1, 0);
        assert!(!screen.log.contains('\x1b'));
        insta::allow_duplicates! {
            insta::assert_snapshot!(screen.log, @"
            Smith
            # Head

            `code` and more

            2 requests · 1.5k in · 80 out · 5.6 s
            ");
        }
    }
}

#[test]
fn no_color_keeps_attributes_and_sends_no_colour() {
    let mut screen = Screen::new(60, 20, 256, &[("NO_COLOR", "1")]);
    screen.start();
    screen.text("**bold**\n\n");
    assert_eq!(screen.log, "\x1b[1mSmith\x1b[0m\n\x1b[1mbold\x1b[0m\n");
}

#[test]
fn a_new_width_holds_from_then_on() {
    let mut screen = Screen::new(60, 20, 0, &[]);
    screen.start();
    screen.text("one two three four five");
    let chunks = screen.renderer.resize(12, 20);
    assert_eq!(chunks.len(), 1);
    assert_eq!(chunks[0].ansi, "one two\nthree four\nfive");
}

#[test]
fn frames_are_few_and_an_idle_session_has_none() {
    let mut screen = Screen::new(60, 20, 0, &[]);
    assert!(!screen.renderer.wants_tick());
    screen.start();
    let before = screen.chunks.1;
    for _ in 0..1000 {
        screen.wait(1);
    }
    let frames = screen.chunks.1 - before;
    assert!((5..=10).contains(&frames), "{frames} frames in a second");
    screen.end(StopReason::Completed, None);
    let idle = screen.chunks;
    screen.wait(10_000);
    assert_eq!(screen.chunks, idle);
}
