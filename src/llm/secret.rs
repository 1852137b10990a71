//! A value that must never be shown: it has no `Display`, its `Debug` hides it, and texts can be scrubbed of it.

use std::fmt;

/// What stands in a text where a secret was.
pub(crate) const MASK: &str = "[redacted]";

/// Shorter values are not scrubbed from texts: they would take ordinary words with them, and no service issues such keys.
const SHORTEST_SCRUBBED: usize = 6;

/// A key or password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a value; white space around it (the line end of a key file) is dropped.
    #[must_use]
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().into())
    }

    /// The value itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` without the secret, also where it stands in the escaped form JSON gives it.
    #[must_use]
    pub fn scrub(&self, text: String) -> String {
        if self.0.len() < SHORTEST_SCRUBBED {
            return text;
        }
        let escaped = serde_json::to_string(&*self.0).unwrap_or_default();
        let escaped = escaped.trim_matches('"');
        let mut text = text;
        for form in [&*self.0, escaped] {
            if text.contains(form) {
                text = text.replace(form, MASK);
            }
        }
        text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

/// How keys and tokens of well-known services begin.
const TOKEN_STARTS: [&str; 12] = [
    "sk-",
    "sk_live_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "gsk_",
    "hf_",
];

/// Characters after such a beginning that make it a token and no word.
const SHORTEST_TOKEN: usize = 16;

/// `text` with everything that looks like the key of a well-known service masked.
#[must_use]
pub fn mask_tokens(text: &str) -> String {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let starts_word = before.is_none_or(|c| !is_token(c));
        let start = TOKEN_STARTS
            .iter()
            .find(|start| starts_word && rest.starts_with(**start));
        let body = start.map(|start| {
            rest[start.len()..]
                .find(|c| !is_token(c))
                .unwrap_or(rest.len() - start.len())
        });
        let (step, masked) = match (start, body) {
            (Some(start), Some(body)) if body >= SHORTEST_TOKEN => (start.len() + body, true),
            _ => (c.len_utf8(), false),
        };
        out.push_str(if masked { MASK } else { &rest[..step] });
        before = rest[..step].chars().next_back();
        rest = &rest[step..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_hidden_and_scrubbed_in_both_forms() {
        let key = Secret::new("sk-abc\"123\n");
        assert_eq!(format!("{key:?}"), "Secret(..)");
        assert_eq!(key.expose(), "sk-abc\"123");
        let text = r#"bad key sk-abc"123 in {"key":"sk-abc\"123"}"#.to_owned();
        assert_eq!(key.scrub(text), r#"bad key [redacted] in {"key":"[redacted]"}"#);
    }

    #[test]
    fn what_looks_like_a_key_is_masked_and_words_are_not() {
        assert_eq!(mask_tokens("key=sk-proj-abcdefghijklmnop;"), "key=[redacted];");
        assert_eq!(mask_tokens("\"ghp_0123456789abcdef0123\""), "\"[redacted]\"");
        for words in ["a sk-short one", "risk-abcdefghijklmnopqrstuvwxyz", "Übersk-", ""] {
            assert_eq!(mask_tokens(words), words);
        }
    }

    #[test]
    fn a_short_value_takes_no_words_along() {
        assert_eq!(Secret::new("a").scrub("banana".to_owned()), "banana");
    }
}
