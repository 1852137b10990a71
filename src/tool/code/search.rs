//! A pattern in all files of a scope, by several threads: the same engine and the same rules as ripgrep.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::rank::declares;
use super::walk::Scope;
use crate::tool::result::ToolError;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub(in crate::tool) struct Pattern {
    pub(in crate::tool) text: String,
    /// Taken as it is, not as a regular expression.
    pub(in crate::tool) literal: bool,
    pub(in crate::tool) ignore_case: bool,
    /// Lines shown before and after each match.
    pub(in crate::tool) context: usize,
    /// Matches of one file that are kept; those beyond are counted. `None` keeps all.
    pub(in crate::tool) keep: Option<usize>,
    /// Bytes of a line that are kept, around its match.
    pub(in crate::tool) line_bytes: usize,
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tool) struct Line {
    pub(in crate::tool) number: u64,
    pub(in crate::tool) text: String,
    /// Whether it matches, or only stands beside one that does.
    pub(in crate::tool) matches: bool,
}

/// What was found in one file.
#[derive(Clone, Debug)]
pub(in crate::tool) struct FileHits {
    pub(in crate::tool) path: PathBuf,
    pub(in crate::tool) lines: Vec<Line>,
    /// Matching lines, kept or not.
    pub(in crate::tool) count: u64,
    /// Whether one of the lines kept looks as if it declared what was looked for.
    pub(in crate::tool) declares: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(in crate::tool) struct Found {
    /// In no order.
    pub(in crate::tool) files: Vec<FileHits>,
    /// Whether the search gave up before its end.
    pub(in crate::tool) stopped: bool,
}

impl Found {
    pub(in crate::tool) fn count(&self) -> u64 {
        self.files.iter().map(|file| file.count).sum()
    }
}

/// The matcher of a pattern.
pub(in crate::tool) fn matcher(pattern: &Pattern) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(pattern.ignore_case)
        .fixed_strings(pattern.literal);
    if !spans_lines(pattern) {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&pattern.text)
}

fn spans_lines(pattern: &Pattern) -> bool {
    pattern.text.contains('\n') || (!pattern.literal && pattern.text.contains("\\n"))
}

/// Searches all files of `scope`.
pub(in crate::tool) fn search(scope: &Scope, pattern: &Pattern, matcher: &RegexMatcher) -> Result<Found, ToolError> {
    let found = Mutex::new(Vec::new());
    scope.each_file(|| {
        let mut searcher = searcher(pattern);
        let matcher = matcher.clone();
        let found = &found;
        move |entry| {
            if let Some(hits) = search_file(scope, &mut searcher, &matcher, pattern, entry.path()) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push(hits);
            }
            true
        }
    })?;
    Ok(Found {
        files: found.into_inner().unwrap_or_else(PoisonError::into_inner),
        stopped: scope.stopped(),
    })
}

fn searcher(pattern: &Pattern) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .multi_line(spans_lines(pattern))
        .before_context(pattern.context)
        .after_context(pattern.context)
        .build()
}

fn search_file(
    scope: &Scope,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    pattern: &Pattern,
    path: &Path,
) -> Option<FileHits> {
    let file = scope.open(path).ok()?;
    let mut collector = Collector {
        scope,
        pattern,
        matcher,
        lines: Vec::new(),
        kept: 0,
        count: 0,
        declares: false,
    };
    // An error in the middle (the file shrinks, the disk fails) leaves what was found before it.
    let _ = searcher.search_file(matcher, &file, &mut collector);
    (collector.count > 0).then(|| FileHits {
        path: path.to_owned(),
        lines: collector.lines,
        count: collector.count,
        declares: collector.declares,
    })
}

/// Takes the lines of one file.
struct Collector<'a> {
    scope: &'a Scope,
    pattern: &'a Pattern,
    matcher: &'a RegexMatcher,
    lines: Vec<Line>,
    kept: usize,
    count: u64,
    declares: bool,
}

impl Collector<'_> {
    fn full(&self) -> bool {
        self.pattern.keep.is_some_and(|keep| self.kept >= keep)
    }

    fn push(&mut self, number: u64, bytes: &[u8], matches: bool) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let at = if matches {
            self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start())
        } else {
            0
        };
        if matches && !self.declares {
            self.declares = declares(&bytes[..at]);
        }
        self.lines.push(Line {
            number,
            text: around(bytes, at, self.pattern.line_bytes),
            matches,
        });
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(0);
        for (number, line) in (first..).zip(found.lines()) {
            self.count += 1;
            if !self.full() {
                self.kept += 1;
                self.push(number, line, true);
            }
        }
        Ok(!self.scope.stopped())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if !self.full() {
            self.push(context.line_number().unwrap_or(0), context.bytes(), false);
        }
        Ok(true)
    }
}

/// At most `most` bytes of a line around the byte at `at`, with a mark where something is cut off.
fn around(line: &[u8], at: usize, most: usize) -> String {
    if line.len() <= most {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = at.saturating_sub(most / 3).min(line.len() - most);
    let end = start + most;
    let text = String::from_utf8_lossy(&line[start..end]);
    let (head, tail) = (
        if start > 0 { "…" } else { "" },
        if end < line.len() { "…" } else { "" },
    );
    format!("{head}{}{tail}", text.trim_matches('\u{fffd}'))
}
