//! Dotted paths: how a key of the configuration is named in a command, a message and a document.
//!
//! `llm_config.models."a/b:c".temperature` names four segments. A segment that holds a dot, a colon, a quote, a
//! backslash or white space is written in double quotes, with `\"` and `\\` inside; any other segment may be quoted
//! too. [`DottedPath`] parses every spelling and displays the shortest one.

use std::fmt;

use thiserror::Error;

/// A text that is no dotted path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a key: {problem} at character {position}")]
pub struct PathError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
    /// Where, counted in characters from 1.
    pub position: usize,
}

/// A key of the configuration as its segments; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DottedPath(Vec<String>);

impl DottedPath {
    /// The path of these segments; `None` for no segment or an empty one.
    #[must_use]
    pub fn from_segments<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Option<Self> {
        let segments: Vec<String> = segments.into_iter().map(Into::into).collect();
        (!segments.is_empty() && segments.iter().all(|segment| !segment.is_empty())).then_some(Self(segments))
    }

    /// Reads a path as a person types it.
    ///
    /// # Errors
    /// When a segment is empty, a quote is not closed, or something other than a dot follows one.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let fail = |problem, position| {
            Err(PathError {
                text: text.to_owned(),
                problem,
                position: position + 1,
            })
        };
        let mut segments = Vec::new();
        let text_end = text.trim().chars().count();
        let mut chars = text.trim().chars().enumerate().peekable();
        loop {
            let mut segment = String::new();
            let start = chars.peek().map_or(text_end, |(at, _)| *at);
            if chars.next_if(|(_, c)| *c == '"').is_some() {
                let mut closed = false;
                while let Some((at, c)) = chars.next() {
                    match c {
                        '"' => {
                            closed = true;
                            break;
                        }
                        '\\' => match chars.next() {
                            Some((_, c @ ('"' | '\\'))) => segment.push(c),
                            _ => return fail("only \\\" and \\\\ may follow a backslash", at),
                        },
                        c => segment.push(c),
                    }
                }
                if !closed {
                    return fail("the quote is not closed", start);
                }
            } else {
                while let Some((at, c)) = chars.next_if(|(_, c)| *c != '.') {
                    if c == '"' {
                        return fail("a quote must stand at the start of a segment", at);
                    }
                    segment.push(c);
                }
            }
            if segment.is_empty() {
                return fail("a segment is empty", start);
            }
            segments.push(segment);
            match chars.next() {
                None => return Ok(Self(segments)),
                Some((_, '.')) => {}
                Some((at, _)) => return fail("a dot must follow the closing quote", at),
            }
        }
    }

    /// Its segments, unquoted.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for DottedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.0))
    }
}

/// The dotted spelling of `segments`, quoted where it must be.
#[must_use]
pub fn join<S: AsRef<str>>(segments: &[S]) -> String {
    let mut text = String::new();
    for segment in segments {
        if !text.is_empty() {
            text.push('.');
        }
        let segment = segment.as_ref();
        let plain = |c: char| !matches!(c, '.' | ':' | '"' | '\\') && !c.is_whitespace();
        if !segment.is_empty() && segment.chars().all(plain) {
            text.push_str(segment);
            continue;
        }
        text.push('"');
        for c in segment.chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quoted_segments_keep_their_dots_and_colons() {
        let path = DottedPath::parse(r#"llm_config.models."a/b:c.d".temperature"#).unwrap();
        assert_eq!(path.segments(), ["llm_config", "models", "a/b:c.d", "temperature"]);
        assert_eq!(path.to_string(), r#"llm_config.models."a/b:c.d".temperature"#);
        assert_eq!(DottedPath::parse(r#""index_file""#).unwrap().to_string(), "index_file");
        assert_eq!(DottedPath::parse(r#"a."x\"\\y""#).unwrap().segments()[1], r#"x"\y"#);
        // Unquoted colons are unambiguous, so they pass.
        assert_eq!(DottedPath::parse("models.a:b").unwrap().segments()[1], "a:b");
    }

    #[test]
    fn what_is_no_path_is_told_with_its_place() {
        for (text, problem, position) in [
            ("", "a segment is empty", 1),
            ("a..b", "a segment is empty", 3),
            (".a", "a segment is empty", 1),
            ("a.", "a segment is empty", 3),
            (r#"a."""#, "a segment is empty", 3),
            (r#"a."b"#, "the quote is not closed", 3),
            (r#"a."b"c"#, "a dot must follow the closing quote", 6),
            (r#"a.b"c""#, "a quote must stand at the start of a segment", 4),
            (r#"a."\n""#, "only \\\" and \\\\ may follow a backslash", 4),
        ] {
            let error = DottedPath::parse(text).unwrap_err();
            assert_eq!((error.problem, error.position), (problem, position), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_path_reads_back(segments in prop::collection::vec("\\PC{1,8}", 1..5)) {
            let path = DottedPath::from_segments(segments).unwrap();
            prop_assert_eq!(DottedPath::parse(&path.to_string()).unwrap(), path);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = DottedPath::parse(&text);
        }
    }
}
