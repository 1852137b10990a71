//! `agent-smith serve`: one session on two pipes, for hosts that can load nothing.
//!
//! One JSON object a line: `{"id", "op", …}` in; `{"id", "ok"}` or `{"id", "err"}`, and `{"event"}`, out. Three threads:
//! one reads lines and watches for the client's death, one does the ops, one writes. Each sleeps until there is
//! something for it. Whatever ends the client's side (end of file, a closed stdout, the parent's death, a signal), the
//! session is closed, its tools are stopped, and the process ends within a second.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel,
};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::bridge::guard;
use crate::bridge::lines::{Line, Lines};
use crate::bridge::watch::{Happening, Watch};
use crate::error::{AgentError, ErrorKind};
use crate::failpoint;
use crate::protocol::{CancelScope, Event};
use crate::runtime::Session;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// How many read lines may wait for their turn; beyond that the client's writes wait.
const MAX_WAITING_LINES: usize = 16;
/// How many answers may wait to be written. A client that leaves so many unread is taken for dead.
const MAX_WAITING_ANSWERS: usize = 1024;
/// How long a closed session's tools have to end well, …
const CLOSE_WAIT: Duration = Duration::from_millis(400);
/// … what is killed then to be gone and the turn to be kept, …
const URGENT_WAIT: Duration = Duration::from_millis(400);
/// … and the last events to be written.
const FLUSH_WAIT: Duration = Duration::from_millis(100);

/// Why the sidecar ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The session was closed, by its client or by a command.
    Closed,
    /// The client went away.
    ClientGone(&'static str),
    /// A signal asked for it.
    Signal(&'static str),
}

impl Ended {
    fn reason(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::ClientGone(reason) | Self::Signal(reason) => reason,
        }
    }
}

/// What reaches the thread that does the ops.
enum Incoming {
    Line(Line),
    End(Ended),
    /// A thread of the sidecar's own panicked.
    Defect(AgentError),
}

/// What reaches the thread that writes.
enum Outgoing {
    Answer(Value),
    Session(Arc<Session>),
    /// Events wait.
    Wake,
    /// Nothing more comes; write what there is.
    End,
}

/// A sidecar before it serves.
pub struct Sidecar {
    sender: SyncSender<Incoming>,
    incoming: Receiver<Incoming>,
}

impl Default for Sidecar {
    fn default() -> Self {
        let (sender, incoming) = sync_channel(MAX_WAITING_LINES);
        Self { sender, incoming }
    }
}

impl Sidecar {
    /// A function that ends the sidecar because of the signal it is given; for any thread.
    pub fn stopper(&self) -> impl Fn(&'static str) + Send + 'static {
        let sender = self.sender.clone();
        // Where nobody listens any more, it has ended already.
        move |signal| drop(sender.send(Incoming::End(Ended::Signal(signal))))
    }

    /// Serves the client at the other ends of `input` and `output` until either side ends it.
    ///
    /// # Errors
    /// `internal` where the system gives no descriptors or threads, and for a defect of the sidecar's own: the client
    /// starts another.
    pub fn serve(self, input: OwnedFd, output: OwnedFd) -> Result<Ended, AgentError> {
        let failed =
            |error: std::io::Error| AgentError::internal("bridge", format!("the sidecar cannot start: {error}"));
        let watch = Watch::new(output.try_clone().map_err(failed)?);
        let (outgoing, to_write) = sync_channel(MAX_WAITING_ANSWERS);
        let (written, all_written) = channel();
        let reader = self.sender.clone();
        let read = thread::Builder::new()
            .name("sidecar-in".to_owned())
            .spawn(move || watched(&reader, || read_lines(input, &watch, &reader)));
        let sender = self.sender.clone();
        let writer = Writer::new(output, self.sender);
        let write = thread::Builder::new()
            .name("sidecar-out".to_owned())
            .spawn(move || watched(&sender, || writer.run(&to_write, &written)));
        // Both threads may be in a system call for ever: they end with the process.
        drop((read.map_err(failed)?, write.map_err(failed)?));
        let mut desk = Desk {
            session: None,
            outgoing,
        };
        let ended = loop {
            match self.incoming.recv() {
                Ok(Incoming::Line(line)) => match guard::catch(|| Ok(desk.line(line))) {
                    Ok(None) => {}
                    Ok(Some(ended)) => break Ok(ended),
                    Err(defect) => break Err(defect),
                },
                Ok(Incoming::End(ended)) => {
                    if ended == Ended::Closed {
                        desk.session = None;
                    }
                    break Ok(ended);
                }
                Ok(Incoming::Defect(defect)) => break Err(defect),
                Err(_) => break Ok(Ended::ClientGone("the sidecar's own threads ended")),
            }
        };
        desk.end(
            ended.as_ref().map_or("a defect", |ended| ended.reason()),
            &self.incoming,
        );
        // A client that does not read must not keep the process alive.
        let _ = desk.outgoing.try_send(Outgoing::End);
        let _ = all_written.recv_timeout(FLUSH_WAIT);
        ended
    }
}

/// The work of a thread of the sidecar's own: if it panics, the sidecar ends and says so, for nobody would read or write
/// any more.
fn watched(incoming: &SyncSender<Incoming>, work: impl FnOnce()) {
    if let Err(defect) = guard::catch(|| {
        work();
        Ok(())
    }) {
        let _ = incoming.send(Incoming::Defect(defect));
    }
}

/// Where ops are done.
struct Desk {
    session: Option<Arc<Session>>,
    outgoing: SyncSender<Outgoing>,
}

impl Desk {
    /// Does the op of a line. Returns why the sidecar has to end, if it has to.
    fn line(&mut self, line: Line) -> Option<Ended> {
        let (id, request) = match line {
            Line::Whole(bytes) => parse(&bytes),
            Line::TooLong(bytes) => (Value::Null, Err(too_long(bytes))),
        };
        let close = matches!(&request, Ok((op, _)) if op == "close");
        let mut opened = None;
        let result = request.and_then(|(op, members)| match (&self.session, op.as_str()) {
            (Some(session), _) => super::call(session, &op, members),
            (None, "hello") => guard::catch(|| {
                failpoint::reach("bridge.new");
                let (session, welcome) = Session::open(super::parse_hello(members)?, super::shell_session())?;
                opened = Some(Arc::new(session));
                Ok(json!(welcome))
            }),
            (None, "close") => Ok(Value::Bool(true)),
            (None, _) => Err(
                AgentError::new(ErrorKind::Schema, "no_hello", "the first op has to be `hello`").from_origin("bridge"),
            ),
        });
        let closing = close && result.is_ok();
        let answer = match result {
            Ok(value) => json!({"id": id, "ok": value}),
            Err(error) => json!({"id": id, "err": error}),
        };
        match self.outgoing.try_send(Outgoing::Answer(answer)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Some(Ended::ClientGone("the client reads no answers")),
            // The writer is gone, and why comes next.
            Err(TrySendError::Disconnected(_)) => return None,
        }
        if let Some(session) = opened {
            self.session = Some(Arc::clone(&session));
            let outgoing = self.outgoing.clone();
            // Where the channel is full the writer looks for events anyway, after each thing it writes.
            session.set_waker(move || drop(outgoing.try_send(Outgoing::Wake)));
            let _ = self.outgoing.try_send(Outgoing::Session(session));
        }
        closing.then_some(Ended::Closed)
    }

    /// Ends the session and waits until nothing of it runs any more.
    fn end(&mut self, reason: &str, incoming: &Receiver<Incoming>) {
        tracing::debug!(reason, "the sidecar ends");
        let Some(session) = self.session.take() else { return };
        session.close(reason);
        if !wait_for_end(incoming, CLOSE_WAIT) {
            session.cancel(CancelScope::All, reason);
            wait_for_end(incoming, URGENT_WAIT);
        }
    }
}

/// Waits until the session has ended and all its events are taken.
fn wait_for_end(incoming: &Receiver<Incoming>, wait: Duration) -> bool {
    let deadline = Instant::now() + wait;
    loop {
        match incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Incoming::End(Ended::Closed)) => return true,
            // Too late for an op.
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// An op's name and its members.
type Request = (String, Map<String, Value>);

/// The id, the op's name and its members; the id even where the rest is no op.
fn parse(line: &[u8]) -> (Value, Result<Request, AgentError>) {
    let bad = |code: &'static str, what: String| AgentError::new(ErrorKind::Schema, code, what).from_origin("bridge");
    let text = String::from_utf8_lossy(line);
    let mut members = match serde_json::from_str(&text) {
        Ok(Value::Object(members)) => members,
        Ok(_) => {
            return (
                Value::Null,
                Err(bad("bad_line", "a line has to be a JSON object".to_owned())),
            );
        }
        Err(error) => return (Value::Null, Err(bad("bad_line", format!("a line is no JSON: {error}")))),
    };
    let id = members
        .remove("id")
        .filter(|id| id.is_number() || id.is_string())
        .unwrap_or_default();
    match members.remove("op") {
        Some(Value::String(op)) => (id, Ok((op, members))),
        _ => (id, Err(bad("bad_op", "a line has to name its `op`".to_owned()))),
    }
}

fn too_long(bytes: usize) -> AgentError {
    let message = format!(
        "a line of {bytes} bytes is longer than {} and was not read",
        Lines::MAX_BYTES
    );
    AgentError::new(ErrorKind::Schema, "line_too_long", message).from_origin("bridge")
}

fn read_lines(input: OwnedFd, watch: &Watch, incoming: &SyncSender<Incoming>) {
    let mut input = File::from(input);
    let mut lines = Lines::default();
    let mut buffer = vec![0; READ_BYTES];
    let end = loop {
        match watch.next(&input) {
            Happening::Input => {}
            Happening::OutputClosed => break Ended::ClientGone("the client closed its end of stdout"),
            Happening::ParentGone => break Ended::ClientGone("the parent process ended"),
        }
        let read = match input.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => {
                if let Some(line) = lines.rest() {
                    let _ = incoming.send(Incoming::Line(line));
                }
                break Ended::ClientGone("stdin was closed");
            }
            Ok(read) => read,
        };
        failpoint::reach("sidecar.read");
        for line in lines.feed(&buffer[..read]) {
            if incoming.send(Incoming::Line(line)).is_err() {
                return;
            }
        }
    };
    let _ = incoming.send(Incoming::End(end));
}

/// The one writer.
struct Writer {
    output: BufWriter<File>,
    incoming: SyncSender<Incoming>,
    session: Option<Arc<Session>>,
    broken: bool,
}

#[derive(Serialize)]
struct EventLine<'a> {
    event: &'a Event,
}

impl Writer {
    fn new(output: OwnedFd, incoming: SyncSender<Incoming>) -> Self {
        let output = BufWriter::with_capacity(READ_BYTES, File::from(output));
        Self {
            output,
            incoming,
            session: None,
            broken: false,
        }
    }

    fn run(mut self, outgoing: &Receiver<Outgoing>, written: &Sender<()>) {
        loop {
            let next = outgoing.try_recv().or_else(|empty| match empty {
                TryRecvError::Empty => {
                    self.flush();
                    outgoing.recv().map_err(|_| TryRecvError::Disconnected)
                }
                TryRecvError::Disconnected => Err(empty),
            });
            let last = match next {
                Ok(Outgoing::Answer(answer)) => {
                    self.line(&answer);
                    false
                }
                Ok(Outgoing::Session(session)) => {
                    self.session = Some(session);
                    false
                }
                Ok(Outgoing::Wake) => false,
                Ok(Outgoing::End) | Err(_) => true,
            };
            self.events();
            if last {
                break;
            }
        }
        self.flush();
        let _ = written.send(());
    }

    /// Takes the session's events even where nobody can be told any more: that is how its end is seen.
    fn events(&mut self) {
        let Some(session) = self.session.take() else { return };
        for event in session.poll(Duration::ZERO) {
            failpoint::reach("sidecar.write");
            self.line(&EventLine { event: &event });
        }
        if session.is_closed() {
            self.flush();
            let _ = self.incoming.send(Incoming::End(Ended::Closed));
        } else {
            self.session = Some(session);
        }
    }

    fn line(&mut self, line: &impl Serialize) {
        if !self.broken {
            let written = serde_json::to_writer(&mut self.output, line).map_err(std::io::Error::from);
            let written = written.and_then(|()| self.output.write_all(b"\n"));
            self.check(written);
        }
    }

    fn flush(&mut self) {
        if !self.broken {
            let flushed = self.output.flush();
            self.check(flushed);
        }
    }

    fn check(&mut self, done: std::io::Result<()>) {
        if done.is_err() {
            self.broken = true;
            let _ = self
                .incoming
                .send(Incoming::End(Ended::ClientGone("stdout cannot be written")));
        }
    }
}
