//! What showing an answer costs while it streams in: 20,000 pieces of 4 characters. The bound is 100 ms of processor time
//! for the whole answer, whatever it consists of, through the Markdown stream and through the renderer.
//!
//! `cargo bench --bench ui`. Processor time, not the clock's, so that a busy machine changes little; the least of several
//! rounds.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::hint::black_box;

use agent_smith_core::protocol::{Event, EventKind, TermInfo, Theme};
use agent_smith_core::ui::markdown::{MarkdownOptions, MarkdownStream};
use agent_smith_core::ui::render::Renderer;
use rustix::time::{ClockId, clock_gettime};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench"
)]
unsafe extern "C" {}

/// How often each is measured.
const ROUNDS: usize = 20;
const PIECES: usize = 20_000;
const PIECE: usize = 4;

/// What answers consist of. The last ones are one block each, which never ends before the answer does.
const KINDS: [&str; 6] = ["mixed", "code", "list", "nested", "paragraph", "table"];

const MIXED: &str = "\
## A heading

Some *emphasised* text with `code`, a [link](https://example.org) and **more** of it, long enough to be wrapped once or
twice on a screen of a hundred columns, as answers of models tend to be.

- an item with `code`
- another item
  - a nested one
1. first
2. second

```rust
fn main() {
    println!(\"{}\", 42);
}
```

| name | value |
|------|-------|
| a    | 1     |

";

fn document(kind: &str) -> String {
    let (head, body) = match kind {
        "code" => ("```rust\n", "    let value = compute(42, \"text\"); // a comment\n"),
        "list" => ("", "- an item with `code` and **strong** text in it\n"),
        "nested" => ("1. item\n\n   ```\n", "   let value = compute(42);\n"),
        "paragraph" => ("", "words that never end and `code` in between "),
        "table" => ("| a | b |\n|---|---|\n", "| some | *text* |\n"),
        _ => ("", MIXED),
    };
    let mut text = head.to_owned();
    while text.len() < PIECES * PIECE {
        text.push_str(body);
    }
    text.truncate(PIECES * PIECE);
    text
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    (0..PIECES).map(|at| &text[at * PIECE..(at + 1) * PIECE])
}

/// The least processor time of a round, in milliseconds.
fn least(mut round: impl FnMut() -> usize) -> f64 {
    let used = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let times = (0..ROUNDS).map(|_| {
        let before = used();
        black_box(round());
        used() - before
    });
    times.fold(f64::INFINITY, f64::min)
}

fn stream() -> MarkdownStream {
    MarkdownStream::new(MarkdownOptions {
        width: 100,
        ..MarkdownOptions::default()
    })
}

fn through_the_stream(text: &str) -> usize {
    let mut stream = stream();
    let lines: usize = pieces(text).map(|piece| stream.push(piece).len()).sum();
    lines + stream.finish().len()
}

fn through_the_renderer(events: &[Event]) -> usize {
    let term = TermInfo {
        cols: 100,
        rows: 40,
        colors: 256,
        is_tty: true,
        ..TermInfo::default()
    };
    let Ok(mut renderer) = Renderer::for_client(&term, &|_| None, &Theme::default()) else {
        return 0;
    };
    events.iter().map(|event| renderer.on_event(event).len()).sum()
}

/// A piece each five milliseconds: 200 a second, as a fast server sends them.
fn events(text: &str) -> Vec<Event> {
    let event = |(piece, at): (&str, u64)| Event {
        kind: EventKind::LlmTextDelta { text: piece.to_owned() },
        ts: 5 * at,
        turn_id: Some("t".to_owned()),
        source_role: None,
        job_id: None,
    };
    pieces(text).zip(0u64..).map(event).collect()
}

fn main() {
    println!("{PIECES} pieces of {PIECE} characters, processor time");
    println!(
        "{:<10} {:>12} {:>12} {:>24}",
        "answer", "stream", "renderer", "a preview of 2 KB"
    );
    for kind in KINDS {
        let text = document(kind);
        let events = events(&text);
        let mut unfinished = stream();
        unfinished.push(text[..2048].trim_end());
        println!(
            "{kind:<10} {:>9.1} ms {:>9.1} ms {:>21.1} µs",
            least(|| through_the_stream(&text)),
            least(|| through_the_renderer(&events)),
            least(|| (0..100).map(|_| unfinished.preview().len()).sum()) * 10.0,
        );
    }
}
