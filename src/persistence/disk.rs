//! What lies under the database engine: the file, a counting and sealing layer, and a copy-on-write one for reading.
//!
//! The store opens the file for each transaction. Left alone, the engine would then write and sync a "not shut down"
//! mark at each open and a whole extra transaction with a "shut down" mark at each close: seven syncs for a commit that
//! needs two. Each of our commits leaves the file in the state a crash just after it would leave, which the engine
//! reopens at once (quick repair). So [`CommitDisk`] leaves out what changes nothing (a header that is the same
//! already, a sync with nothing to sync) and, once the commit is durable, is sealed: what the close would write fails.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use redb::{BackendError, StorageBackend};

use super::failpoint;

/// The size of a block in the copy-on-write layer, and of the part of the file that counts as its header.
const BLOCK: usize = 4096;

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
        if offset == 0 && out.len() <= BLOCK {
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
        if offset == 0 && data.len() <= BLOCK {
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

/// A view of a file, or of nothing, that is written to in memory only.
#[derive(Debug)]
pub(crate) struct CowDisk {
    base: Option<Box<dyn StorageBackend>>,
    state: Mutex<Cow>,
}

#[derive(Debug, Default)]
struct Cow {
    /// The length of the view.
    len: u64,
    /// How much of the base still shows: what was cut off once must read as zeros when the view grows again.
    base_len: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl CowDisk {
    pub(crate) fn new(base: Option<Box<dyn StorageBackend>>) -> io::Result<Self> {
        let len = base.as_ref().map_or(Ok(0), |base| base.len())?;
        Ok(Self {
            base,
            state: Mutex::new(Cow {
                len,
                base_len: len,
                blocks: BTreeMap::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, Cow> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the base, zeros where it does not reach.
    fn read_base(&self, base_len: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = base_len.saturating_sub(offset).min(out.len() as u64);
        let (have, beyond) = out.split_at_mut(usize::try_from(there).unwrap_or(0));
        beyond.fill(0);
        match &self.base {
            Some(base) if !have.is_empty() => base.read(offset, have),
            _ => Ok(()),
        }
    }
}

/// The blocks that `len` bytes at `offset` touch: number of the block, start within it, and how many bytes.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = usize::try_from(at % BLOCK as u64).unwrap_or(0);
        let take = (BLOCK - start).min(len - done);
        done += take;
        Some((at / BLOCK as u64, start, take))
    })
}

impl StorageBackend for CowDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if state.blocks.is_empty() {
            return self.read_base(state.base_len, offset, out);
        }
        let mut rest = out;
        let mut at = offset;
        for (block, start, take) in spans(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(take);
            match state.blocks.get(&block) {
                Some(bytes) => part.copy_from_slice(&bytes[start..start + take]),
                None => self.read_base(state.base_len, at, part)?,
            }
            rest = after;
            at += take as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if len < state.len {
            state.base_len = state.base_len.min(len);
            let first_cut = len.div_ceil(BLOCK as u64);
            let _cut = state.blocks.split_off(&first_cut);
            let keep = usize::try_from(len % BLOCK as u64).unwrap_or(0);
            if keep > 0
                && let Some(block) = state.blocks.get_mut(&(len / BLOCK as u64))
            {
                block[keep..].fill(0);
            }
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = data;
        for (block, start, take) in spans(offset, data.len()) {
            let (part, after) = rest.split_at(take);
            if !state.blocks.contains_key(&block) {
                let mut bytes = vec![0; BLOCK].into_boxed_slice();
                if take < BLOCK {
                    self.read_base(state.base_len, block * BLOCK as u64, &mut bytes)?;
                }
                state.blocks.insert(block, bytes);
            }
            if let Some(bytes) = state.blocks.get_mut(&block) {
                bytes[start..start + take].copy_from_slice(part);
            }
            rest = after;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        match &self.base {
            Some(base) => base.close(),
            None => Ok(()),
        }
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        match &self.base {
            Some(base) => base.try_lock_range(start, end),
            None => Err(BackendError::Unsupported),
        }
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        match &self.base {
            Some(base) => base.unlock_range(start, end),
            None => Err(BackendError::Unsupported),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Action {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Read(u64, usize),
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let action = prop_oneof![
            (0..20_000_u64, prop::collection::vec(any::<u8>(), 1..9000)).prop_map(|(at, data)| Action::Write(at, data)),
            (0..30_000_u64).prop_map(Action::SetLen),
            (0..30_000_u64, 1..9000_usize).prop_map(|(at, len)| Action::Read(at, len)),
        ];
        prop::collection::vec(action, 1..40)
    }

    proptest! {
        #[test]
        fn the_view_behaves_like_a_file_and_leaves_its_base_alone(
            base in prop::collection::vec(any::<u8>(), 0..20_000),
            actions in actions(),
        ) {
            let disk = redb::backends::InMemoryBackend::new();
            disk.set_len(base.len() as u64).unwrap();
            if !base.is_empty() {
                disk.write(0, &base).unwrap();
            }
            let cow = CowDisk::new(Some(Box::new(disk))).unwrap();
            let mut model = base.clone();
            for action in actions {
                match action {
                    Action::Write(at, data) => {
                        let end = at as usize + data.len();
                        let fits = end <= model.len();
                        prop_assert_eq!(cow.write(at, &data).is_ok(), fits);
                        if fits {
                            model[at as usize..end].copy_from_slice(&data);
                        }
                    }
                    Action::SetLen(len) => {
                        cow.set_len(len).unwrap();
                        model.resize(len as usize, 0);
                    }
                    Action::Read(at, len) => {
                        let mut out = vec![7; len];
                        let expected = model.get(at as usize..at as usize + len);
                        match cow.read(at, &mut out) {
                            Ok(()) => prop_assert_eq!(Some(out.as_slice()), expected),
                            Err(_) => prop_assert!(expected.is_none()),
                        }
                    }
                }
                prop_assert_eq!(cow.len().unwrap(), model.len() as u64);
            }
            let mut out = vec![0; base.len()];
            cow.base.as_ref().unwrap().read(0, &mut out).unwrap();
            prop_assert_eq!(out, base);
        }
    }
}
