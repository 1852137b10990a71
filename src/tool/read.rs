//! `read`: a window of a file as numbered lines, with the hash of the whole.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use rustix::fs::{FileType, OFlags};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::context::ToolContext;
use super::files::{hash_of, hex, io_error, kind_of, not_found, path_error, short};
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;
use super::text::{Encoding, Text, cut};
use crate::cancel::CancelToken;
use crate::process::confine::Place;

/// Up to this many bytes a file is taken into memory; a longer one is read through.
const WHOLE_BYTES: u64 = 16 << 20;
/// Entries of a directory shown.
const ENTRIES: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "file_path", alias = "file", alias = "filename")]
    path: String,
    /// First line; -n: the last n.
    offset: Option<i64>,
    limit: Option<u64>,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("read", description, Renderer::File, read)
    }
}

/// Which lines are asked for and how much of them fits.
struct Window {
    offset: i64,
    lines: usize,
    chars: usize,
    line_chars: usize,
}

/// What a window shows.
#[derive(Default)]
struct Shown {
    text: String,
    first: usize,
    last: usize,
    total: usize,
    cut_lines: usize,
}

fn read(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    let resolver = ctx.reading_resolver();
    let place = resolver.resolve(&args.path, false).map_err(path_error)?;
    let name = resolver.shown(&place.path).into_owned();
    match place.file_type() {
        None => return Err(not_found(&place, &name)),
        Some(FileType::RegularFile) => {}
        Some(FileType::Directory) => return list(&place, &name),
        Some(_) => {
            return Err(ToolError::to_model(
                "not_a_file",
                format!("{name} is {}, not a file.", kind_of(&place)),
            ));
        }
    }
    let window = Window {
        offset: args.offset.unwrap_or(1),
        lines: args
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| *limit > 0)
            .map_or(ctx.limits.read_lines, |limit| limit.min(ctx.limits.read_lines)),
        chars: ctx.limits.read_chars,
        line_chars: ctx.limits.line_chars,
    };
    let mut file = place.open(OFlags::RDONLY).map_err(path_error)?;
    let size = file.metadata().map_err(|error| io_error(&name, error))?.len();
    if size > WHOLE_BYTES {
        let failed = |error: std::io::Error| io_error(&name, error);
        let first = if window.offset < 0 {
            let total = count_lines(&mut file, &ctx.cancel).map_err(failed)?;
            file.rewind().map_err(failed)?;
            window.first(total)
        } else {
            window.first(0)
        };
        let (shown, hash) = read_through(file, first, &window, &ctx.cancel).map_err(failed)?;
        return Ok(tell(&name, &shown, &hash, size, None));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(|error| io_error(&name, error))?;
    let (hash, size) = (hash_of(&bytes), bytes.len() as u64);
    match Text::new(bytes) {
        Some(text) => {
            ctx.state.note_version(&place.path, &hash, &text);
            Ok(tell(&name, &show(&text, &window), &hash, size, Some(text.encoding)))
        }
        None => Ok(ToolOutput::text(format!(
            "{name} is a binary file: {size} bytes, hash {}. Its bytes are not shown.",
            short(&hash)
        ))
        .with("path", name)
        .with("hash", hash)
        .with("bytes", size)
        .with("binary", true)),
    }
}

impl Window {
    /// The first line to show of `total`.
    fn first(&self, total: usize) -> usize {
        match usize::try_from(self.offset) {
            Ok(offset) => offset.max(1),
            Err(_) => {
                let back = usize::try_from(self.offset.unsigned_abs()).unwrap_or(usize::MAX);
                (total + 1).saturating_sub(back).max(1)
            }
        }
    }
}

impl Shown {
    /// Adds a line of which `line` is the beginning and `length` the whole length in bytes; `false` when there is no
    /// room for it.
    fn push(&mut self, number: usize, line: &str, length: usize, window: &Window) -> bool {
        let line = cut(line, window.line_chars);
        let room = window.chars.saturating_sub(self.text.len());
        if self.last != 0 && line.len() + 16 > room {
            return false;
        }
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{number}\t{line}");
        if line.len() < length {
            let _ = write!(self.text, " …[{} more bytes in this line]", length - line.len());
            self.cut_lines += 1;
        }
        self.text.push('\n');
        if self.first == 0 {
            self.first = number;
        }
        self.last = number;
        true
    }
}

fn show(text: &Text, window: &Window) -> Shown {
    let total = text.line_count();
    let first = window.first(total);
    let mut shown = Shown {
        total,
        ..Shown::default()
    };
    for number in (first..=total).take(window.lines) {
        let line = text.line(number);
        if !shown.push(number, &line, line.len(), window) {
            break;
        }
    }
    shown
}

fn count_lines(file: &mut File, cancel: &CancelToken) -> std::io::Result<usize> {
    let mut buffer = vec![0; 256 * 1024];
    let (mut lines, mut last) = (0, b'\n');
    loop {
        stop_if(cancel)?;
        match file.read(&mut buffer)? {
            0 => return Ok(lines + usize::from(last != b'\n')),
            count => {
                lines += memchr::memchr_iter(b'\n', &buffer[..count]).count();
                last = buffer[count - 1];
            }
        }
    }
}

/// The window of a file too long to be held, starting at line `first`, and the hash of all of it.
fn read_through(file: File, first: usize, window: &Window, cancel: &CancelToken) -> std::io::Result<(Shown, String)> {
    let wanted = first..first.saturating_add(window.lines);
    let mut shown = Shown::default();
    let mut hasher = Sha256::new();
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    // Of the line being read, its number, what can be shown of it, and how long it is.
    let (mut number, mut line, mut length) = (1, Vec::new(), 0_usize);
    let mut room = true;
    loop {
        stop_if(cancel)?;
        let buffer = reader.fill_buf()?;
        let (count, ended) = (buffer.len(), buffer.is_empty());
        hasher.update(buffer);
        for piece in buffer.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            if room && wanted.contains(&number) {
                let keep = (window.line_chars + 4).saturating_sub(line.len()).min(text.len());
                line.extend_from_slice(&text[..keep]);
            }
            length += text.len();
            if text.len() < piece.len() {
                room = room && give(&mut shown, number, &line, length, &wanted, window);
                line.clear();
                length = 0;
                number += 1;
            }
        }
        if ended {
            if length > 0 {
                give(&mut shown, number, &line, length, &wanted, window);
                number += 1;
            }
            shown.total = number - 1;
            return Ok((shown, hex(&hasher.finalize())));
        }
        reader.consume(count);
    }
}

/// Shows the line if it is one that is wanted; `false` when there is no room.
fn give(
    shown: &mut Shown,
    number: usize,
    line: &[u8],
    length: usize,
    wanted: &std::ops::Range<usize>,
    window: &Window,
) -> bool {
    if !wanted.contains(&number) {
        return true;
    }
    let text = String::from_utf8_lossy(line);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    shown.push(number, text, length, window)
}

fn stop_if(cancel: &CancelToken) -> std::io::Result<()> {
    if cancel.is_cancelled() {
        return Err(std::io::Error::other("cancelled"));
    }
    Ok(())
}

fn tell(name: &str, shown: &Shown, hash: &str, size: u64, encoding: Option<Encoding>) -> ToolOutput {
    let mut header = format!("{name}: {}, hash {}", lines(shown.total), short(hash));
    if let Some(encoding) = encoding.filter(|encoding| *encoding != Encoding::Utf8) {
        let _ = write!(header, ", {}", encoding.name());
    }
    if shown.last == 0 && shown.total > 0 {
        let _ = write!(header, "; no line there: offsets are 1 to {}", shown.total);
    } else if shown.first > 1 || shown.last < shown.total {
        let _ = write!(header, "; lines {} to {} below", shown.first, shown.last);
        if shown.last < shown.total {
            let _ = write!(header, ", next offset {}", shown.last + 1);
        }
    }
    if shown.cut_lines > 0 {
        let _ = write!(header, "; {} cut, marked by …[", lines(shown.cut_lines));
    }
    header.push('\n');
    let truncated = shown.last < shown.total || shown.cut_lines > 0;
    ToolOutput::text(header + &shown.text)
        .with("path", name)
        .with("hash", hash)
        .with("bytes", size)
        .with("lines", shown.total)
        .with("first_line", shown.first)
        .with("last_line", shown.last)
        .with("truncated", truncated)
}

fn lines(count: usize) -> String {
    if count == 1 {
        "1 line".to_owned()
    } else {
        format!("{count} lines")
    }
}

fn list(place: &Place, name: &str) -> Result<ToolOutput, ToolError> {
    let mut names: Vec<String> = std::fs::read_dir(&place.path)
        .map_err(|error| io_error(name, error))?
        .filter_map(Result::ok)
        .map(|entry| {
            let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                "/"
            } else {
                ""
            };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort_unstable();
    let total = names.len();
    let mut text = format!("{name} is a directory with {total} entries");
    if total > ENTRIES {
        names.truncate(ENTRIES);
        let _ = write!(text, ", the first {ENTRIES} of them");
    }
    text.push_str(":\n");
    text.push_str(&names.join("\n"));
    Ok(ToolOutput::text(text)
        .with("path", name)
        .with("directory", true)
        .with("entries", total))
}
