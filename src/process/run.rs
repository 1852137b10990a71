//! One command from start to end: its output as it comes, its timeout, its cancellation, and what it left running.
//!
//! A command has ended when its process has exited and its pipe has come to an end. A grandchild that keeps the pipe
//! open holds nobody up: after a short grace the command counts as ended, and the grandchild is told as a survivor.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::child::{Child, ExitStatus};
use super::environment::Environment;
use super::nonce::Survivor;
use super::output::{Captured, OutputLimits, OutputLog};
use super::spawn::{SpawnError, Spawned, spawn};
use super::tree::kill_tree;
use crate::cancel::CancelToken;

/// Read at a time at first, and once there is much to read, in bytes.
const READ_SIZES: (usize, usize) = (16 * 1024, 256 * 1024);
/// Shortest time between two pieces of output given to a watcher.
const DELTA_INTERVAL: Duration = Duration::from_millis(50);
/// Longest piece given to a watcher, in bytes; of more than that, the last part is given.
const DELTA_BYTES: usize = 16 * 1024;
/// How long the pipe of a killed command is read on where it is urgent.
const URGENT_DRAIN: Duration = Duration::from_millis(50);

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

/// A piece of output for a watcher: text, with what is no UTF-8 replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDelta {
    /// The text.
    pub text: String,
    /// Bytes left out before it, because they came faster than they can be watched.
    pub skipped: u64,
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
    /// Whether a survivor holds the pipe: more output may have come.
    pub pipe_open: bool,
}

/// A log that is written to while it may be looked at.
pub type SharedLog = Arc<Mutex<OutputLog>>;

/// Runs a command to its end. `watch` is given its output as it comes.
///
/// Dropping the future kills the command with its descendants.
pub async fn run(spec: RunSpec, cancel: &CancelToken, watch: impl FnMut(OutputDelta)) -> Result<Finished, SpawnError> {
    let log = Arc::new(Mutex::new(OutputLog::new(spec.output)));
    let CommandSpec {
        program,
        args,
        cwd,
        env,
    } = spec.command;
    let Spawned { child, output } = spawn(&program, &args, &cwd, &env)?;
    let running = Running {
        child,
        pump: Pump::new(output, Arc::clone(&log), watch)?,
    };
    Ok(running.finish(spec.limits, cancel).await)
}

/// A command that runs.
struct Running<W> {
    child: Child,
    pump: Pump<W>,
}

impl<W: FnMut(OutputDelta)> Running<W> {
    async fn finish(mut self, limits: RunLimits, cancel: &CancelToken) -> Finished {
        let deadline = limits.timeout.map(|timeout| Instant::now() + timeout);
        let mut ending = Ending::Exited;
        let survivors;
        tokio::select! {
            biased;
            () = cancel.cancelled() => ending = Ending::Cancelled,
            () = until(deadline) => ending = Ending::TimedOut,
            () = both(self.pump.read_all(), self.child.exited()) => {}
        }
        if ending == Ending::Exited {
            if !self.pump.ended {
                drop(timeout(limits.pipe_grace, self.pump.read_all()).await);
            }
            survivors = self.child.survivors();
        } else {
            // Read on meanwhile: what is told to go may write its last words, and must not block on a full pipe.
            let pump = &mut self.pump;
            let killed = kill_tree(&mut self.child, limits.kill_grace, cancel.urgent());
            tokio::pin!(killed);
            tokio::select! {
                biased;
                left = &mut killed => survivors = left,
                () = pump.read_all() => survivors = killed.await,
            }
            if !self.pump.ended {
                tokio::select! {
                    read = timeout(limits.drain, self.pump.read_all()) => drop(read),
                    () = hurried(cancel, URGENT_DRAIN) => {}
                }
            }
        }
        self.pump.flush();
        Finished {
            status: self.child.reap().unwrap_or(ExitStatus::Unknown),
            ending,
            duration: self.child.age(),
            output: lock(&self.pump.log).captured(),
            survivors,
            pipe_open: !self.pump.ended,
        }
    }
}

/// Completes `time` after there is no time left to end well.
async fn hurried(cancel: &CancelToken, time: Duration) {
    cancel.urgent().await;
    tokio::time::sleep(time).await;
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
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

fn lock(log: &SharedLog) -> std::sync::MutexGuard<'_, OutputLog> {
    // The log is consistent after each push, whatever panicked.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves bytes from the pipe into the log and to the watcher.
struct Pump<W> {
    pipe: Receiver,
    log: SharedLog,
    buffer: Vec<u8>,
    watcher: Watcher<W>,
    ended: bool,
}

impl<W: FnMut(OutputDelta)> Pump<W> {
    fn new(pipe: OwnedFd, log: SharedLog, watch: W) -> Result<Self, SpawnError> {
        Ok(Self {
            pipe: Receiver::from_owned_fd(pipe)?,
            log,
            buffer: vec![0; READ_SIZES.0],
            watcher: Watcher::new(watch),
            ended: false,
        })
    }

    /// Reads until the pipe ends. May be dropped at any time and called again; nothing read is lost.
    async fn read_all(&mut self) {
        while !self.ended {
            let ready = tokio::select! {
                biased;
                ready = self.pipe.readable() => ready,
                () = until(self.watcher.due()) => {
                    self.watcher.flush();
                    continue;
                }
            };
            match ready.and_then(|()| self.pipe.try_read(&mut self.buffer)) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    let bytes = &self.buffer[..count];
                    lock(&self.log).push(bytes);
                    self.watcher.push(bytes);
                    if count == self.buffer.len() && count < READ_SIZES.1 {
                        self.buffer = vec![0; READ_SIZES.1];
                        // As much in one go as is read in one; where it is refused, the pipe stays as it is.
                        #[cfg(target_os = "linux")]
                        let _ = rustix::pipe::fcntl_setpipe_size(&self.pipe, READ_SIZES.1);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => self.ended = true,
            }
        }
    }

    fn flush(&mut self) {
        self.watcher.finish();
    }
}

/// Gives the output to somebody who watches: at once when it is slow, in pieces at intervals when it is fast.
struct Watcher<W> {
    watch: W,
    pending: Vec<u8>,
    skipped: u64,
    sent: Option<Instant>,
}

impl<W: FnMut(OutputDelta)> Watcher<W> {
    fn new(watch: W) -> Self {
        Self {
            watch,
            pending: Vec::new(),
            skipped: 0,
            sent: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(DELTA_BYTES)..];
        let overflow = (self.pending.len() + kept.len())
            .saturating_sub(DELTA_BYTES)
            .min(self.pending.len());
        self.pending.drain(..overflow);
        self.pending.extend_from_slice(kept);
        self.skipped += (overflow + bytes.len() - kept.len()) as u64;
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.flush();
        }
    }

    /// When the pending piece is to be given, if there is one.
    fn due(&self) -> Option<Instant> {
        let text = whole_characters(&self.pending) > 0;
        text.then(|| self.sent.map_or_else(Instant::now, |sent| sent + DELTA_INTERVAL))
    }

    fn flush(&mut self) {
        self.give(whole_characters(&self.pending));
    }

    fn finish(&mut self) {
        self.give(self.pending.len());
    }

    fn give(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&self.pending[..count]).into_owned();
        self.pending.drain(..count);
        self.sent = Some(Instant::now());
        (self.watch)(OutputDelta {
            text,
            skipped: std::mem::take(&mut self.skipped),
        });
    }
}

/// How many of `bytes` come before an unfinished UTF-8 sequence at their end.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for at in (start..bytes.len()).rev() {
        let needed = match bytes[at] {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        return if at + needed > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut() {
        let text = "aé€𝄞".as_bytes();
        for end in 0..=text.len() {
            let whole = whole_characters(&text[..end]);
            assert!(std::str::from_utf8(&text[..whole]).is_ok(), "{end}");
            assert!(end - whole < 4);
        }
        assert_eq!(whole_characters(b"\xff\xbf\xbf\xbf\xbf"), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_gets_the_first_piece_at_once_and_the_rest_at_intervals() {
        let mut given = Vec::new();
        let mut watcher = Watcher::new(|delta: OutputDelta| given.push(delta));
        watcher.push(b"one ");
        watcher.push(b"two ");
        watcher.push("\u{20ac}".as_bytes().split_at(1).0);
        assert!(watcher.due().is_some());
        tokio::time::advance(DELTA_INTERVAL).await;
        watcher.push("\u{20ac}".as_bytes().split_at(1).1);
        watcher.push(&vec![b'x'; DELTA_BYTES + 10]);
        watcher.finish();
        let texts: Vec<_> = given.iter().map(|delta| delta.text.as_str()).collect();
        assert_eq!(&texts[..2], ["one ", "two €"]);
        assert_eq!((texts[2].len(), given[2].skipped), (DELTA_BYTES, 10));
    }
}
