//! Who may open the database: one process at a time, for one transaction.
//!
//! A `flock` on a file beside the database, with a deadline, and a second one as the way in: who waits for the lock
//! holds the way in, so that a process that commits again and again cannot slip past it. Nothing is held between
//! transactions, and both locks are released explicitly: a child forked meanwhile shares them, and would keep them.
//!
//! This is also the one place that chooses the engine's mode ([`concurrency_mode`]).

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::problem::Problem;

/// How the engine shares the file between processes. `MultiWriter` would let us keep it open; it is too young to trust
/// with what must never be lost.
pub(crate) fn concurrency_mode() -> redb::ConcurrencyMode {
    redb::ConcurrencyMode::ExclusiveWriter
}

/// What the lock file says about the database: everything written is known to be on the disk.
const SYNCED: u8 = b's';
/// A transaction began, and did not get to the end of its last sync.
const WRITING: u8 = b'w';

/// Waits between attempts: a commit takes one or two milliseconds. Who has waited long asks more often than who has
/// just come.
const FIRST_WAIT: Duration = Duration::from_micros(400);
const LAST_WAIT: Duration = Duration::from_micros(100);

/// `name` with `suffix` after it, in the same directory.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Option<File>,
    /// How long it took to get it.
    pub(crate) waited: Duration,
    /// Whether everything in the database is known to be on the disk: who held the lock last got to the end.
    synced: bool,
}

impl Lock {
    /// Gets the lock, or says [`Problem::Busy`] after `deadline`.
    pub(crate) fn acquire(database: &Path, deadline: Duration) -> Result<Self, Problem> {
        let start = Instant::now();
        let way_in = open(&beside(database, ".queue"))?;
        // Who holds the way in may itself be stopped: after half of the time, go past it.
        match wait(&way_in, start, deadline / 2) {
            Ok(()) | Err(Problem::Busy(_)) => {}
            Err(problem) => return Err(problem),
        }
        let result = open(&beside(database, ".lock")).and_then(|file| wait(&file, start, deadline).map(|()| file));
        // Whether or not the lock was won, the next may now wait for it.
        let _ = way_in.unlock();
        let file = result?;
        let mut mark = [0];
        let synced = file.read_exact_at(&mut mark, 0).is_ok() && mark[0] == SYNCED;
        Ok(Self {
            file: Some(file),
            waited: start.elapsed(),
            synced,
        })
    }

    /// No lock, for reading where none can be had because nobody can write there.
    pub(crate) fn none() -> Self {
        Self {
            file: None,
            waited: Duration::ZERO,
            synced: true,
        }
    }

    /// Says that the database is about to be written to, and returns whether all of it was on the disk until now.
    pub(crate) fn mark_writing(&mut self) -> Result<bool, Problem> {
        let was_synced = std::mem::replace(&mut self.synced, false);
        if was_synced {
            self.mark(WRITING)?;
        }
        Ok(was_synced)
    }

    /// Says that everything written is on the disk.
    pub(crate) fn mark_synced(&mut self) {
        // Where this fails, the next one syncs once more than it needs to.
        self.synced = self.mark(SYNCED).is_ok();
    }

    fn mark(&self, mark: u8) -> Result<(), Problem> {
        match &self.file {
            Some(file) => file
                .write_all_at(&[mark], 0)
                .map_err(|error| Problem::Io("write the lock file of", error)),
            None => Ok(()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

fn open(path: &Path) -> Result<File, Problem> {
    let writable = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    match writable {
        Ok(file) => Ok(file),
        // `flock` needs no right to write; a home that is read-only can still be read.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            File::open(path).map_err(|_| Problem::Io("lock", error))
        }
        Err(error) => Err(Problem::Io("lock", error)),
    }
}

fn wait(file: &File, start: Instant, deadline: Duration) -> Result<(), Problem> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(TryLockError::Error(error)) => return Err(Problem::Io("lock", error)),
        }
        let waited = start.elapsed();
        if waited >= deadline {
            return Err(Problem::Busy(waited));
        }
        // From the first wait down to the last over the first 50 ms.
        let aged = u32::try_from(waited.as_millis().min(50)).unwrap_or(50);
        let pause = FIRST_WAIT - (FIRST_WAIT - LAST_WAIT) * aged / 50;
        std::thread::sleep(pause.min(deadline - waited));
    }
}
