//! The store itself, used by one thread at a time: transactions, and what happens where one cannot be made.

use std::collections::HashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{Database, ReadableDatabase};

use super::apply::{self, Origin};
use super::aside;
use super::batch::{Batch, Op};
use super::error::StoreError;
use super::failpoint;
use super::lock::Lock;
use super::migrations;
use super::open::{self, Opened};
use super::problem::{self, Problem};
use super::process::now_ms;
use super::reader::Reader;
use super::report::{CommitReport, Durability, NoticeKind, StoreNotice};
use super::spool::{self, Spool, Waiting};
use super::store::StoreOptions;

/// How long a commit waits for the lock when the last one did not get it in the whole deadline: a process that hangs
/// with the lock must not cost every round the full wait.
const SHORT_DEADLINE: Duration = Duration::from_millis(100);

/// The store's state in this process. Between two calls it holds no file, lock or database handle.
pub(crate) struct Engine {
    options: StoreOptions,
    /// The database, with symbolic links resolved; `None` where the store is in memory only.
    database: Option<PathBuf>,
    /// The in-memory database of a store without a file.
    memory: Option<Database>,
    spool: Option<Spool>,
    /// What is in memory only, oldest first.
    kept: Vec<Batch>,
    /// Whether this process has closed what dead processes left open.
    recovered: bool,
    /// Whether the file was found to be one this program may write to.
    probed: bool,
    /// Whether the last commit did not get the lock.
    was_busy: bool,
    /// Whether something waits in the spool or in memory that the user was told of.
    degraded: bool,
    told: HashSet<(NoticeKind, String)>,
    notices: Vec<StoreNotice>,
}

/// What a transaction left to say.
#[derive(Default)]
struct Done {
    waited: Duration,
}

impl Engine {
    pub(crate) fn new(options: StoreOptions) -> Self {
        Self {
            options,
            database: None,
            memory: None,
            spool: None,
            kept: Vec::new(),
            recovered: false,
            probed: false,
            was_busy: false,
            degraded: false,
            told: HashSet::new(),
            notices: Vec::new(),
        }
    }

    /// The database's path with links resolved, so that all ways to one file share one lock.
    fn database(&mut self) -> Option<PathBuf> {
        if self.database.is_none() {
            let path = self.options.path.clone()?;
            self.database = Some(std::fs::canonicalize(&path).unwrap_or(path));
        }
        self.database.clone()
    }

    /// Makes everything of `batches` durable in one transaction, or as safe as can be.
    pub(crate) fn commit(&mut self, batches: Vec<Batch>) -> CommitReport {
        let mut all = Batch::default();
        for batch in batches {
            all.append(batch);
        }
        self.note_cuts(&all);
        let Some(database) = self.database() else {
            return self.commit_to_memory(&all);
        };
        let (durability, lock_wait) = match self.durable(&database, &all) {
            Ok(done) => {
                self.was_busy = false;
                if std::mem::take(&mut self.degraded) {
                    self.told
                        .retain(|(kind, _)| !matches!(kind, NoticeKind::NotSaved | NoticeKind::Spooled));
                    self.tell(
                        "",
                        StoreNotice::new(
                            NoticeKind::SavedAgain,
                            format!(
                                "Everything that was kept meanwhile is saved now, in {}.",
                                database.display()
                            ),
                        )
                        .at(&database),
                    );
                    self.told.retain(|(kind, _)| *kind != NoticeKind::SavedAgain);
                }
                (Durability::Durable, done.waited)
            }
            Err(problem) => {
                self.was_busy = matches!(problem, Problem::Busy(_));
                let waited = match problem {
                    Problem::Busy(waited) => waited,
                    _ => Duration::ZERO,
                };
                (self.fall_back(&database, all, problem), waited)
            }
        };
        CommitReport {
            durability,
            notices: std::mem::take(&mut self.notices),
            lock_wait,
        }
    }

    fn commit_to_memory(&mut self, batch: &Batch) -> CommitReport {
        let limit = self.options.max_blob_bytes;
        let refused = self
            .memory()
            .and_then(|database| open::write_memory(database, limit, &[(batch, Origin::Live)]));
        match refused {
            Ok(refused) => self.tell_refused(refused),
            Err(problem) => {
                let error = problem.into_error(Path::new("(memory)"));
                self.tell(
                    "",
                    StoreNotice::new(NoticeKind::NotSaved, format!("This round was lost: {error}.")),
                );
            }
        }
        CommitReport {
            durability: Durability::MemoryOnly,
            notices: std::mem::take(&mut self.notices),
            lock_wait: Duration::ZERO,
        }
    }

    fn memory(&mut self) -> Result<&Database, Problem> {
        if self.memory.is_none() {
            self.memory = Some(open::memory()?);
        }
        self.memory
            .as_ref()
            .ok_or_else(|| Problem::Engine("no memory database".to_owned()))
    }

    /// One transaction; a damaged file is moved aside once and a new one begun.
    fn durable(&mut self, database: &Path, batch: &Batch) -> Result<Done, Problem> {
        match self.guarded(database, batch) {
            Err(Problem::Corrupt(detail)) => {
                self.move_aside(database, &detail)?;
                self.guarded(database, batch)
            }
            other => other,
        }
    }

    /// One transaction, in which a panic of the engine is a failure like any other.
    fn guarded(&mut self, database: &Path, batch: &Batch) -> Result<Done, Problem> {
        match catch_unwind(AssertUnwindSafe(|| self.transaction(database, batch))) {
            Ok(result) => result,
            Err(panic) => Err(open::panicked(&*panic)),
        }
    }

    fn transaction(&mut self, database: &Path, batch: &Batch) -> Result<Done, Problem> {
        let step = |name| failpoint::hit(name).map_err(|error| Problem::Io("write to", error));
        step("commit.begin")?;
        let deadline = self.deadline();
        if let Some(parent) = database.parent() {
            spool::create_directory(parent).map_err(|error| Problem::Io("create the directory of", error))?;
        }
        let mut lock = Lock::acquire(database, deadline)?;
        step("commit.locked")?;
        if !self.probed {
            if open::exists(&self.options, database)? {
                let view = open::view(&self.options, database)?;
                let checked = view.check_schema();
                view.close();
                checked?;
            }
            self.probed = true;
        }
        lock.mark_writing()?;
        let opened = open::for_writing(&self.options, database, lock.synced)?;
        step("commit.opened")?;
        let result = self.write(database, &opened, batch);
        let synced = opened.close();
        let merged = result?;
        if synced {
            lock.mark_synced();
        }
        step("commit.committed")?;
        for path in merged {
            if let Err(error) = std::fs::remove_file(&path) {
                // It will be merged again, which changes nothing.
                self.tell(
                    &path.to_string_lossy(),
                    StoreNotice::new(
                        NoticeKind::Spool,
                        format!(
                            "{} is saved in the database but cannot be removed: {error}.",
                            path.display()
                        ),
                    )
                    .at(&path),
                );
            }
        }
        self.kept.clear();
        self.recovered = true;
        let waited = lock.waited;
        drop(lock);
        step("commit.unlocked")?;
        Ok(Done { waited })
    }

    /// Writes what waits and then `batch`, and says which files of the spool that made superfluous.
    fn write(&mut self, database: &Path, opened: &Opened, batch: &Batch) -> Result<Vec<PathBuf>, Problem> {
        let step = |name| failpoint::hit(name).map_err(|error| Problem::Io("write to", error));
        let limit = self.options.max_blob_bytes;
        let txn = opened.begin_write()?;
        migrations::bring_up_to_date(&txn)?;
        if !self.recovered {
            let aborted = apply::close_dead(&txn, now_ms())?;
            self.tell_aborted(aborted);
        }
        let mut merged = Vec::new();
        let mut refused = Vec::new();
        for waiting in self.waiting(database) {
            let (path, waiting) = waiting;
            refused.extend(apply::apply(&txn, &waiting, Origin::Spool, limit)?);
            merged.push(path);
        }
        for kept in &self.kept {
            refused.extend(apply::apply(&txn, kept, Origin::Spool, limit)?);
        }
        step("commit.merged")?;
        refused.extend(apply::apply(&txn, batch, Origin::Live, limit)?);
        step("commit.applied")?;
        opened.commit(txn)?;
        self.tell_refused(refused);
        Ok(merged)
    }

    /// The batches of the spool, in order; what is damaged is set aside and told.
    fn waiting(&mut self, database: &Path) -> Vec<(PathBuf, Batch)> {
        let waiting = match spool::waiting(database) {
            Ok(waiting) => waiting,
            Err(error) => {
                let directory = spool::directory(database);
                self.tell(
                    "",
                    StoreNotice::new(
                        NoticeKind::Spool,
                        format!("What waits in {} cannot be read: {error}.", directory.display()),
                    )
                    .at(directory),
                );
                return Vec::new();
            }
        };
        let mut batches = Vec::new();
        for item in waiting {
            match item {
                Waiting::Batch(path, batch) => batches.push((path, batch)),
                Waiting::Newer(path) => self.tell(
                    &path.to_string_lossy(),
                    StoreNotice::new(
                        NoticeKind::Spool,
                        format!("{} was written by a newer version, which will save it.", path.display()),
                    )
                    .at(&path)
                    .hint("update agent-smith"),
                ),
                Waiting::Damaged(path, detail) => {
                    let moved = spool::set_aside(&path).unwrap_or_else(|_| path.clone());
                    self.tell(
                        &path.to_string_lossy(),
                        StoreNotice::new(
                            NoticeKind::Spool,
                            format!(
                                "A round that waited to be saved is damaged ({detail}); it is kept as {}.",
                                moved.display()
                            ),
                        )
                        .at(moved),
                    );
                }
            }
        }
        batches
    }

    /// Keeps a batch that the database could not take: in the spool, else in memory.
    fn fall_back(&mut self, database: &Path, batch: Batch, problem: Problem) -> Durability {
        let error = problem.into_error(database);
        if batch.is_empty() {
            return Durability::Durable;
        }
        self.degraded = true;
        self.kept.push(batch);
        let spool = self.spool.get_or_insert_with(|| Spool::new(database));
        // Oldest first, so that the order of the names is the order of what happened.
        while let Some(oldest) = self.kept.first() {
            match spool.write(oldest) {
                Ok(_) => {
                    self.kept.remove(0);
                }
                Err((directory, second)) => {
                    let message = format!(
                        "The conversation is not saved: {error}; and {} cannot be written to: {second}. It is kept in \
                         memory until this process ends.",
                        directory.display()
                    );
                    let hint = match &error {
                        StoreError::Io { source, .. } if is_full(source) => "free some disk space",
                        _ => "make the directory writable, or start with another home",
                    };
                    self.tell(
                        error.code(),
                        StoreNotice::new(NoticeKind::NotSaved, message).at(database).hint(hint),
                    );
                    return Durability::MemoryOnly;
                }
            }
        }
        let directory = spool::directory(database);
        self.tell(
            error.code(),
            StoreNotice::new(
                NoticeKind::Spooled,
                format!(
                    "The conversation is saved in {} for now: {error}. It moves into the database as soon as that can \
                     be written to.",
                    directory.display()
                ),
            )
            .at(directory),
        );
        Durability::Spooled
    }

    /// Moves a file that is damaged beyond use aside, unless somebody else has already done so.
    fn move_aside(&mut self, database: &Path, detail: &str) -> Result<(), Problem> {
        let _lock = Lock::acquire(database, self.deadline())?;
        if open::is_sound(&self.options, database) {
            // Another process replaced it, or the engine failed on something else than the file.
            return Ok(());
        }
        let moved = aside::move_database_aside(database).map_err(|error| Problem::Io("move aside", error))?;
        self.recovered = false;
        self.tell(
            &moved.to_string_lossy(),
            StoreNotice::new(
                NoticeKind::MovedAside,
                format!(
                    "The database {} is damaged ({detail}). It was moved to {}, and a new one was begun.",
                    database.display(),
                    moved.display()
                ),
            )
            .at(&moved)
            .hint("`agent-smith doctor --repair` saves what is readable in it"),
        );
        Ok(())
    }

    /// Answers a question with everything this process wrote in view. Never writes to the disk.
    pub(crate) fn read<T>(
        &mut self,
        question: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(database) = self.database() else {
            let memory = self
                .memory()
                .map_err(|problem| problem.into_error(Path::new("(memory)")))?;
            let txn = memory
                .begin_read()
                .map_err(|error| problem::transaction(error).into_error(Path::new("(memory)")))?;
            return question(&Reader::new(Some(&txn), Path::new("(memory)")));
        };
        let view = self
            .guarded_view(&database)
            .map_err(|problem| problem.into_error(&database))?;
        let (answer, unreadable) = match &view {
            None => (question(&Reader::new(None, &database)), Vec::new()),
            Some(view) => {
                let txn = view.begin_read().map_err(|problem| problem.into_error(&database))?;
                let reader = Reader::new(Some(&txn), &database);
                let answer = catch_unwind(AssertUnwindSafe(|| question(&reader)))
                    .unwrap_or_else(|panic| Err(open::panicked(&*panic).into_error(&database)));
                (answer, reader.into_unreadable())
            }
        };
        if let Some(view) = view {
            view.close();
        }
        for error in unreadable {
            let message = format!("A stored record was left out: {error}.");
            let key = message.clone();
            self.tell(&key, StoreNotice::new(NoticeKind::Unreadable, message).at(&database));
        }
        answer
    }

    fn guarded_view(&mut self, database: &Path) -> Result<Option<Opened>, Problem> {
        let mut attempt = || {
            catch_unwind(AssertUnwindSafe(|| self.view(database))).unwrap_or_else(|panic| Err(open::panicked(&*panic)))
        };
        match attempt() {
            Err(Problem::Corrupt(detail)) => {
                self.move_aside(database, &detail)?;
                self.view(database)
            }
            other => other,
        }
    }

    /// A snapshot of the database with what waits on top; `None` where there is nothing at all.
    fn view(&mut self, database: &Path) -> Result<Option<Opened>, Problem> {
        let exists = open::exists(&self.options, database)?;
        let lock = match Lock::acquire(database, self.deadline()) {
            Ok(lock) => lock,
            // Nobody can write where the lock file cannot be made, or there is nothing there.
            Err(Problem::Io(..)) => Lock::none(),
            Err(problem) => return Err(problem),
        };
        let waiting = self.waiting(database);
        if !exists && waiting.is_empty() && self.kept.is_empty() {
            return Ok(None);
        }
        let opened = match self.checked_view(database) {
            Ok(opened) => opened,
            // A damaged file is dealt with by the caller.
            Err(problem @ Problem::Corrupt(_)) => return Err(problem),
            Err(problem) if waiting.is_empty() && self.kept.is_empty() => return Err(problem),
            // What this process wrote can still be seen, by itself.
            Err(_) => open::empty_view()?,
        };
        if !self.recovered || !waiting.is_empty() || !self.kept.is_empty() {
            let txn = opened.begin_write()?;
            migrations::bring_up_to_date(&txn)?;
            if !self.recovered {
                apply::close_dead(&txn, now_ms())?;
            }
            let limit = self.options.max_blob_bytes;
            for batch in waiting.iter().map(|(_, batch)| batch).chain(&self.kept) {
                apply::apply(&txn, batch, Origin::Spool, limit)?;
            }
            opened.commit_in_memory(txn)?;
        }
        drop(lock);
        Ok(Some(opened))
    }

    fn checked_view(&self, database: &Path) -> Result<Opened, Problem> {
        let opened = open::view(&self.options, database)?;
        match opened.check_schema() {
            Ok(()) => Ok(opened),
            Err(problem) => {
                opened.close();
                Err(problem)
            }
        }
    }

    fn deadline(&self) -> Duration {
        if self.was_busy {
            self.options.lock_deadline.min(SHORT_DEADLINE)
        } else {
            self.options.lock_deadline
        }
    }

    fn note_cuts(&mut self, batch: &Batch) {
        let limit = self.options.max_blob_bytes;
        for op in &batch.ops {
            if let Op::PutBlob { content } = op
                && content.0.len() as u64 > limit
            {
                self.tell(
                    &super::batch::sha256_hex(&content.0),
                    StoreNotice::new(
                        NoticeKind::Cut,
                        format!(
                            "Of content of {} bytes only the first {limit} are kept.",
                            content.0.len()
                        ),
                    )
                    .hint("raise persistence.max_blob_bytes"),
                );
            }
        }
    }

    fn tell_refused(&mut self, refused: Vec<StoreError>) {
        for error in refused {
            let message = format!("A record was not saved: {error}.");
            let key = message.clone();
            self.tell(&key, StoreNotice::new(NoticeKind::Refused, message));
        }
    }

    fn tell_aborted(&mut self, aborted: usize) {
        if aborted > 0 {
            self.tell(
                "",
                StoreNotice::new(
                    NoticeKind::AbortedTurns,
                    format!(
                        "{aborted} turn(s) of a process that ended were closed as aborted; everything of their finished \
                         rounds is kept."
                    ),
                ),
            );
        }
    }

    /// Puts a notice on the next report, unless one of the same kind about the same thing was.
    fn tell(&mut self, about: &str, notice: StoreNotice) {
        if self.told.insert((notice.kind, about.to_owned())) {
            self.notices.push(notice);
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
