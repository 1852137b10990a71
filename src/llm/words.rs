//! The words of a failed server: where its message stands, and what its codes and phrases mean.

use serde_json::Value;

use super::failure::Code;
use super::json::number;

/// What a body tells besides its message.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Codes and types in words, lower case.
    pub words: Vec<String>,
    /// A number that is an HTTP status.
    pub status: Option<u16>,
    /// MiniMax's own number.
    minimax: Option<u64>,
    /// The body gives reasons of a moderation.
    moderated: bool,
    /// A quota of a whole day is used up.
    pub per_day: bool,
}

impl Told {
    pub fn new(value: &Value) -> Self {
        let mut told = Self::default();
        let value = first(value);
        let error = told.error(value);
        let mut levels = vec![error];
        if !std::ptr::eq(error, value) {
            levels.push(value);
        }
        for level in levels {
            for key in ["code", "type", "status", "status_code", "error_type", "reason"] {
                match level.get(key) {
                    Some(Value::String(word)) if word.trim().parse::<u16>().is_err() => {
                        told.words.push(word.to_ascii_lowercase());
                    }
                    Some(other) => {
                        let status = number(other).and_then(|count| u16::try_from(count).ok());
                        told.status = told.status.or(status.filter(|status| (400..600).contains(status)));
                    }
                    None => {}
                }
            }
        }
        // `error` as a type says nothing.
        told.words.retain(|word| !matches!(word.as_str(), "error" | ""));
        told.minimax = value
            .get("base_resp")
            .and_then(|status| status.get("status_code"))
            .and_then(number)
            .filter(|code| *code != 0);
        let metadata = error.get("metadata");
        told.moderated = metadata.is_some_and(|metadata| {
            metadata.get("reasons").is_some_and(Value::is_array) || metadata.get("flagged_input").is_some()
        });
        told.per_day = error
            .get("details")
            .is_some_and(|details| details.to_string().contains("PerDay"));
        told
    }

    /// The part of the body that describes the error.
    pub fn error<'a>(&self, value: &'a Value) -> &'a Value {
        let value = first(value);
        let error = value.get("error").filter(|error| error.is_object() || error.is_array());
        let errors = value.get("errors").filter(|errors| errors.is_array());
        error.or(errors).map_or(value, first)
    }

    /// What it all means. `status` is the HTTP status or what stands for one; `message` is in lower case.
    pub fn code(&self, status: Option<u16>, message: &str, has_wait: bool) -> Code {
        let word = |needles: &[&str]| {
            self.words
                .iter()
                .any(|word| needles.iter().any(|needle| word.contains(needle)))
        };
        let says = |needles: &[&str]| needles.iter().any(|needle| message.contains(needle));
        let status_is = |known: &[u16]| status.is_some_and(|status| known.contains(&status));
        if let Some(code) = self.minimax.and_then(minimax) {
            return code;
        }
        // How a LiteLLM without a database says that it does not know the key, with the status 400.
        if word(&["no_db_connection"]) {
            return Code::Auth;
        }
        let no_money = [
            "insufficient balance",
            "insufficient credit",
            "not enough credit",
            "out of credits",
            "credit balance is too low",
        ];
        let broke = word(&[
            "insufficient_quota",
            "billing",
            "insufficient_balance",
            "insufficient_credit",
            "payment_required",
        ]) || says(&no_money)
            || says(&["exceeded your current quota"]) && !has_wait && !word(&["resource_exhausted"]);
        if broke || status_is(&[402]) {
            return Code::Quota;
        }
        let context_words = [
            "context_length",
            "context_size",
            "context_window",
            "exceed_context",
            "contextlength",
        ];
        let context_phrases = [
            "context length",
            "context size",
            "context window",
            "maximum context",
            "loaded context",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "max_tokens exceed",
            "exceeds the context",
            "exceed the context",
        ];
        if word(&context_words) || !status_is(&[401, 403, 404, 429]) && says(&context_phrases) {
            return Code::ContextLength;
        }
        if self.moderated
            || word(&[
                "content_filter",
                "content_policy",
                "contentfilter",
                "moderation",
                "responsibleai",
                "safety",
            ])
            || status_is(&[400, 403, 451]) && says(&["flagged", "content policy", "content management policy"])
        {
            return Code::ContentFilter;
        }
        if word(&["tool_use_failed", "tool_call_failed", "malformed_function_call"]) {
            return Code::ToolRejected;
        }
        if word(&["timeout", "timed_out", "deadline_exceeded"]) || status_is(&[408, 522, 524]) {
            return Code::Timeout;
        }
        if word(&["overload", "unavailable", "capacity", "loading"])
            || status_is(&[503, 529])
            || says(&["overloaded", "loading model", "at capacity"]) && !word(&["rate_limit", "invalid"])
        {
            return Code::Overloaded;
        }
        if !status_is(&[400, 401, 403, 404, 413, 422])
            && (word(&[
                "rate_limit",
                "ratelimit",
                "throttl",
                "resource_exhausted",
                "too_many_requests",
            ]) || status_is(&[429]))
        {
            return Code::RateLimit;
        }
        match status {
            Some(401 | 403 | 407) => return Code::Auth,
            Some(404 | 405 | 410) => return Code::NotFound,
            Some(400..500) => return Code::BadRequest,
            Some(_) => return Code::Server,
            None => {}
        }
        if word(&[
            "invalid_api_key",
            "authentication",
            "unauthorized",
            "permission",
            "forbidden",
        ]) {
            Code::Auth
        } else if word(&["not_found", "notfound"]) {
            Code::NotFound
        } else if word(&["invalid", "validation", "badrequest", "bad_request", "unprocessable"]) {
            Code::BadRequest
        } else {
            Code::Server
        }
    }
}

/// MiniMax's numbers (its error code page, from memory; 1002 and 1008 are seen in public threads).
fn minimax(code: u64) -> Option<Code> {
    Some(match code {
        1001 => Code::Timeout,
        1002 | 1041 => Code::RateLimit,
        1004 | 2049 => Code::Auth,
        1008 | 2056 => Code::Quota,
        1026 | 1027 => Code::ContentFilter,
        1039 => Code::ContextLength,
        1042 | 2013 => Code::BadRequest,
        _ => Code::Server,
    })
}

/// The object itself, or the first of a list.
fn first(value: &Value) -> &Value {
    match value {
        Value::Array(list) => list.first().unwrap_or(value),
        other => other,
    }
}

/// The message for a person, wherever it stands.
pub(crate) fn message(value: &Value) -> Option<String> {
    let value = first(value);
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
            .map(str::to_owned)
    };
    let error = value.get("error").or_else(|| value.get("errors")).map(first);
    let own = error.and_then(|error| {
        text(Some(error))
            .or_else(|| text(error.get("message")))
            .or_else(|| text(error.get("msg")))
            .or_else(|| message_of_details(error.get("detail")))
            .or_else(|| text(error.get("error")))
    });
    let outer = || {
        ["message", "msg", "error_message", "error_description"]
            .iter()
            .find_map(|key| text(value.get(*key)))
            .or_else(|| message_of_details(value.get("detail")))
            .or_else(|| text(value.get("base_resp").and_then(|status| status.get("status_msg"))))
            .or_else(|| text(value.get("title")))
            .or_else(|| text(Some(value)))
    };
    let main = own.or_else(outer);
    // A gateway's message may say only that its provider failed; the provider's words are beside it.
    let raw = error
        .and_then(|error| error.get("metadata"))
        .and_then(|metadata| metadata.get("raw"))
        .and_then(|raw| match raw {
            Value::String(text) => Some(
                serde_json::from_str::<Value>(text)
                    .ok()
                    .and_then(|inner| message(&inner))
                    .unwrap_or_else(|| text.clone()),
            ),
            other => message(other),
        });
    match (main, raw) {
        (Some(main), Some(raw)) if !raw.is_empty() && !main.contains(&raw) => Some(format!("{main}: {raw}")),
        (main, raw) => main.or(raw),
    }
}

/// `detail`: a text, or a list of errors with the place and the words.
fn message_of_details(detail: Option<&Value>) -> Option<String> {
    match detail? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let lines: Vec<String> = list
                .iter()
                .filter_map(|entry| {
                    let words = entry.get("msg").or_else(|| entry.get("message"))?.as_str()?;
                    let place = entry.get("loc").and_then(Value::as_array).map(|place| {
                        let parts = place
                            .iter()
                            .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
                        parts.collect::<Vec<_>>().join(".")
                    });
                    Some(place.map_or_else(|| words.to_owned(), |place| format!("{place}: {words}")))
                })
                .collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        }
        object @ Value::Object(_) => message(object),
        _ => None,
    }
}

/// `text` fit to be shown: in one line, no control characters, no more than `limit` characters.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        let gap = (number > 0).then_some(' ');
        for c in gap.into_iter().chain(line.chars().filter(|c| !c.is_control())) {
            if count == limit {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// Whether a body is a web page.
pub(crate) fn is_html(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let start: String = start.chars().take(15).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| start.starts_with(tag))
}

/// The title of a web page.
pub(crate) fn html_title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let from = lower.find("<title>")? + "<title>".len();
    let to = from + lower[from..].find("</title>")?;
    let title = clean(&text[from..to], 200);
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_found_wherever_they_stand() {
        for (body, expected) in [
            (json!({"error": {"message": "a"}}), "a"),
            (json!({"error": "a"}), "a"),
            (json!([{"error": {"message": "a"}}]), "a"),
            (json!({"errors": [{"message": "a"}]}), "a"),
            (json!({"message": "a"}), "a"),
            (json!({"detail": [{"loc": ["body", 0], "msg": "a"}]}), "body.0: a"),
            (json!({"base_resp": {"status_msg": "a"}}), "a"),
            (
                json!({"error": {"message": "Provider failed", "metadata": {"raw": "{\"error\":{\"message\":\"why\"}}"}}}),
                "Provider failed: why",
            ),
            (json!("a"), "a"),
        ] {
            assert_eq!(message(&body).unwrap(), expected, "{body}");
        }
        assert_eq!(message(&json!({"x": 1})), None);
    }

    #[test]
    fn pages_are_told_by_their_title() {
        let page = "\n<!DOCTYPE html>\n<html><head><title> 502: Bad gateway </title>";
        assert!(is_html(page) && !is_html("x <html>"));
        assert_eq!(html_title(page).unwrap(), "502: Bad gateway");
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        assert_eq!(clean("äöü", 2), "äö…");
        assert_eq!(clean("äöü", 3), "äöü");
    }
}
