//! Reading an answer from its connection: time limits, cancellation, the end of the body in all its ways.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;

use super::assembly::{Assembly, Ending};
use super::calls::Offered;
use super::cassette::Tap;
use super::failure::{Code, Fault};
use super::provider::{ChatResponse, FinishReason, LlmFailure, StreamEvent};
use super::reader::{AnswerReader, BodyEnd};
use super::retry_after;
use super::settings::Timeouts;
use crate::cancel::CancelToken;
use crate::error;
use crate::failpoint;
use crate::message::ToolDefinition;

/// After a finish reason: how long the counts are waited for, and how long the sentinel once they came.
const USAGE_WAIT: Duration = Duration::from_millis(2500);
const SENTINEL_WAIT: Duration = Duration::from_millis(300);

/// After the sentinel: how long the end of the body is waited for before the answer is handed on, and how long after
/// that, so that the connection can be used again.
const END_WAIT: Duration = Duration::from_millis(20);
const LATE_END_WAIT: Duration = Duration::from_secs(2);

/// The most pieces that are read before their events are told.
const MERGED: usize = 64;

/// The time limits of one request.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Until the answer's headers are there.
    pub headers: Duration,
    /// Without any byte.
    stall: Option<Duration>,
    /// Without any event.
    quiet: Duration,
}

impl Limits {
    /// One limit for everything.
    pub fn whole(limit: Duration) -> Self {
        Self {
            headers: limit,
            stall: None,
            quiet: limit,
        }
    }

    pub fn new(timeouts: &Timeouts, stream: bool) -> Self {
        if stream {
            Self {
                headers: timeouts.connect,
                stall: Some(timeouts.stream_stall),
                quiet: timeouts.timeout,
            }
        } else {
            Self {
                headers: timeouts.timeout,
                stall: None,
                quiet: timeouts.timeout,
            }
        }
    }
}

/// An answer that did not come to a good end.
#[derive(Debug)]
pub(crate) struct Broken {
    /// What happened; `None` is a cancellation.
    pub fault: Option<Box<Fault>>,
    pub partial: Option<Box<ChatResponse>>,
    pub emitted: bool,
}

/// Where the bytes of an answer come from.
#[derive(Debug)]
pub(crate) enum Body {
    /// A connection.
    Http(Box<Response>),
    /// A recording: pieces, and what broke it in the end.
    Tape(VecDeque<Bytes>, Option<Box<Fault>>),
}

impl Body {
    /// A recorded body.
    pub fn tape(pieces: Vec<Bytes>, fault: Option<Fault>) -> Self {
        Self::Tape(pieces.into(), fault.map(Box::new))
    }

    async fn next(&mut self) -> Option<Result<Bytes, Box<Fault>>> {
        match self {
            Self::Http(response) => match response.chunk().await {
                Ok(bytes) => bytes.map(Ok),
                Err(error) => Some(Err(transport(&error, "the answer").into())),
            },
            Self::Tape(pieces, fault) => match pieces.pop_front() {
                Some(bytes) => Some(Ok(bytes)),
                None => fault.take().map(Err),
            },
        }
    }

    /// The next piece, if it is here already.
    async fn now(&mut self) -> Option<Option<Result<Bytes, Box<Fault>>>> {
        for attempt in 0..2 {
            // The task that reads the connection gets a chance to bring more.
            if attempt > 0 {
                tokio::task::yield_now().await;
            }
            let mut next = std::pin::pin!(self.next());
            let polled = std::future::poll_fn(|context| {
                Poll::Ready(match next.as_mut().poll(context) {
                    Poll::Ready(next) => Some(next),
                    Poll::Pending => None,
                })
            });
            if let Some(next) = polled.await {
                return Some(next);
            }
        }
        None
    }

    /// Reads to the end of a body whose answer is complete: only then the connection can be used again.
    async fn finish(mut self) {
        async fn to_end(body: &mut Body) {
            while let Some(Ok(_)) = body.next().await {}
        }
        if tokio::time::timeout(END_WAIT, to_end(&mut self)).await.is_err() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(LATE_END_WAIT, to_end(&mut self)).await;
            });
        }
    }
}

/// Reads an answer whose bytes are already here, in the pieces they came in: the same code that reads a connection,
/// without a connection. For recordings, measurements and tests.
///
/// # Errors
/// As with any answer; what had come is in the failure.
pub fn read_bytes<'a>(
    tools: &[ToolDefinition],
    pieces: impl IntoIterator<Item = &'a [u8]>,
    sink: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<ChatResponse, Box<LlmFailure>> {
    let mut answer = Assembly::new(Offered(tools), 0);
    let mut reader = AnswerReader::new();
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = reader.push(piece, &mut answer);
        answer.flush(sink);
        if outcome.is_err() || reader.is_done() && !answer.is_empty() {
            break;
        }
    }
    let ended = outcome.and_then(|()| reader.finish(&mut answer));
    let fault = match ended {
        Ok(BodyEnd::Complete) => {
            let response = answer.finish(Ending::Said, sink);
            if response.finish != FinishReason::Error {
                return Ok(response);
            }
            let error = said_error(&response).into_error("of these bytes");
            return Err(Box::new(LlmFailure {
                partial: Some(Box::new(response)),
                emitted_output: true,
                ..LlmFailure::new(error)
            }));
        }
        Ok(BodyEnd::CutOff) => Box::new(cut_off(&answer)),
        Err(fault) => fault,
    };
    let (was_empty, emitted_output) = (answer.is_empty(), answer.emitted());
    let partial = answer.finish(Ending::Broken, sink);
    Err(Box::new(LlmFailure {
        retry_after: fault.retry_after,
        partial: (!was_empty).then(|| Box::new(partial)),
        emitted_output,
        ..LlmFailure::new(fault.into_error("of these bytes"))
    }))
}

/// The failure of an answer that ended without saying so.
fn cut_off(answer: &Assembly<'_>) -> Fault {
    let detail = if answer.is_empty() {
        "it answered with nothing"
    } else {
        "the answer stopped without a reason"
    };
    Fault::new(Code::Truncated, detail)
}

/// Reads the answer to a request with `messages` messages and these tools on offer.
pub(crate) async fn read(
    mut body: Body,
    offered: Offered<'_>,
    messages: usize,
    limits: &Limits,
    tap: Option<&mut Tap>,
    sink: &mut (dyn FnMut(StreamEvent) + Send),
    cancel: &CancelToken,
) -> Result<ChatResponse, Box<Broken>> {
    let mut answer = Assembly::new(offered, messages);
    let mut reader = AnswerReader::new();
    let outcome = pump(&mut body, &mut reader, &mut answer, limits, tap, sink, cancel).await;
    let fault = match outcome {
        Ok(()) => {
            let response = answer.finish(Ending::Said, sink);
            if reader.is_done() {
                body.finish().await;
            }
            if response.finish != FinishReason::Error {
                return Ok(response);
            }
            return Err(Box::new(Broken {
                fault: Some(said_error(&response).into()),
                emitted: true,
                partial: Some(Box::new(response)),
            }));
        }
        Err(fault) => fault,
    };
    drop(body);
    let was_empty = answer.is_empty();
    let emitted = answer.emitted();
    let partial = answer.finish(Ending::Broken, sink);
    Err(Box::new(Broken {
        fault,
        emitted,
        partial: (!was_empty).then(|| Box::new(partial)),
    }))
}

/// Moves bytes from the body into the answer until it is complete. An error without a fault is a cancellation.
async fn pump(
    body: &mut Body,
    reader: &mut AnswerReader,
    answer: &mut Assembly<'_>,
    limits: &Limits,
    mut tap: Option<&mut Tap>,
    sink: &mut (dyn FnMut(StreamEvent) + Send),
    cancel: &CancelToken,
) -> Result<(), Option<Box<Fault>>> {
    let cancelled = cancel.cancelled();
    tokio::pin!(cancelled);
    let mut clock = Clock::new(limits);
    let timer = tokio::time::sleep_until(clock.deadline().0);
    tokio::pin!(timer);
    // What is waiting already is read before anything is told: many small pieces become few events.
    let mut waiting = None;
    let mut merged = 0;
    loop {
        let next = match waiting.take() {
            Some(next) => next,
            None => tokio::select! {
                biased;
                () = &mut cancelled => return Err(None),
                next = body.next() => next,
                () = &mut timer => {
                    let (deadline, why) = clock.deadline();
                    if Instant::now() < deadline {
                        timer.as_mut().reset(deadline);
                        continue;
                    }
                    if why == Limit::AfterFinish {
                        return Ok(());
                    }
                    let fault = clock.fault(why);
                    if let Some(tap) = tap {
                        tap.broke(&fault);
                    }
                    return Err(Some(fault.into()));
                }
            },
        };
        match next {
            Some(Ok(bytes)) => {
                failpoint::reach("llm.stream");
                if let Some(tap) = &mut tap {
                    tap.piece(&bytes);
                }
                if let Err(fault) = reader.push(&bytes, answer) {
                    answer.flush(sink);
                    return Err(Some(fault));
                }
                if reader.is_done() && !answer.is_empty() {
                    answer.flush(sink);
                    return Ok(());
                }
                merged += 1;
                if merged < MERGED {
                    waiting = body.now().await;
                    if waiting.is_some() {
                        continue;
                    }
                }
                merged = 0;
                answer.flush(sink);
                if clock.saw(reader.activity(), answer) {
                    timer.as_mut().reset(clock.deadline().0);
                }
            }
            // What breaks after the answer was complete is no failure of it.
            Some(Err(_)) if answer.has_finish() || reader.is_done() && !answer.is_empty() => {
                answer.flush(sink);
                return Ok(());
            }
            Some(Err(fault)) => {
                answer.flush(sink);
                if let Some(tap) = tap {
                    tap.broke(&fault);
                }
                return Err(Some(fault));
            }
            None => {
                let end = reader.finish(answer);
                answer.flush(sink);
                return match end.map_err(Some)? {
                    BodyEnd::Complete => Ok(()),
                    BodyEnd::CutOff => Err(Some(cut_off(answer).into())),
                };
            }
        }
    }
}

/// Which time limit comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Stall,
    Quiet,
    AfterFinish,
}

/// Follows the time limits of a stream. The timer is armed once and moved only when it fires: looking at the time for
/// each piece would cost more than reading it.
struct Clock<'a> {
    limits: &'a Limits,
    last_byte: Instant,
    last_event: Instant,
    activity: u64,
    /// When the finish reason came, and how long to wait from then on.
    finished: Option<(Instant, Duration)>,
}

impl<'a> Clock<'a> {
    fn new(limits: &'a Limits) -> Self {
        let now = Instant::now();
        Self {
            limits,
            last_byte: now,
            last_event: now,
            activity: 0,
            finished: None,
        }
    }

    /// Notes that bytes came. Returns whether the next deadline has come nearer.
    fn saw(&mut self, activity: u64, answer: &Assembly<'_>) -> bool {
        let now = Instant::now();
        self.last_byte = now;
        if activity != self.activity {
            self.activity = activity;
            self.last_event = now;
        }
        if !answer.has_finish() {
            return false;
        }
        let wait = if answer.has_usage() { SENTINEL_WAIT } else { USAGE_WAIT };
        let nearer = self.finished.is_none_or(|(_, known)| wait < known);
        if nearer {
            self.finished = Some((now, wait));
        }
        nearer
    }

    fn deadline(&self) -> (Instant, Limit) {
        let mut next = (self.last_event + self.limits.quiet, Limit::Quiet);
        if let Some(stall) = self.limits.stall {
            let stalled = self.last_byte + stall;
            if stalled < next.0 {
                next = (stalled, Limit::Stall);
            }
        }
        if let Some((since, wait)) = self.finished
            && since + wait < next.0
        {
            next = (since + wait, Limit::AfterFinish);
        }
        next
    }

    fn fault(&self, limit: Limit) -> Fault {
        let (detail, reason) = match limit {
            Limit::Quiet => (
                format!("nothing but signs of life came for {}", seconds(self.limits.quiet)),
                "timeout",
            ),
            _ => (
                format!(
                    "the answer stalled: nothing came for {}",
                    seconds(self.limits.stall.unwrap_or(self.limits.quiet))
                ),
                "stream_stalled",
            ),
        };
        let mut fault = Fault::new(Code::Timeout, detail);
        fault.data.insert("reason".to_owned(), reason.into());
        fault
    }
}

/// The failure of an answer whose finish reason says that the server failed.
fn said_error(response: &ChatResponse) -> Fault {
    let word = response.finish_raw.as_deref().unwrap_or("error");
    let code = match word {
        "insufficient_system_resource" => Code::Overloaded,
        "malformed_function_call" | "MALFORMED_FUNCTION_CALL" => Code::ToolRejected,
        "timeout" => Code::Timeout,
        _ => Code::Server,
    };
    Fault::new(
        code,
        format!("it ended its answer with \"{}\"", super::words::clean(word, 100)),
    )
}

/// A connection that failed while `what` was on its way.
pub(crate) fn transport(error: &reqwest::Error, what: &str) -> Fault {
    let mut root: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = root.source() {
        root = source;
    }
    let chain = error::chain(error).to_ascii_lowercase();
    let certificate = chain.contains("certificate");
    let (code, detail) = if error.is_timeout() {
        (Code::Timeout, "it could not be connected to in time".to_owned())
    } else if certificate {
        (Code::Connection, format!("its certificate is not trusted: {root}"))
    } else if error.is_connect() {
        (Code::Connection, format!("it cannot be reached: {root}"))
    } else {
        (Code::Connection, format!("{what} broke off: {root}"))
    };
    let mut fault = Fault::new(code, detail);
    if certificate {
        fault.retryable = false;
        fault.hint = Some("if the server uses its own authority, name its certificate file in ca_file".to_owned());
    }
    fault
}

/// A time limit for a person.
pub(crate) fn seconds(limit: Duration) -> String {
    retry_after::spoken(limit)
}
