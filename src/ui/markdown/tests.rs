use super::*;
use crate::ui::line::{described, plain};
use proptest::prelude::*;
use pulldown_cmark::Event;

fn options(width: usize) -> MarkdownOptions {
    MarkdownOptions {
        width,
        ..MarkdownOptions::default()
    }
}

fn shown(document: &str, width: usize) -> String {
    plain(&render(document, options(width)))
}

/// Everything a document holds that is not markup, without white space: what must be found on the screen.
fn text_of(document: &str) -> String {
    let mut out = String::new();
    for event in Parser::new_ext(document, super::options()) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) => out.push_str(&text::sanitize(&text)),
            Event::InlineHtml(html) if !html.starts_with("<br") => out.push_str(&text::sanitize(&html)),
            Event::FootnoteReference(label) => out.push_str(&format!("[^{label}]")),
            _ => {}
        }
    }
    squeezed(&out)
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn content(lines: &[Line]) -> String {
    let text: String = lines.iter().map(Line::content).collect();
    squeezed(&text)
}

/// Lays out without ever cutting: what cutting must not change.
fn uncut(document: &str, options: MarkdownOptions) -> Vec<Line> {
    layout::layout(document, &Resume::default(), &Definitions::default(), &options).lines
}

#[test]
fn blocks_of_every_kind() {
    let document = "\
# Title *here*
Some `code`, **bold**, ~~old~~ and [a link](https://example.org/x).
Soft break; hard\\
break.

## Lists
- one
- two
  - deep
    1. deeper
- [x] done
- [ ] open

7) seven
8) eight

   more of eight

> quoted
> > twice
>
> still

```rust
fn main() {}
\tlet x = 1;
```

| Name | Value |
|:-----|------:|
| a    |     1 |
| long name | 22 |

---
<div>html</div>

[^1]: A note.
";
    insta::assert_snapshot!(shown(document, 40), @r#"
    Title here

    Some code, bold, old and a link
    (https://example.org/x). Soft break;
    hard
    break.

    Lists

    • one
    • two
      ◦ deep
        1. deeper
    • [x] done
    • [ ] open

    7) seven
    8) eight

       more of eight

    │ quoted
    │ │ twice
    │
    │ still

      rust
      fn main() {}
          let x = 1;

    Name      │ Value
    ──────────┼──────
    a         │     1
    long name │    22

    ────────────────────────────────────────

    <div>html</div>

    [^1]: A note.
    "#);
}

#[test]
fn styles_are_those_of_the_elements() {
    let document = "## A *b*\n\n- x `y`\n\n> **q**\n";
    insta::assert_snapshot!(described(&render(document, options(40))), @"
    <md.heading2>A </><md.heading2/md.emphasis>b</>

    <md.list_marker>•</> x <text/md.code>y</>

    <md.quote_bar>│ </><text/md.quote/md.strong>q</>
    ");
}

#[test]
fn without_styles_the_marks_stay() {
    let ascii = MarkdownOptions {
        width: 30,
        unicode: false,
        hyperlinks: false,
        marks: true,
    };
    let lines = render("# A\n\n- `x`\n\n> q\n\n|a|b|\n|-|-|\n|1|2|\n", ascii);
    insta::assert_snapshot!(plain(&lines), @"
    # A

    - `x`

    | q

    a | b
    --+--
    1 | 2
    ");
    assert!(plain(&lines).is_ascii());
}

#[test]
fn links_are_followed_where_the_terminal_can() {
    let linked = MarkdownOptions {
        hyperlinks: true,
        ..options(40)
    };
    let lines = render(
        "[a](https://x.org) [b](javascript:x) <https://y.org> ![i](p.png)",
        linked,
    );
    assert_eq!(plain(&lines), "a b (javascript:x) https://y.org [image:\ni] (p.png)");
    let links: Vec<_> = lines[0].spans.iter().filter_map(|span| span.link.as_deref()).collect();
    assert_eq!(links, ["https://x.org", "https://y.org"]);
}

#[test]
fn escape_sequences_in_a_document_never_reach_the_terminal() {
    let evil = "a\x1b[2J `b\x07` [c](http://x/\x1b]0;t\x07)\n\n```\x1b]52;c;AA==\x07\n\x1b[31m\r\n```\n\n|\x1b[1m|\n|-|\n|\u{9b}A|\n\n[d]: http://\u{1b}[5m\n";
    let everything = MarkdownOptions {
        hyperlinks: true,
        ..options(30)
    };
    for line in render(evil, everything) {
        let bytes = line.ansi(&crate::ui::theme::Theme::plain());
        assert!(!bytes.chars().any(char::is_control), "{bytes:?}");
    }
}

#[test]
fn finished_lines_come_once_and_early() {
    let mut stream = MarkdownStream::new(options(40));
    assert_eq!(plain(&stream.push("Hello")), "");
    assert_eq!(plain(&stream.preview()), "Hello");
    assert_eq!(plain(&stream.push(" world.\n")), "");
    assert_eq!(plain(&stream.push("\n```sh\n")), "Hello world.\n\n  sh");
    assert_eq!(plain(&stream.push("ls\npw")), "  ls");
    assert_eq!(plain(&stream.preview()), "  pw");
    assert_eq!(plain(&stream.push("d\n```\n")), "  pwd");
    assert!(stream.is_empty());
    assert_eq!(plain(&stream.push("1. a\n1. b\n")), "\n1. a");
    assert_eq!(plain(&stream.push("\n   ```\n   x\n")), "2. b\n\n     x");
    assert_eq!(plain(&stream.push("   ```\n1. c")), "");
    assert_eq!(plain(&stream.finish()), "3. c");
}

#[test]
fn a_link_is_resolved_by_what_came_before_and_definitions_are_shown() {
    assert_eq!(
        shown("[x]: http://e.org 'T'\n\nsee [X] and [y]\n\n[y]: http://late.org\n", 60),
        "[x]: http://e.org \"T\"\n\nsee X (http://e.org) and [y]\n\n[y]: http://late.org"
    );
}

#[test]
fn a_table_that_does_not_fit_is_wrapped_and_then_listed() {
    let document = "| name | what it does |\n|---|---|\n| alpha | a rather long text |\n";
    insta::assert_snapshot!(shown(document, 20), @"
    name  │ what it does
    ──────┼─────────────
    alpha │ a rather
          │ long text
    ");
    insta::assert_snapshot!(shown(document, 8), @"
    name
    what it
    does
    ---
    alpha
    a rather
    long
    text
    ---
    ");
}

#[test]
fn deep_nesting_and_endless_lines_are_survived() {
    let deep = format!("{}x\n", "> ".repeat(3000));
    assert_eq!(content(&render(&deep, options(20))), "x");
    let lists: String = (0..300)
        .map(|depth| format!("{}- {depth}\n", "  ".repeat(depth)))
        .collect();
    assert_eq!(content(&render(&lists, options(20))), text_of(&lists));
    let endless = "word ".repeat(20_000);
    let mut stream = MarkdownStream::new(options(80));
    assert!(stream.push(&endless).is_empty());
    assert!(stream.preview().len() < 40);
    assert_eq!(stream.finish().len(), 1250);
}

/// Documents made of pieces that matter to block structure, so that random ones are not all paragraphs.
fn document() -> impl Strategy<Value = String> {
    let indent = prop_oneof![4 => Just(""), 1 => Just(" "), 2 => Just("  "), 2 => Just("   "), 1 => Just("    "),
        1 => Just("      "), 2 => Just("> "), 1 => Just(">"), 1 => Just("> > "), 1 => Just("  > "), 1 => Just(">   "), 1 => Just("\t")];
    let start = prop_oneof![6 => Just(""), 3 => Just("- "), 1 => Just("* "), 2 => Just("1. "), 1 => Just("12) "),
        1 => Just("- [ ] "), 2 => Just("# "), 1 => Just("### "), 1 => Just("- - "), 1 => Just("-   "), 1 => Just("1. ```")];
    let body = prop_oneof![
        4 => "[a-z]{1,6}( [a-z*_`~é日]{1,5}){0,6}",
        2 => Just(String::new()),
        1 => Just("```".to_owned()), 1 => Just("```rs".to_owned()), 1 => Just("~~~~".to_owned()),
        1 => Just("---".to_owned()), 1 => Just("===".to_owned()),
        1 => Just("| a | *b* |".to_owned()), 1 => Just("|---|:-:|".to_owned()),
        1 => Just("<div>".to_owned()), 1 => Just("<!-- x".to_owned()), 1 => Just("a <br> b <i>c</i>".to_owned()),
        1 => Just("**bold** `co  de` [l](http://x.y)".to_owned()),
        1 => Just("[^1]: foot".to_owned()), 1 => Just("[!NOTE]".to_owned()), 1 => Just("\x1b[31m".to_owned()),
    ];
    let line = (indent, start, body).prop_map(|(indent, start, body)| format!("{indent}{start}{body}\n"));
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn any_split_gives_the_same_lines(text in document(), cuts in prop::collection::vec(0usize..400, 0..12)) {
        let whole = render(&text, options(24));
        let mut stream = MarkdownStream::new(options(24));
        let mut lines = Vec::new();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            lines.extend(stream.push(&text[pair[0]..pair[1]]));
            let _ = stream.preview();
        }
        lines.extend(stream.finish());
        prop_assert_eq!(plain(&lines), plain(&whole));
        prop_assert_eq!(lines, whole);
    }

    #[test]
    fn cutting_changes_nothing(text in document()) {
        // Definitions are shown at the end of the piece they came in.
        let definitions = Definitions::default();
        prop_assume!(parser(&text, &definitions).reference_definitions().iter().next().is_none());
        let whole = uncut(&text, options(24));
        let cut = render(&text, options(24));
        prop_assert_eq!(plain(&cut), plain(&whole), "{}", text);
        prop_assert_eq!(cut, whole);
    }

    #[test]
    fn nothing_is_lost_and_every_line_fits(text in document(), width in 8usize..60) {
        let lines = render(&text, options(width));
        prop_assert_eq!(content(&lines), text_of(&text), "{}", plain(&lines));
        for line in lines {
            prop_assert!(line.width() <= width, "{:?}", line.plain());
        }
    }

    #[test]
    fn any_bytes_at_all_are_taken(pieces in prop::collection::vec(any::<String>(), 0..6)) {
        let mut stream = MarkdownStream::new(options(10));
        for piece in pieces {
            stream.push(&piece);
            let _ = stream.preview();
        }
        stream.finish();
    }
}
