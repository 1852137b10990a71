//! `edit`: part of a file, by line numbers guarded by a hash, or by text.

use std::fmt::Write as _;
use std::ops::Range;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::change::{Change, Target};
use super::context::ToolContext;
use super::files::{names_hash, not_found, short};
use super::replace_text::{self, Replacement};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};
use super::text::{Text, Unencodable, cut};
use super::versions::{explain, lines_of};

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// Lines of a change shown before its middle is left out.
const SNIPPET_LINES: usize = 24;
/// Bytes of a line in a snippet.
const SNIPPET_LINE_BYTES: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Replace,
    Insert,
    Delete,
    ReplaceText,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "file_path", alias = "file", alias = "filename")]
    path: String,
    #[serde(alias = "operation", alias = "command")]
    #[schemars(required)]
    op: Option<Op>,
    #[serde(alias = "expected_hash")]
    hash: Option<String>,
    #[serde(alias = "line")]
    start_line: Option<u64>,
    end_line: Option<u64>,
    #[serde(alias = "content")]
    text: Option<String>,
    #[serde(alias = "old_string", alias = "old_text", alias = "old_str")]
    old: Option<String>,
    #[serde(alias = "new_string", alias = "new_text", alias = "new_str")]
    new: Option<String>,
    #[serde(alias = "replace_all")]
    all: Option<bool>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::mutating::<Args>("edit", description, Renderer::Diff),
        }
    }
}

impl super::Tool for Tool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, ctx: &'a ToolContext, args: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = parse::<Args>(&self.spec, args)?;
            let target = Target::lock(ctx, &args.path, false).await?;
            super::blocking(move || edit(target, args)).await
        })
    }
}

/// What is to be done to the bytes.
struct Plan {
    /// Each range of old bytes with what takes its place, in order.
    changes: Vec<(Range<usize>, Vec<u8>)>,
    /// What to tell besides.
    notes: Vec<String>,
}

fn bad(message: impl Into<String>) -> ToolError {
    ToolError::to_model("bad_arguments", message)
}

fn edit(target: Target, args: Args) -> Result<ToolOutput, ToolError> {
    let name = target.name().to_owned();
    let Some(before) = target.load()? else {
        return Err(not_found(target.place(), &name));
    };
    let op = match (args.op, &args.old) {
        (Some(op), _) => op,
        (None, Some(_)) => Op::ReplaceText,
        (None, None) => return Err(bad("`edit` needs `op`: replace, insert, delete or replace_text.")),
    };
    let Some(text) = Text::new(before.bytes.clone()) else {
        return Err(ToolError::to_model(
            "binary",
            format!("{name} is a binary file; only a command can change it."),
        ));
    };
    if let Some(hash) = &args.hash
        && !names_hash(hash, &before.hash)
    {
        return Err(stale(&target, &args, &text, hash, &before.hash));
    }
    let plan = match op {
        Op::ReplaceText => by_text(&name, &text, &args)?,
        _ => by_lines(&name, &text, op, &args)?,
    };
    let bytes = text.spliced(&plan.changes);
    if bytes == before.bytes {
        return Err(ToolError::to_model(
            "no_change",
            format!("{name} would be the same as before; nothing was written."),
        ));
    }
    let region = Region::of(&plan.changes, &bytes);
    let lines_before = text.line_count();
    let Change { hash, mut notes, diff } = target.commit(Some(before), bytes.clone())?;
    notes.splice(0..0, plan.notes);
    let Some(after) = Text::new(bytes) else {
        // Only an edit that writes NUL characters comes here.
        return Ok(ToolOutput::text(format!(
            "Changed {name}; it is a binary file now. Hash {}.",
            short(&hash)
        )));
    };
    Ok(tell(&name, &after, &region, lines_before, &hash, &notes).with("diff", diff))
}

/// The answer to a hash the file does not have any more: what has changed since, as far as it is known.
fn stale(target: &Target, args: &Args, text: &Text, given: &str, hash: &str) -> ToolError {
    let name = target.name();
    let number = |line: Option<u64>| line.and_then(|line| usize::try_from(line).ok());
    let wanted = number(args.start_line).map(|first| first..=number(args.end_line).unwrap_or(first).max(first));
    let since = match target.version(given) {
        Some(seen) => explain(&seen, &lines_of(text), hash, wanted),
        None => format!("No version with hash {given} was seen in this session. Read it again."),
    };
    ToolError::to_model(
        "stale_hash",
        format!("{name} has the hash {} now; nothing was changed. {since}", short(hash)),
    )
}

fn by_lines(name: &str, text: &Text, op: Op, args: &Args) -> Result<Plan, ToolError> {
    if args.hash.is_none() {
        return Err(bad(format!(
            "Line operations need `hash`, the file's hash as `read` or the last `edit` showed it. Read {name} first.",
        )));
    }
    let count = text.line_count();
    let line = |number: Option<u64>, what: &str| {
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| bad(format!("This operation needs `{what}`.")))
    };
    let new = args.text.as_deref().or(args.new.as_deref());
    let first = line(args.start_line, "start_line")?;
    let beyond = |number: usize| {
        ToolError::to_model(
            "no_such_line",
            format!("{name} has no line {number}: it has {count} lines."),
        )
    };
    let change = match op {
        Op::Insert => {
            let new = new.ok_or_else(|| bad("`insert` needs `text`."))?;
            if first > count {
                return Err(beyond(first));
            }
            insertion(text, first, new)
        }
        _ => {
            let last = args.end_line.map_or(Ok(first), |last| line(Some(last), "end_line"))?;
            if first == 0 || first > count {
                return Err(beyond(first));
            }
            if last > count {
                return Err(beyond(last));
            }
            if last < first {
                return Err(bad(format!("`end_line` {last} is before `start_line` {first}.")));
            }
            let new = match op {
                Op::Delete => "",
                _ => new.ok_or_else(|| bad("`replace` needs `text` (empty to delete)."))?,
            };
            replacement(text, first, last, new)
        }
    };
    Ok(Plan {
        changes: vec![change.map_err(|error| unencodable(name, text, &error))?],
        notes: Vec::new(),
    })
}

/// Lines `first` to `last` become `new`, which ends as they do.
fn replacement(text: &Text, first: usize, last: usize, new: &str) -> Result<(Range<usize>, Vec<u8>), Unencodable> {
    let range = text.range(first, last);
    let eol = text.eol_near(first);
    let mut new = new.to_owned();
    if !new.is_empty() {
        let ended = text.eol_of(last).is_some();
        match (ended, new.ends_with('\n')) {
            (true, false) => new.push('\n'),
            // The file ends without a line end, and goes on doing so.
            (false, true) => new.truncate(new.len() - if new.ends_with("\r\n") { 2 } else { 1 }),
            _ => {}
        }
    }
    Ok((range, text.encode(&new, eol)?))
}

/// `new` comes after line `after`.
fn insertion(text: &Text, after: usize, new: &str) -> Result<(Range<usize>, Vec<u8>), Unencodable> {
    let at = text.start_of(after + 1);
    let eol = text.eol_near(after.max(1));
    let open_end = after > 0 && after == text.line_count() && text.eol_of(after).is_none();
    let new = match (open_end, new.ends_with('\n')) {
        (true, ended) => format!("\n{}", if ended { &new[..new.len() - 1] } else { new }),
        (false, true) => new.to_owned(),
        (false, false) => format!("{new}\n"),
    };
    Ok((at..at, text.encode(&new, eol)?))
}

fn unencodable(name: &str, text: &Text, error: &Unencodable) -> ToolError {
    ToolError::to_model(
        "unencodable",
        format!(
            "{name} is {}, which has no character {:?}. Write it another way, or convert the file with a command first.",
            text.encoding.name(),
            error.0
        ),
    )
}

fn by_text(name: &str, text: &Text, args: &Args) -> Result<Plan, ToolError> {
    let old = args
        .old
        .as_deref()
        .ok_or_else(|| bad("`replace_text` needs `old`, the text to replace."))?;
    let new = args
        .new
        .as_deref()
        .or(args.text.as_deref())
        .ok_or_else(|| bad("`replace_text` needs `new`, the text to put there (may be empty)."))?;
    if old.is_empty() {
        return Err(bad(
            "`old` is empty. To add text use `insert`, to write a whole file use `write`.",
        ));
    }
    let Replacement { changes, notes } = replace_text::plan(name, text, old, new, args.all.unwrap_or(false))?;
    Ok(Plan { changes, notes })
}

/// Where the new bytes are, in the new file.
struct Region {
    start: usize,
    end: usize,
    places: usize,
}

impl Region {
    fn of(changes: &[(Range<usize>, Vec<u8>)], new: &[u8]) -> Self {
        let start = changes.first().map_or(0, |(range, _)| range.start);
        let after_last = changes.last().map_or(0, |(range, _)| range.end);
        let grown: usize = changes.iter().map(|(_, bytes)| bytes.len()).sum();
        let gone: usize = changes.iter().map(|(range, _)| range.len()).sum();
        Self {
            start,
            end: (after_last + grown).saturating_sub(gone).min(new.len()),
            places: changes.len(),
        }
    }
}

fn tell(name: &str, after: &Text, region: &Region, lines_before: usize, hash: &str, notes: &[String]) -> ToolOutput {
    let count = after.line_count();
    let first = after.line_at(region.start).min(count.max(1));
    let last = after
        .line_at(region.end.saturating_sub(1).max(region.start))
        .min(count.max(1));
    let delta = i64::try_from(count).unwrap_or(i64::MAX) - i64::try_from(lines_before).unwrap_or(i64::MAX);
    let mut text = format!("Changed {name}");
    if region.places > 1 {
        let _ = write!(text, " in {} places", region.places);
    }
    let _ = writeln!(
        text,
        ", lines {first} to {last} ({delta:+} lines, now {count}). New hash {}.",
        short(hash)
    );
    for note in notes {
        text.push_str(note);
        text.push('\n');
    }
    let from = first.saturating_sub(CONTEXT).max(1);
    let to = (last + CONTEXT).min(count);
    let left_out = (to + 1).saturating_sub(from).saturating_sub(SNIPPET_LINES);
    let gap = from + SNIPPET_LINES / 2..from + SNIPPET_LINES / 2 + left_out;
    for number in from..=to {
        if number == gap.start && left_out > 0 {
            let _ = writeln!(text, "({left_out} lines not shown)");
        }
        if !gap.contains(&number) {
            let line = after.line(number);
            let shown = cut(&line, SNIPPET_LINE_BYTES);
            let more = if shown.len() < line.len() { "…" } else { "" };
            let _ = writeln!(text, "{number}\t{shown}{more}");
        }
    }
    ToolOutput::text(text)
        .with("path", name)
        .with("new_hash", hash)
        .with("first_line", first)
        .with("last_line", last)
        .with("line_delta", delta)
        .with("lines", count)
        .with("places", region.places)
}
