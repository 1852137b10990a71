//! The store itself, used by one thread at a time: transactions, and what happens where one cannot be made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::Database;

use super::apply::{self, Origin};
use super::aside;
use super::batch::{Batch, Op, sha256_hex};
use super::blobs;
use super::error::StoreError;
use super::failpoint;
use super::lock::Lock;
use super::migrations;
use super::notices::Notices;
use super::open::{self, Opened, Verdict};
use super::problem::Problem;
use super::process::now_ms;
use super::report::{CommitReport, Durability, NoticeKind, StoreNotice};
use super::spool::{self, Spool, Waiting};
use super::store::StoreOptions;

/// How long a commit waits for the lock when the last one did not get it in the whole deadline: a process that hangs
/// with the lock must not cost every round the full wait.
const SHORT_DEADLINE: Duration = Duration::from_millis(100);

/// The store's state in this process. Between two calls it holds no file, lock or database handle.
pub(crate) struct Engine {
    pub(super) options: StoreOptions,
    /// Longest content of a blob that is kept, in bytes; the store's handles may change it.
    max_blob_bytes: Arc<AtomicU64>,
    /// The database, with symbolic links resolved; `None` where the store is in memory only.
    database: Option<PathBuf>,
    /// The in-memory database of a store without a file.
    memory: Option<Database>,
    spool: Option<Spool>,
    /// What is in memory only, oldest first.
    pub(super) kept: Vec<Batch>,
    /// Whether this process has closed what dead processes left open.
    pub(super) recovered: bool,
    /// Whether the file was found to be one this program may write to.
    probed: bool,
    /// Whether the last commit did not get the lock.
    was_busy: bool,
    /// Whether something waits in the spool or in memory that the user was told of.
    degraded: bool,
    pub(super) notices: Notices,
}

impl Engine {
    pub(crate) fn new(options: StoreOptions) -> Self {
        Self {
            max_blob_bytes: Arc::new(AtomicU64::new(options.max_blob_bytes)),
            options,
            database: None,
            memory: None,
            spool: None,
            kept: Vec::new(),
            recovered: false,
            probed: false,
            was_busy: false,
            degraded: false,
            notices: Notices::default(),
        }
    }

    /// Where the longest content that is kept can be changed.
    pub(crate) fn blob_limit(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.max_blob_bytes)
    }

    pub(super) fn max_blob_bytes(&self) -> u64 {
        self.max_blob_bytes.load(Ordering::Relaxed)
    }

    /// The database's path with links resolved, so that all ways to one file share one lock.
    pub(super) fn database(&mut self) -> Option<PathBuf> {
        if self.database.is_none() {
            let path = self.options.path.clone()?;
            self.database = Some(std::fs::canonicalize(&path).unwrap_or(path));
        }
        self.database.clone()
    }

    /// What no report has carried yet.
    pub(crate) fn take_notices(&mut self) -> Vec<StoreNotice> {
        self.notices.take()
    }

    /// Makes everything of `batches` durable in one transaction, or as safe as can be.
    pub(crate) fn commit(&mut self, batches: Vec<Batch>) -> CommitReport {
        let mut all = Batch::default();
        for batch in batches {
            all.append(batch);
        }
        self.note_cuts(&all);
        let (durability, lock_wait) = match self.database() {
            None => (self.commit_to_memory(&all), Duration::ZERO),
            Some(database) => self.commit_to_disk(&database, all),
        };
        CommitReport {
            durability,
            notices: self.notices.take(),
            lock_wait,
        }
    }

    fn commit_to_disk(&mut self, database: &Path, batch: Batch) -> (Durability, Duration) {
        match self.durable(database, &batch) {
            Ok(waited) => {
                self.was_busy = false;
                if std::mem::take(&mut self.degraded) {
                    self.notices.saved_again(database);
                }
                (Durability::Durable, waited)
            }
            Err(problem) => {
                let waited = match problem {
                    Problem::Busy(waited) => Some(waited),
                    _ => None,
                };
                self.was_busy = waited.is_some();
                let durability = self.fall_back(database, batch, problem);
                (durability, waited.unwrap_or_default())
            }
        }
    }

    fn commit_to_memory(&mut self, batch: &Batch) -> Durability {
        let limit = self.max_blob_bytes();
        let refused = self
            .memory()
            .and_then(|database| open::write_memory(database, limit, batch));
        match refused {
            Ok(refused) => self.notices.refused(refused),
            Err(problem) => {
                let error = problem.into_error(Path::new("(memory)"));
                let message = format!("This round could not be kept: {error}.");
                self.notices.tell("", StoreNotice::new(NoticeKind::NotSaved, message));
            }
        }
        Durability::MemoryOnly
    }

    pub(super) fn memory(&mut self) -> Result<&Database, Problem> {
        if self.memory.is_none() {
            self.memory = Some(open::memory()?);
        }
        self.memory
            .as_ref()
            .ok_or_else(|| Problem::Engine("no memory database".to_owned()))
    }

    /// One transaction; a damaged file is moved aside once and a new one begun. Returns the wait for the lock.
    fn durable(&mut self, database: &Path, batch: &Batch) -> Result<Duration, Problem> {
        match open::guarded(|| self.transaction(database, batch)) {
            Err(Problem::Corrupt(detail)) => {
                self.move_aside(database, &detail)?;
                open::guarded(|| self.transaction(database, batch))
            }
            other => other,
        }
    }

    fn transaction(&mut self, database: &Path, batch: &Batch) -> Result<Duration, Problem> {
        step("commit.begin")?;
        if let Some(parent) = database.parent() {
            spool::create_directory(parent).map_err(|error| Problem::Io("create the directory of", error))?;
        }
        let mut lock = Lock::acquire(database, self.deadline())?;
        step("commit.locked")?;
        if !self.probed {
            // Before anything is written: a newer version's file is left as it is, to the byte.
            if open::exists(&self.options, database)? {
                self.checked_view(database)?.close();
            }
            self.probed = true;
        }
        let synced = lock.mark_writing()?;
        let opened = open::for_writing(&self.options, database, synced)?;
        step("commit.opened")?;
        let result = self.write(database, &opened, batch);
        let synced = opened.close();
        let merged = result?;
        if synced {
            lock.mark_synced();
        }
        step("commit.committed")?;
        self.kept.clear();
        self.recovered = true;
        for path in merged {
            if let Err(error) = std::fs::remove_file(&path) {
                // It will be merged again, which changes nothing.
                let message = format!(
                    "{} is saved in the database but cannot be removed: {error}.",
                    path.display()
                );
                self.notices.spool(&path, message, None);
            }
        }
        let waited = lock.waited;
        drop(lock);
        step("commit.unlocked")?;
        Ok(waited)
    }

    /// Writes what waits and then `batch`, and says which files of the spool that made superfluous.
    fn write(&mut self, database: &Path, opened: &Opened, batch: &Batch) -> Result<Vec<PathBuf>, Problem> {
        let limit = self.max_blob_bytes();
        let txn = opened.begin_write()?;
        let mut changed = migrations::bring_up_to_date(&txn)? || !self.kept.is_empty() || !batch.is_empty();
        let mut merged = Vec::new();
        let mut refused = Vec::new();
        for (path, waiting) in self.waiting(database) {
            refused.extend(apply::apply(&txn, &waiting, Origin::Spool, limit)?);
            merged.push(path);
        }
        for kept in &self.kept {
            refused.extend(apply::apply(&txn, kept, Origin::Spool, limit)?);
        }
        let mut closed = apply::Closed::default();
        // What waited may come from a process that died since.
        if !self.recovered || !merged.is_empty() {
            closed = apply::close_dead(&txn, now_ms())?;
        }
        changed |= closed != apply::Closed::default() || !merged.is_empty();
        step("commit.merged")?;
        refused.extend(apply::apply(&txn, batch, Origin::Live, limit)?);
        step("commit.applied")?;
        if changed {
            opened.commit(txn)?;
        }
        self.notices.aborted(closed.turns);
        self.notices.refused(refused);
        Ok(merged)
    }

    /// The batches of the spool, in order; what is damaged is set aside and told.
    pub(super) fn waiting(&mut self, database: &Path) -> Vec<(PathBuf, Batch)> {
        let waiting = match spool::waiting(database) {
            Ok(waiting) => waiting,
            Err(error) => {
                let directory = spool::directory(database);
                let message = format!("What waits in {} cannot be read: {error}.", directory.display());
                self.notices.spool(&directory, message, None);
                return Vec::new();
            }
        };
        let mut batches = Vec::new();
        for item in waiting {
            match item {
                Waiting::Batch(path, batch) => batches.push((path, batch)),
                Waiting::Newer(path) => {
                    let message = format!("{} was written by a newer version, which will save it.", path.display());
                    self.notices.spool(&path, message, Some("update agent-smith"));
                }
                Waiting::Damaged(path, detail) => {
                    let moved = spool::set_aside(&path).unwrap_or(path);
                    let message = format!(
                        "A round that waited to be saved is damaged ({detail}); it is kept as {}.",
                        moved.display()
                    );
                    self.notices.spool(&moved, message, None);
                }
            }
        }
        batches
    }

    /// Keeps a batch that the database could not take: in the spool, else in memory.
    fn fall_back(&mut self, database: &Path, batch: Batch, problem: Problem) -> Durability {
        let error = problem.into_error(database);
        if !batch.is_empty() {
            self.kept.push(batch);
        }
        if self.kept.is_empty() {
            return Durability::Durable;
        }
        self.degraded = true;
        let spool = self.spool.get_or_insert_with(|| Spool::new(database));
        // Oldest first, so that the order of the names is the order of what happened.
        while let Some(oldest) = self.kept.first() {
            match spool.write(oldest) {
                Ok(_) => {
                    self.kept.remove(0);
                }
                Err((directory, second)) => {
                    self.tell_not_saved(database, &error, &directory, &second);
                    return Durability::MemoryOnly;
                }
            }
        }
        let directory = spool::directory(database);
        let message = format!(
            "The conversation is saved in {} for now: {error}. It moves into the database as soon as that can be written \
             to.",
            directory.display()
        );
        self.notices.tell(
            error.code(),
            StoreNotice::new(NoticeKind::Spooled, message).at(directory),
        );
        Durability::Spooled
    }

    fn tell_not_saved(&mut self, database: &Path, error: &StoreError, spool: &Path, second: &io::Error) {
        let message = format!(
            "The conversation is not saved: {error}; and {} cannot be written to: {second}. It is kept in memory until \
             this process ends.",
            spool.display()
        );
        let hint = match error {
            StoreError::Io { source, .. } if is_full(source) => "free some disk space",
            _ => "make the directory writable, or start with another home",
        };
        self.notices.tell(
            error.code(),
            StoreNotice::new(NoticeKind::NotSaved, message).at(database).hint(hint),
        );
    }

    /// Moves a file that is damaged beyond use aside, unless somebody else has already done so.
    pub(super) fn move_aside(&mut self, database: &Path, detail: &str) -> Result<(), Problem> {
        let _lock = Lock::acquire(database, self.deadline())?;
        match open::verdict(&self.options, database) {
            Verdict::Damaged(_) => {}
            // Another process replaced it, or the engine failed on something else than the file.
            Verdict::Sound => return Ok(()),
            Verdict::Unknown(problem) => return Err(problem),
        }
        let moved = aside::move_database_aside(database).map_err(|error| Problem::Io("move aside", error))?;
        self.recovered = false;
        let message = format!(
            "The database {} is damaged ({detail}). It was moved to {}, and a new one was begun.",
            database.display(),
            moved.display()
        );
        self.notices.tell(
            &moved.to_string_lossy(),
            StoreNotice::new(NoticeKind::MovedAside, message)
                .at(&moved)
                .hint("`agent-smith doctor --repair` saves what is readable in it"),
        );
        Ok(())
    }

    pub(super) fn deadline(&self) -> Duration {
        if self.was_busy {
            self.options.lock_deadline.min(SHORT_DEADLINE)
        } else {
            self.options.lock_deadline
        }
    }

    fn note_cuts(&mut self, batch: &Batch) {
        let limit = self.max_blob_bytes();
        for op in &batch.ops {
            let content = match op {
                Op::PutBlob { content } => content.0.as_slice(),
                Op::AppendMessage { record } => record.message.content.as_bytes(),
                Op::ReplaceMessage { message, .. } => message.content.as_bytes(),
                _ => continue,
            };
            // A message's content below the blobs' size is kept whole, whatever the limit.
            let is_message = !matches!(op, Op::PutBlob { .. });
            if content.len() as u64 > limit && !(is_message && content.len() <= blobs::INLINE_BYTES) {
                self.notices.tell(
                    &sha256_hex(content),
                    StoreNotice::new(
                        NoticeKind::Cut,
                        format!(
                            "Of content of {} bytes the store keeps only the first {limit}.",
                            content.len()
                        ),
                    )
                    .hint("raise persistence.max_blob_bytes"),
                );
            }
        }
    }
}

fn step(name: &'static str) -> Result<(), Problem> {
    failpoint::hit(name).map_err(|error| Problem::Io("write to", error))
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
