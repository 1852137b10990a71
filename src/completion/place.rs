//! What the word at the cursor is. Spans are in bytes of the line, as UTF-8.

use std::ops::Range;

use crate::command::is_command_name;

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The name of a command.
    Command {
        /// The word with its slash: what a candidate replaces.
        span: Range<usize>,
        /// The name as far as the cursor, without the slash.
        typed: &'a str,
    },
    /// An argument of a command.
    Argument {
        /// The command, without the slash.
        command: &'a str,
        /// The arguments before this one.
        before: Vec<&'a str>,
        /// The word.
        span: Range<usize>,
        /// The word as far as the cursor.
        typed: &'a str,
    },
    /// The path of a file to attach.
    Mention {
        /// The word with its sign and its quotes.
        span: Range<usize>,
        /// The path as far as the cursor, without them.
        typed: &'a str,
    },
    /// Nothing that can be completed.
    Text,
}

/// What stands at `cursor` (in bytes; moved back to the start of a character) in `line`.
#[must_use]
pub fn place(line: &str, cursor: usize) -> Place<'_> {
    let mut cursor = cursor.min(line.len());
    while !line.is_char_boundary(cursor) {
        cursor -= 1;
    }
    let before = &line[..cursor];
    if let Some(mention) = mention(line, before) {
        return mention;
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + width(&before[at..]));
    let end = cursor + line[cursor..].find(char::is_whitespace).unwrap_or(line.len() - cursor);
    let typed = &line[start..cursor];
    let head = line.trim_start();
    let first_start = line.len() - head.len();
    let Some(after_slash) = head.strip_prefix('/') else {
        return Place::Text;
    };
    let name_end = after_slash.find(char::is_whitespace).unwrap_or(after_slash.len());
    let name = &after_slash[..name_end];
    if start == first_start && cursor > first_start {
        let typed = &typed[1..];
        return if typed.is_empty() || is_command_name(typed) {
            Place::Command {
                span: start..end,
                typed,
            }
        } else {
            Place::Text
        };
    }
    if !is_command_name(name) || cursor <= first_start + 1 + name_end {
        return Place::Text;
    }
    let arguments = &line[first_start + 1 + name_end..start];
    Place::Argument {
        command: name,
        before: arguments.split_whitespace().collect(),
        span: start..end,
        typed,
    }
}

/// The mention that is open at the end of `before`, if one is.
fn mention<'a>(line: &'a str, before: &'a str) -> Option<Place<'a>> {
    let opens = |at: usize| {
        let previous = before[..at].chars().next_back();
        previous.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | ',' | ';'))
    };
    let at = before.match_indices('@').map(|(at, _)| at).rfind(|at| opens(*at))?;
    let rest = &before[at + 1..];
    let after_cursor = &line[before.len()..];
    if let Some(path) = rest.strip_prefix('"') {
        if path.contains('"') {
            return None;
        }
        // A closing quote right after the word belongs to it.
        let word = after_cursor
            .find(|c: char| c == '"' || c.is_whitespace())
            .unwrap_or(after_cursor.len());
        let quote = usize::from(after_cursor[word..].starts_with('"'));
        return Some(Place::Mention {
            span: at..before.len() + word + quote,
            typed: path,
        });
    }
    if rest.contains(char::is_whitespace) {
        return None;
    }
    let word = after_cursor.find(char::is_whitespace).unwrap_or(after_cursor.len());
    Some(Place::Mention {
        span: at..before.len() + word,
        typed: rest,
    })
}

/// The length of the first character, in bytes.
fn width(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// How a path is mentioned: in quotes where it holds blanks.
#[must_use]
pub fn mention_text(path: &str) -> String {
    if path.contains(char::is_whitespace) {
        format!("@\"{path}\"")
    } else {
        format!("@{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The place at the `|` in a line, as words.
    fn at(marked: &str) -> String {
        let cursor = marked.find('|').unwrap();
        let line = marked.replacen('|', "", 1);
        match place(&line, cursor) {
            Place::Command { span, typed } => format!("command {typed:?} over {:?}", &line[span]),
            Place::Argument {
                command,
                before,
                span,
                typed,
            } => {
                format!("{command} {before:?} {typed:?} over {:?}", &line[span])
            }
            Place::Mention { span, typed } => format!("mention {typed:?} over {:?}", &line[span]),
            Place::Text => "text".to_owned(),
        }
    }

    #[test]
    fn the_word_at_the_cursor_is_known() {
        for (marked, place) in [
            ("/|", r#"command "" over "/""#),
            ("/mo|", r#"command "mo" over "/mo""#),
            ("  /mo|del x", r#"command "mo" over "/model""#),
            ("/config |", r#"config [] "" over """#),
            ("/config set tim|eout 5", r#"config ["set"] "tim" over "timeout""#),
            ("/config set a.b |", r#"config ["set", "a.b"] "" over """#),
            ("/etc/ho|", "text"),
            ("/etc/hosts is |", "text"),
            ("hello wor|", "text"),
            ("|/new", "text"),
            ("", "text"),
            ("see @src/é|x.rs now", r#"mention "src/é" over "@src/éx.rs""#),
            ("@|", r#"mention "" over "@""#),
            ("(@a|", r#"mention "a" over "@a""#),
            ("me@exam|", "text"),
            ("@a b|", "text"),
            ("@\"my fi|le.md\" and", r#"mention "my fi" over "@\"my file.md\"""#),
            ("@\"my file\" x|", "text"),
            ("/review @sr|", r#"mention "sr" over "@sr""#),
        ] {
            if let Some(cursor) = marked.find('|') {
                assert!(cursor < marked.len());
                assert_eq!(at(marked), place, "{marked}");
            } else {
                assert_eq!(super::place(marked, 0), Place::Text);
            }
        }
    }

    #[test]
    fn a_path_with_blanks_is_quoted() {
        assert_eq!(mention_text("a b"), "@\"a b\"");
        assert_eq!(mention_text("a/b.rs"), "@a/b.rs");
    }

    proptest! {
        #[test]
        fn spans_hold_the_cursor_and_what_was_typed(line in "[/@\" \u{3000}aé_.-]{0,16}", cursor in 0..40_usize) {
            let span = match place(&line, cursor) {
                Place::Command { span, typed } | Place::Argument { span, typed, .. } | Place::Mention { span, typed } => {
                    prop_assert!(line[span.clone()].contains(typed));
                    span
                }
                Place::Text => return Ok(()),
            };
            prop_assert!(line.is_char_boundary(span.start) && line.is_char_boundary(span.end));
            prop_assert!(span.start <= cursor.min(line.len()));
        }
    }
}
