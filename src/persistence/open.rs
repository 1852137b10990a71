//! Opens the database for one transaction, and closes it again without the engine's own parting writes.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::{Builder, Database, ReadTransaction, ReadableDatabase, StorageBackend, WriteTransaction};

use super::apply::{self, Origin};
use super::batch::Batch;
use super::contain::Contained;
use super::cow::CowDisk;
use super::disk::{CommitDisk, DiskState, FileDisk};
use super::error::StoreError;
use super::lock;
use super::migrations;
use super::problem::{self, Problem};
use super::store::StoreOptions;

/// The engine's cache for one transaction. Its default is 1 GiB; a transaction touches a few hundred pages of 4 KiB.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// No engine makes a file that has no commit longer than this.
const LARGEST_UNBORN: u64 = 2 * 1024 * 1024;

/// An open database.
pub(crate) struct Opened {
    database: Contained<Database>,
    state: Arc<DiskState>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Without an orderly close nothing more may be written, and the file must not stay locked.
        self.state.release();
    }
}

impl Opened {
    pub(crate) fn begin_write(&self) -> Result<Contained<WriteTransaction>, Problem> {
        let mut txn = self.database.begin_write().map_err(problem::transaction)?;
        // Each commit carries what an open after a crash needs: milliseconds instead of seconds per GB, for one more
        // sync. We count on it, since none of our opens comes after an orderly close.
        txn.set_quick_repair(true);
        Ok(Contained::new(txn))
    }

    pub(crate) fn begin_read(&self) -> Result<Contained<ReadTransaction>, Problem> {
        self.database
            .begin_read()
            .map(Contained::new)
            .map_err(problem::transaction)
    }

    /// Moves everything to the start of the file and gives the rest back.
    pub(crate) fn compact_and_close(mut self) -> Result<(), Problem> {
        let moved = self.database.compact().map_err(|error| match error {
            redb::CompactionError::Storage(error) => problem::storage(error),
            other => Problem::Engine(other.to_string()),
        });
        // The engine's own commits of a compaction carry nothing for a quick reopening.
        let recorded = moved.and_then(|_| self.begin_write()).and_then(|txn| self.commit(txn));
        let synced = self.close();
        recorded?;
        if synced {
            Ok(())
        } else {
            Err(Problem::Engine("the compacted file is not on the disk yet".to_owned()))
        }
    }

    pub(crate) fn check_schema(&self) -> Result<(), Problem> {
        let txn = self.begin_read()?;
        migrations::check(migrations::version(&txn)?)
    }

    /// Commits; when this returns, it is on the disk.
    pub(crate) fn commit(&self, txn: Contained<WriteTransaction>) -> Result<(), Problem> {
        self.state.begin_commit();
        txn.into_inner().commit().map_err(problem::commit)
    }

    /// Commits to a view, where there is no disk to wait for.
    pub(crate) fn commit_in_memory(&self, mut txn: Contained<WriteTransaction>) -> Result<(), Problem> {
        txn.set_quick_repair(false);
        txn.set_durability(redb::Durability::None)
            .map_err(|error| Problem::Engine(error.to_string()))?;
        txn.into_inner().commit().map_err(problem::commit)
    }

    /// Closes without writing anything more; says whether everything written is on the disk.
    pub(crate) fn close(mut self) -> bool {
        let synced = self.state.is_synced();
        self.state.seal();
        // With the disk sealed this fails at its first access, and the engine then leaves out its parting transaction.
        let _ = self.database.check_integrity();
        synced
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .set_cache_size(CACHE_BYTES)
        .set_concurrency_mode(lock::concurrency_mode());
    builder
}

/// Opens the disk under a database: the file, or what stands for it in tests. `None` where it does not exist and is only
/// to be read.
fn disk(options: &StoreOptions, database: &Path, write: bool) -> Result<Option<Box<dyn StorageBackend>>, Problem> {
    if let Some(open) = &options.disk {
        return open(database, write).map_err(|error| Problem::Io("open", error));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .create(write)
        .truncate(false)
        .mode(0o600)
        .open(database);
    match file {
        Ok(file) => Ok(Some(Box::new(FileDisk::new(file)))),
        Err(error) if !write && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::Io("open", error)),
    }
}

/// Whether there is a database.
pub(crate) fn exists(options: &StoreOptions, database: &Path) -> Result<bool, Problem> {
    if options.disk.is_some() {
        return Ok(true);
    }
    match std::fs::metadata(database) {
        Ok(metadata) => Ok(metadata.len() > 0),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(Problem::Io("open", error)),
    }
}

/// Opens, or begins, the database. The caller holds the lock. `synced` says whether all of it is known to be on the disk.
pub(crate) fn for_writing(options: &StoreOptions, database: &Path, synced: bool) -> Result<Opened, Problem> {
    let disk = disk(options, database, true)?.ok_or_else(|| Problem::Engine("there is no disk".to_owned()))?;
    let begin = |error| Problem::Io("begin", error);
    let is_new = disk.len().map_err(begin)? == 0;
    if !is_new && is_unborn(&*disk).map_err(begin)? {
        disk.set_len(0).map_err(begin)?;
    }
    let opened = open(disk, synced)?;
    opened.state.begin_writing();
    if is_new
        && options.disk.is_none()
        && let Some(parent) = database.parent()
    {
        super::spool::sync_directory(parent).map_err(begin)?;
    }
    Ok(opened)
}

/// Opens a snapshot that can be written to in memory. The caller holds the lock.
pub(crate) fn view(options: &StoreOptions, database: &Path) -> Result<Opened, Problem> {
    let read = |error| Problem::Io("read", error);
    let mut disk = disk(options, database, false)?;
    if let Some(there) = &disk
        && is_unborn(&**there).map_err(read)?
    {
        disk = None;
    }
    open(Box::new(CowDisk::new(disk).map_err(read)?), true)
}

/// A view of nothing.
pub(crate) fn empty_view() -> Result<Opened, Problem> {
    let disk = CowDisk::new(None).map_err(|error| Problem::Io("begin", error))?;
    open(Box::new(disk), true)
}

fn open(disk: Box<dyn StorageBackend>, synced: bool) -> Result<Opened, Problem> {
    let (disk, state) = CommitDisk::new(disk, synced);
    let database = builder().create_with_backend(disk).map_err(problem::database)?;
    Ok(Opened {
        database: Contained::new(database),
        state,
    })
}

/// Whether a file is one whose creation was cut short: the engine writes the first bytes last, so nothing was ever
/// committed to it. A larger file, or one with anything after its first page, is damaged instead, and not thrown away.
fn is_unborn(disk: &dyn StorageBackend) -> io::Result<bool> {
    let len = disk.len()?;
    if len == 0 || len > LARGEST_UNBORN {
        return Ok(false);
    }
    let mut start = [0; 9];
    if len < start.len() as u64 {
        return Ok(false);
    }
    disk.read(0, &mut start)?;
    if start != [0; 9] {
        return Ok(false);
    }
    let mut rest = vec![0; usize::try_from(len.saturating_sub(4096)).unwrap_or(0)];
    if !rest.is_empty() {
        disk.read(4096, &mut rest)?;
    }
    Ok(rest.iter().all(|byte| *byte == 0))
}

/// What a check of a whole file found.
pub(crate) enum Verdict {
    /// Every page can be read and has the right checksum; or there is no file.
    Sound,
    /// It cannot be used.
    Damaged(String),
    /// It could not be looked at.
    Unknown(Problem),
}

/// Checks every page of a database. Reads the whole file, and writes nothing.
pub(crate) fn verdict(options: &StoreOptions, database: &Path) -> Verdict {
    let read = |error| Problem::Io("read", error);
    let check = || {
        let Some(disk) = disk(options, database, false)? else {
            return Ok(());
        };
        if disk.len().map_err(read)? == 0 || is_unborn(&*disk).map_err(read)? {
            return Ok(());
        }
        let (disk, state) = CommitDisk::new(Box::new(CowDisk::new(Some(disk)).map_err(read)?), true);
        let database = builder()
            .set_check_integrity_on_open(true)
            .create_with_backend(disk)
            .map_err(problem::database)?;
        let opened = Opened {
            database: Contained::new(database),
            state,
        };
        let version = opened.begin_read().and_then(|txn| migrations::version(&txn));
        opened.close();
        version.map(|_| ())
    };
    match guarded(check) {
        Ok(()) => Verdict::Sound,
        Err(Problem::Corrupt(detail)) => Verdict::Damaged(detail),
        Err(problem) => Verdict::Unknown(problem),
    }
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would now be caught by the store and told as a damaged file. For a panic hook that keeps
/// such messages away from a host's screen.
#[must_use]
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs something with the engine; a panic of it is a failure like any other.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CONTAINED.set(before);
    result.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// A database in memory.
pub(crate) fn memory() -> Result<Database, Problem> {
    builder()
        .create_with_backend(redb::backends::InMemoryBackend::new())
        .map_err(problem::database)
}

/// Writes a batch to a database in memory and returns what was refused.
pub(crate) fn write_memory(
    database: &Database,
    max_blob_bytes: u64,
    batch: &Batch,
) -> Result<Vec<StoreError>, Problem> {
    let txn = database.begin_write().map_err(problem::transaction)?;
    migrations::bring_up_to_date(&txn)?;
    let refused = apply::apply(&txn, batch, Origin::Live, max_blob_bytes)?;
    txn.commit().map_err(problem::commit)?;
    Ok(refused)
}

/// The problem that a panic of the engine is: a damaged file, until a check says otherwise.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Problem {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Problem::Corrupt(format!("the engine failed: {text}"))
}
