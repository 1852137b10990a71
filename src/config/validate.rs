//! Checks a configuration against the schema; finds every violation, not only the first.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::{Origin, Problem, Violation};
use super::path::join;
use super::schema::{self, At, Kind, Row};
use super::suggest::nearest_key;

/// The longest value repeated in a message, in characters.
const SHOWN_CHARS: usize = 60;

/// Every violation in `root`. `origin` says which layer the value at a path comes from.
pub fn validate(root: &Value, origin: &dyn Fn(&[&str]) -> Origin) -> Vec<Violation> {
    let mut violations = Vec::new();
    walk(root, &mut Vec::new(), &mut |path, problem| {
        violations.push(Violation {
            path: join(path),
            problem,
            origin: origin(path),
        });
    });
    violations
}

/// A copy of `root` without what violates the schema.
#[must_use]
pub fn valid_part(root: &Value) -> Value {
    let mut wrong: Vec<Vec<String>> = Vec::new();
    walk(root, &mut Vec::new(), &mut |path, problem| {
        let mut path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        if matches!(problem, Problem::EmptyName) {
            path.push(String::new());
        }
        wrong.push(path);
    });
    let mut valid = root.clone();
    for path in wrong {
        if path.is_empty() {
            return Value::Object(Map::new());
        }
        super::value::remove(&mut valid, &path);
    }
    valid
}

fn walk<'a>(value: &'a Value, path: &mut Vec<&'a str>, report: &mut dyn FnMut(&[&str], Problem)) {
    match schema::at(path) {
        At::Key(row) | At::Inside(row) => {
            if let (Kind::Headers, Value::Object(headers)) = (row.kind, value) {
                walk_headers(headers, path, report);
            } else if !row.kind.accepts(value) {
                report(
                    path,
                    Problem::WrongValue {
                        expected: row.kind.words().into_owned(),
                        found: found(value, row),
                    },
                );
            }
        }
        At::Table => match value {
            Value::Object(map) => {
                for (name, child) in map {
                    if name.is_empty() {
                        report(path, Problem::EmptyName);
                        continue;
                    }
                    path.push(name);
                    walk(child, path, report);
                    path.pop();
                }
            }
            other => report(
                path,
                Problem::WrongValue {
                    expected: "a table of keys".to_owned(),
                    found: shape(other),
                },
            ),
        },
        At::Unknown => report(
            path,
            Problem::UnknownKey {
                nearest: nearest_key(path),
            },
        ),
    }
}

/// Tells which header is wrong, without its value, which may be secret.
fn walk_headers<'a>(
    headers: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
    report: &mut dyn FnMut(&[&str], Problem),
) {
    for (name, value) in headers {
        let expected = if !schema::is_header_name(name) {
            "left out: no header can have this name"
        } else if !schema::is_header_value(value) {
            "a text in one line"
        } else {
            continue;
        };
        path.push(name);
        report(
            path,
            Problem::WrongValue {
                expected: expected.to_owned(),
                found: shape(value),
            },
        );
        path.pop();
    }
}

/// A wrong value as a message repeats it.
fn found(value: &Value, row: &Row) -> String {
    match (value, row.kind) {
        (Value::Object(_), _) | (_, Kind::Headers | Kind::Variable) => shape(value),
        _ => {
            let text = shown(row, value).to_string();
            match text.char_indices().nth(SHOWN_CHARS) {
                Some((cut, _)) => format!("{}…", &text[..cut]),
                None => text,
            }
        }
    }
}

/// What a value is, without its content.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null (leave the key out instead)",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty text",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
    .to_owned()
}

/// `value` as it may be shown: secrets that a configuration can hold are masked. These are the values of headers, the
/// user and password in an address, and a key pasted where the name of a variable belongs.
#[must_use]
pub fn shown<'a>(row: &Row, value: &'a Value) -> Cow<'a, Value> {
    const MASK: &str = "…";
    match (row.kind, value) {
        (Kind::Headers, Value::Object(map)) => {
            Cow::Owned(map.keys().map(|name| (name.clone(), Value::from(MASK))).collect())
        }
        (Kind::Headers, Value::String(_)) => Cow::Owned(MASK.into()),
        (Kind::Variable, Value::String(name)) if !is_variable_name(name) => Cow::Owned(MASK.into()),
        (Kind::Url, Value::String(url)) => match mask_user_info(url) {
            Cow::Owned(url) => Cow::Owned(url.into()),
            Cow::Borrowed(_) => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// Whether an environment variable can be called so in a shell.
pub(super) fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `url` with the user and password before the host masked.
fn mask_user_info(url: &str) -> Cow<'_, str> {
    let Some(start) = url.find("://").map(|at| at + 3) else {
        return Cow::Borrowed(url);
    };
    let authority = url[start..].split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}…{}", &url[..start], &url[start + at..])),
        None => Cow::Borrowed(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(root: &Value) -> Vec<String> {
        validate(root, &|_| Origin::Candidate)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn every_violation_is_told_with_its_path() {
        let root = json!({
            "llm_config": {
                "timeout": "fast",
                "retry_max_retrys": 1,
                "retry_backoff_ms": [],
                "models": {"a/b:c": {"temperature": -1}},
                "extra_headers": {"X": 1},
                "api_url": "http://me:secret@[",
            },
            "context_management": 5,
            "index_file": "../x",
            "models": {"": "m", "worker": ""},
            "default_model": null,
        });
        assert_eq!(
            messages(&root),
            [
                r#"`llm_config.timeout` must be a positive number, but is "fast""#,
                "`llm_config.retry_max_retrys` is not a key; did you mean `llm_config.retry_max_retries`?",
                "`llm_config.retry_backoff_ms` must be a non-empty list of numbers, none negative, but is []",
                r#"`llm_config.models."a/b:c".temperature` must be a number, 0 or more, but is -1"#,
                "`llm_config.extra_headers.X` must be a text in one line, but is a number",
                "`context_management` must be a table of keys, but is a number",
                r#"`index_file` must be a relative path without `..`, but is "../x""#,
                "`models` has an entry with an empty name",
                r#"`models.worker` must be a non-empty text, but is """#,
                "`default_model` must be a non-empty text, but is null",
            ]
        );
        let valid = valid_part(&root);
        assert_eq!(valid, json!({"llm_config": {"api_url": "http://me:secret@["}}));
        assert!(messages(&valid).is_empty());
        assert_eq!(
            messages(&json!([])),
            ["the configuration must be a table of keys, but is a list"]
        );
    }

    #[test]
    fn secrets_are_masked() {
        let shown = |path: &str, value: Value| {
            let row = schema::row_at(&path.split('.').collect::<Vec<_>>()).unwrap();
            shown(row, &value).to_string()
        };
        assert_eq!(
            shown("llm_config.extra_headers", json!({"Authorization": "Bearer x"})),
            r#"{"Authorization":"…"}"#
        );
        assert_eq!(
            shown("llm_config.extra_headers.Authorization", json!("Bearer x")),
            r#""…""#
        );
        assert_eq!(shown("llm_config.api_key_env", json!("sk-12345")), r#""…""#);
        assert_eq!(
            shown("llm_config.api_key_env", json!("LLM_API_KEY")),
            r#""LLM_API_KEY""#
        );
        assert_eq!(
            shown("llm_config.api_url", json!("https://u:p@x/v1?a=@")),
            r#""https://…@x/v1?a=@""#
        );
    }
}
