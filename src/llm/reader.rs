//! Reading of an answer's body, whatever it turns out to be: an event stream, a whole JSON answer, an error, a page.
//!
//! The label (`Content-Type`) is often wrong, so the body decides. Data lines are taken as soon as each is whole JSON,
//! without waiting for the blank line after it, since some servers send that line late or never.

use serde_json::Value;

use super::assembly::Assembly;
use super::chunk::Chunk;
use super::failure::{Code, Fault};
use super::json;
use super::sse::{Line, LineFramer};
use super::words;

/// The sentinel that ends a stream.
const DONE: &[u8] = b"[DONE]";

/// The most of an unreadable answer that is kept to be shown.
const SHOWN: usize = 2000;

/// Payloads that are no JSON and mean no more than that the server lives.
const HEARTBEATS: [&[u8]; 4] = [b"ping", b"heartbeat", b"keep-alive", b"keepalive"];

/// What kind of body it is.
#[derive(Debug)]
enum Mode {
    /// Only white space came so far.
    Undecided,
    Events,
    /// JSON, gathered until the end.
    Json(Vec<u8>),
}

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    mode: Mode,
    lines: LineFramer,
    event: EventLines,
    /// The sentinel came.
    done: bool,
    /// Something that counts came: an event, not a comment.
    activity: u64,
}

/// The lines of the event that is coming.
#[derive(Debug, Default)]
struct EventLines {
    name: String,
    /// Data lines that are not whole JSON yet, joined by line ends.
    data: Vec<u8>,
    /// What came that is no event stream.
    bare: Vec<u8>,
}

/// How a body ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// The answer is complete.
    Complete,
    /// It ended without a finish reason and without the sentinel.
    CutOff,
}

impl AnswerReader {
    pub fn new() -> Self {
        Self {
            mode: Mode::Undecided,
            lines: LineFramer::new(),
            event: EventLines::default(),
            done: false,
            activity: 0,
        }
    }

    /// Whether the sentinel came: nothing after it counts.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Grows with each event.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8], answer: &mut Assembly<'_>) -> Result<(), Box<Fault>> {
        if self.done {
            return Ok(());
        }
        if matches!(self.mode, Mode::Undecided) {
            // A mark and blank lines may stand before either kind.
            let first = bytes
                .iter()
                .find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xEF | 0xBB | 0xBF));
            match first {
                None => {}
                Some(b'{' | b'[') => self.mode = Mode::Json(Vec::new()),
                Some(_) => self.mode = Mode::Events,
            }
        }
        if let Mode::Json(body) = &mut self.mode {
            body.extend_from_slice(bytes);
            self.activity += 1;
            return Ok(());
        }
        let (event, done, activity) = (&mut self.event, &mut self.done, &mut self.activity);
        self.lines.push(bytes, |line| {
            if *done {
                return Ok(());
            }
            event.take(line, answer, done, activity)
        })
    }

    /// The end of the body.
    pub fn finish(&mut self, answer: &mut Assembly<'_>) -> Result<BodyEnd, Box<Fault>> {
        if let Mode::Json(body) = &mut self.mode {
            let body = std::mem::take(body);
            read_json(&body, answer, &mut self.done)?;
        } else if !self.done {
            // A last line without its end counts only if it is whole: the half of an event is no text.
            let (event, done, activity) = (&mut self.event, &mut self.done, &mut self.activity);
            self.lines.finish(|line| event.take(line, answer, done, activity))?;
            if !self.done {
                let half = self.event.data.starts_with(b"{");
                match self.event.end(answer, &mut self.done) {
                    Err(fault) if !(half && fault.code == Code::Unreadable) => return Err(fault),
                    _ => {}
                }
            }
        }
        if self.done && !answer.is_empty() || answer.has_finish() || answer.has_closing_usage() && !answer.is_empty() {
            return Ok(BodyEnd::Complete);
        }
        let shown = [self.event.bare.as_slice(), self.lines.held()].concat();
        if answer.is_empty() && !self.done && !shown.trim_ascii().is_empty() {
            let mut fault = Fault::unreadable(&shown);
            fault.retryable = false;
            return Err(fault.into());
        }
        Ok(BodyEnd::CutOff)
    }
}

impl EventLines {
    fn take(
        &mut self,
        line: Line<'_>,
        answer: &mut Assembly<'_>,
        done: &mut bool,
        activity: &mut u64,
    ) -> Result<(), Box<Fault>> {
        match line {
            Line::Comment => Ok(()),
            Line::End => self.end(answer, done),
            Line::Field { name: b"data", value } => {
                *activity += 1;
                self.data(value, answer, done)
            }
            Line::Field { name: b"event", value } => {
                self.name = String::from_utf8_lossy(value).into_owned();
                Ok(())
            }
            Line::Field { name: b"error", value } => Err(error_field(value).into()),
            Line::Field {
                name: b"id" | b"retry", ..
            } => Ok(()),
            Line::Field { name, value } => {
                if self.bare.len() < SHOWN {
                    self.bare.extend_from_slice(&[name, b": ", value, b"\n"].concat());
                }
                Ok(())
            }
            Line::Bare(line) => {
                if self.bare.len() < SHOWN {
                    self.bare.extend_from_slice(line);
                    self.bare.push(b'\n');
                }
                Ok(())
            }
        }
    }

    fn data(&mut self, value: &[u8], answer: &mut Assembly<'_>, done: &mut bool) -> Result<(), Box<Fault>> {
        if self.data.is_empty() {
            if is_noise(value) || self.name == "ping" && !value.starts_with(b"{") {
                return Ok(());
            }
            if value.trim_ascii() == DONE {
                *done = true;
                return Ok(());
            }
            // One line, one payload: the usual event, read in place.
            return match read_payload(value, &self.name, answer) {
                Err(Unread::NotJson) => {
                    self.data.extend_from_slice(value);
                    Ok(())
                }
                Err(Unread::Failed(fault)) => Err(fault),
                Ok(()) => Ok(()),
            };
        }
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
        if !matches!(value.trim_ascii_end().last(), Some(b'}' | b']')) {
            return Ok(());
        }
        match read_payload(&self.data, &self.name, answer) {
            Err(Unread::NotJson) => Ok(()),
            Err(Unread::Failed(fault)) => Err(fault),
            Ok(()) => {
                self.data.clear();
                Ok(())
            }
        }
    }

    /// The end of an event: what could not be read so far is read line by line, or cannot be read.
    fn end(&mut self, answer: &mut Assembly<'_>, done: &mut bool) -> Result<(), Box<Fault>> {
        let data = std::mem::take(&mut self.data);
        let name = std::mem::take(&mut self.name);
        for line in data.split(|byte| *byte == b'\n') {
            if *done || is_noise(line) {
                continue;
            }
            if line.trim_ascii() == DONE {
                *done = true;
                continue;
            }
            match read_payload(line, &name, answer).or_else(|_| read_repaired(line, &name, answer)) {
                Ok(()) => {}
                Err(Unread::Failed(fault)) => return Err(fault),
                Err(Unread::NotJson) => {
                    let mut fault = if name == "error" {
                        error_field(line)
                    } else {
                        Fault::unreadable(line)
                    };
                    fault.retryable = true;
                    return Err(fault.into());
                }
            }
        }
        Ok(())
    }
}

/// Payloads without meaning: nothing, a comment that a gateway turned into data, a heartbeat.
fn is_noise(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    value.is_empty() || value[0] == b':' || HEARTBEATS.contains(&value)
}

/// Why a payload was not taken.
enum Unread {
    /// It is not JSON, or not yet.
    NotJson,
    /// It says that something failed.
    Failed(Box<Fault>),
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Self {
        Self::Failed(Box::new(fault))
    }
}

/// Reads a payload into the answer.
fn read_payload(payload: &[u8], name: &str, answer: &mut Assembly<'_>) -> Result<(), Unread> {
    match serde_json::from_slice::<Chunk<'_>>(payload) {
        Ok(chunk) => take_chunk(&chunk, payload, name, answer),
        Err(error) if error.is_syntax() || error.is_data() => read_glued(payload, name, answer),
        Err(_) => Err(Unread::NotJson),
    }
}

fn take_chunk(chunk: &Chunk<'_>, payload: &[u8], name: &str, answer: &mut Assembly<'_>) -> Result<(), Unread> {
    if !chunk.present {
        return take_other(payload, answer);
    }
    if chunk.is_failure() || name == "error" {
        // What came beside the error counts: a finish reason, the last words.
        answer.apply(chunk);
        let value: Value = json::parse(&String::from_utf8_lossy(payload)).unwrap_or_default();
        return Err(Fault::from_payload(&value).into());
    }
    answer.apply(chunk);
    Ok(())
}

/// A payload that is JSON and no object: a list of errors or chunks, or nothing that can be understood.
fn take_other(payload: &[u8], answer: &mut Assembly<'_>) -> Result<(), Unread> {
    let text = String::from_utf8_lossy(payload);
    match json::parse::<Value>(&text) {
        Ok(Value::Null) => Ok(()),
        Ok(Value::Array(list)) => {
            for entry in list {
                read_payload(entry.to_string().as_bytes(), "", answer)?;
            }
            Ok(())
        }
        _ => Err(Fault::unreadable(payload).into()),
    }
}

/// Payloads that were glued together, with or without the field's name between them. Each must be whole: with a hole
/// in between nothing is taken.
fn read_glued(payload: &[u8], name: &str, answer: &mut Assembly<'_>) -> Result<(), Unread> {
    let mut rest = payload;
    let mut parts = Vec::new();
    while !rest.trim_ascii().is_empty() {
        rest = rest.trim_ascii_start();
        let after_name = rest.strip_prefix(b"data:").unwrap_or(rest).trim_ascii_start();
        if after_name.starts_with(DONE) && !parts.is_empty() {
            break;
        }
        let mut values = serde_json::Deserializer::from_slice(after_name).into_iter::<serde::de::IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let end = values.byte_offset();
                parts.push(&after_name[..end]);
                rest = &after_name[end..];
            }
            _ => return Err(Unread::NotJson),
        }
    }
    if parts.len() < 2 {
        return Err(Unread::NotJson);
    }
    for part in parts {
        let chunk: Chunk<'_> = serde_json::from_slice(part).map_err(|_| Unread::NotJson)?;
        take_chunk(&chunk, part, name, answer)?;
    }
    Ok(())
}

/// A last try: bytes that are no UTF-8 replaced, control characters inside strings escaped.
fn read_repaired(payload: &[u8], name: &str, answer: &mut Assembly<'_>) -> Result<(), Unread> {
    let text = String::from_utf8_lossy(payload);
    let repaired = json::repair(&text);
    if repaired.as_bytes() == payload {
        return Err(Unread::NotJson);
    }
    let chunk: Chunk<'_> = serde_json::from_str(&repaired).map_err(|_| Unread::NotJson)?;
    take_chunk(&chunk, repaired.as_bytes(), name, answer)
}

/// An error as the value of a field named `error`, or as the words of an error event.
fn error_field(value: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(value);
    match json::parse::<Value>(&text) {
        Ok(error) if error.is_object() && error.get("error").is_none() => {
            Fault::from_payload(&serde_json::json!({ "error": error }))
        }
        Ok(error) => Fault::from_payload(&error),
        Err(_) => Fault::new(Code::Server, words::clean(&text, SHOWN)),
    }
}

/// Reads a body that is JSON and no stream: a whole answer, an error, or one JSON value a line.
fn read_json(body: &[u8], answer: &mut Assembly<'_>, done: &mut bool) -> Result<(), Box<Fault>> {
    let mut body = body.trim_ascii();
    if let Some(start) = body.iter().position(|byte| matches!(byte, b'{' | b'[')) {
        body = &body[start..];
    }
    // A sentinel that was glued on to the answer.
    if let Some(rest) = body.strip_suffix(DONE) {
        let rest = rest.trim_ascii_end();
        body = rest.strip_suffix(b"data:").unwrap_or(rest).trim_ascii_end();
        *done = true;
    }
    let read = read_payload(body, "", answer).or_else(|unread| match unread {
        Unread::NotJson => read_repaired(body, "", answer),
        failed @ Unread::Failed(_) => Err(failed),
    });
    match read {
        Ok(()) => Ok(()),
        Err(Unread::Failed(fault)) => Err(fault),
        Err(Unread::NotJson) => {
            let whole = serde_json::from_slice::<serde::de::IgnoredAny>(body).err();
            let mut fault = if whole.is_some_and(|error| error.is_eof()) {
                Fault::new(Code::Truncated, "the JSON of the answer ends in the middle")
            } else {
                Fault::unreadable(&body[..body.len().min(SHOWN)])
            };
            fault.retryable = true;
            Err(fault.into())
        }
    }
}
