//! The head of a command file: lines of `key: value` between two lines of `---`.
//!
//! This is not YAML, on purpose. The values are single lines of text, and what people write there (`argument-hint:
//! [path] [depth]`, `description: Review: the diff`) is no YAML; a YAML reader would refuse files that every user
//! takes for right. What YAML would make of one line in quotes holds here too.

/// The entries of a head, and the text after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrontMatter<'a> {
    /// Key, value and the line it stands in (from 1), in the order they were written.
    pub entries: Vec<(&'a str, String, usize)>,
    /// What follows.
    pub body: &'a str,
}

/// What is wrong with a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, as part of a sentence.
    pub problem: String,
}

/// Takes a file apart; a file that does not begin with `---` has no head.
pub(super) fn parse(text: &str) -> Result<FrontMatter<'_>, Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries: Vec<(&str, String, usize)> = Vec::new();
    let mut rest = match cut_line(text) {
        ("---", rest) => rest,
        _ => return Ok(FrontMatter { entries, body: text }),
    };
    let mut number = 1;
    loop {
        number += 1;
        let malformed = |problem: String| Err(Malformed { line: number, problem });
        if rest.is_empty() {
            return malformed("the head that `---` opens is not closed by a second `---`".to_owned());
        }
        let (line, after) = cut_line(rest);
        rest = after;
        let trimmed = line.trim();
        if line == "---" {
            return Ok(FrontMatter { entries, body: rest });
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let Some((key, value)) = trimmed.split_once(':') else {
            return malformed(format!("`{trimmed}` is not `key: value`"));
        };
        let (key, value) = (key.trim_end(), value.trim());
        if line.starts_with([' ', '\t', '-']) || key.is_empty() || key.contains(char::is_whitespace) {
            return malformed(format!("`{trimmed}` is not `key: value`; values are one line of text"));
        }
        if matches!(value, "|" | ">" | "|-" | ">-") {
            return malformed(format!("`{key}` must be one line of text"));
        }
        if entries.iter().any(|(other, ..)| *other == key) {
            return malformed(format!("`{key}` stands twice"));
        }
        entries.push((key, unquote(value), number));
    }
}

/// The first line without its end, and what follows.
fn cut_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim_end(), rest)
}

fn unquote(value: &str) -> String {
    let inside = |quote: char| {
        let inside = value.strip_prefix(quote)?.strip_suffix(quote)?;
        (value.len() >= 2).then_some(inside)
    };
    if let Some(text) = inside('\'') {
        return text.replace("''", "'");
    }
    match inside('"') {
        Some(text) => text.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_they_are_written() {
        let text = "---\r\n# a remark\r\nargument-hint: [path] [depth]\r\ndescription: Review: the \"diff\"\r\nmodel: 'a''b'\r\nx: \"q\\\"\"\r\n\r\n---\r\nBody\r\n---\r\n";
        let parsed = parse(text).unwrap();
        let entries: Vec<(&str, &str)> = parsed
            .entries
            .iter()
            .map(|(key, value, _)| (*key, value.as_str()))
            .collect();
        assert_eq!(
            entries,
            [
                ("argument-hint", "[path] [depth]"),
                ("description", "Review: the \"diff\""),
                ("model", "a'b"),
                ("x", "q\""),
            ]
        );
        assert_eq!(parsed.body, "Body\r\n---\r\n");
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        for text in ["Do it.\n", "", "----\nx", "a\n---\n"] {
            assert_eq!(
                parse(text).unwrap(),
                FrontMatter {
                    entries: Vec::new(),
                    body: text
                }
            );
        }
        assert_eq!(parse("\u{feff}---\n---\nx").unwrap().body, "x");
    }

    #[test]
    fn what_is_malformed_is_told_with_its_line() {
        for (text, line, problem) in [
            (
                "---\na: 1\n",
                3,
                "the head that `---` opens is not closed by a second `---`",
            ),
            ("---\nhello\n---\n", 2, "`hello` is not `key: value`"),
            (
                "---\na:\n  - b: c\n---\n",
                3,
                "`- b: c` is not `key: value`; values are one line of text",
            ),
            ("---\na: |\n---\n", 2, "`a` must be one line of text"),
            ("---\na: 1\na: 2\n---\n", 3, "`a` stands twice"),
        ] {
            let malformed = parse(text).unwrap_err();
            assert_eq!(
                (malformed.line, malformed.problem.as_str()),
                (line, problem),
                "{text:?}"
            );
        }
    }
}
