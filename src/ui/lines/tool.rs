//! A tool's call and what came of it.

use serde_json::{Map, Value};

use crate::protocol::{CallOutcome, MutationState, ToolFinish};
use crate::ui::diff;
use crate::ui::element::Element;
use crate::ui::line::{Line, Span};
use crate::ui::text;

use super::{Page, duration, hint_lines};

/// Lines of a tool's output that are shown.
const PREVIEW_LINES: usize = 6;
/// The same where the tool failed: one wants to know why.
const PREVIEW_LINES_FAILED: usize = 14;
/// Lines of a change that are shown.
const DIFF_LINES: usize = 40;
/// Blanks before what belongs to a call.
const INDENT: usize = 2;
/// Longer values are left out of a call's line.
const SHORT_VALUE: usize = 40;

/// The arguments that say most of what a call is about, in the order they are looked for.
const MAIN_ARGUMENTS: [&str; 12] = [
    "command",
    "path",
    "file_path",
    "file",
    "pattern",
    "query",
    "url",
    "key",
    "task",
    "name",
    "id",
    "status",
];

/// A call as it is announced.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The arguments as the model wrote them.
    pub arguments: &'a str,
}

/// A call on one line: `[bash] cargo test`.
#[must_use]
pub fn tool_call(page: &Page, call: Call<'_>) -> Line {
    let mut line = tool_name(call.name);
    let arguments = arguments(page, call.arguments);
    if !arguments.is_empty() {
        line = line.with(" ", Element::Pad).with(&arguments, Element::ToolArgs);
    }
    line.truncate(page.width, page.ellipsis());
    line
}

fn tool_name(name: &str) -> Line {
    Line::of("[", Element::ToolBracket)
        .with(name, Element::ToolName)
        .with("]", Element::ToolBracket)
}

/// The arguments in a person's words: the one that matters, then the short others.
fn arguments(page: &Page, json: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(json) else {
        return one_line(page, json);
    };
    let main = MAIN_ARGUMENTS
        .into_iter()
        .find(|key| map.get(*key).is_some_and(Value::is_string));
    let mut parts = Vec::new();
    if let Some(text) = main.and_then(|key| map.get(key)).and_then(Value::as_str) {
        parts.push(one_line(page, text));
    }
    for (key, value) in &map {
        if Some(key.as_str()) == main || value.is_null() {
            continue;
        }
        let short = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if short.len() <= SHORT_VALUE && !short.contains('\n') {
            parts.push(format!("{key}={short}"));
        }
    }
    parts.join(" ")
}

/// Text of several lines as its first one, saying how many more there are.
fn one_line(page: &Page, text: &str) -> String {
    let text = text.trim();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    match lines.count() {
        0 => first,
        more => format!("{first} {} (+{more} lines)", page.ellipsis()),
    }
}

/// What came of a call. `named` repeats the tool's name, where other lines stand between the call and its result.
#[must_use]
pub fn tool_finished(page: &Page, finish: &ToolFinish, named: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    let diff = finish.metadata.get("diff").and_then(Value::as_str);
    if let Some(diff) = diff.filter(|_| finish.ok) {
        lines.extend(diff::unified(page, diff, INDENT, DIFF_LINES));
    } else if !finish.ok || has_output(&finish.metadata) {
        let most = if finish.ok { PREVIEW_LINES } else { PREVIEW_LINES_FAILED };
        lines.extend(preview(page, &finish.content, most));
    }
    lines.push(tool_result(page, finish, named));
    lines.extend(hint_lines(
        page,
        finish.error.as_ref().and_then(|error| error.hint.as_deref()),
    ));
    lines
}

/// How a call went, on one line.
#[must_use]
pub fn tool_result(page: &Page, finish: &ToolFinish, named: bool) -> Line {
    let (word, element) = match &finish.error {
        Some(error) if error.is_cancelled() => ("cancelled", Element::ToolCancelled),
        _ if finish.ok => ("ok", Element::ToolOk),
        _ => ("failed", Element::ToolFailed),
    };
    let mut remarks = facts(page, &finish.metadata);
    remarks.push(duration(finish.duration_ms));
    remarks.extend(effect(finish.outcome.mutation_state).filter(|_| !finish.ok));
    result_line(page, &finish.outcome.name, named, word, element, &remarks)
}

/// A call was stopped because the turn was cancelled.
#[must_use]
pub fn tool_cancelled(page: &Page, outcome: &CallOutcome, named: bool) -> Line {
    let remarks: Vec<String> = effect(outcome.mutation_state).into_iter().collect();
    result_line(
        page,
        &outcome.name,
        named,
        "cancelled",
        Element::ToolCancelled,
        &remarks,
    )
}

fn result_line(page: &Page, name: &str, named: bool, word: &str, element: Element, remarks: &[String]) -> Line {
    let mut line = Line {
        spans: vec![Span::pad(INDENT)],
    };
    if named {
        line.spans.extend(tool_name(name).spans);
        line.spans.push(Span::pad(1));
    }
    line = line.with(word, element);
    for remark in remarks {
        line = line
            .with(page.separator(), Element::ToolResult)
            .with(remark, Element::ToolResult);
    }
    line.truncate(page.width, page.ellipsis());
    line
}

fn effect(state: MutationState) -> Option<String> {
    match state {
        MutationState::None => None,
        MutationState::Attempted => Some("may have changed something".to_owned()),
        MutationState::Unknown => Some("nobody can say what it changed".to_owned()),
    }
}

/// Files read and written speak for themselves; everything else printed something.
fn has_output(metadata: &Map<String, Value>) -> bool {
    !metadata.contains_key("path") && !metadata.contains_key("diff")
}

/// What the metadata says, in a few words.
fn facts(page: &Page, metadata: &Map<String, Value>) -> Vec<String> {
    let number = |key: &str| metadata.get(key).and_then(Value::as_i64);
    let dash = if page.unicode { "–" } else { "-" };
    let mut facts = Vec::new();
    facts.extend(
        number("exit_code")
            .filter(|code| *code != 0)
            .map(|code| format!("exit {code}")),
    );
    facts.extend(number("signal").map(|signal| format!("signal {signal}")));
    match (number("first_line"), number("last_line"), number("lines")) {
        (Some(first), Some(last), Some(all)) if first > 1 || last < all => {
            facts.push(format!("lines {first}{dash}{last} of {all}"));
        }
        (_, _, Some(lines)) => facts.push(plural(lines, "line")),
        _ => facts.extend(number("output_lines").map(|lines| plural(lines, "line"))),
    }
    facts.extend(number("entries").map(|entries| plural(entries, "entry")));
    facts.extend(number("matches").map(|matches| plural(matches, "match")));
    facts.extend(
        number("line_delta")
            .filter(|delta| *delta != 0)
            .map(|delta| format!("{delta:+}")),
    );
    if metadata.get("truncated").and_then(Value::as_bool) == Some(true) {
        facts.push("cut".to_owned());
    }
    facts
}

fn plural(n: i64, word: &str) -> String {
    match (n, word) {
        (1, word) => format!("1 {word}"),
        (n, "entry") => format!("{n} entries"),
        (n, "match") => format!("{n} matches"),
        (n, word) => format!("{n} {word}s"),
    }
}

/// The first lines of an output, cut at the page's edge, and how many were left out.
fn preview(page: &Page, output: &str, most: usize) -> Vec<Line> {
    let clean = text::strip_escapes(output);
    let clean = clean.trim_end();
    let total = clean.lines().count();
    // One line more is shown rather than a line that says it is not.
    let shown = if total <= most + 1 { total } else { most };
    let mut lines: Vec<Line> = clean
        .lines()
        .take(shown)
        .map(|text| {
            let mut line = Line {
                spans: vec![Span::pad(INDENT)],
            }
            .with(&text::expand_tabs(text), Element::ToolOutput);
            line.truncate(page.width, page.ellipsis());
            line
        })
        .collect();
    if shown < total {
        lines.push(left_out(page, total - shown, INDENT));
    }
    lines
}

/// Says that `lines` lines are not shown.
pub(crate) fn left_out(page: &Page, lines: usize, indent: usize) -> Line {
    let text = format!("{} {lines} more lines", page.ellipsis());
    Line {
        spans: vec![Span::pad(indent)],
    }
    .with(&text, Element::Marker)
}
