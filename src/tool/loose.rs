//! Finding a text that is there but written otherwise: with other blanks, quotes, dashes or line ends.
//!
//! Both texts are brought into one plain form in which each byte knows where it came from. A single match in that form
//! is what was meant. Of the place it matched, only what `old` and `new` differ in is changed: everything else keeps
//! its own blanks, quotes and line ends.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Longest text that is searched this way, in bytes: its plain form takes five times as much.
const MAX_BYTES: usize = 4 << 20;

/// A text in its plain form.
struct Plain {
    text: String,
    /// For each byte of `text`, where in the original its character starts; and the original's end.
    origin: Vec<u32>,
}

impl Plain {
    /// `None` for what is too long.
    fn of(original: &str) -> Option<Self> {
        if original.len() > MAX_BYTES {
            return None;
        }
        let mut plain = Self {
            text: String::with_capacity(original.len()),
            origin: Vec::with_capacity(original.len() + 1),
        };
        // Where blanks began that are only worth something if text follows on the line.
        let mut blank = None;
        let mut line_start = true;
        for (at, c) in original.char_indices() {
            let at = u32::try_from(at).ok()?;
            match c {
                '\r' | '\u{feff}' | '\u{200b}'..='\u{200d}' | '\u{00ad}' => {}
                '\n' => {
                    blank = None;
                    line_start = true;
                    plain.push('\n', at);
                }
                c if c.is_whitespace() => blank = blank.or(Some(at)),
                c => {
                    if let Some(start) = blank.take()
                        && !line_start
                    {
                        plain.push(' ', start);
                    }
                    line_start = false;
                    match c {
                        '\u{2018}'..='\u{201b}' | '\u{2032}' | '`' | '\u{00b4}' => plain.push('\'', at),
                        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{00ab}' | '\u{00bb}' => plain.push('"', at),
                        '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-', at),
                        '\u{2026}' => (0..3).for_each(|_| plain.push('.', at)),
                        c => plain.push(c, at),
                    }
                }
            }
        }
        plain.origin.push(u32::try_from(original.len()).ok()?);
        Some(plain)
    }

    fn push(&mut self, c: char, at: u32) {
        self.text.push(c);
        self.origin.resize(self.text.len(), at);
    }

    fn origin(&self, at: usize) -> usize {
        self.origin[at] as usize
    }
}

/// Where `old` is in `text` apart from blanks, quotes and the like: ranges of `text`.
pub(super) fn find(text: &str, old: &str) -> Vec<Range<usize>> {
    let (Some(haystack), Some(needle)) = (Plain::of(text), Plain::of(old)) else {
        return Vec::new();
    };
    let needle = needle.text.trim_matches(['\n', ' ']);
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack.text.as_bytes(), needle.as_bytes())
        .map(|at| {
            let last = at + needle.len() - 1;
            // Up to the end of the last character, not to the start of the next one: blanks may lie between.
            let last_char = haystack.origin(last);
            let end = text[last_char..]
                .chars()
                .next()
                .map_or(text.len(), |c| last_char + c.len_utf8());
            haystack.origin(at)..end
        })
        .collect()
}

/// What has to change in `found`, the part of a text that matched `old`, so that it says `new`: ranges of `found` with
/// their new text. `None` where the indentation of `found` and of `old` differ in no clear way.
pub(super) fn changes(found: &str, old: &str, new: &str) -> Option<Vec<(Range<usize>, String)>> {
    // What `find` left out at both ends of `old` goes from `new` too, as far as it is there.
    let (old, new) = trim_alike(old, new);
    let found_lines = lines_of(found);
    let old_lines: Vec<&str> = old.split('\n').collect();
    let new_lines: Vec<&str> = new.split('\n').collect();
    if found_lines.len() != old_lines.len() {
        return None;
    }
    let texts: Vec<&str> = found_lines.iter().map(|line| &found[line.clone()]).collect();
    let indents = Indents::of(&texts, &old_lines)?;
    let mut changes = Vec::new();
    let whole = |lines: &[&str], from_first: bool| -> String {
        let written: Vec<String> = lines
            .iter()
            .enumerate()
            // The first line of all starts within a line of the file, after its indentation.
            .map(|(n, line)| {
                if from_first && n == 0 {
                    (*line).to_owned()
                } else {
                    indents.apply(line)
                }
            })
            .collect();
        written.join("\n")
    };
    for op in capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines) {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete { old_index, old_len, .. } => {
                changes.push((
                    lines_range(&found_lines, found.len(), old_index, old_len, true),
                    String::new(),
                ));
            }
            DiffOp::Insert {
                old_index,
                new_index,
                new_len,
            } => {
                let text = whole(&new_lines[new_index..new_index + new_len], new_index == 0);
                if old_index < found_lines.len() {
                    let at = found_lines[old_index].start;
                    changes.push((at..at, text + "\n"));
                } else {
                    changes.push((found.len()..found.len(), format!("\n{text}")));
                }
            }
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } if old_len == new_len => {
                for n in 0..old_len {
                    let line = found_lines[old_index + n].clone();
                    let new = new_lines[new_index + n];
                    let new = if old_index + n == 0 {
                        new.to_owned()
                    } else {
                        indents.apply(new)
                    };
                    changes.push(within_line(found, line, old_lines[old_index + n], &new));
                }
            }
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => {
                let range = lines_range(&found_lines, found.len(), old_index, old_len, false);
                changes.push((range, whole(&new_lines[new_index..new_index + new_len], new_index == 0)));
            }
        }
    }
    Some(changes)
}

/// `old` without the blank lines and blanks around it, and `new` without as many where it has the same.
fn trim_alike<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let blank = |c: char| c.is_whitespace();
    let trimmed = old.trim_matches(blank);
    let start = old.len() - old.trim_start_matches(blank).len();
    let end = old.len() - old.trim_end_matches(blank).len();
    let (lead, tail) = (&old[..start], &old[old.len() - end..]);
    let new = new
        .strip_prefix(lead)
        .unwrap_or_else(|| new.trim_start_matches([' ', '\t']));
    let new = new.strip_suffix(tail).unwrap_or(new);
    (trimmed, new)
}

/// The lines of `text` without their ends.
fn lines_of(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for piece in text.split('\n') {
        let end = start + piece.len();
        lines.push(start..start + piece.strip_suffix('\r').unwrap_or(piece).len());
        start = end + 1;
    }
    lines
}

/// Lines `first` and the `count - 1` after it; with one of the line ends beside them, if they are to vanish.
fn lines_range(lines: &[Range<usize>], end: usize, first: usize, count: usize, vanish: bool) -> Range<usize> {
    let last = first + count - 1;
    match (vanish, lines.get(last + 1)) {
        (true, Some(next)) => lines[first].start..next.start,
        (true, None) if first > 0 => lines[first - 1].end..end,
        _ => lines[first].start..lines[last].end,
    }
}

/// The change of one line, of which what `old` and `new` begin and end with alike stays as it is.
fn within_line(found: &str, line: Range<usize>, old: &str, new: &str) -> (Range<usize>, String) {
    let (Some(here), Some(from), Some(to)) = (Plain::of(&found[line.clone()]), Plain::of(old), Plain::of(new)) else {
        return (line, new.to_owned());
    };
    if here.text != from.text {
        return (line, new.to_owned());
    }
    let (a, b) = (from.text.as_bytes(), to.text.as_bytes());
    let mut head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    while !(from.text.is_char_boundary(head) && to.text.is_char_boundary(head)) {
        head -= 1;
    }
    let most = a.len().min(b.len()) - head;
    let mut tail = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take(most)
        .take_while(|(x, y)| x == y)
        .count();
    while !(from.text.is_char_boundary(a.len() - tail) && to.text.is_char_boundary(b.len() - tail)) {
        tail -= 1;
    }
    // Neither the indentation nor blanks at the end are in the plain form. The first go with what changes at the
    // beginning, the others stay.
    let text_end = found[line.clone()].trim_end().len();
    let start = if head == 0 { 0 } else { here.origin(head).min(text_end) };
    let new_start = if head == 0 { 0 } else { to.origin(head) };
    let (end, new_end) = (here.origin(a.len() - tail).min(text_end), to.origin(b.len() - tail));
    if end < start || new_end < new_start {
        return (line, new.to_owned());
    }
    (line.start + start..line.start + end, new[new_start..new_end].to_owned())
}

/// How the indentation of `old` is written in the file.
struct Indents<'a> {
    /// Pairs of an indentation in `old` and the one in the file.
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Indents<'a> {
    /// `None` where one indentation is written in two ways.
    fn of(found: &[&'a str], old: &[&'a str]) -> Option<Self> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        // The first line starts after its indentation.
        for (found, old) in found.iter().zip(old).skip(1) {
            if old.trim().is_empty() {
                continue;
            }
            let pair = (indent_of(old), indent_of(found));
            match pairs.iter().find(|(known, _)| *known == pair.0) {
                Some((_, same)) if *same == pair.1 => {}
                Some(_) => return None,
                None => pairs.push(pair),
            }
        }
        // The longest first, so that the best known part of a deeper indentation is found.
        pairs.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Some(Self { pairs })
    }

    /// `line` as it is to be indented in the file.
    fn apply(&self, line: &str) -> String {
        let indent = indent_of(line);
        match self.pairs.iter().find(|(old, _)| indent.starts_with(old)) {
            Some((old, file)) if !line.trim().is_empty() => format!("{file}{}", &line[old.len()..]),
            _ => line.to_owned(),
        }
    }
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` after `old` was replaced, if there is one place for it.
    fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
        let [found] = &find(text, old)[..] else { return None };
        let mut result = text.to_owned();
        for (range, new) in changes(&text[found.clone()], old, new)?.into_iter().rev() {
            result.replace_range(found.start + range.start..found.start + range.end, &new);
        }
        Some(result)
    }

    #[test]
    fn only_what_differs_changes() {
        let cases = [
            // Quotes, dashes and hard blanks that are not touched stay as they are.
            (
                "say(“hi”, a) – now",
                "say(\"hi\", a) - now",
                "say(\"hi\", b) - now",
                "say(“hi”, b) – now",
            ),
            ("x\u{a0}=\u{a0}1", "x = 1", "x = 2", "x\u{a0}=\u{a0}2"),
            // Lines that stay keep their blanks and ends.
            ("a  \nb\t\nc", "a\nb\nc", "a\nB\nc", "a  \nB\t\nc"),
            ("a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc", "a\r\nx\nc\r\n"),
            ("a \nb\nc", "a\nb\nc", "a\nc", "a \nc"),
            ("a \nb", "a\nb", "a\nb\nc", "a \nb\nc"),
            ("a \nb", "a\nb", "z\na\nb", "z\na \nb"),
            ("a  \n  b", "a\nb", "ac\nb", "ac  \n  b"),
            ("  abc  \nd", "abc\nd", "a\nd", "  a  \nd"),
        ];
        for (text, old, new, expected) in cases {
            assert_eq!(replaced(text, old, new).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn new_lines_are_indented_as_the_file_is() {
        let text = "fn f() {\n\tif a {\n\t\tb();\n\t}\n}\n";
        let old = "    if a {\n        b();\n    }";
        let new = "    if a {\n        b();\n        c();\n            d();\n    }";
        let expected = "fn f() {\n\tif a {\n\t\tb();\n\t\tc();\n\t\t    d();\n\t}\n}\n";
        assert_eq!(replaced(text, old, new).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_not_clear_is_not_found() {
        assert_eq!(find("a  b\na b", "a\tb").len(), 2);
        assert_eq!(find("abc", "   \n").len(), 0);
        assert_eq!(find("abc", "abd").len(), 0);
        // One indentation of `old` that the file writes in two ways.
        assert_eq!(changes("a\n  b\n    c", "a\n b\n c", "a\n b\n d"), None);
    }
}
