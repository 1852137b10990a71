//! Recordings of the wire, and their replay: what was asked, what came back, byte for byte, without any secret.
//!
//! A cassette is a file of JSON lines: first `{"cassette": 1}`, then one line for each exchange with the server's name,
//! the request's body, the answer's status, the pieces of its body as they were read, and how it ended. A replay reads
//! them through the same code that reads a connection, so the same events come out.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

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
use super::redact;
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
    /// Host and port of the server, for messages.
    #[serde(default)]
    server: String,
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
    /// The hint that a failure was told with: some are about the configuration, which a replay does without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Exchange {
    /// The last message of the request.
    fn last_message(&self) -> &Value {
        let messages = self.request["messages"].as_array();
        messages.and_then(|messages| messages.last()).unwrap_or(&Value::Null)
    }
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
    secrets: Mutex<Vec<Secret>>,
    failed: Mutex<Option<AgentError>>,
}

impl Recorder {
    /// Begins the cassette at `path`, which must not exist.
    ///
    /// # Errors
    /// `persistence` where the file cannot be made.
    pub fn create(path: &Path) -> Result<Self, AgentError> {
        let bad = |error: &std::io::Error| {
            let message = format!("The recording {} cannot be written: {error}.", path.display());
            AgentError::new(ErrorKind::Persistence, "cassette", message).from_origin("llm")
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| bad(&error))?;
        writeln!(file, "{}", json!({"cassette": VERSION})).map_err(|error| bad(&error))?;
        Ok(Self {
            file: Mutex::new(file),
            secrets: Mutex::default(),
            failed: Mutex::default(),
        })
    }

    /// The first thing that went wrong with writing, to be told when the work is done.
    #[must_use]
    pub fn failure(&self) -> Option<AgentError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps these values out of the file, beside what looks like a key anyway.
    pub(crate) fn hide(&self, secrets: &[Secret]) {
        let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if !known.contains(secret) {
                known.push(secret.clone());
            }
        }
    }

    /// Writes an exchange; `outcome` is what was made of it. Recording never breaks the work: what fails is kept for
    /// [`Recorder::failure`].
    pub(crate) fn write(
        &self,
        server: &str,
        request: &[u8],
        served_by: &str,
        tap: Tap,
        outcome: &Result<ChatResponse, LlmFailure>,
    ) {
        let (answer, hint) = match outcome {
            Ok(answer) => (Some(answer), None),
            Err(failure) => (failure.partial.as_deref(), failure.error.hint.as_deref()),
        };
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let clean = |text: &str| {
            let scrubbed = secrets.iter().fold(text.to_owned(), |text, secret| secret.scrub(text));
            mask_tokens(&scrubbed)
        };
        let request = clean(&String::from_utf8_lossy(request));
        let exchange = Exchange {
            request: serde_json::from_str(&request).map_or(Value::String(request), redact::members),
            server: server.to_owned(),
            served_by: served_by.to_owned(),
            status: tap.status,
            headers: tap.headers,
            body: clean_body(&tap.body, answer, tap.fault.is_none(), &clean),
            fault: tap.fault,
            hint: hint.map(str::to_owned),
        };
        let written = serde_json::to_string(&exchange)
            .map_err(std::io::Error::other)
            .and_then(|line| {
                let line = clean(&line);
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
}

/// The pieces of a body without secrets. One may be cut by two reads, or by two events: the whole is looked at, and what
/// it says when it is put together.
fn clean_body(
    pieces: &[Bytes],
    answer: Option<&ChatResponse>,
    whole: bool,
    clean: &dyn Fn(&str) -> String,
) -> Vec<Piece> {
    if let Some(answer) = answer
        && redact::tells(answer, clean)
    {
        return vec![Piece::Text(redact::body(answer, whole, clean))];
    }
    let all = pieces.concat();
    let text = String::from_utf8_lossy(&all);
    let cleaned = clean(&text);
    if cleaned == text {
        pieces.iter().map(|bytes| Piece::new(bytes)).collect()
    } else {
        vec![Piece::Text(cleaned)]
    }
}

/// A cassette that is played: a provider that needs no network.
#[derive(Debug)]
pub struct Replay {
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
            exchanges: Mutex::new(exchanges),
        })
    }

    /// The model that was asked first.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        let exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let model = exchanges.front()?.request["model"].as_str()?;
        Some(model.to_owned())
    }

    /// The exchange that answers a request: the first whose request ended with the same message, as requests that were
    /// made side by side may come in another order; else the next one, where it fits at all.
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
        let here = request.messages.last();
        let role = here.and_then(|message| json!(message.role).as_str().map(str::to_owned));
        let same_model = |exchange: &Exchange| exchange.request["model"] == request.model;
        let same = |exchange: &Exchange| {
            let last = exchange.last_message();
            last["role"].as_str() == role.as_deref() && last["content"].as_str() == here.map(|here| &*here.content)
        };
        if let Some(at) = exchanges
            .iter()
            .position(|exchange| same_model(exchange) && same(exchange))
            && let Some(exchange) = exchanges.remove(at)
        {
            return Ok(exchange);
        }
        let Some(next) = exchanges.front() else {
            return Err(mismatch("it holds no more answers".to_owned()));
        };
        if !same_model(next) {
            let model = next.request["model"].as_str().unwrap_or_default();
            return Err(mismatch(format!("it was made with the model {model}")));
        }
        if role.is_some_and(|role| next.last_message()["role"] != role.as_str()) {
            return Err(mismatch(
                "its next request ends with a message of another kind".to_owned(),
            ));
        }
        exchanges
            .pop_front()
            .ok_or_else(|| mismatch("it holds no more answers".to_owned()))
    }
}

/// What becomes of the wire of a session.
#[derive(Clone, Debug)]
pub enum Tape {
    /// It is written down.
    Record(Arc<Recorder>),
    /// It is played; no server is asked.
    Replay(Arc<Replay>),
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
            let (server, hint) = (exchange.server, exchange.hint);
            let failed = |fault: Fault| {
                let mut error = fault.into_error(&server);
                error.hint = hint.clone().map(Into::into);
                error
            };
            let pieces: Vec<Bytes> = exchange.body.iter().map(Piece::bytes).collect();
            if !(200..300).contains(&exchange.status) {
                let fault = exchange.fault.unwrap_or_else(|| {
                    let header = |name: &str| exchange.headers.get(name)?.as_str().map(str::to_owned);
                    Fault::from_response(exchange.status, header, &pieces.concat())
                });
                return Err(LlmFailure {
                    retry_after: fault.retry_after,
                    ..LlmFailure::new(failed(fault))
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
                        .map_or_else(|| AgentError::cancelled("llm"), |fault| failed(*fault));
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
