//! `code_grep`: a pattern in the tree, the best files first, as many lines as fit.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;

use super::code::rank::tier;
use super::code::search::{FileHits, Found, Line, Pattern, matcher, search};
use super::code::walk::{Scope, by_top};
use super::context::ToolContext;
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;

/// Matches of one file that are kept at all.
const KEEP: usize = 200;
/// Bytes of a line shown.
const LINE_BYTES: usize = 240;
/// Matches shown of one file where there are many files.
const PER_FILE: usize = 8;
/// How often one and the same line is shown from several files.
const REPEATS: usize = 3;
/// How long is looked among what is hidden and ignored when nothing was found elsewhere.
const SECOND_LOOK: Duration = Duration::from_millis(700);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "query", alias = "regex")]
    pattern: String,
    path: Option<String>,
    /// Such as `*.rs`, `!*_test.go`.
    #[serde(alias = "globs", alias = "include")]
    glob: Option<Vec<String>>,
    ignore_case: Option<bool>,
    #[serde(alias = "fixed")]
    literal: Option<bool>,
    context: Option<u32>,
    ignored: Option<bool>,
    offset: Option<usize>,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("code_grep", description, Renderer::Matches, grep)
    }
}

fn grep(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    if args.pattern.is_empty() {
        return Err(ToolError::to_model("bad_arguments", "`pattern` is empty."));
    }
    let globs = args.glob.as_deref().unwrap_or_default();
    let scope = Scope::new(ctx, args.path.as_deref(), globs, args.ignored.unwrap_or(false))?;
    let mut pattern = Pattern {
        text: args.pattern.clone(),
        literal: args.literal.unwrap_or(false),
        ignore_case: args.ignore_case.unwrap_or(false),
        context: args.context.map_or(0, |lines| lines.min(10) as usize),
        keep: Some(KEEP),
        line_bytes: LINE_BYTES,
    };
    let mut notes = Vec::new();
    let engine = readable(&mut pattern, &mut notes)?;
    let found = search(&scope, &pattern, &engine)?;
    if found.files.is_empty() {
        return Ok(nothing(&scope, &pattern, found.stopped, &notes));
    }
    Ok(tell(
        &scope,
        found,
        args.offset.unwrap_or(0),
        ctx.limits.output_chars / 2,
        &notes,
    ))
}

/// All matching lines of the tree at the working directory of `ctx`, as path and line number, with no limit of any
/// kind: what `code_grep` ranks and cuts.
pub fn search_lines(ctx: &ToolContext, pattern: &str) -> Result<Vec<(String, u64)>, ToolError> {
    let scope = Scope::new(ctx, None, &[], false)?;
    let mut pattern = Pattern {
        text: pattern.to_owned(),
        line_bytes: LINE_BYTES,
        ..Pattern::default()
    };
    let engine = readable(&mut pattern, &mut Vec::new())?;
    let found = search(&scope, &pattern, &engine)?;
    let lines = found.files.iter().flat_map(|file| {
        let path = scope.shown(&file.path);
        file.lines.iter().map(move |line| (path.clone(), line.number))
    });
    Ok(lines.collect())
}

/// The matcher of `pattern`; one that is no regular expression is taken as it is, and that is told.
fn readable(pattern: &mut Pattern, notes: &mut Vec<String>) -> Result<RegexMatcher, ToolError> {
    let error = match matcher(pattern) {
        Ok(engine) => return Ok(engine),
        Err(error) => error,
    };
    let why = error.to_string();
    let why = why
        .lines()
        .last()
        .unwrap_or(&why)
        .trim_start_matches("error: ")
        .to_owned();
    pattern.literal = true;
    match matcher(pattern) {
        Ok(engine) => {
            notes.push(format!(
                "It is no regular expression ({why}) and was searched as plain text."
            ));
            Ok(engine)
        }
        Err(_) => Err(ToolError::to_model(
            "bad_pattern",
            format!("The pattern cannot be read: {why}."),
        )),
    }
}

/// The answer where nothing was found: where it would have been.
fn nothing(scope: &Scope, pattern: &Pattern, stopped: bool, notes: &[String]) -> ToolOutput {
    let mut text = if stopped {
        "The search was stopped before its end; nothing until then.".to_owned()
    } else {
        "No matches.".to_owned()
    };
    let mut hidden = 0;
    if !stopped {
        let counting = Pattern {
            keep: Some(0),
            context: 0,
            ..pattern.clone()
        };
        if !scope.all {
            let mut everything = scope.with_all();
            everything.deadline = Some(Instant::now() + SECOND_LOOK);
            if let Some(found) = count(&everything, &counting) {
                hidden = found.count();
                let at_least = if found.stopped { "at least " } else { "" };
                if hidden > 0 {
                    let places = by_top(
                        &scope.root,
                        found.files.iter().map(|file| (file.path.as_path(), file.count)),
                    );
                    let _ = write!(
                        text,
                        " 0 shown; {at_least}{hidden} in ignored or hidden files: {places}. See them with `ignored`."
                    );
                } else if found.stopped {
                    text.push_str(" Ignored and hidden files were not all looked at.");
                }
            }
        }
        if !pattern.ignore_case {
            let otherwise = Pattern {
                ignore_case: true,
                ..counting
            };
            let mut again = scope.clone();
            again.deadline = Some(Instant::now() + SECOND_LOOK);
            if let Some(found) = count(&again, &otherwise).filter(|found| !found.files.is_empty()) {
                let _ = write!(text, " {} with `ignore_case`.", found.count());
            }
        }
    }
    for note in notes {
        let _ = write!(text, " {note}");
    }
    ToolOutput::text(text)
        .with("matches", 0)
        .with("files", 0)
        .with("hidden_matches", hidden)
}

fn count(scope: &Scope, pattern: &Pattern) -> Option<Found> {
    search(scope, pattern, &matcher(pattern).ok()?).ok()
}

fn tell(scope: &Scope, found: Found, skip: usize, room: usize, notes: &[String]) -> ToolOutput {
    let (matches, stopped) = (found.count(), found.stopped);
    let mut files = found.files;
    let total = files.len();
    files.sort_by_cached_key(|file| (tier(&file.path), !file.declares, file.path.clone()));
    let per_file = if total <= 3 { KEEP } else { PER_FILE };
    let mut body = String::new();
    let mut repeats = HashMap::new();
    let (mut shown_files, mut shown_matches) = (0, 0);
    for file in files.iter().skip(skip) {
        let (text, count) = block(
            scope,
            file,
            per_file,
            &mut repeats,
            room.saturating_sub(body.len()),
            shown_files == 0,
        );
        if count == 0 {
            break;
        }
        body.push_str(&text);
        shown_files += 1;
        shown_matches += count;
    }
    let mut text = format!("{matches} matches in {total} files");
    if stopped {
        text.push_str(" before the search was stopped");
    }
    let rest = total.saturating_sub(skip + shown_files);
    if shown_files < total {
        let _ = write!(text, "; files {} to {} below", skip + 1, skip + shown_files);
        if rest > 0 {
            let _ = write!(
                text,
                ", next offset {} (or narrow `path` or `glob`)",
                skip + shown_files
            );
        }
    }
    text.push_str(".\n");
    for note in notes {
        text.push_str(note);
        text.push('\n');
    }
    text.push_str(&body);
    ToolOutput::text(text)
        .with("matches", matches)
        .with("files", total)
        .with("shown_files", shown_files)
        .with("shown_matches", shown_matches)
        .with("truncated", rest > 0 || skip > 0 || stopped)
}

/// One file's lines, and how many matches are told with them. Where there is no room for any, and it is not the first,
/// nothing.
fn block(
    scope: &Scope,
    file: &FileHits,
    most: usize,
    repeats: &mut HashMap<String, usize>,
    room: usize,
    first: bool,
) -> (String, u64) {
    let mut text = format!("\n{}\n", scope.shown(&file.path));
    let (mut shown, mut same) = (0, 0_u64);
    let mut last = None;
    for line in &file.lines {
        if line.matches {
            if shown >= most {
                break;
            }
            let times = repeats.entry(line.text.trim().to_owned()).or_default();
            *times += 1;
            if *times > REPEATS {
                same += 1;
                continue;
            }
            shown += 1;
        }
        let row = row(line, last);
        if text.len() + row.len() > room && !(first && last.is_none()) {
            if last.is_none() {
                return (String::new(), 0);
            }
            break;
        }
        text.push_str(&row);
        last = Some(line.number);
    }
    if same > 0 {
        let _ = writeln!(text, "({same} more of a line already shown {REPEATS} times)");
    }
    let told = shown as u64 + same;
    if told < file.count {
        let _ = writeln!(text, "({} more in this file)", file.count - told);
    }
    (text, told.max(1))
}

fn row(line: &Line, last: Option<u64>) -> String {
    let mark = if line.matches { ':' } else { '-' };
    // A gap between two places, where lines around them are shown.
    let gap = if !line.matches && last.is_some_and(|last| line.number > last + 1) {
        "--\n"
    } else {
        ""
    };
    format!("{gap}{}{mark} {}\n", line.number, line.text)
}
