//! What a failure of a server means: its code, whether the same request may work later, how long to wait, and a
//! sentence for a person.
//!
//! Servers put the same failure into many shapes and at many places: an HTTP status, a body under status 200, an event
//! in the stream. All of them become one [`Fault`]. The codes and which kind they belong to are the product's:
//! connection, timeout, server, overloaded, `rate_limit`, quota and auth are `transport`; unreadable, truncated,
//! `bad_request`, `not_found`, `context_length`, `content_filter` and `tool_rejected` are `protocol`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::json::number;
use super::retry_after;
use super::words;
use crate::error::{AgentError, ErrorKind};

/// The most of a server's own message that is handed on, in characters.
const LONGEST_MESSAGE: usize = 1000;

/// The finer word of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    Connection,
    Timeout,
    Server,
    Overloaded,
    RateLimit,
    Quota,
    Auth,
    Unreadable,
    Truncated,
    BadRequest,
    NotFound,
    ContextLength,
    ContentFilter,
    ToolRejected,
}

impl Code {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Server => "server",
            Self::Overloaded => "overloaded",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Unreadable => "unreadable",
            Self::Truncated => "truncated",
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::ToolRejected => "tool_rejected",
        }
    }

    /// The kind it belongs to.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Connection
            | Self::Timeout
            | Self::Server
            | Self::Overloaded
            | Self::RateLimit
            | Self::Quota
            | Self::Auth => ErrorKind::Transport,
            Self::Unreadable
            | Self::Truncated
            | Self::BadRequest
            | Self::NotFound
            | Self::ContextLength
            | Self::ContentFilter
            | Self::ToolRejected => ErrorKind::Protocol,
        }
    }

    /// Whether the same request may work later.
    pub fn retryable(self) -> bool {
        match self {
            Self::Connection
            | Self::Timeout
            | Self::Server
            | Self::Overloaded
            | Self::RateLimit
            | Self::Unreadable
            | Self::Truncated
            | Self::ToolRejected => true,
            Self::Quota
            | Self::Auth
            | Self::BadRequest
            | Self::NotFound
            | Self::ContextLength
            | Self::ContentFilter => false,
        }
    }

    /// What the server did, to stand after its name.
    fn sentence(self) -> &'static str {
        match self {
            Self::Connection => "broke the connection",
            Self::Timeout => "did not answer in time",
            Self::Server => "failed",
            Self::Overloaded => "is overloaded or not ready yet",
            Self::RateLimit => "limits the rate of requests",
            Self::Quota => "says that the account has no budget left",
            Self::Auth => "refused the credentials",
            Self::Unreadable => "sent an answer that cannot be read",
            Self::Truncated => "ended its answer before it was complete",
            Self::BadRequest => "refused the request",
            Self::NotFound => "does not know the address or the model",
            Self::ContextLength => "says that the conversation is longer than the model's context",
            Self::ContentFilter => "refused the content",
            Self::ToolRejected => "rejected the model's tool call",
        }
    }
}

impl Code {
    /// What to do next, where nothing better is known.
    fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::Auth => "check the API key",
            Self::NotFound => "check the model's name and the server's address (is /v1 missing or doubled?)",
            Self::ContextLength => "start anew or shorten the conversation",
            Self::Quota => "check the account's billing",
            Self::Connection => "is the server running, and the network up?",
            _ => return None,
        })
    }
}

/// A failure before it is told to anyone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub code: Code,
    /// The server's own words, or ours; without the server's name.
    pub detail: String,
    pub retryable: bool,
    pub retry_after: Option<Duration>,
    /// Facts for programs.
    pub data: Map<String, Value>,
    pub hint: Option<String>,
    pub cause: Option<String>,
}

impl Fault {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retryable: code.retryable(),
            retry_after: None,
            data: Map::new(),
            hint: None,
            cause: None,
        }
    }

    /// An answer or a part of it that cannot be read; `shown` is what came.
    pub fn unreadable(shown: &[u8]) -> Self {
        let text = String::from_utf8_lossy(shown);
        let detail = if words::is_html(&text) {
            words::html_title(&text).map_or_else(
                || "it is a web page".to_owned(),
                |title| format!("it is a web page, \"{title}\""),
            )
        } else {
            words::clean(&text, LONGEST_MESSAGE)
        };
        Self::new(Code::Unreadable, detail)
    }

    /// A refusal with an HTTP status. `header` looks a header up by its lower-case name.
    pub fn from_response(status: u16, header: impl Fn(&str) -> Option<String>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let value: Value = super::json::parse(text.trim()).unwrap_or_default();
        let detail = if value.is_null() {
            if words::is_html(&text) {
                words::html_title(&text).unwrap_or_default()
            } else {
                words::clean(&text, LONGEST_MESSAGE)
            }
        } else {
            words::message(&value).map_or_else(
                || words::clean(&text, LONGEST_MESSAGE),
                |message| words::clean(&message, LONGEST_MESSAGE),
            )
        };
        let mut fault = Self::classified(Some(status), &value, detail, &header);
        fault.data.insert("status".to_owned(), json!(status));
        if let Some(id) = header("x-request-id").or_else(|| header("request-id")) {
            fault
                .data
                .insert("request_id".to_owned(), json!(words::clean(&id, 200)));
        }
        if status == 501 || status == 505 {
            fault.retryable = false;
        }
        fault
    }

    /// An error that came under status 200: as the whole body or as an event.
    pub fn from_payload(value: &Value) -> Self {
        let detail = words::message(value).unwrap_or_else(|| value.to_string());
        Self::classified(None, value, words::clean(&detail, LONGEST_MESSAGE), &|_| None)
    }

    fn classified(
        http_status: Option<u16>,
        value: &Value,
        detail: String,
        header: &impl Fn(&str) -> Option<String>,
    ) -> Self {
        let told = words::Told::new(value);
        let status = http_status.or(told.status);
        let retry_after = retry_after::find(header, value, &detail);
        let code = told.code(status, &detail.to_ascii_lowercase(), retry_after.is_some());
        let mut fault = Self::new(code, detail);
        fault.retry_after = retry_after.filter(|_| fault.retryable);
        if let Some(wait) = fault.retry_after {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            fault.data.insert("retry_after_ms".to_owned(), json!(wait));
        }
        if code == Code::RateLimit && told.per_day {
            fault.retryable = false;
        }
        if let Some(status) = status {
            fault.data.insert("status".to_owned(), json!(status));
        }
        if let Some(word) = told.words.first() {
            fault
                .data
                .insert("server_code".to_owned(), json!(words::clean(word, 100)));
        }
        let error = told.error(value);
        for key in ["n_ctx", "n_prompt_tokens"] {
            if let Some(count) = error.get(key).and_then(number) {
                fault.data.insert(key.to_owned(), json!(count));
            }
        }
        for key in ["failed_generation", "param"] {
            if let Some(text) = error.get(key).and_then(Value::as_str) {
                fault.data.insert(key.to_owned(), json!(text));
            }
        }
        fault
    }

    /// Adds the next step.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The canonical error. `server` names the server for a person.
    pub fn into_error(self, server: &str) -> AgentError {
        let status = self.data.get("status").and_then(Value::as_u64);
        let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let mut message = format!("The model server {server} {}{status}", self.code.sentence());
        let detail = self.detail.trim();
        if detail.is_empty() {
            message.push('.');
        } else {
            message.push_str(": ");
            message.push_str(detail);
            if !detail.ends_with(['.', '!', '?', '…']) {
                message.push('.');
            }
        }
        if let Some(wait) = self.retry_after {
            message.push_str(&format!(" It asks to wait {}.", retry_after::spoken(wait)));
        }
        let mut error = AgentError::new(self.code.kind(), self.code.as_str(), message)
            .from_origin("llm")
            .retryable(self.retryable);
        if !self.data.is_empty() {
            error = error.with_data(Value::Object(self.data));
        }
        error.cause = self.cause.map(String::into_boxed_str);
        error.hint = self
            .hint
            .map(String::into_boxed_str)
            .or(self.code.hint().map(Into::into));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &Value) -> Fault {
        Fault::from_response(status, |_| None, body.to_string().as_bytes())
    }

    #[test]
    fn every_status_alone_has_a_code() {
        for (status, code) in [
            (400, Code::BadRequest),
            (401, Code::Auth),
            (402, Code::Quota),
            (403, Code::Auth),
            (404, Code::NotFound),
            (408, Code::Timeout),
            (413, Code::BadRequest),
            (418, Code::BadRequest),
            (429, Code::RateLimit),
            (500, Code::Server),
            (502, Code::Server),
            (503, Code::Overloaded),
            (504, Code::Server),
            (529, Code::Overloaded),
        ] {
            assert_eq!(Fault::from_response(status, |_| None, b"").code, code, "{status}");
        }
    }

    #[test]
    fn overload_is_no_rate_limit_whatever_the_status() {
        let fault = answered(
            429,
            &json!({"error": {"type": "engine_overloaded_error", "message": "busy"}}),
        );
        assert_eq!(fault.code, Code::Overloaded);
        let fault = answered(
            429,
            &json!({"error": {"message": "The engine is currently overloaded"}}),
        );
        assert_eq!(fault.code, Code::Overloaded);
    }

    #[test]
    fn a_daily_limit_is_not_waited_for() {
        let fault = answered(
            429,
            &json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota",
                "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}, {"retryDelay": "3s"}]}}),
        );
        assert_eq!((fault.code, fault.retryable), (Code::RateLimit, false));
    }

    #[test]
    fn the_sentence_is_whole_and_names_server_status_and_wait() {
        let mut fault = answered(429, &json!({"error": "Slow down"}));
        fault.retry_after = Some(Duration::from_secs(10_800));
        assert_eq!(
            fault.into_error("host").message,
            "The model server host limits the rate of requests (HTTP 429): Slow down. It asks to wait 3 h."
        );
        assert_eq!(
            Fault::from_response(400, |_| None, b"").into_error("h").message,
            "The model server h refused the request (HTTP 400)."
        );
    }

    #[test]
    fn nothing_of_a_message_can_drive_a_terminal() {
        let fault = answered(500, &json!({"error": {"message": "a\u{1b}[2Jb\u{7}\nc"}}));
        assert_eq!(fault.detail, "a[2Jb c");
    }
}
