//! Differences of files: a unified diff as numbered, coloured lines, with what changed within a line standing out.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::ui::element::{Element, Style};
use crate::ui::line::{Line, Span};
use crate::ui::lines::{Page, tool::left_out};
use crate::ui::text;

/// Lines kept around a change.
const CONTEXT: usize = 3;
/// Time spent on finding the smallest difference; after that a coarser one is taken.
const PATIENCE: Duration = Duration::from_millis(50);
/// Two lines less alike than this are two lines, not one that was changed.
const ALIKE: f32 = 0.5;
/// Longer lines are not compared word by word, in bytes.
const LONG_LINE: usize = 400;

/// The difference of two texts.
#[must_use]
pub fn between(page: &Page, old: &str, new: &str, indent: usize, most: usize) -> Vec<Line> {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .missing_newline_hint(false)
        .to_string();
    unified(page, &text, indent, most)
}

/// A unified diff, behind `indent` blanks, at most `most` lines of it.
#[must_use]
pub fn unified(page: &Page, diff: &str, indent: usize, most: usize) -> Vec<Line> {
    let rows = read(diff);
    let digits = rows.iter().map(|row| row.number).max().unwrap_or(0).to_string().len();
    // One line more is shown rather than a line that says it is not.
    let shown = if rows.len() <= most + 1 { rows.len() } else { most };
    let mut lines = Vec::with_capacity(shown + 1);
    let mut at = 0;
    while at < shown {
        let removed = run(&rows[at..], Kind::Removed);
        let added = run(&rows[at + removed..], Kind::Added);
        if removed == 0 || added == 0 {
            let rest = removed + added;
            let end = if rest == 0 { at + 1 } else { at + rest };
            lines.extend(rows[at..end].iter().map(|row| draw(page, row, None, indent, digits)));
            at = end;
            continue;
        }
        let (old, new) = (&rows[at..at + removed], &rows[at + removed..at + removed + added]);
        let pairs: Vec<Option<Pair>> = old
            .iter()
            .zip(new)
            .map(|(old, new)| words(old.text, new.text))
            .collect();
        for (side, rows) in [(ChangeTag::Delete, old), (ChangeTag::Insert, new)] {
            for (index, row) in rows.iter().enumerate() {
                let pair = pairs.get(index).and_then(Option::as_ref).map(|pair| (pair, side));
                lines.push(draw(page, row, pair, indent, digits));
            }
        }
        at += removed + added;
    }
    lines.truncate(shown);
    if shown < rows.len() {
        lines.push(left_out(page, rows.len() - shown, indent));
    }
    lines
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Hunk,
    Context,
    Added,
    Removed,
}

#[derive(Debug)]
struct Row<'a> {
    kind: Kind,
    /// The line's number, from 1; 0 where it has none.
    number: usize,
    text: &'a str,
}

/// The lines of a unified diff. What is not one is taken as context, so nothing is lost.
fn read(diff: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let (mut old, mut new) = (1, 1);
    // Lines the current hunk still has, on each side: what looks like a header inside it is none.
    let (mut old_left, mut new_left) = (0usize, 0usize);
    let mut files = 0;
    for line in diff.lines() {
        let inside = old_left > 0 || new_left > 0;
        let mut push = |kind, number, text| rows.push(Row { kind, number, text });
        if let Some((ranges, heading)) = (!inside).then(|| hunk(line)).flatten() {
            (old, new) = (ranges[0], ranges[2]);
            (old_left, new_left) = (ranges[1], ranges[3]);
            push(Kind::Hunk, 0, heading);
        } else if let Some(text) = line.strip_prefix('+').filter(|_| inside) {
            push(Kind::Added, new, text);
            new += 1;
            new_left = new_left.saturating_sub(1);
        } else if let Some(text) = line.strip_prefix('-').filter(|_| inside) {
            push(Kind::Removed, old, text);
            old += 1;
            old_left = old_left.saturating_sub(1);
        } else if line.starts_with("\\ ") || (!inside && line.starts_with("--- ")) {
            // The missing line end at the file's end; the old name, which the new one repeats.
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|_| !inside) {
            files += 1;
            if files > 1 {
                push(Kind::File, 0, name);
            }
        } else {
            push(
                Kind::Context,
                if inside { new } else { 0 },
                line.strip_prefix(' ').unwrap_or(line),
            );
            old += 1;
            new += 1;
            old_left = old_left.saturating_sub(1);
            new_left = new_left.saturating_sub(1);
        }
    }
    // The first hunk's head says nothing the numbers do not.
    if rows
        .first()
        .is_some_and(|row| row.kind == Kind::Hunk && row.text.is_empty())
    {
        rows.remove(0);
    }
    rows
}

/// Reads `@@ -1,2 +3,4 @@ heading`: start and length of both sides.
fn hunk(line: &str) -> Option<([usize; 4], &str)> {
    let (ranges, heading) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, len) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, len.parse().ok()?))
    };
    let ((old_start, old_len), (new_start, new_len)) = (range(old)?, range(new)?);
    Some(([old_start, old_len, new_start, new_len], heading.trim()))
}

/// How many rows of `kind` stand at the start.
fn run(rows: &[Row<'_>], kind: Kind) -> usize {
    rows.iter().take_while(|row| row.kind == kind).count()
}

/// The pieces of two lines that are versions of each other.
type Pair = Vec<(ChangeTag, String)>;

fn words(old: &str, new: &str) -> Option<Pair> {
    if old.len().max(new.len()) > LONG_LINE {
        return None;
    }
    let diff = TextDiff::configure().timeout(PATIENCE).diff_words(old, new);
    if diff.ratio() < ALIKE {
        return None;
    }
    let changes = diff
        .iter_all_changes()
        .map(|change| (change.tag(), change.value().to_owned()));
    Some(changes.collect())
}

fn draw(page: &Page, row: &Row<'_>, pair: Option<(&Pair, ChangeTag)>, indent: usize, digits: usize) -> Line {
    let (sign, element, word) = match row.kind {
        Kind::Added => ("+ ", Element::DiffAdded, Element::DiffAddedWord),
        Kind::Removed => ("- ", Element::DiffRemoved, Element::DiffRemovedWord),
        Kind::Context => ("  ", Element::DiffContext, Element::DiffContext),
        Kind::Hunk => ("", Element::DiffHunk, Element::DiffHunk),
        Kind::File => ("", Element::DiffFile, Element::DiffFile),
    };
    let mut line = Line {
        spans: vec![Span::pad(indent)],
    };
    match (row.kind, row.number) {
        (Kind::Hunk, _) => {
            line = line.with(page.ellipsis(), Element::DiffHunk);
            line.spans.push(Span::pad(1));
        }
        (Kind::File, _) => {}
        (_, 0) => line.spans.push(Span::pad(digits + 1)),
        (_, number) => line = line.with(&format!("{number:>digits$} "), Element::Marker),
    }
    line = line.with(sign, element);
    match pair {
        None => line = line.with(&clean(row.text), element),
        Some((pair, side)) => {
            for (tag, text) in pair {
                let style = match *tag {
                    ChangeTag::Equal => Style::of(element),
                    tag if tag == side => Style::of(element).within(word),
                    _ => continue,
                };
                line = line.with(&clean(text), style);
            }
        }
    }
    line.truncate(page.width, page.ellipsis());
    line
}

fn clean(line: &str) -> String {
    text::expand_tabs(&text::strip_escapes(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::line::{described, plain};

    const PAGE: Page = Page {
        width: 40,
        unicode: true,
        hyperlinks: false,
        marks: false,
    };

    #[test]
    fn a_change_is_shown_with_its_numbers_and_words() {
        let old = "one\ntwo three\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
        let new = "one\ntwo 3\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\n";
        let lines = between(&PAGE, old, new, 2, 40);
        insta::assert_snapshot!(plain(&lines), @"
         1   one
         2 - two three
         2 + two 3
         3   four
         4   five
         5   six
        …
         7   eight
         8   nine
         9   ten
        10 + eleven
        ");
        insta::assert_snapshot!(described(&lines[1..3]), @"
        <marker> 2 </><diff.removed>- </><diff.removed>two</><diff.removed> </><diff.removed/diff.removed_word>three</>
        <marker> 2 </><diff.added>+ </><diff.added>two</><diff.added> </><diff.added/diff.added_word>3</>
        ");
    }

    #[test]
    fn long_changes_say_what_is_left_out_and_long_lines_are_cut() {
        let new: String = (0..30).map(|n| format!("line {n} {}\n", "x".repeat(60))).collect();
        let lines = between(&PAGE, "", &new, 0, 4);
        insta::assert_snapshot!(plain(&lines), @"
         1 + line 0 xxxxxxxxxxxxxxxxxxxxxxxxxxx…
         2 + line 1 xxxxxxxxxxxxxxxxxxxxxxxxxxx…
         3 + line 2 xxxxxxxxxxxxxxxxxxxxxxxxxxx…
         4 + line 3 xxxxxxxxxxxxxxxxxxxxxxxxxxx…
        … 26 more lines
        ");
        assert!(lines.iter().all(|line| line.width() <= 40));
    }

    #[test]
    fn several_files_and_lines_that_look_like_headers() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn main()\n--- gone\n+++ come\n same\n--- a/y\n+++ b/y\n@@ -5 +5 @@\n-\x1b[31ma\n\\ No newline at end of file\n+b\n";
        insta::assert_snapshot!(plain(&unified(&PAGE, diff, 0, 40)), @"
        … fn main()
        1 - -- gone
        1 + ++ come
        2   same
        b/y
        …
        5 - a
        5 + b
        ");
        assert_eq!(plain(&unified(&PAGE, "not a diff\n", 0, 40)), "    not a diff");
    }
}
