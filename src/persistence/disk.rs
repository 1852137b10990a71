//! What lies under the database engine: the file, and a layer that leaves out what a commit does not need.
//!
//! The store opens the file for each transaction. Left alone, the engine would then write and sync a "not shut down"
//! mark at each open and a whole extra transaction with a "shut down" mark at each close: seven syncs for a commit that
//! needs two. Each of our commits leaves the file in the state a crash just after it would leave, which the engine
//! reopens at once (quick repair). So [`CommitDisk`] leaves out what changes nothing (a header that is the same
//! already, a sync with nothing to sync) and, once the commit is durable, is sealed: what the close would write fails.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use redb::{BackendError, StorageBackend};

use super::failpoint;

/// The part of the file that counts as its header: its first page.
const HEADER_BYTES: usize = 4096;

fn sealed() -> io::Error {
    io::Error::other("the transaction is over")
}

fn whole(start: Bound<u64>, end: Bound<u64>) -> bool {
    matches!(start, Bound::Unbounded | Bound::Included(0)) && matches!(end, Bound::Unbounded)
}

/// A file, with the whole-file lock against openers that do not know our lock file.
#[derive(Debug)]
pub(crate) struct FileDisk(File);

impl FileDisk {
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }
}

impl StorageBackend for FileDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn close(&self) -> io::Result<()> {
        // Explicitly: a child forked meanwhile shares the lock, and closing our descriptor would leave it with the child.
        self.0.unlock()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if !whole(start, end) {
            return Err(BackendError::Unsupported);
        }
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => Err(BackendError::Io(error)),
        }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if !whole(start, end) {
            return Err(BackendError::Unsupported);
        }
        self.0.unlock().map_err(BackendError::Io)
    }
}

/// What became of a [`CommitDisk`], for the one who gave it to the engine.
#[derive(Debug, Default)]
pub(crate) struct DiskState {
    inner: RwLock<Option<Box<dyn StorageBackend>>>,
    sealed: AtomicBool,
    unsynced: AtomicBool,
    writing: AtomicBool,
    committing: AtomicBool,
    syncs: AtomicU64,
    header: Mutex<Option<Vec<u8>>>,
}

impl DiskState {
    /// From here on nothing reaches the file.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// This is no view: growing the file is a step of a commit.
    pub(crate) fn begin_writing(&self) {
        self.writing.store(true, Ordering::Relaxed);
    }

    /// The commit's own writes begin: its syncs are steps.
    pub(crate) fn begin_commit(&self) {
        self.syncs.store(0, Ordering::Relaxed);
        self.committing.store(true, Ordering::Relaxed);
    }

    /// Whether there is nothing that a crash of the machine could undo.
    pub(crate) fn is_synced(&self) -> bool {
        !self.unsynced.load(Ordering::Acquire)
    }

    /// Lets go of the file and its lock, whatever the engine still holds.
    pub(crate) fn release(&self) {
        self.seal();
        let inner = self.inner.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inner) = inner {
            // The descriptor is closed all the same.
            let _ = inner.close();
        }
    }

    fn with<T, E: From<io::Error>>(&self, access: impl FnOnce(&dyn StorageBackend) -> Result<T, E>) -> Result<T, E> {
        match &*self.inner.read().unwrap_or_else(PoisonError::into_inner) {
            Some(inner) => access(&**inner),
            None => Err(sealed().into()),
        }
    }

    fn header(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The layer a commit goes through.
#[derive(Debug)]
pub(crate) struct CommitDisk {
    state: Arc<DiskState>,
}

impl CommitDisk {
    /// Wraps `inner`. `synced` says that everything in it is known to be on the disk already.
    pub(crate) fn new(inner: Box<dyn StorageBackend>, synced: bool) -> (Self, Arc<DiskState>) {
        let state = Arc::new(DiskState {
            inner: RwLock::new(Some(inner)),
            unsynced: AtomicBool::new(!synced),
            ..DiskState::default()
        });
        let disk = Self {
            state: Arc::clone(&state),
        };
        (disk, state)
    }

    fn open(&self) -> io::Result<()> {
        if self.state.sealed.load(Ordering::Acquire) {
            Err(sealed())
        } else {
            Ok(())
        }
    }

    fn step(&self, name: &'static str) -> io::Result<()> {
        if self.state.committing.load(Ordering::Relaxed) {
            failpoint::hit(name)?;
        }
        Ok(())
    }
}

impl StorageBackend for CommitDisk {
    fn len(&self) -> io::Result<u64> {
        self.open()?;
        self.state.with(|inner| inner.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.open()?;
        self.state.with(|inner| inner.read(offset, out))?;
        if offset == 0 && out.len() <= HEADER_BYTES {
            let mut header = self.state.header();
            if header.as_ref().is_none_or(|known| known.len() < out.len()) {
                *header = Some(out.to_vec());
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.open()?;
        if self.state.writing.load(Ordering::Relaxed) {
            failpoint::hit("commit.grow")?;
        }
        self.state.unsynced.store(true, Ordering::Release);
        self.state.with(|inner| inner.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.open()?;
        if self.state.is_synced() {
            return Ok(());
        }
        let first = self.state.syncs.fetch_add(1, Ordering::Relaxed) == 0;
        self.step(if first {
            "commit.pages_written"
        } else {
            "commit.header_written"
        })?;
        self.state.with(|inner| inner.sync_data())?;
        self.state.unsynced.store(false, Ordering::Release);
        self.step(if first {
            "commit.pages_synced"
        } else {
            "commit.header_synced"
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.open()?;
        if offset == 0 && data.len() <= HEADER_BYTES {
            let mut header = self.state.header();
            if header.as_ref().is_some_and(|known| known.starts_with(data)) {
                return Ok(());
            }
            *header = Some(data.to_vec());
        }
        self.state.unsynced.store(true, Ordering::Release);
        self.state.with(|inner| inner.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.state.release();
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.state.with(|inner| inner.try_lock_range(start, end))
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.state.with(|inner| inner.unlock_range(start, end))
    }
}
