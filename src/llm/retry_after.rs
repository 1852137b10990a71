//! How long a server asks to wait: headers, details in the body, or words of its message.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::json::float;

/// Finds the wait. `header` looks a header up by its lower-case name; the finest source wins.
pub(crate) fn find(header: impl Fn(&str) -> Option<String>, body: &Value, message: &str) -> Option<Duration> {
    let from_ms = header("retry-after-ms")
        .and_then(|text| text.trim().parse().ok())
        .and_then(millis);
    from_ms
        .or_else(|| header("retry-after").and_then(|text| header_value(&text)))
        .or_else(|| details(body))
        .or_else(|| in_words(message))
}

/// `Retry-After`: seconds, also with a fraction, or a date.
fn header_value(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(count) = text.parse::<f64>() {
        return seconds(count);
    }
    let then = httpdate::parse_http_date(text).ok()?;
    Some(then.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
}

/// Waits that stand in the body.
fn details(body: &Value) -> Option<Duration> {
    let body = match body {
        Value::Array(list) => list.first()?,
        other => other,
    };
    let error = body.get("error").unwrap_or(body);
    let delay = error
        .get("details")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find_map(|detail| {
            let text = detail.get("retryDelay")?.as_str()?;
            seconds(text.trim().strip_suffix('s')?.parse().ok()?)
        });
    delay
        .or_else(|| millis(float(error.get("retry_after_ms")?)?))
        .or_else(|| seconds(float(error.get("retry_after")?)?))
        .or_else(|| seconds(float(error.get("metadata")?.get("retry_after")?)?))
        .or_else(|| reset_time(error.get("metadata")?.get("headers")?))
}

/// A time at which a limit ends, in seconds or milliseconds since 1970.
fn reset_time(headers: &Value) -> Option<Duration> {
    let reset = headers
        .as_object()?
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("x-ratelimit-reset"))
        .and_then(|(_, value)| float(value))?;
    let reset = if reset > 1e11 { millis(reset)? } else { seconds(reset)? };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(reset.saturating_sub(now))
}

/// A wait in words: `try again in 7.66s`, `in 1m30s`, `after 20 seconds`, `in 500ms`.
fn in_words(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let at = [
        "try again in ",
        "retry in ",
        "retry after ",
        "again after ",
        "wait for ",
        "please wait ",
    ]
    .iter()
    .find_map(|lead| lower.find(lead).map(|at| at + lead.len()))?;
    let mut rest = lower[at..].trim_start();
    let mut total = 0.0;
    let mut found = false;
    loop {
        let digits = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        let Ok(count) = rest[..digits].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        rest = rest[digits..].trim_start();
        let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = match &rest[..unit_end] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        total += count * factor;
        found = true;
        rest = rest[unit_end..].trim_start();
    }
    if found { seconds(total) } else { None }
}

fn seconds(count: f64) -> Option<Duration> {
    millis(count * 1000.0)
}

/// A wait rounded to whole milliseconds; `None` for what is no length of time.
fn millis(count: f64) -> Option<Duration> {
    let known = count.is_finite() && (0.0..1e13).contains(&count);
    known.then(|| Duration::from_secs_f64((count.round()) / 1000.0))
}

/// A length of time for a person: `7.7 s`, `1 min 30 s`, `3 h`.
pub(crate) fn spoken(wait: Duration) -> String {
    let secs = wait.as_secs();
    match secs {
        0..60 => {
            let tenths = (wait.as_millis() + 50) / 100;
            if tenths.is_multiple_of(10) {
                format!("{} s", tenths / 10)
            } else {
                format!("{}.{} s", tenths / 10, tenths % 10)
            }
        }
        60..3600 => join(secs / 60, "min", secs % 60, "s"),
        _ => join(secs / 3600, "h", secs % 3600 / 60, "min"),
    }
}

fn join(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_header(name: &'static str, value: &'static str) -> Option<Duration> {
        find(|wanted| (wanted == name).then(|| value.to_owned()), &Value::Null, "")
    }

    #[test]
    fn headers() {
        assert_eq!(with_header("retry-after", " 1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(with_header("retry-after-ms", "1250"), Some(Duration::from_millis(1250)));
        for useless in ["soon", "-3", "NaN", "1e300", ""] {
            assert_eq!(with_header("retry-after", useless), None, "{useless}");
        }
        let past = with_header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(past, Some(Duration::ZERO));
    }

    #[test]
    fn bodies_and_words() {
        let none = |_: &str| None;
        let body = json!([{"error": {"details": [{"x": 1}, {"retryDelay": "15.25s"}]}}]);
        assert_eq!(find(none, &body, ""), Some(Duration::from_millis(15_250)));
        for (words, wait) in [
            ("Please try again in 7.66s.", 7660),
            ("try again in 1m30s", 90_000),
            ("Retry after 20 seconds, or 3 days", 20_000),
            ("try again in 500ms", 500),
        ] {
            assert_eq!(
                find(none, &Value::Null, words),
                Some(Duration::from_millis(wait)),
                "{words}"
            );
        }
        assert_eq!(find(none, &Value::Null, "try again in a moment"), None);
    }

    #[test]
    fn spoken_lengths() {
        assert_eq!(spoken(Duration::from_millis(7660)), "7.7 s");
        assert_eq!(spoken(Duration::from_secs(90)), "1 min 30 s");
        assert_eq!(spoken(Duration::from_secs(10_800)), "3 h");
    }
}
