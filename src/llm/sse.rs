//! Framing of an event stream: bytes as they were read become lines, wherever the reads cut them.
//!
//! Ours and not a kept crate: those yield whole events of the standard's kind only, and servers need more than the
//! standard. A field named `error:` carries an error, comments tell that the server lives, events that lack the blank
//! line between them or the line end at the very end must still arrive, and invalid UTF-8 in one line must not end the
//! stream. So this room hands out *lines*, and `reader` makes events of them.
//!
//! A line ends with LF, CR or CRLF and nothing else; a byte order mark before the first line is dropped.

use memchr::{memchr, memchr2};

/// One line of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A blank line: the end of an event.
    End,
    /// A comment: the server is alive.
    Comment,
    /// `name: value`, the space after the colon dropped.
    Field {
        /// The field's name.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// A line that has no colon and is no known field: no event stream at all, or a broken one.
    Bare(&'a [u8]),
}

/// Cuts a stream into lines. Bytes of a line that has not ended yet are kept; each is looked at once only, so that a
/// line of many megabytes in small reads costs no more than its length.
#[derive(Debug, Default)]
pub struct LineFramer {
    held: Vec<u8>,
    after_cr: bool,
    bom: Bom,
}

/// How much of a byte order mark was seen.
#[derive(Debug, Default, PartialEq, Eq)]
enum Bom {
    #[default]
    Expected,
    Passed,
}

const BOM: &[u8] = "\u{feff}".as_bytes();

impl LineFramer {
    /// A framer at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and calls `on_line` for each line that ends in them. Stops at the first error of `on_line`.
    pub fn push<E>(&mut self, bytes: &[u8], mut on_line: impl FnMut(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut rest = bytes;
        if self.bom == Bom::Expected {
            match self.skip_bom(rest) {
                Some(after) => rest = after,
                None => return Ok(()),
            }
            // Bytes held back while the mark was in doubt belong to the first line.
            if !self.held.is_empty() {
                let mut joined = std::mem::take(&mut self.held);
                joined.extend_from_slice(rest);
                return self.lines(&joined, &mut on_line);
            }
        }
        self.lines(rest, &mut on_line)
    }

    /// The end of the stream: a last line without a line end is a line.
    pub fn finish<E>(&mut self, mut on_line: impl FnMut(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        on_line(classify(&held))
    }

    /// What has come of a line that has not ended.
    #[must_use]
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    fn lines<E>(&mut self, mut rest: &[u8], on_line: &mut impl FnMut(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(at);
            rest = &tail[1..];
            if tail[0] == b'\r' {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if self.held.is_empty() {
                on_line(classify(line))?;
            } else {
                let mut whole = std::mem::take(&mut self.held);
                whole.extend_from_slice(line);
                let outcome = on_line(classify(&whole));
                whole.clear();
                self.held = whole;
                outcome?;
            }
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// What follows the byte order mark, or `None` while it is still in doubt.
    fn skip_bom<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let seen = self.held.len();
        let wanted = &BOM[seen..];
        let common = wanted.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if common == wanted.len() {
            self.bom = Bom::Passed;
            self.held.clear();
            return Some(&bytes[common..]);
        }
        if common == bytes.len() {
            self.held.extend_from_slice(bytes);
            return None;
        }
        self.bom = Bom::Passed;
        Some(bytes)
    }
}

/// What kind of line it is.
fn classify(line: &[u8]) -> Line<'_> {
    if line.is_empty() {
        return Line::End;
    }
    match memchr(b':', line) {
        Some(0) => Line::Comment,
        Some(colon) => {
            let value = &line[colon + 1..];
            Line::Field {
                name: &line[..colon],
                value: value.strip_prefix(b" ").unwrap_or(value),
            }
        }
        None if matches!(line, b"data" | b"event" | b"id" | b"retry") => Line::Field { name: line, value: b"" },
        None => Line::Bare(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of `bytes`, pushed in pieces cut at `cuts`, written down.
    fn lines(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut out = Vec::new();
        let mut framer = LineFramer::new();
        let mut note = |line: Line<'_>| -> Result<(), ()> {
            out.push(match line {
                Line::End => "-".to_owned(),
                Line::Comment => ":".to_owned(),
                Line::Field { name, value } => {
                    format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
                }
                Line::Bare(line) => format!("?{}", String::from_utf8_lossy(line)),
            });
            Ok(())
        };
        let mut from = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            let cut = cut.clamp(from, bytes.len());
            framer.push(&bytes[from..cut], &mut note).unwrap();
            from = cut;
        }
        framer.finish(&mut note).unwrap();
        out
    }

    #[test]
    fn all_three_line_ends_and_no_other() {
        let text = "data: a\n\ndata:b\r\n\r\ndata: c\r\r: note\ndata: d\u{2028}e\u{85}f\nplain\nevent\n".as_bytes();
        assert_eq!(
            lines(text, &[]),
            [
                "data=a",
                "-",
                "data=b",
                "-",
                "data=c",
                "-",
                ":",
                "data=d\u{2028}e\u{85}f",
                "?plain",
                "event="
            ]
        );
    }

    #[test]
    fn a_line_feed_after_a_cut_belongs_to_the_return_before_it() {
        assert_eq!(
            lines(b"data: a\r\n\r\ndata: b\r\n\r\n", &[8, 10, 19]),
            ["data=a", "-", "data=b", "-"]
        );
    }

    #[test]
    fn a_mark_is_dropped_once_at_the_start_and_bytes_like_it_are_kept() {
        assert_eq!(lines("\u{feff}data: x\n".as_bytes(), &[1, 2]), ["data=x"]);
        assert_eq!(lines("\u{feff}".as_bytes(), &[1]), Vec::<String>::new());
        assert_eq!(lines(b"\xef\xbbdata: x\n", &[1])[0], "\u{fffd}data=x");
        assert_eq!(lines(b"a: 1\n\xef\xbb\xbfdata: x\n", &[]), ["a=1", "\u{feff}data=x"]);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(lines(b"data: [DONE]", &[3]), ["data=[DONE]"]);
    }

    proptest! {
        /// Where the reads cut never matters.
        #[test]
        fn cuts_do_not_matter(
            parts in prop::collection::vec(
                prop::sample::select(vec!["data: x", "\n", "\r", "\r\n", ":", "é", "\u{feff}", "event", " ", "東"]), 0..40),
            cuts in prop::collection::vec(0usize..120, 0..12),
        ) {
            let text = parts.concat();
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(lines(text.as_bytes(), &cuts), lines(text.as_bytes(), &[]));
        }
    }
}
