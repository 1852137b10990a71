//! What showing an answer costs while it streams in: 20,000 pieces of 4 characters. The bound is 100 ms for the whole
//! answer, whatever it consists of, through the Markdown stream and through the renderer.
//!
//! `cargo bench --bench ui`

use agent_smith_core::protocol::{Event, EventKind, TermInfo, Theme};
use agent_smith_core::ui::markdown::{MarkdownOptions, MarkdownStream};
use agent_smith_core::ui::render::Renderer;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench"
)]
unsafe extern "C" {}

fn main() {
    divan::main();
}

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

#[divan::bench(args = KINDS)]
fn markdown_stream(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let text = document(kind);
    bencher.bench(|| {
        let mut stream = MarkdownStream::new(MarkdownOptions {
            width: 100,
            ..MarkdownOptions::default()
        });
        let lines: usize = pieces(&text).map(|piece| stream.push(piece).len()).sum();
        lines + stream.finish().len()
    });
}

/// The same with a picture of the unfinished block after every piece, as no renderer asks for it.
#[divan::bench(args = KINDS, sample_count = 10)]
fn preview_of_every_piece(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let text = document(kind);
    bencher.bench(|| {
        let mut stream = MarkdownStream::new(MarkdownOptions {
            width: 100,
            ..MarkdownOptions::default()
        });
        pieces(&text)
            .map(|piece| stream.push(piece).len() + stream.preview().len())
            .sum::<usize>()
    });
}

/// A piece each five milliseconds: 200 a second, as a fast server sends them.
#[divan::bench(args = KINDS)]
fn renderer(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let term = TermInfo {
        cols: 100,
        rows: 40,
        colors: 256,
        is_tty: true,
        ..TermInfo::default()
    };
    let text = document(kind);
    let events: Vec<Event> = pieces(&text)
        .zip(0u64..)
        .map(|(piece, at)| Event {
            kind: EventKind::LlmTextDelta { text: piece.to_owned() },
            ts: 5 * at,
            turn_id: Some("t".to_owned()),
            source_role: None,
            job_id: None,
        })
        .collect();
    bencher.bench(|| {
        let Ok(mut renderer) = Renderer::for_client(&term, &|_| None, &Theme::default()) else {
            return 0;
        };
        events.iter().map(|event| renderer.on_event(event).len()).sum::<usize>()
    });
}
