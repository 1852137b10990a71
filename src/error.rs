//! The canonical error: what crosses a room's edge, an event, or the contract with a client.
//!
//! Rooms have their own error enums (`thiserror`) with sources; at the edge they fold into this one shape, which says
//! what kind it is, whether the same thing may work later, and what a person can do next.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an error is about. The finer word is [`AgentError::code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection to a server, or a server that did not do its part (busy, down, refusing the key).
    Transport,
    /// An answer that could not be read, or a request the server says is wrong.
    Protocol,
    /// Data that does not have the agreed form: a configuration, arguments, an op.
    Schema,
    /// A tool that failed.
    Tool,
    /// Somebody asked to stop.
    Cancelled,
    /// A limit the user set was reached.
    BudgetExhausted,
    /// Something the role, or a rule of the product, does not allow.
    Policy,
    /// The store.
    Persistence,
    /// A defect of ours.
    Internal,
}

impl ErrorKind {
    /// The word used in events and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::Schema => "schema",
            Self::Tool => "tool",
            Self::Cancelled => "cancelled",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Policy => "policy",
            Self::Persistence => "persistence",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The one error shape of every event, record and answer.
///
/// `message` is a whole sentence for a person and never holds a secret. `hint` is the next step, if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentError {
    /// What it is about.
    pub kind: ErrorKind,
    /// The finer word, stable, in snake case: `rate_limit`, `unknown_key`, `timeout`.
    pub code: Cow<'static, str>,
    /// What happened and where, for a person.
    pub message: String,
    /// Whether the same thing may work later, unchanged.
    #[serde(default)]
    pub retryable: bool,
    /// The room it came from: `llm`, `tool`, `config`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub origin: Cow<'static, str>,
    /// Facts a program may use: a status code, a path, a wait in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
    /// What caused it, one level a line, outermost first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<str>>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<str>>,
}

impl AgentError {
    /// An error of `kind` with its finer `code` and a sentence for a person.
    #[must_use]
    pub fn new(kind: ErrorKind, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.into(),
            retryable: false,
            origin: Cow::Borrowed(""),
            data: None,
            cause: None,
            hint: None,
        }
    }

    /// The error of something that was asked to stop.
    #[must_use]
    pub fn cancelled(origin: &'static str) -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled", "cancelled").from_origin(origin)
    }

    /// A defect of ours: what should not be possible.
    #[must_use]
    pub fn internal(origin: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, "internal", message).from_origin(origin)
    }

    /// Names the room it came from.
    #[must_use]
    pub fn from_origin(mut self, origin: &'static str) -> Self {
        self.origin = Cow::Borrowed(origin);
        self
    }

    /// Marks that the same thing may work later.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Adds the next step for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds facts a program may use.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Adds the chain of sources of `error`, outermost first.
    #[must_use]
    pub fn with_cause(mut self, error: &(dyn std::error::Error + 'static)) -> Self {
        self.cause = Some(chain(error).into());
        self
    }

    /// Whether this is a cancellation.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.kind == ErrorKind::Cancelled
    }

    /// Brings anything that came as a loose value into the canonical shape: a string, the literal `"cancelled"`, a
    /// partial table. Missing fields get defaults; an unreadable value becomes `internal` with the value as data.
    #[must_use]
    pub fn normalize(value: Value, origin: &'static str) -> Self {
        match value {
            Value::String(text) if text == "cancelled" => Self::cancelled(origin),
            Value::String(text) => Self::internal(origin, text),
            Value::Object(mut map) => {
                let kind = map
                    .remove("kind")
                    .and_then(|kind| serde_json::from_value(kind).ok())
                    .unwrap_or(ErrorKind::Internal);
                let text = |map: &mut serde_json::Map<String, Value>, key: &str| match map.remove(key) {
                    Some(Value::String(text)) if !text.is_empty() => Some(text),
                    _ => None,
                };
                let message = text(&mut map, "message").unwrap_or_else(|| "unknown error".to_owned());
                let mut error = Self::new(
                    kind,
                    text(&mut map, "code").unwrap_or_else(|| kind.to_string()),
                    message,
                );
                error.retryable = map.remove("retryable").and_then(|v| v.as_bool()).unwrap_or(false);
                error.origin = text(&mut map, "origin").map_or(Cow::Borrowed(origin), Cow::Owned);
                error.data = map.remove("data").filter(|data| !data.is_null()).map(Box::new);
                error.cause = text(&mut map, "cause").map(String::into_boxed_str);
                error.hint = text(&mut map, "hint").map(String::into_boxed_str);
                error
            }
            other => Self::internal(origin, "unknown error").with_data(other),
        }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AgentError {}

/// The message of `error` and of each of its sources, one a line, leaving out levels that repeat the one before.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut lines = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        let line = error.to_string();
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        source = error.source();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn normalize_takes_strings_cancelled_and_partial_tables() {
        assert_eq!(AgentError::normalize(json!("boom"), "tool").message, "boom");
        assert!(AgentError::normalize(json!("cancelled"), "turn").is_cancelled());
        let partial = AgentError::normalize(json!({"kind": "tool", "message": "no such file"}), "tool");
        assert_eq!((partial.kind, &*partial.code), (ErrorKind::Tool, "tool"));
        let empty = AgentError::normalize(json!({}), "turn");
        assert_eq!(
            (empty.kind, empty.message.as_str()),
            (ErrorKind::Internal, "unknown error")
        );
        assert_eq!(AgentError::normalize(json!(7), "turn").data, Some(Box::new(json!(7))));
    }

    #[test]
    fn absent_fields_are_left_out_and_read_back() {
        let error = AgentError::new(ErrorKind::Transport, "timeout", "no answer in 30 s").retryable(true);
        let text = serde_json::to_string(&error).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"transport","code":"timeout","message":"no answer in 30 s","retryable":true}"#
        );
        assert_eq!(serde_json::from_str::<AgentError>(&text).unwrap(), error);
    }
}
