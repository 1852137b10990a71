//! Changes of the patch that `/config set` keeps: each is checked before anybody writes it.
//!
//! Nothing here touches the store. What comes out is the new patch; whoever owns the store writes it and then sums the
//! layers up anew.

use serde_json::{Map, Value};

use super::error::{ConfigError, Origin, Problem, Violation};
use super::path::DottedPath;
use super::schema::{self, At};
use super::suggest::nearest_key;
use super::validate::validate;
use super::value;

/// A change that may be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key, in its shortest spelling.
    pub path: DottedPath,
    /// What it is set to; `None` where it is unset.
    pub value: Option<Value>,
    /// The whole patch after the change.
    pub patch: Value,
}

/// A value as it is typed: JSON where it is JSON, else the text itself.
#[must_use]
pub fn coerce(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Whether `/config set` may change this key.
#[must_use]
pub fn is_overridable(path: &DottedPath) -> bool {
    check_overridable(path).is_ok()
}

fn check_overridable(path: &DottedPath) -> Result<(), ConfigError> {
    let refused = |reason: &str| {
        Err(ConfigError::NotOverridable {
            path: path.to_string(),
            reason: reason.to_owned(),
        })
    };
    match schema::at(path.segments()) {
        At::Key(row) | At::Inside(row) if row.overridable => Ok(()),
        At::Key(_) | At::Inside(_) => refused("only the user file can set it"),
        At::Table => refused("it is a table: set one of the keys in it"),
        At::Unknown => Err(ConfigError::Invalid(vec![Violation {
            path: path.to_string(),
            problem: Problem::UnknownKey {
                nearest: nearest_key(path.segments()),
            },
            origin: Origin::Candidate,
        }])),
    }
}

/// The patch after `/config set <path> <text>`.
///
/// # Errors
/// When `path` is no path, names no key or one that may not be changed, or the value is not what it takes.
pub fn set(patch: &Value, path: &str, text: &str) -> Result<Change, ConfigError> {
    let path = DottedPath::parse(path)?;
    check_overridable(&path)?;
    let new = coerce(text.trim());
    let mut candidate = Value::Object(Map::new());
    value::insert(&mut candidate, path.segments(), new.clone());
    let violations = validate(&candidate, &|_| Origin::Candidate);
    if !violations.is_empty() {
        return Err(ConfigError::Invalid(violations));
    }
    let mut patch = table(patch);
    value::insert(&mut patch, path.segments(), new.clone());
    Ok(Change {
        path,
        value: Some(new),
        patch,
    })
}

/// The patch after `/config unset <path>`; tables that become empty go too. Also takes out a whole table, and keys
/// that the schema does not know: what is in the patch can always be removed.
///
/// # Errors
/// When `path` is no path, or the patch has nothing there.
pub fn unset(patch: &Value, path: &str) -> Result<Change, ConfigError> {
    let path = DottedPath::parse(path)?;
    let mut patch = table(patch);
    if value::remove(&mut patch, path.segments()).is_none() {
        // A slip is told as one, not as a key that is not set.
        if let (At::Unknown, Err(unknown)) = (schema::at(path.segments()), check_overridable(&path)) {
            return Err(unknown);
        }
        return Err(ConfigError::NotSet { path: path.to_string() });
    }
    Ok(Change {
        path,
        value: None,
        patch,
    })
}

/// A patch that may be absent.
fn table(patch: &Value) -> Value {
    match patch {
        Value::Object(_) => patch.clone(),
        _ => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json_where_they_can_be() {
        for (text, value) in [
            ("80", json!(80)),
            ("false", json!(false)),
            ("[2000,8000]", json!([2000, 8000])),
            ("openrouter/qwen/qwen3.6-27b", json!("openrouter/qwen/qwen3.6-27b")),
            (r#""80""#, json!("80")),
            ("1.5 GB", json!("1.5 GB")),
            ("", json!("")),
        ] {
            assert_eq!(coerce(text), value, "{text}");
        }
    }

    #[test]
    fn a_set_and_its_unset_leave_the_patch_as_it_was() {
        let patch = json!({"models": {"worker": "w"}});
        let set = set(&patch, "llm_config.models.\"a/b:c\".temperature", "0.2").unwrap();
        assert_eq!(
            set.patch,
            json!({"models": {"worker": "w"}, "llm_config": {"models": {"a/b:c": {"temperature": 0.2}}}})
        );
        let unset = unset(&set.patch, &set.path.to_string()).unwrap();
        assert_eq!(unset.patch, patch);
    }

    #[test]
    fn what_may_not_be_set_is_told_and_nothing_changes() {
        let message = |path, text| set(&Value::Null, path, text).unwrap_err().to_string();
        for (path, text, expected) in [
            (
                "tool_step_budget",
                "0",
                "`tool_step_budget` must be a positive whole number, but is 0",
            ),
            (
                "tool_step_budget",
                "many",
                "`tool_step_budget` must be a positive whole number, but is \"many\"",
            ),
            (
                "default_model",
                "80",
                "`default_model` must be a non-empty text, but is 80",
            ),
            (
                "llm_config",
                "{}",
                "`llm_config` cannot be changed by /config; it is a table: set one of the keys in it",
            ),
            (
                "services.x",
                "1",
                "`services.x` cannot be changed by /config; only the user file can set it",
            ),
            (
                "llm_config.timout",
                "5",
                "`llm_config.timout` is not a key; did you mean `llm_config.timeout`?",
            ),
            ("a..b", "5", "`a..b` is not a key: a segment is empty at character 3"),
            (
                "llm_config.extra_headers.X",
                "5",
                "`llm_config.extra_headers.X` must be a text in one line, but is a number",
            ),
        ] {
            assert_eq!(message(path, text), expected);
        }
    }

    #[test]
    fn unset_removes_anything_the_patch_has_and_nothing_else() {
        let patch = json!({"from_the_future": {"a": 1}, "models": {"worker": "w"}});
        assert_eq!(
            unset(&patch, "from_the_future").unwrap().patch,
            json!({"models": {"worker": "w"}})
        );
        assert_eq!(
            unset(&patch, "models").unwrap().patch,
            json!({"from_the_future": {"a": 1}})
        );
        let message = |path| unset(&patch, path).unwrap_err().to_string();
        assert_eq!(
            message("default_model"),
            "`default_model` is not set by /config, so there is nothing to unset"
        );
        assert_eq!(
            message("defaultmodel"),
            "`defaultmodel` is not a key; did you mean `default_model`?"
        );
    }
}
