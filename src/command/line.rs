//! Tells a command from a prompt, and takes a command's line apart.

/// A line that is a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLine<'a> {
    /// The name, without the slash.
    pub name: &'a str,
    /// Everything after it, without the blanks around.
    pub arguments: &'a str,
}

impl<'a> CommandLine<'a> {
    /// The command in `line`, if it is one: its first word must be a slash and a name. `/etc/hosts is wrong` is a
    /// prompt.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = word.strip_prefix('/')?;
        is_command_name(name).then(|| Self {
            name,
            arguments: rest.trim(),
        })
    }
}

/// Whether a command can be called so: letters, digits, `_` and `-`.
#[must_use]
pub fn is_command_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// The words of a command's arguments. A word in single or double quotes may hold blanks; a quote inside a word is
/// part of it, so that `don't stop` is two words.
#[must_use]
pub fn split_arguments(arguments: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = matches!(first, '"' | '\'')
            .then(|| closing_quote(&rest[1..], first))
            .flatten();
        let (word, after) = match quoted {
            Some(end) => (&rest[1..=end], &rest[end + 2..]),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Where the quote closes that opens a word: at the end of a word.
fn closing_quote(inside: &str, quote: char) -> Option<usize> {
    inside
        .match_indices(quote)
        .map(|(at, _)| at)
        .find(|at| inside[at + 1..].chars().next().is_none_or(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_slash_and_a_name_make_a_command() {
        let parsed = |line| CommandLine::parse(line).map(|command| (command.name, command.arguments));
        assert_eq!(parsed("/model  a/b:c "), Some(("model", "a/b:c")));
        assert_eq!(parsed("  /new"), Some(("new", "")));
        assert_eq!(parsed("/my-cmd_2\tx  y"), Some(("my-cmd_2", "x  y")));
        for line in [
            "/etc/hosts is wrong",
            "/",
            "/ x",
            "//",
            "/a.b",
            "hello",
            "",
            "/usr",
            "a /new",
        ] {
            let expected = (line == "/usr").then_some(("usr", ""));
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn quotes_hold_words_together() {
        for (arguments, words) in [
            ("a  b", &["a", "b"][..]),
            (r#""a b" 'c d' e"#, &["a b", "c d", "e"]),
            ("don't stop", &["don't", "stop"]),
            (r#""open end"#, &["\"open", "end"]),
            (r#""a"b c""#, &["a\"b c"]),
            (r#""" x"#, &["", "x"]),
            ("#12", &["#12"]),
            ("  ", &[]),
        ] {
            assert_eq!(split_arguments(arguments), words, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost(text in "[ab'\" é]*") {
            let words = split_arguments(&text);
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            prop_assert_eq!(letters(&words.concat()), letters(&text));
        }
    }
}
