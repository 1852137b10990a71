//! Recordings of the wire, and their replay: what was asked, what came back, byte for byte, without any secret.
//!
//! A cassette is a file of JSON lines: first `{"cassette": 1, "server": ..}`, then one line for each exchange with the
//! request's body, the answer's status, the pieces of its body as they were read, and how it ended. A replay reads
//! them through the same code that reads a connection, so the same events come out.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{self, Body, Limits};
use super::calls::Offered;
use super::failure::Fault;
use super::provider::{BoxFuture, ChatRequest, ChatResponse, LlmFailure, Provider, StreamEvent};
use super::secret::{Secret, mask_tokens};
use super::settings::Timeouts;
use crate::cancel::CancelToken;
use crate::error::{AgentError, ErrorKind};

/// The form of cassettes that is written and read.
const VERSION: u64 = 1;

/// Headers of an answer that are kept: the others are of no use to the reader, and some identify an account.
const KEPT_HEADERS: [&str; 4] = ["content-type", "retry-after", "retry-after-ms", "x-request-id"];

/// One line of a cassette after the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// The request's body.
    request: Value,
    /// The mark of the server and model that answered.
    #[serde(default)]
    served_by: String,
    /// The answer's status; 0 where none came.
    #[serde(default)]
    status: u16,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    /// The answer's body in the pieces it was read in.
    #[serde(default)]
    body: Vec<Piece>,
    /// Why it ended, if not at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

/// Bytes as text where they are text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes { b64: String },
}

impl Piece {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes {
                b64: BASE64.encode(bytes),
            },
        }
    }

    fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            // A cassette may be edited by hand: what is no base64 is nothing.
            Self::Bytes { b64 } => BASE64.decode(b64).unwrap_or_default().into(),
        }
    }
}

/// What is noted of an exchange while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    status: u16,
    headers: Map<String, Value>,
    body: Vec<Bytes>,
    fault: Option<Fault>,
}

impl Tap {
    /// Notes the head of the answer.
    pub fn head(&mut self, status: u16, header: impl Fn(&str) -> Option<String>) {
        self.status = status;
        self.headers = KEPT_HEADERS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Value::String(header(name)?))))
            .collect();
    }

    /// Notes a piece of the body.
    pub fn piece(&mut self, bytes: &Bytes) {
        self.body.push(bytes.clone());
    }

    /// Notes what broke the exchange.
    pub fn broke(&mut self, fault: &Fault) {
        self.fault = Some(fault.clone());
    }
}

/// Writes a cassette.
#[derive(Debug)]
pub struct Recorder {
    file: Mutex<File>,
    secrets: Vec<Secret>,
    failed: Mutex<Option<AgentError>>,
}

impl Recorder {
    /// Begins the cassette at `path`, which must not exist. `server` names the server in messages; `secrets` are values
    /// that must not get into the file, beside what looks like a key anyway.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn create(path: &Path, server: &str, secrets: Vec<Secret>) -> Result<Self, AgentError> {
        let bad = |error: &std::io::Error| {
            let message = format!("The recording {} cannot be written.", path.display());
            AgentError::new(ErrorKind::Persistence, "cassette", message)
                .from_origin("llm")
                .with_cause(error)
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| bad(&error))?;
        writeln!(file, "{}", json!({"cassette": VERSION, "server": server})).map_err(|error| bad(&error))?;
        Ok(Self {
            file: Mutex::new(file),
            secrets,
            failed: Mutex::default(),
        })
    }

    /// The first thing that went wrong with writing, to be told when the work is done.
    #[must_use]
    pub fn failure(&self) -> Option<AgentError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes an exchange. Recording never breaks the work: what fails is kept for [`Recorder::failure`].
    pub(crate) fn write(&self, request: &[u8], served_by: &str, tap: Tap) {
        let request = self.clean(String::from_utf8_lossy(request).into_owned());
        // A secret may be cut by two pieces: the whole is looked at, and kept in one piece where it held one.
        let whole = Bytes::from(tap.body.concat());
        let text = String::from_utf8_lossy(&whole);
        let cleaned = self.clean(text.clone().into_owned());
        let body = if cleaned == text {
            tap.body.iter().map(|bytes| Piece::new(bytes)).collect()
        } else {
            vec![Piece::Text(cleaned)]
        };
        let exchange = Exchange {
            request: serde_json::from_str(&request).unwrap_or(Value::String(request)),
            served_by: served_by.to_owned(),
            status: tap.status,
            headers: tap.headers,
            body,
            fault: tap.fault,
        };
        let written = serde_json::to_string(&exchange)
            .map_err(std::io::Error::other)
            .and_then(|line| {
                let line = self.clean(line);
                let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(format!("{line}\n").as_bytes())
            });
        if let Err(error) = written {
            let failure = AgentError::new(ErrorKind::Persistence, "cassette", "The recording is not complete.")
                .from_origin("llm")
                .with_cause(&error);
            self.failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(failure);
        }
    }

    fn clean(&self, text: String) -> String {
        let scrubbed = self.secrets.iter().fold(text, |text, secret| secret.scrub(text));
        mask_tokens(&scrubbed)
    }
}

/// A cassette that is played: a provider that needs no network.
#[derive(Debug)]
pub struct Replay {
    server: String,
    exchanges: Mutex<VecDeque<Exchange>>,
}

impl Replay {
    /// Reads the cassette at `path`.
    ///
    /// # Errors
    /// Where the file cannot be read or is no cassette; the message names the line.
    pub fn open(path: &Path) -> Result<Self, AgentError> {
        let bad = |why: String| {
            let message = format!("The recording {} {why}.", path.display());
            AgentError::new(ErrorKind::Schema, "cassette", message).from_origin("llm")
        };
        let file = File::open(path).map_err(|error| bad(format!("cannot be opened: {error}")))?;
        let mut lines = BufReader::new(file).lines();
        let first = lines
            .next()
            .transpose()
            .map_err(|error| bad(format!("cannot be read: {error}")))?;
        let first: Value = first
            .and_then(|line| serde_json::from_str(&line).ok())
            .unwrap_or_default();
        if first["cassette"] != VERSION {
            return Err(bad("is no recording that this version can play".to_owned()));
        }
        let mut exchanges = VecDeque::new();
        for (number, line) in lines.enumerate() {
            let place = number + 2;
            let line = line.map_err(|error| bad(format!("cannot be read at line {place}: {error}")))?;
            if !line.trim().is_empty() {
                let exchange = serde_json::from_str(&line);
                exchanges.push_back(exchange.map_err(|error| bad(format!("cannot be read at line {place}: {error}")))?);
            }
        }
        Ok(Self {
            server: first["server"].as_str().unwrap_or("of the recording").to_owned(),
            exchanges: Mutex::new(exchanges),
        })
    }

    fn next(&self, request: &ChatRequest<'_>) -> Result<Exchange, AgentError> {
        let mismatch = |why: String| {
            AgentError::new(
                ErrorKind::Schema,
                "replay_mismatch",
                format!("The recording does not fit: {why}."),
            )
            .from_origin("llm")
            .with_hint("replay with the prompt, model and directory of the recording")
        };
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let exchange = exchanges
            .pop_front()
            .ok_or_else(|| mismatch("it holds no more answers".to_owned()))?;
        let model = exchange.request["model"].as_str().unwrap_or_default();
        if model != request.model {
            return Err(mismatch(format!("it was made with the model {model}")));
        }
        let recorded = exchange.request["messages"].as_array();
        let last = |role: &str| recorded.is_some_and(|list| list.last().is_some_and(|message| message["role"] == role));
        let here = request.messages.last().map(|message| json!(message.role));
        if here.as_ref().and_then(Value::as_str).is_some_and(|role| !last(role)) {
            return Err(mismatch(
                "its next request ends with a message of another kind".to_owned(),
            ));
        }
        Ok(exchange)
    }
}

impl Provider for Replay {
    fn chat<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: &'a mut (dyn FnMut(StreamEvent) + Send),
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmFailure>> {
        async move {
            cancel.check("llm")?;
            let exchange = self.next(&request)?;
            let pieces: Vec<Bytes> = exchange.body.iter().map(Piece::bytes).collect();
            if !(200..300).contains(&exchange.status) {
                let fault = exchange.fault.unwrap_or_else(|| {
                    let header = |name: &str| exchange.headers.get(name)?.as_str().map(str::to_owned);
                    Fault::from_response(exchange.status, header, &pieces.concat())
                });
                let retry_after = fault.retry_after;
                return Err(LlmFailure {
                    retry_after,
                    ..LlmFailure::new(fault.into_error(&self.server))
                });
            }
            sink(StreamEvent::HeadersReceived);
            let body = Body::tape(pieces, exchange.fault);
            let limits = Limits::new(&Timeouts::default(), request.stream);
            let offered = Offered(request.tools);
            let outcome = answer::read(body, offered, request.messages.len(), &limits, None, sink, cancel).await;
            let served_by = Some(exchange.served_by);
            match outcome {
                Ok(mut response) => {
                    response.message.served_by = served_by;
                    Ok(response)
                }
                Err(broken) => {
                    let partial = broken.partial.map(|mut partial| {
                        partial.message.served_by = served_by;
                        partial
                    });
                    let retry_after = broken.fault.as_ref().and_then(|fault| fault.retry_after);
                    let error = broken
                        .fault
                        .map_or_else(|| AgentError::cancelled("llm"), |fault| fault.into_error(&self.server));
                    Err(LlmFailure {
                        error,
                        partial,
                        retry_after,
                        emitted_output: broken.emitted,
                    })
                }
            }
        }
        .boxed()
    }
}
