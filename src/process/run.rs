//! One command from start to end: its output as it comes, its timeout, its cancellation, and what it left running.
//!
//! A command has ended when its process has exited and its pipe has come to an end. A grandchild that keeps the pipe
//! open holds nobody up: after a short grace the command counts as ended, and the grandchild is told as a survivor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, timeout};

use super::child::{Child, ExitStatus};
use super::environment::Environment;
use super::nonce::Survivor;
use super::output::{Captured, OutputLimits, OutputLog};
use super::pump::{OutputDelta, Pump, SharedLog, lock, until};
use super::spawn::{SpawnError, Spawned, spawn};
use super::tree::{Family, kill_tree};
use crate::cancel::CancelToken;

/// How long the pipe of a killed command is read on where it is urgent.
const URGENT_DRAIN: Duration = Duration::from_millis(50);

/// Pauses between looks at what a command left running: 31 ms together, and none where it left nothing.
const SETTLE: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
];

/// What to run.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The program's path.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Where.
    pub cwd: PathBuf,
    /// Its variables.
    pub env: Environment,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The command itself; `None` is for ever.
    pub timeout: Option<Duration>,
    /// From TERM to KILL.
    pub kill_grace: Duration,
    /// Reading on after everything was killed.
    pub drain: Duration,
    /// Reading on after the command exited while something else holds its pipe.
    pub pipe_grace: Duration,
}

impl Default for RunLimits {
    /// No timeout; 2 s from TERM to KILL, 1 s of draining, 250 ms for what still holds the pipe (a `>(…)` ends within
    /// a few milliseconds, a server never).
    fn default() -> Self {
        Self {
            timeout: None,
            kill_grace: Duration::from_secs(2),
            drain: Duration::from_secs(1),
            pipe_grace: Duration::from_millis(250),
        }
    }
}

/// A command with its limits.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// What to run.
    pub command: CommandSpec,
    /// How long it may take.
    pub limits: RunLimits,
    /// How much of its output is kept.
    pub output: OutputLimits,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Exited,
    /// It was killed after its timeout.
    TimedOut,
    /// It was killed because somebody asked to stop.
    Cancelled,
}

/// A command that ended.
#[derive(Debug)]
pub struct Finished {
    /// Its status.
    pub status: ExitStatus,
    /// Why.
    pub ending: Ending,
    /// From start to end.
    pub duration: Duration,
    /// What it wrote.
    pub output: Captured,
    /// What it started and still runs.
    pub survivors: Vec<Survivor>,
    /// The same to go on with, where there is any.
    pub left: Option<LeftBehind>,
}

/// What a command that ended left running.
#[derive(Debug)]
pub struct LeftBehind {
    /// The processes.
    pub family: Family,
    /// Where their output goes.
    pub log: SharedLog,
    /// The pipe, where one of them holds it. Closed, it would end them at their next word.
    pipe: Option<Receiver>,
}

impl LeftBehind {
    /// Reads on until nobody holds the pipe.
    pub async fn drain(self) {
        if let Some(pipe) = self.pipe {
            Pump::from_pipe(pipe, self.log, |_| {}).read_all().await;
        }
    }
}

/// Runs a command to its end. `watch` is given its output as it comes.
///
/// Dropping the future kills the command with its descendants.
pub async fn run(spec: RunSpec, cancel: &CancelToken, watch: impl FnMut(OutputDelta)) -> Result<Finished, SpawnError> {
    let log = Arc::new(Mutex::new(OutputLog::new(spec.output)));
    let running = Running::start(spec.command, log, watch)?;
    Ok(running.finish(spec.limits, cancel).await)
}

/// A command that runs.
pub(super) struct Running<W> {
    child: Child,
    pump: Pump<W>,
}

impl<W: FnMut(OutputDelta)> Running<W> {
    pub(super) fn start(command: CommandSpec, log: SharedLog, watch: W) -> Result<Self, SpawnError> {
        let CommandSpec {
            program,
            args,
            cwd,
            env,
        } = command;
        let Spawned { child, output } = spawn(&program, &args, &cwd, &env)?;
        Ok(Self {
            child,
            pump: Pump::new(output, log, watch)?,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.pid()
    }

    pub(super) async fn finish(mut self, limits: RunLimits, cancel: &CancelToken) -> Finished {
        let deadline = limits.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut ending = Ending::Exited;
        tokio::select! {
            biased;
            () = cancel.cancelled() => ending = Ending::Cancelled,
            () = until(deadline) => ending = Ending::TimedOut,
            () = both(self.pump.read_all(), self.child.exited()) => {}
        }
        let survivors = if ending == Ending::Exited {
            if !self.pump.ended {
                drop(timeout(limits.pipe_grace, self.pump.read_all()).await);
            }
            settled(&self.child).await
        } else {
            // Read on meanwhile: what is told to go may write its last words, and must not block on a full pipe.
            let pump = &mut self.pump;
            let killed = kill_tree(&mut self.child, within(limits.kill_grace, cancel, Duration::ZERO));
            tokio::pin!(killed);
            let survivors = tokio::select! {
                biased;
                left = &mut killed => left,
                () = pump.read_all() => killed.await,
            };
            if !self.pump.ended {
                tokio::select! {
                    () = self.pump.read_all() => {}
                    () = within(limits.drain, cancel, URGENT_DRAIN) => {}
                }
            }
            survivors
        };
        self.pump.flush();
        // To be asked while the child's id still means the child.
        let left = (!survivors.is_empty() || !self.pump.ended).then(|| self.child.family().orphaned());
        let status = self.child.reap().unwrap_or(ExitStatus::Unknown);
        let output = lock(&self.pump.log).captured();
        let (pipe, log) = self.pump.into_parts();
        Finished {
            status,
            ending,
            duration: self.child.age(),
            output,
            survivors,
            left: left.map(|family| LeftBehind { family, log, pipe }),
        }
    }
}

/// Completes after `time`, or `urgent` after there is no time left to end well.
async fn within(time: Duration, cancel: &CancelToken, urgent: Duration) {
    tokio::select! {
        () = sleep(time) => {}
        () = async {
            cancel.urgent().await;
            sleep(urgent).await;
        } => {}
    }
}

/// What a child that ended by itself leaves running. One that only just let go of the pipe is on its way out, and gets a
/// moment to be gone.
async fn settled(child: &Child) -> Vec<Survivor> {
    let mut survivors = child.survivors();
    for pause in SETTLE {
        if survivors.is_empty() {
            break;
        }
        sleep(pause).await;
        survivors = child.survivors();
    }
    survivors
}

/// Completes when the process has exited and, if that is at once, the pipe has come to an end too.
async fn both(pipe: impl Future<Output = ()>, exit: impl Future<Output = ()>) {
    tokio::pin!(pipe, exit);
    tokio::select! {
        biased;
        () = &mut pipe => exit.await,
        () = &mut exit => {}
    }
}
