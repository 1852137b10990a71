//! Breaks styled text into lines of at most a given width.
//!
//! Breaks are taken at blanks and around wide (East Asian) characters; a word longer than a line is broken where it must
//! be. Nothing but the blanks at a break is lost.

use unicode_segmentation::UnicodeSegmentation;

use crate::ui::line::Span;
use crate::ui::text;

/// Wide characters that do not start a line: closing brackets and points.
const NOT_FIRST: &str = "、。，．！？：；）」』】》〉〕］｝”’…ー";

/// Wraps `spans` to `width` cells (at least 1). A line break in a span's text is kept. The result has at least one line.
#[must_use]
pub fn wrap(spans: &[Span], width: usize) -> Vec<Vec<Span>> {
    let mut wrapper = Wrapper {
        width: width.max(1),
        lines: Vec::new(),
        line: Vec::new(),
        line_width: 0,
        blanks: Vec::new(),
        blanks_width: 0,
        word: Vec::new(),
        word_width: 0,
        after_wide: false,
    };
    for span in spans {
        wrapper.push_span(span);
    }
    wrapper.flush_word();
    wrapper.end_line();
    wrapper.lines
}

/// Cuts `spans` hard at `width` cells: for code, where blanks matter. The result has at least one line.
#[must_use]
pub fn chop(spans: &[Span], width: usize) -> Vec<Vec<Span>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut room = width;
    for span in spans {
        let mut rest = span.text.as_str();
        while !rest.is_empty() {
            let (end, used) = take(rest, room, room == width);
            if end == 0 {
                lines.push(std::mem::take(&mut line));
                room = width;
                continue;
            }
            push_piece(&mut line, span, &rest[..end]);
            room = room.saturating_sub(used);
            rest = &rest[end..];
        }
    }
    lines.push(line);
    lines
}

/// What of `text` fits into `room`; on an empty line at least one character, or the text would never end.
fn take(text: &str, room: usize, line_is_empty: bool) -> (usize, usize) {
    match text::fit(text, room) {
        (0, _) if line_is_empty => {
            let first = text.graphemes(true).next().unwrap_or_default();
            (first.len(), text::width(first))
        }
        fit => fit,
    }
}

fn push_piece(line: &mut Vec<Span>, span: &Span, piece: &str) {
    match line.last_mut() {
        Some(last) if last.style == span.style && last.link == span.link => last.text.push_str(piece),
        _ => line.push(Span {
            text: piece.to_owned(),
            style: span.style,
            link: span.link.clone(),
        }),
    }
}

struct Wrapper<'a> {
    width: usize,
    lines: Vec<Vec<Span>>,
    line: Vec<Span>,
    line_width: usize,
    /// Blanks seen since the last word; they vanish at a break.
    blanks: Vec<(&'a Span, &'a str)>,
    blanks_width: usize,
    /// The word being read; it may run over several spans.
    word: Vec<(&'a Span, &'a str)>,
    word_width: usize,
    /// The last character was a wide one.
    after_wide: bool,
}

impl<'a> Wrapper<'a> {
    fn push_span(&mut self, span: &'a Span) {
        let mut rest = span.text.as_str();
        while !rest.is_empty() {
            let (blank, at) = match rest.as_bytes()[0] {
                b'\n' => {
                    self.flush_word();
                    self.end_line();
                    rest = &rest[1..];
                    continue;
                }
                b' ' => (true, rest.find(|c| c != ' ')),
                _ => (false, rest.find([' ', '\n'])),
            };
            let (piece, after) = rest.split_at(at.unwrap_or(rest.len()));
            rest = after;
            if blank {
                self.flush_word();
                self.blanks.push((span, piece));
                self.blanks_width += piece.len();
            } else if piece.is_ascii() {
                if self.after_wide && piece.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                    self.flush_word();
                }
                self.after_wide = false;
                self.word.push((span, piece));
                self.word_width += piece.len();
            } else {
                self.push_wide(span, piece);
            }
        }
    }

    /// Around a wide character a line may be broken, unless what follows may not start one.
    fn push_wide(&mut self, span: &'a Span, piece: &'a str) {
        for grapheme in piece.graphemes(true) {
            let cells = text::width(grapheme);
            let is_wide = cells > 1;
            if (is_wide || self.after_wide) && !NOT_FIRST.contains(grapheme) {
                self.flush_word();
            }
            self.word.push((span, grapheme));
            self.word_width += cells;
            self.after_wide = is_wide;
        }
    }

    fn flush_word(&mut self) {
        self.after_wide = false;
        if self.word.is_empty() {
            return;
        }
        if self.line_width + self.blanks_width + self.word_width > self.width && self.line_width > 0 {
            self.end_line();
        }
        // Blanks at the start of a line are dropped, but those that open the text are ours to keep out as well.
        if self.line_width > 0 {
            for (span, piece) in std::mem::take(&mut self.blanks) {
                push_piece(&mut self.line, span, piece);
            }
            self.line_width += self.blanks_width;
        }
        self.blanks.clear();
        self.blanks_width = 0;
        for (span, piece) in std::mem::take(&mut self.word) {
            let mut rest = piece;
            while !rest.is_empty() {
                let room = self.width.saturating_sub(self.line_width);
                let (end, used) = take(rest, room, self.line_width == 0);
                if end == 0 {
                    self.lines.push(std::mem::take(&mut self.line));
                    self.line_width = 0;
                    continue;
                }
                push_piece(&mut self.line, span, &rest[..end]);
                self.line_width += used;
                rest = &rest[end..];
            }
        }
        self.word_width = 0;
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.line_width = 0;
        self.blanks.clear();
        self.blanks_width = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::theme::Element;
    use proptest::prelude::*;

    fn span(text: &str) -> Span {
        Span::new(text, Element::Text)
    }

    fn lines(spans: &[Span], width: usize) -> Vec<String> {
        let lines = wrap(spans, width);
        lines
            .iter()
            .map(|line| line.iter().map(|span| span.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn words_stay_whole_even_over_several_styles() {
        let spans = [span("one tw"), Span::new("o-three", Element::Strong), span(" four")];
        assert_eq!(lines(&spans, 9), ["one", "two-three", "four"]);
        assert_eq!(lines(&[span("a  b")], 9), ["a  b"]);
        assert_eq!(lines(&[span("a\n\nb")], 9), ["a", "", "b"]);
        assert_eq!(lines(&[], 9), [""]);
    }

    #[test]
    fn what_cannot_stay_whole_is_broken() {
        assert_eq!(lines(&[span("go abcdefghij")], 4), ["go", "abcd", "efgh", "ij"]);
        assert_eq!(lines(&[span("日本語です。")], 5), ["日本", "語で", "す。"]);
        assert_eq!(lines(&[span("日")], 1), ["日"]);
        let code = chop(&[span("  a b")], 3);
        assert_eq!(code.len(), 2);
        assert_eq!(code[0][0].text, "  a");
    }

    proptest! {
        #[test]
        fn only_blanks_are_lost_and_every_line_fits(
            parts in prop::collection::vec("[a-z 日é。👍\u{301}]{0,12}", 0..6), width in 2usize..20,
        ) {
            let spans: Vec<Span> = parts.iter().map(|part| span(part)).collect();
            let wrapped = lines(&spans, width);
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&wrapped.concat()), bare(&parts.concat()));
            for line in wrapped {
                prop_assert!(text::width(&line) <= width, "{line:?}");
            }
            let chopped = chop(&spans, width);
            let text: String = chopped.iter().flatten().map(|span| span.text.as_str()).collect();
            prop_assert_eq!(text, parts.concat());
        }
    }
}
