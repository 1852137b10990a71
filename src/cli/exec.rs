//! `agent-smith exec`: one turn without a terminal.
//!
//! In text mode stdout gets the answer and nothing else, and stderr the progress; with `--json` stdout gets one event a
//! line and last the turn's result.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;

use crate::cli::args::ExecArgs;
use crate::cli::{Exit, complain, signals};
use crate::error::{AgentError, ErrorKind};
use crate::llm::Tape;
use crate::protocol::{
    CancelScope, Event, EventKind, HELLO_TERM_DEFAULT, Hello, HostInfo, PROTOCOL_VERSION, StopReason, Submit, TurnEnd,
};
use crate::runtime::{ConversationStart, ServiceHandles, Session, SessionOptions};

mod progress;
mod tape;

/// How long one wait for events lasts; only a bound, every event wakes it.
const POLL: Duration = Duration::from_secs(3600);
/// The longest prompt taken from stdin.
const MAX_PROMPT_BYTES: u64 = 64 * 1024 * 1024;

/// Runs the subcommand.
pub(super) fn run(args: ExecArgs) -> Exit {
    let tape = tape::open(&args);
    let ran = tape.and_then(|tape| {
        let (session, submit) = prepare(&args, tape.clone())?;
        let exit = drive(&args, &session, submit)?;
        tape::tell_failure(tape.as_ref());
        Ok(exit)
    });
    match ran {
        Ok(exit) => exit,
        Err(error) => {
            complain(&error);
            match error.kind {
                ErrorKind::Schema | ErrorKind::Policy => Exit::Usage,
                ErrorKind::Cancelled => Exit::Cancelled,
                _ => Exit::Error,
            }
        }
    }
}

fn usage(code: &'static str, message: impl Into<String>) -> AgentError {
    AgentError::new(ErrorKind::Schema, code, message).from_origin("cli")
}

fn prepare(args: &ExecArgs, tape: Option<Tape>) -> Result<(Arc<Session>, Submit), AgentError> {
    let line = prompt(args)?;
    let cwd = working_directory(args)?;
    let start = match (&args.conversation, args.resume) {
        (Some(id), _) => ConversationStart::Id(id.clone()),
        (None, true) => ConversationStart::Latest,
        (None, false) => ConversationStart::New,
    };
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        client: format!("exec {}", env!("CARGO_PKG_VERSION")),
        host: HostInfo {
            name: "agent-smith".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        term: HELLO_TERM_DEFAULT,
        palette: None,
        cwd: cwd.clone(),
        env: None,
        pid: std::process::id(),
        render: false,
    };
    let options = SessionOptions {
        start,
        role: args.role.clone(),
        profile: args.profile.clone(),
        model: args.model.clone().or_else(|| tape::model(tape.as_ref())),
        ephemeral: args.ephemeral,
        shell: false,
        handles: ServiceHandles {
            tape,
            ..ServiceHandles::default()
        },
        ..SessionOptions::default()
    };
    let (session, _) = Session::open(hello, options)?;
    Ok((
        Arc::new(session),
        Submit {
            line,
            cwd,
            ..Submit::default()
        },
    ))
}

fn prompt(args: &ExecArgs) -> Result<String, AgentError> {
    let not_utf8 = || usage("prompt_encoding", "the prompt is not valid UTF-8");
    if args.prompt == "-" && args.steer {
        return Err(usage(
            "stdin",
            "--steer reads lines from stdin, so the prompt cannot come from there",
        )
        .with_hint("give the prompt as an argument"));
    }
    let prompt = if args.prompt == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .lock()
            .take(MAX_PROMPT_BYTES + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| usage("stdin", format!("the prompt cannot be read from stdin: {error}")))?;
        if bytes.len() as u64 > MAX_PROMPT_BYTES {
            return Err(usage(
                "prompt_size",
                format!("the prompt is longer than {MAX_PROMPT_BYTES} bytes"),
            ));
        }
        String::from_utf8(bytes).map_err(|_| not_utf8())?
    } else {
        args.prompt.to_str().ok_or_else(not_utf8)?.to_owned()
    };
    if prompt.trim().is_empty() {
        return Err(usage("prompt_empty", "the prompt is empty").with_hint("say what to do: agent-smith exec \"…\""));
    }
    Ok(prompt)
}

fn working_directory(args: &ExecArgs) -> Result<String, AgentError> {
    let current = || {
        #[expect(clippy::disallowed_methods, reason = "our own process; read once, at its start")]
        std::env::current_dir().map_err(|error| usage("cwd", format!("the current directory cannot be read: {error}")))
    };
    let dir: PathBuf = match &args.cwd {
        Some(dir) => {
            let dir = if dir.is_absolute() {
                dir.clone()
            } else {
                current()?.join(dir)
            };
            let bad = |what: String| usage("cwd", format!("--cwd {}: {what}", dir.display()));
            let dir = dir.canonicalize().map_err(|error| bad(error.to_string()))?;
            if !dir.is_dir() {
                return Err(bad("not a directory".to_owned()));
            }
            dir
        }
        None => current()?,
    };
    dir.into_os_string().into_string().map_err(|dir| {
        usage(
            "cwd",
            format!("the directory's name is not valid UTF-8: {}", dir.to_string_lossy()),
        )
    })
}

fn drive(args: &ExecArgs, session: &Arc<Session>, submit: Submit) -> Result<Exit, AgentError> {
    let cancel = Arc::downgrade(session);
    // From then on no further line is worth waiting for.
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    signals::watch(move |signal| {
        stop.store(true, Ordering::SeqCst);
        if let Some(session) = cancel.upgrade() {
            session.cancel(CancelScope::All, signal);
        }
    })?;
    let steering = args.steer.then(|| (Arc::downgrade(session), submit.cwd.clone()));
    let submitted = Arc::new(AtomicU64::new(1));
    session.submit_prompt(submit)?;
    if let Some((session, cwd)) = steering {
        let submitted = Arc::clone(&submitted);
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || steer(&session, &cwd, &submitted))
            .map_err(|error| AgentError::internal("cli", format!("the thread for stdin cannot be started: {error}")))?;
    }
    let mut output = Output::new(args.json);
    let mut end: Option<(TurnEnd, String)> = None;
    let mut conversation_id = String::new();
    let mut unread = false;
    'turn: loop {
        let events = session.poll(POLL);
        if events.is_empty() && session.is_closed() {
            return Err(AgentError::internal(
                "cli",
                "the session ended without an end of the turn",
            ));
        }
        for event in &events {
            output.event(event);
            match &event.kind {
                EventKind::TurnStarted {
                    conversation_id: id, ..
                } => conversation_id.clone_from(id),
                kind if kind.is_terminal() => {
                    if let EventKind::TurnCompleted(turn_end) | EventKind::TurnFailed(turn_end) = kind {
                        end = Some((turn_end.clone(), event.turn_id.clone().unwrap_or_default()));
                    }
                }
                EventKind::InputSettled { inputs, closing }
                    if *closing || *inputs >= submitted.load(Ordering::SeqCst) || stopped.load(Ordering::SeqCst) =>
                {
                    break 'turn;
                }
                _ => {}
            }
        }
        if !output.flush() && !std::mem::replace(&mut unread, true) {
            // Nobody reads the output any more: there is no use in going on.
            stopped.store(true, Ordering::SeqCst);
            session.cancel(CancelScope::All, "output closed");
        }
    }
    let Some((end, turn_id)) = end else {
        return Err(AgentError::internal("cli", "the prompt was worked off without a turn"));
    };
    output.end(&end, &turn_id, &conversation_id);
    session.close("exec ended");
    Ok(match end.stop_reason {
        StopReason::Completed => Exit::Completed,
        StopReason::Cancelled => Exit::Cancelled,
        StopReason::Error if is_usage(end.error.as_ref()) => Exit::Usage,
        StopReason::Error => Exit::Error,
        StopReason::BudgetExhausted => Exit::BudgetExhausted,
    })
}

/// Hands over each line of stdin until there is none, or no session.
fn steer(session: &Weak<Session>, cwd: &str, submitted: &AtomicU64) {
    for line in std::io::stdin().lock().take(MAX_PROMPT_BYTES).split(b'\n') {
        let (Ok(line), Some(session)) = (line, session.upgrade()) else {
            return;
        };
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if line.is_empty() {
            continue;
        }
        // Counted first: the end of the turn before it is not the end then.
        submitted.fetch_add(1, Ordering::SeqCst);
        let submit = Submit {
            line,
            cwd: cwd.to_owned(),
            ..Submit::default()
        };
        if session.submit_prompt(submit).is_err() {
            submitted.fetch_sub(1, Ordering::SeqCst);
            return;
        }
    }
}

fn is_usage(error: Option<&AgentError>) -> bool {
    error.is_some_and(|error| error.kind == ErrorKind::Schema)
}

/// Where the output goes.
struct Output {
    json: bool,
    stdout: std::io::BufWriter<std::io::Stdout>,
    progress: progress::Progress,
    broken: bool,
}

impl Output {
    fn new(json: bool) -> Self {
        let stdout = std::io::BufWriter::with_capacity(64 * 1024, std::io::stdout());
        Self {
            json,
            stdout,
            progress: progress::Progress::new(),
            broken: false,
        }
    }

    fn event(&mut self, event: &Event) {
        if self.json {
            let written = serde_json::to_writer(&mut self.stdout, event).map_err(std::io::Error::from);
            self.broken |= written.and_then(|()| self.stdout.write_all(b"\n")).is_err();
        } else {
            self.progress.event(&event.kind);
        }
    }

    /// Writes what was collected; says whether somebody still reads it.
    fn flush(&mut self) -> bool {
        self.broken |= self.stdout.flush().is_err();
        !self.broken
    }

    fn end(&mut self, end: &TurnEnd, turn_id: &str, conversation_id: &str) {
        if self.json {
            let result = json!({"type": "turn_result", "data": {
                "stop_reason": end.stop_reason, "text": end.text, "usage": end.usage, "error": end.error,
                "turn_id": turn_id, "conversation_id": conversation_id,
            }});
            let _ = writeln!(self.stdout, "{result}");
        } else {
            if !end.text.is_empty() {
                let newline = if end.text.ends_with('\n') { "" } else { "\n" };
                let _ = write!(self.stdout, "{}{newline}", end.text);
            }
            let _ = self.stdout.flush();
            if let Some(error) = &end.error {
                complain(error);
            }
        }
        let _ = self.stdout.flush();
    }
}
