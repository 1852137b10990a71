//! The handle of the store, and the thread that does its work.
//!
//! The thread begins with the first commit or asynchronous read, sleeps while there is nothing to do, and ends with the
//! last handle. Commits that are ready at the same time become one transaction.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::StorageBackend;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::blobs::DEFAULT_MAX_BLOB_BYTES;
use super::engine::Engine;
use super::error::StoreError;
use super::reader::Reader;
use super::report::{CommitReport, Durability, NoticeKind, StoreNotice};

/// The default of [`StoreOptions::lock_deadline`]: many times what a commit takes, and little enough to wait for once.
pub const DEFAULT_LOCK_DEADLINE: Duration = Duration::from_secs(1);

/// Opens what stands for the database's file: for simulated disks in tests. The second argument says whether it is
/// to be written to.
pub type OpenDisk = Arc<dyn Fn(&Path, bool) -> io::Result<Option<Box<dyn StorageBackend>>> + Send + Sync>;

/// How a store is to be made.
#[derive(Clone)]
pub struct StoreOptions {
    /// The database file; `None` keeps everything in memory, and nothing after the process.
    pub path: Option<PathBuf>,
    /// Longest content of a blob that is kept, in bytes.
    pub max_blob_bytes: u64,
    /// How long a commit waits for other processes before it goes to the spool.
    pub lock_deadline: Duration,
    /// Called once on the store's thread before it does anything: the place to block signals where the thread that
    /// makes the first commit does not have them blocked already.
    pub thread_start: Option<Arc<dyn Fn() + Send + Sync>>,
    /// What stands for the file; `None` for the file itself.
    #[doc(hidden)]
    pub disk: Option<OpenDisk>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            path: None,
            max_blob_bytes: DEFAULT_MAX_BLOB_BYTES,
            lock_deadline: DEFAULT_LOCK_DEADLINE,
            thread_start: None,
            disk: None,
        }
    }
}

impl StoreOptions {
    /// A store in the file `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::default()
        }
    }

    /// A store in memory only.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            .field("path", &self.path)
            .field("max_blob_bytes", &self.max_blob_bytes)
            .field("lock_deadline", &self.lock_deadline)
            .finish_non_exhaustive()
    }
}

/// A handle of the store. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    /// Threads and locks of a process do not survive a fork: a child that comes here must not wait for them.
    pid: u32,
    path: Option<PathBuf>,
    thread_start: Option<Arc<dyn Fn() + Send + Sync>>,
    max_blob_bytes: Arc<AtomicU64>,
    engine: Arc<Mutex<Engine>>,
    jobs: Mutex<Option<Sender<Job>>>,
}

enum Job {
    Commit(Batch, Reply),
    Run(Box<dyn FnOnce(&mut Engine) + Send>),
}

enum Reply {
    Async(oneshot::Sender<CommitReport>),
    Blocking(SyncSender<CommitReport>),
}

impl Reply {
    fn send(self, report: CommitReport) {
        // Who no longer waits does not need the answer; the commit stands.
        match self {
            Self::Async(sender) => drop(sender.send(report)),
            Self::Blocking(sender) => drop(sender.send(report)),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Makes a handle. Nothing is read, written or started until the first question or commit.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        let (path, thread_start) = (options.path.clone(), options.thread_start.clone());
        let engine = Engine::new(options);
        Self {
            shared: Arc::new(Shared {
                pid: std::process::id(),
                path,
                thread_start,
                max_blob_bytes: engine.blob_limit(),
                engine: Arc::new(Mutex::new(engine)),
                jobs: Mutex::new(None),
            }),
        }
    }

    /// Keeps no content of a blob longer than `bytes` from the next commit on. What is longer is cut, and the commit's
    /// report says so.
    pub fn set_max_blob_bytes(&self, bytes: u64) {
        self.shared.max_blob_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The database file, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.path.as_deref()
    }

    /// Makes the batch durable in one transaction. It never fails: what could not be made durable is kept as safe as
    /// can be, and the report says so. A commit that was begun is finished even if the future is dropped.
    pub async fn commit(&self, batch: Batch) -> CommitReport {
        if let Some(report) = self.forked_report() {
            return report;
        }
        let (sender, receiver) = oneshot::channel();
        if let Err(report) = self.enqueue(Job::Commit(batch, Reply::Async(sender))) {
            return report;
        }
        receiver.await.unwrap_or_else(|_| lost())
    }

    /// [`Store::commit`] for callers without an asynchronous runtime.
    pub fn commit_blocking(&self, batch: Batch) -> CommitReport {
        if let Some(report) = self.forked_report() {
            return report;
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        if let Err(report) = self.enqueue(Job::Commit(batch, Reply::Blocking(sender))) {
            return report;
        }
        receiver.recv().unwrap_or_else(|_| lost())
    }

    /// Asks a question of one consistent snapshot, on the store's thread, after the commits that were asked for before.
    ///
    /// No process can write while a question is being answered, so it should be short ([`Reader::page_of_messages`] is the
    /// way through everything), and it must not use the store itself.
    ///
    /// # Errors
    /// What the question returns; a store that is busy, damaged or of a newer version.
    pub async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.check_fork()?;
        let (sender, receiver) = oneshot::channel();
        let job = Job::Run(Box::new(move |engine| {
            let _ = sender.send(engine.read(question));
        }));
        if self.enqueue(job).is_err() {
            return Err(StoreError::Thread("it could not be started".to_owned()));
        }
        receiver
            .await
            .unwrap_or_else(|_| Err(StoreError::Thread("it ended before it answered".to_owned())))
    }

    /// [`Store::read`] on the calling thread.
    ///
    /// # Errors
    /// The same.
    pub fn read_blocking<T>(
        &self,
        question: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_fork()?;
        lock(&self.shared.engine).read(question)
    }

    /// Notices that no commit's report has carried yet: a question, too, may find something the user should know.
    #[must_use]
    pub fn take_notices(&self) -> Vec<StoreNotice> {
        match self.check_fork() {
            Ok(()) => lock(&self.shared.engine).take_notices(),
            Err(_) => Vec::new(),
        }
    }

    fn check_fork(&self) -> Result<(), StoreError> {
        if std::process::id() == self.shared.pid {
            Ok(())
        } else {
            Err(StoreError::Forked)
        }
    }

    fn forked_report(&self) -> Option<CommitReport> {
        let error = self.check_fork().err()?;
        Some(not_saved(&format!("The conversation is not saved: {error}.")))
    }

    /// Hands a job to the thread; where there can be none, does it here. An error is a commit that was lost.
    fn enqueue(&self, job: Job) -> Result<(), CommitReport> {
        let mut jobs = self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match jobs.as_ref() {
            None => job,
            Some(sender) => match sender.send(job) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(job)) => job,
            },
        };
        let (sender, receiver) = mpsc::channel();
        let engine = Arc::clone(&self.shared.engine);
        let thread_start = self.shared.thread_start.clone();
        let thread = std::thread::Builder::new()
            .name("agent-smith-store".to_owned())
            .spawn(move || work(&engine, &receiver, thread_start.as_deref()));
        match thread {
            Ok(_) => {
                let sent = sender.send(job);
                *jobs = Some(sender);
                sent.map_err(|_| lost())
            }
            Err(_) => {
                drop(jobs);
                do_job(&self.shared.engine, job);
                Ok(())
            }
        }
    }
}

fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

fn do_job(engine: &Mutex<Engine>, job: Job) {
    match job {
        Job::Commit(batch, reply) => reply.send(commit(engine, vec![batch])),
        Job::Run(run) => answer(engine, run),
    }
}

/// Commits. A defect of ours must not take what other callers are waiting for with it.
fn commit(engine: &Mutex<Engine>, batches: Vec<Batch>) -> CommitReport {
    catch_unwind(AssertUnwindSafe(|| lock(engine).commit(batches))).unwrap_or_else(|_| lost())
}

/// Answers a question. Where that panics, its caller sees that no answer comes.
fn answer(engine: &Mutex<Engine>, run: Box<dyn FnOnce(&mut Engine) + Send>) {
    let _ = catch_unwind(AssertUnwindSafe(|| run(&mut lock(engine))));
}

/// The thread: takes what is ready, and makes one transaction of consecutive commits.
fn work(engine: &Mutex<Engine>, jobs: &Receiver<Job>, thread_start: Option<&(dyn Fn() + Send + Sync)>) {
    if let Some(start) = thread_start {
        start();
    }
    let mut next = jobs.recv().ok();
    while let Some(job) = next.take() {
        match job {
            Job::Run(run) => answer(engine, run),
            Job::Commit(batch, reply) => {
                let (mut batches, mut replies) = (vec![batch], vec![reply]);
                while let Ok(job) = jobs.try_recv() {
                    match job {
                        Job::Commit(batch, reply) => {
                            batches.push(batch);
                            replies.push(reply);
                        }
                        other => {
                            next = Some(other);
                            break;
                        }
                    }
                }
                let mut report = commit(engine, batches);
                for reply in replies {
                    reply.send(report.clone());
                    // Told once, to the first of them.
                    report.notices.clear();
                }
            }
        }
        if next.is_none() {
            next = jobs.recv().ok();
        }
    }
}

fn lost() -> CommitReport {
    not_saved("The last round is not saved: the store failed in a way that it should not. Start the program again.")
}

fn not_saved(message: &str) -> CommitReport {
    CommitReport {
        durability: Durability::MemoryOnly,
        notices: vec![StoreNotice::new(NoticeKind::NotSaved, message)],
        lock_wait: Duration::ZERO,
    }
}
