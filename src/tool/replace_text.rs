//! Finding the text that is to be replaced: exactly, else with other line ends, else written otherwise if that can
//! only mean one place; and what is near it when it is not there.

use std::ops::Range;

use super::loose;
use super::result::ToolError;
use super::text::{Encoding, Eol, Text, cut, with_eol};

/// Lines compared when the nearest places are looked for.
const COMPARED_LINES: usize = 50_000;
/// Places shown when there are too many or none.
const PLACES: usize = 3;

/// What replacing comes to.
#[derive(Debug)]
pub(super) struct Replacement {
    /// Each range of old bytes with what takes its place, in order.
    pub(super) changes: Vec<(Range<usize>, Vec<u8>)>,
    /// What has to be told about how the text was found.
    pub(super) notes: Vec<String>,
}

/// Plans to put `new` in place of `old` in `text`, once, or with `all` wherever it is.
pub(super) fn plan(name: &str, text: &Text, old: &str, new: &str, all: bool) -> Result<Replacement, ToolError> {
    let (found, length) = occurrences(text, old);
    if found.is_empty() {
        return loosely(name, text, old, new);
    }
    if found.len() > 1 && !all {
        let lines = found.iter().map(|at| text.line_at(*at));
        return Err(ambiguous(name, found.len(), lines, "`old` occurs"));
    }
    let changes = found
        .into_iter()
        .map(|at| Ok((at..at + length, encode_beside(text, at, new)?)))
        .collect::<Result<Vec<_>, char>>()
        .map_err(|c| unencodable(name, text, c))?;
    Ok(Replacement {
        changes,
        notes: Vec::new(),
    })
}

fn ambiguous(name: &str, count: usize, lines: impl Iterator<Item = usize>, what: &str) -> ToolError {
    let lines: Vec<String> = lines.take(10).map(|line| line.to_string()).collect();
    let more = if count > 10 { ", …" } else { "" };
    ToolError::to_model(
        "ambiguous",
        format!(
            "{what} {count} times in {name}, at lines {}{more}. Add lines around it to make it unique, or set `all`.",
            lines.join(", ")
        ),
    )
}

fn unencodable(name: &str, text: &Text, c: char) -> ToolError {
    ToolError::to_model(
        "unencodable",
        format!("{name} is {}, which has no character {c:?}.", text.encoding.name()),
    )
}

/// The same where `old` is written otherwise in the file: only if there is one place it can mean.
fn loosely(name: &str, text: &Text, old: &str, new: &str) -> Result<Replacement, ToolError> {
    let nothing = || ToolError::to_model("not_found", missing(name, text, old));
    // Only where the file is one text, each character of which is some bytes of it.
    if !matches!(text.encoding, Encoding::Utf8 | Encoding::Latin1) {
        return Err(nothing());
    }
    let whole = text.decode(text.bom()..text.bytes.len());
    let found = loose::find(&whole, old);
    // In a Latin-1 file a character is one byte there and may be two here.
    let at = |position: usize| match text.encoding {
        Encoding::Latin1 => whole[..position].chars().count(),
        _ => text.bom() + position,
    };
    let found = match found.as_slice() {
        [] => return Err(nothing()),
        [one] => one.clone(),
        many => {
            let lines = many.iter().map(|range| text.line_at(at(range.start)));
            let what = "Apart from blanks and quotes `old` occurs";
            return Err(ambiguous(name, many.len(), lines, what));
        }
    };
    let changes = loose::changes(&whole[found.clone()], old, new).ok_or_else(nothing)?;
    let line = text.line_at(at(found.start));
    let changes = changes
        .into_iter()
        .map(|(range, new)| {
            let (start, end) = (at(found.start + range.start), at(found.start + range.end));
            Ok((start..end, encode_beside(text, start, &new)?))
        })
        .collect::<Result<Vec<_>, char>>()
        .map_err(|c| unencodable(name, text, c))?;
    Ok(Replacement {
        changes,
        notes: vec![format!(
            "`old` differs from line {line} on in blanks, quotes or the like, and was taken for it because nothing \
             else comes near; what you did not change there stays as it was."
        )],
    })
}

/// Where `old` is, and how many bytes it takes there: as written, else with the file's line ends, else (in a file that
/// is partly Latin-1) in that encoding.
fn occurrences(text: &Text, old: &str) -> (Vec<usize>, usize) {
    let ends = [
        old.to_owned(),
        with_eol(&old.replace("\r\n", "\n"), Eol::CrLf).into_owned(),
        old.replace("\r\n", "\n"),
    ];
    let mut needles: Vec<Vec<u8>> = ends.iter().filter_map(|old| text.encode(old, Eol::Lf).ok()).collect();
    if text.encoding == Encoding::Mixed {
        needles.extend(ends.iter().filter_map(|old| latin1(old).ok()));
    }
    for needle in needles {
        let found = text.find(&needle);
        if !found.is_empty() {
            return (found, needle.len());
        }
    }
    (Vec::new(), 0)
}

fn latin1(text: &str) -> Result<Vec<u8>, char> {
    text.chars()
        .map(|c| u8::try_from(u32::from(c)).map_err(|_| c))
        .collect()
}

/// `new` in the encoding of the line at `at`.
fn encode_beside(text: &Text, at: usize, new: &str) -> Result<Vec<u8>, char> {
    let line = text.line_at(at);
    let eol = text.eol_near(line);
    if text.encoding == Encoding::Mixed && std::str::from_utf8(&text.bytes[text.range(line, line)]).is_err() {
        return latin1(&with_eol(new, eol));
    }
    text.encode(new, eol).map_err(|error| error.0)
}

/// What to say when `old` is nowhere: the lines most like its first one.
fn missing(name: &str, text: &Text, old: &str) -> String {
    let first = old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old).trim();
    let mut places: Vec<(f64, usize)> = (1..=text.line_count().min(COMPARED_LINES))
        .filter_map(|number| {
            let line = text.line(number);
            let line = line.trim();
            let likeness = strsim::sorensen_dice(first, cut(line, 400));
            (likeness > 0.5).then_some((likeness, number))
        })
        .collect();
    places.sort_by(|a, b| b.0.total_cmp(&a.0));
    places.truncate(PLACES);
    if places.is_empty() {
        return format!("`old` does not occur in {name}, nor anything like its first line. Read the file again.");
    }
    let mut said = format!("`old` does not occur in {name} as you wrote it. Most like its first line:");
    for (_, number) in places {
        let line = text.line(number);
        said.push_str(&format!("\n{number}\t{}", cut(&line, 200)));
    }
    said
}
