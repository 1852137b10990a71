//! From a child's pipe into its log, and in pieces to whoever watches.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

use super::output::OutputLog;

/// Read at a time at first, and once there is much to read, in bytes.
const READ_SIZES: (usize, usize) = (16 * 1024, 256 * 1024);
/// Shortest time between two pieces of output given to a watcher.
const DELTA_INTERVAL: Duration = Duration::from_millis(50);
/// Longest piece given to a watcher, in bytes; of more than that, the last part is given.
const DELTA_BYTES: usize = 16 * 1024;

/// A piece of output for a watcher: text, with what is no UTF-8 replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDelta {
    /// The text.
    pub text: String,
    /// Bytes left out before it, because they came faster than they can be watched.
    pub skipped: u64,
}

/// A log that is written to while it may be looked at.
pub type SharedLog = Arc<Mutex<OutputLog>>;

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) fn lock(log: &SharedLog) -> std::sync::MutexGuard<'_, OutputLog> {
    // The log is consistent after each push, whatever panicked.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves bytes from the pipe into the log and to the watcher.
pub(super) struct Pump<W> {
    pipe: Receiver,
    pub(super) log: SharedLog,
    buffer: Vec<u8>,
    watcher: Watcher<W>,
    pub(super) ended: bool,
}

impl<W: FnMut(OutputDelta)> Pump<W> {
    pub(super) fn new(pipe: OwnedFd, log: SharedLog, watch: W) -> std::io::Result<Self> {
        Ok(Self::from_pipe(Receiver::from_owned_fd(pipe)?, log, watch))
    }

    pub(super) fn from_pipe(pipe: Receiver, log: SharedLog, watch: W) -> Self {
        Self {
            pipe,
            log,
            buffer: vec![0; READ_SIZES.0],
            watcher: Watcher::new(watch),
            ended: false,
        }
    }

    /// The pipe, where it has not ended, and the log.
    pub(super) fn into_parts(self) -> (Option<Receiver>, SharedLog) {
        ((!self.ended).then_some(self.pipe), self.log)
    }

    /// Reads until the pipe ends. May be dropped at any time and called again; nothing read is lost.
    pub(super) async fn read_all(&mut self) {
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

    pub(super) fn flush(&mut self) {
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
