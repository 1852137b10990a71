//! `code_files`: files by parts of their names, the best match first.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use schemars::JsonSchema;
use serde::Deserialize;

use super::code::rank::tier;
use super::code::walk::{Scope, by_top};
use super::context::ToolContext;
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;

/// Files shown when nothing else is asked for.
const LIMIT: usize = 50;
/// Files shown at most.
const MAX_LIMIT: usize = 500;
/// How long is looked among what is hidden and ignored when nothing was found elsewhere.
const SECOND_LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "pattern", alias = "name")]
    query: Option<String>,
    #[serde(alias = "globs")]
    glob: Option<Vec<String>>,
    path: Option<String>,
    ignored: Option<bool>,
    limit: Option<usize>,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("code_files", description, Renderer::Listing, files)
    }
}

fn files(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    let globs = args.glob.as_deref().unwrap_or_default();
    let query = args.query.as_deref().unwrap_or("").trim();
    if query.is_empty() && globs.is_empty() {
        return Err(ToolError::to_model(
            "bad_arguments",
            "`code_files` needs a `query` or a `glob`. For an overview use `code_map`.",
        ));
    }
    let scope = Scope::new(ctx, args.path.as_deref(), globs, args.ignored.unwrap_or(false))?;
    let all = scope.files()?;
    let considered = all.len();
    let found = ranked(&scope, all, query);
    if found.is_empty() {
        return Ok(nothing(&scope, query, considered));
    }
    let limit = args.limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
    let mut text = format!("{} of {considered} files match", found.len());
    if scope.stopped() {
        text.push_str(" (the walk was stopped before its end)");
    }
    let mut shown = 0;
    let mut body = String::new();
    for path in found.iter().take(limit) {
        if body.len() + path.len() > ctx.limits.output_chars / 2 {
            break;
        }
        body.push_str(path);
        body.push('\n');
        shown += 1;
    }
    if shown < found.len() {
        let _ = write!(
            text,
            "; the first {shown} below (narrow it, or ask for more with `limit`)"
        );
    }
    text.push_str(":\n");
    Ok(ToolOutput::text(text + &body)
        .with("files", found.len())
        .with("shown", shown)
        .with("truncated", shown < found.len()))
}

/// The paths that match, best first, as they are shown.
fn ranked(scope: &Scope, paths: Vec<PathBuf>, query: &str) -> Vec<String> {
    let mut shown: Vec<(u8, String)> = paths.iter().map(|path| (tier(path), scope.shown(path))).collect();
    if query.is_empty() {
        shown.sort_unstable();
        return shown.into_iter().map(|(_, path)| path).collect();
    }
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, u8, String)> = shown
        .into_iter()
        .filter_map(|(tier, path)| {
            let score = pattern.score(Utf32Str::new(&path, &mut buffer), &mut matcher)?;
            Some((score, tier, path))
        })
        .collect();
    scored.sort_by(|a, b| {
        let by_score = b.0.cmp(&a.0);
        by_score
            .then(a.1.cmp(&b.1))
            .then(a.2.len().cmp(&b.2.len()))
            .then_with(|| a.2.cmp(&b.2))
    });
    scored.into_iter().map(|(.., path)| path).collect()
}

fn nothing(scope: &Scope, query: &str, considered: usize) -> ToolOutput {
    let mut text = format!("None of {considered} files matches.");
    if !scope.all {
        let mut everything = scope.with_all();
        everything.deadline = Some(Instant::now() + SECOND_LOOK);
        let hidden = everything
            .files()
            .map(|paths| ranked(scope, paths, query))
            .unwrap_or_default();
        if !hidden.is_empty() {
            let places = by_top(Path::new(""), hidden.iter().map(|path| (Path::new(path), 1)));
            let _ = write!(
                text,
                " 0 shown; {} among ignored or hidden files: {places}. See them with `ignored`.",
                hidden.len()
            );
        }
    }
    ToolOutput::text(text).with("files", 0).with("shown", 0)
}
