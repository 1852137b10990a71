//! What a value may be: the constraint of a row, told as a check, as words for a person and as JSON Schema.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The constraint of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A non-empty string.
    Text,
    /// The id of a model; any non-empty string.
    Model,
    /// The name of a profile; any non-empty string.
    Profile,
    /// A string that names a variable of the environment. Any non-empty string passes; one that cannot be a name is
    /// masked when shown, because it may be a key pasted in the wrong place.
    Variable,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A path below some root: no leading `/`, no `..` segment, no drive prefix.
    RelativePath,
    /// An `http` or `https` address.
    Url,
    /// The name of a key combination: `ctrl-c`, `ALT+h`.
    Combo,
    /// `true` or `false`.
    Bool,
    /// A whole number of at least this; `7.0` counts as 7.
    Integer(u64),
    /// A number in a range.
    Number(Range),
    /// A non-empty array of numbers, none negative.
    Numbers,
    /// An array of non-empty strings; may be empty.
    Texts,
    /// Header names to header values. The values may be secret and are masked when shown.
    Headers,
    /// A table whose content the schema does not know.
    Free,
}

/// Which numbers a row takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least, or the limit it must exceed.
    pub min: f64,
    /// Whether `min` itself is left out.
    pub above: bool,
    /// The greatest.
    pub max: Option<f64>,
}

/// A number that is not negative.
pub const NON_NEGATIVE: Kind = Kind::Number(Range {
    min: 0.0,
    above: false,
    max: None,
});

/// A number above zero.
pub const POSITIVE: Kind = Kind::Number(Range {
    min: 0.0,
    above: true,
    max: None,
});

/// A number in (0, 100].
pub const PERCENT: Kind = Kind::Number(Range {
    min: 0.0,
    above: true,
    max: Some(100.0),
});

impl Kind {
    /// Whether `value` satisfies it.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        let text = |test: &dyn Fn(&str) -> bool| value.as_str().is_some_and(|text| !text.is_empty() && test(text));
        match self {
            Self::Text | Self::Model | Self::Profile | Self::Variable => text(&|_| true),
            Self::Choice(choices) => text(&|text| choices.contains(&text)),
            Self::RelativePath => text(&is_safe_relative_path),
            Self::Url => text(&is_http_url),
            Self::Combo => text(&is_combo),
            Self::Bool => value.is_boolean(),
            Self::Integer(min) => whole(value).is_some_and(|number| number >= min),
            Self::Number(range) => value.as_f64().is_some_and(|number| range.holds(number)),
            Self::Numbers => value.as_array().is_some_and(|items| {
                !items.is_empty()
                    && items
                        .iter()
                        .all(|item| item.as_f64().is_some_and(|number| number >= 0.0))
            }),
            Self::Texts => value
                .as_array()
                .is_some_and(|items| items.iter().all(|item| Self::Text.accepts(item))),
            Self::Headers => value.as_object().is_some_and(|map| {
                map.iter()
                    .all(|(name, value)| is_header_name(name) && is_header_value(value))
            }),
            Self::Free => value.is_object(),
        }
    }

    /// What it takes, to stand after "must be".
    #[must_use]
    pub fn words(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Text | Self::Model | Self::Profile => "a non-empty text",
            Self::Variable => "the name of an environment variable",
            Self::Choice(choices) => {
                let quoted: Vec<String> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
                return Cow::Owned(quoted.join(" or "));
            }
            Self::RelativePath => "a relative path without `..`",
            Self::Url => "an address that starts with http:// or https://",
            Self::Combo => "a key combination such as \"ctrl-c\" or \"ALT+h\"",
            Self::Bool => "true or false",
            Self::Integer(0) => "a whole number, 0 or more",
            Self::Integer(1) => "a positive whole number",
            Self::Integer(min) => return Cow::Owned(format!("a whole number, {min} or more")),
            Self::Number(range) => return range.words(),
            Self::Numbers => "a non-empty list of numbers, none negative",
            Self::Texts => "a list of non-empty texts",
            Self::Headers => "a table of header names and their values",
            Self::Free => "a table",
        })
    }

    /// Its JSON Schema.
    #[must_use]
    pub fn json_schema(self) -> Value {
        match self {
            Self::Text | Self::Model | Self::Profile | Self::Variable => json!({"type": "string", "minLength": 1}),
            Self::Choice(choices) => json!({"enum": choices}),
            Self::RelativePath => json!({
                "type": "string",
                "minLength": 1,
                "not": {"pattern": r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\u0000"},
            }),
            Self::Url => {
                json!({"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s\u0000-\u001f\u007f][^\s\u0000-\u001f\u007f]*$"})
            }
            Self::Combo => json!({"type": "string", "pattern": r"^([A-Za-z_]+[+-])*([A-Za-z0-9_]+|[!-/:-@\[-^`{-~])$"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Integer(min) => json!({"type": "integer", "minimum": min, "maximum": u64::MAX}),
            Self::Number(range) => range.json_schema(),
            Self::Numbers => json!({"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0}}),
            Self::Texts => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
            Self::Headers => json!({
                "type": "object",
                "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
                "additionalProperties": {"type": "string", "pattern": r"^[^\u0000-\u0008\u000a-\u001f\u007f]*$"},
            }),
            Self::Free => json!({"type": "object"}),
        }
    }

    /// Whether paths may go on below it.
    #[must_use]
    pub fn is_map(self) -> bool {
        matches!(self, Self::Free | Self::Headers)
    }

    /// The values worth offering for completion; empty where they cannot be listed.
    #[must_use]
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            Self::Choice(choices) => choices,
            Self::Bool => &["true", "false"],
            _ => &[],
        }
    }
}

impl Range {
    fn holds(self, number: f64) -> bool {
        let low = if self.above {
            number > self.min
        } else {
            number >= self.min
        };
        low && self.max.is_none_or(|max| number <= max)
    }

    fn words(self) -> Cow<'static, str> {
        match (self.min, self.above, self.max) {
            (0.0, false, None) => Cow::Borrowed("a number, 0 or more"),
            (0.0, true, None) => Cow::Borrowed("a positive number"),
            (min, true, Some(max)) => Cow::Owned(format!("a number above {min} and at most {max}")),
            (min, false, Some(max)) => Cow::Owned(format!("a number from {min} to {max}")),
            (min, true, None) => Cow::Owned(format!("a number above {min}")),
            (min, false, None) => Cow::Owned(format!("a number, {min} or more")),
        }
    }

    fn json_schema(self) -> Value {
        let low = if self.above { "exclusiveMinimum" } else { "minimum" };
        let mut schema = json!({"type": "number", low: self.min});
        if let Some(max) = self.max {
            schema["maximum"] = json!(max);
        }
        schema
    }
}

/// `value` as a whole number, where it is one: 7 and 7.0, not 7.5 and not -7.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the range is checked before"
)]
pub fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&number)).then_some(number as u64)
    })
}

/// Whether `path` stays below whatever it is joined to, by its spelling. Symlinks are another matter.
fn is_safe_relative_path(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    !drive
        && !path.starts_with(['/', '\\'])
        && !path.contains('\0')
        && path.split(['/', '\\']).all(|segment| segment != "..")
}

fn is_http_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && !rest.is_empty()
        && !rest.starts_with(['/', '?', '#'])
        && !rest.contains(|c: char| c.is_whitespace() || c.is_ascii_control())
}

/// Modifiers and one key, joined by `+` or `-`; the key is a name (`h`, `F4`, `PAGE_UP`) or one sign.
fn is_combo(combo: &str) -> bool {
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let sign = |text: &str| text.len() == 1 && text.bytes().all(|b| b.is_ascii_punctuation());
    let mut rest = combo;
    while let Some(at) = rest.find(['+', '-']) {
        let (modifier, tail) = (&rest[..at], &rest[at + 1..]);
        if modifier.is_empty() || tail.is_empty() {
            break;
        }
        if !modifier.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') {
            return false;
        }
        rest = tail;
    }
    word(rest) || sign(rest)
}

/// The characters of a token in RFC 9110, section 5.6.2.
pub(in super::super) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

pub(in super::super) fn is_header_value(value: &Value) -> bool {
    let fits = |text: &str| text.chars().all(|c| c == '\t' || !c.is_ascii_control());
    value.as_str().is_some_and(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_what_it_says() {
        let cases: &[(Kind, &[&str], &[&str])] = &[
            (Kind::Text, &[r#""x""#], &[r#""""#, "1", "null", "[]"]),
            (Kind::Choice(&["a", "b"]), &[r#""a""#], &[r#""c""#, r#""""#, "true"]),
            (
                Kind::RelativePath,
                &[r#""INDEX.md""#, r#""docs/a..b.md""#, r#""./x""#],
                &[
                    r#""/etc/x""#,
                    r#""../x""#,
                    r#""a/../b""#,
                    r#""C:x""#,
                    r#""a\\..\\b""#,
                    r#""""#,
                    "5",
                ],
            ),
            (
                Kind::Url,
                &[r#""http://127.0.0.1:1/v1""#, r#""HTTPS://x""#],
                &[
                    r#""ftp://x""#,
                    r#""localhost:80""#,
                    r#""http://""#,
                    r#""http:///v1""#,
                    r#""http://a b""#,
                ],
            ),
            (
                Kind::Combo,
                &[
                    r#""ctrl-c""#,
                    r#""ALT+h""#,
                    r#""SHIFT+ALT+x""#,
                    r#""F4""#,
                    r#""CTRL++""#,
                    r#""PAGE_UP""#,
                ],
                &[r#""ctrl c""#, r#""""#, r#""1+x""#, "7"],
            ),
            (Kind::Bool, &["true", "false"], &["0", r#""true""#]),
            (Kind::Integer(1), &["1", "7.0", "1e3"], &["0", "1.5", "-1", r#""1""#]),
            (NON_NEGATIVE, &["0", "2.5"], &["-1", r#""2""#]),
            (POSITIVE, &["0.5"], &["0", "-1"]),
            (PERCENT, &["0.1", "100"], &["0", "100.1"]),
            (
                Kind::Numbers,
                &["[0]", "[2000, 8000.5]"],
                &["[]", "[-1]", "[\"1\"]", "5"],
            ),
            (Kind::Texts, &["[]", r#"["a"]"#], &[r#"[""]"#, "[1]", r#""a""#]),
            (
                Kind::Headers,
                &["{}", r#"{"X-A": "1"}"#],
                &[r#"{"X A": "1"}"#, r#"{"X": 1}"#, r#"{"X": "a\r\nb"}"#],
            ),
            (Kind::Free, &["{}", r#"{"a": null}"#], &["[]", "1"]),
        ];
        for (kind, good, bad) in cases {
            for text in *good {
                assert!(kind.accepts(&serde_json::from_str(text).unwrap()), "{kind:?} {text}");
            }
            for text in *bad {
                assert!(!kind.accepts(&serde_json::from_str(text).unwrap()), "{kind:?} {text}");
            }
        }
    }
}
