//! `code_map`: a tree at a glance.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::code::languages::Language;
use super::code::rank::tier;
use super::code::walk::Scope;
use super::context::ToolContext;
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;

/// Directories shown when no depth is asked for.
const DIRECTORIES: usize = 60;
/// Deepest level that is tried.
const MAX_DEPTH: usize = 12;
/// Bytes of one directory's line.
const LINE_BYTES: usize = 160;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: Option<String>,
    depth: Option<usize>,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("code_map", description, Renderer::Listing, map)
    }
}

/// A directory and what is below it.
#[derive(Default)]
struct Directory {
    directories: BTreeMap<String, Directory>,
    files: Vec<String>,
    /// Files below it, its own among them.
    total: usize,
}

impl Directory {
    fn add(&mut self, path: &Path) {
        let mut at = self;
        at.total += 1;
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let name = component.as_os_str().to_string_lossy().into_owned();
            if components.peek().is_none() {
                at.files.push(name);
                return;
            }
            at = at.directories.entry(name).or_default();
            at.total += 1;
        }
    }

    /// The directories in it with their paths. One that only holds another one shares its line.
    fn inner(&self) -> impl Iterator<Item = (String, &Self)> {
        self.directories.iter().map(|(name, directory)| {
            let (mut path, mut at) = (name.clone(), directory);
            while let (true, 1, Some((next, inner))) =
                (at.files.is_empty(), at.directories.len(), at.directories.iter().next())
            {
                path = format!("{path}/{next}");
                at = inner;
            }
            (path, at)
        })
    }

    /// How many lines it takes down to `depth`.
    fn lines(&self, depth: usize) -> usize {
        match depth {
            0 => 0,
            _ => self.inner().map(|(_, directory)| 1 + directory.lines(depth - 1)).sum(),
        }
    }

    fn render(&self, indent: usize, depth: usize, into: &mut String) {
        for (path, at) in self.inner() {
            let _ = write!(into, "{}{path}/ {}", "  ".repeat(indent), at.total);
            let below = at.total - at.files.len();
            if depth <= 1 && below > 0 {
                let _ = write!(into, " ({below} in directories below)");
            }
            let names = names(&at.files, LINE_BYTES);
            if !names.is_empty() {
                let _ = write!(into, ": {names}");
            }
            into.push('\n');
            if depth > 1 {
                at.render(indent + 1, depth - 1, into);
            }
        }
    }
}

/// As many of `files` as fit, what people write first.
fn names(files: &[String], room: usize) -> String {
    let mut sorted: Vec<&String> = files.iter().collect();
    sorted.sort_by_key(|name| (tier(Path::new(name)), name.as_str()));
    let mut text = String::new();
    for (index, name) in sorted.iter().enumerate() {
        if index > 0 && text.len() + name.len() > room {
            let _ = write!(text, ", +{}", sorted.len() - index);
            break;
        }
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{name}");
    }
    text
}

fn map(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    let scope = Scope::new(ctx, args.path.as_deref(), &[], false)?;
    if !scope.root.is_dir() {
        return Err(ToolError::to_model(
            "not_a_directory",
            format!(
                "{} is a file; `code_outline` shows what it declares.",
                scope.shown(&scope.root)
            ),
        ));
    }
    let files = scope.files()?;
    let mut root = Directory::default();
    let mut languages: BTreeMap<String, usize> = BTreeMap::new();
    for path in &files {
        root.add(path.strip_prefix(&scope.root).unwrap_or(path));
        *languages.entry(language_of(path)).or_default() += 1;
    }
    let mut by_count: Vec<(String, usize)> = languages.into_iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    let kinds: Vec<String> = by_count
        .iter()
        .take(8)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let mut text = format!("{}: {} files", scope.root.display(), files.len());
    if scope.stopped() {
        text.push_str(" until the walk was stopped");
    }
    let _ = writeln!(text, " ({}); ignored and hidden ones left out.", kinds.join(", "));
    let own = names(&root.files, 4 * LINE_BYTES);
    if !own.is_empty() {
        let _ = writeln!(text, "{own}");
    }
    let deepest = (1..=MAX_DEPTH)
        .rev()
        .find(|depth| root.lines(*depth) <= DIRECTORIES)
        .unwrap_or(1);
    let depth = args.depth.unwrap_or(deepest).clamp(1, MAX_DEPTH);
    let mut body = String::new();
    root.render(0, depth, &mut body);
    let room = ctx.limits.output_chars / 2;
    let truncated = body.len() > room;
    if truncated {
        let end = super::text::cut(&body, room).rfind('\n').map_or(0, |at| at + 1);
        let left = body[end..].lines().count();
        body.truncate(end);
        let _ = writeln!(text, "({left} more directories are not shown: ask with a `path`)");
    }
    text.push_str(&body);
    Ok(ToolOutput::text(text)
        .with("files", files.len())
        .with("depth", depth)
        .with("truncated", truncated))
}

fn language_of(path: &Path) -> String {
    match (Language::of(path), path.extension()) {
        (Some(language), _) => language.name.to_owned(),
        (None, Some(extension)) => format!(".{}", extension.to_string_lossy().to_ascii_lowercase()),
        (None, None) => "no extension".to_owned(),
    }
}
