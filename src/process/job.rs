//! Commands in the background, and what commands left behind when they ended.
//!
//! Both are jobs: they have a name, output that can be read, and can be killed with all their descendants. A job of
//! the background belongs to the session and ends with it. What a command left behind is none of ours to end then (an
//! agent, a daemon), but its output is read on, for a closed pipe would end it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::child::ExitStatus;
use super::nonce::Survivor;
use super::output::{Captured, Mark, OutputLog};
use super::pump::{SharedLog, lock};
use super::run::{Ending, Finished, LeftBehind, RunSpec, Running};
use super::spawn::SpawnError;
use super::tree::Family;
use crate::cancel::CancelToken;

/// Jobs that may run at the same time.
const MAX_RUNNING: usize = 16;
/// Jobs remembered, the running ones among them.
const MAX_KEPT: usize = 64;

/// Why there is no such job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Too many run.
    #[error("{MAX_RUNNING} jobs run already; end one of them first: {running}")]
    TooMany {
        /// Their names.
        running: String,
    },
    /// There is none of that name.
    #[error("there is no job {id:?}; {}", if known.is_empty() { "there are none".to_owned() } else { format!("there are {known}") })]
    Unknown {
        /// The name.
        id: String,
        /// The names there are.
        known: String,
    },
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Its command runs.
    Running,
    /// Its command has ended.
    Ended {
        /// Its status.
        status: ExitStatus,
        /// Why.
        ending: Ending,
        /// From start to end.
        duration: Duration,
    },
}

/// One job.
#[derive(Debug)]
pub struct Job {
    id: String,
    command: String,
    pid: Option<i32>,
    started: Instant,
    log: SharedLog,
    cancel: CancelToken,
    state: watch::Receiver<JobState>,
    /// What the command left running when it ended.
    left: Arc<Mutex<Option<Family>>>,
    told: Mutex<Mark>,
}

/// A job as it is listed.
#[derive(Clone, Debug)]
pub struct JobInfo {
    /// Its name.
    pub id: String,
    /// Its command.
    pub command: String,
    /// Its command's process id, which is also its group's, if it was started as a job.
    pub pid: Option<i32>,
    /// How far its command is.
    pub state: JobState,
    /// How long ago it was started.
    pub age: Duration,
    /// Bytes it has written.
    pub bytes: u64,
    /// What its command left running when it ended.
    pub left: Vec<Survivor>,
}

impl JobInfo {
    /// Whether anything of it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.state == JobState::Running || !self.left.is_empty()
    }
}

/// The jobs of a session.
#[derive(Debug, Default)]
pub struct Jobs {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    jobs: BTreeMap<u64, Arc<Job>>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is consistent between two statements, whatever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    /// Starts a command in the background. `name` is what it is listed by.
    pub fn start(&self, spec: RunSpec, name: &str) -> Result<Arc<Job>, JobError> {
        let running: Vec<String> = self
            .list()
            .into_iter()
            .filter(JobInfo::runs)
            .map(|job| job.id)
            .collect();
        if running.len() >= MAX_RUNNING {
            return Err(JobError::TooMany {
                running: running.join(", "),
            });
        }
        let log = Arc::new(Mutex::new(OutputLog::new(spec.output)));
        let command = Running::start(spec.command, Arc::clone(&log), |_| {})?;
        let (state, receiver) = watch::channel(JobState::Running);
        let job = self.add(name, Some(command.pid()), log, receiver, None);
        let (cancel, left, limits) = (job.cancel.clone(), Arc::clone(&job.left), spec.limits);
        tokio::spawn(async move {
            let finished = command.finish(limits, &cancel).await;
            let end = JobState::Ended {
                status: finished.status,
                ending: finished.ending,
                duration: finished.duration,
            };
            *guard(&left) = finished.left.as_ref().map(|left| left.family.clone());
            state.send_replace(end);
            if let Some(left) = finished.left {
                left.drain().await;
            }
        });
        Ok(job)
    }

    /// Takes over what the command `name` left running when it ended with `finished`.
    pub fn adopt(&self, left: LeftBehind, finished: &Finished, name: &str) -> Arc<Job> {
        let (_, receiver) = watch::channel(JobState::Ended {
            status: finished.status,
            ending: finished.ending,
            duration: finished.duration,
        });
        let job = self.add(name, None, Arc::clone(&left.log), receiver, Some(left.family.clone()));
        // What it wrote until now was told as the command's own output.
        *guard(&job.told) = lock(&left.log).mark();
        tokio::spawn(left.drain());
        job
    }

    fn add(
        &self,
        name: &str,
        pid: Option<i32>,
        log: SharedLog,
        state: watch::Receiver<JobState>,
        left: Option<Family>,
    ) -> Arc<Job> {
        let mut inner = guard(&self.inner);
        inner.last += 1;
        let number = inner.last;
        let job = Arc::new(Job {
            id: format!("j{number}"),
            command: name.to_owned(),
            pid,
            started: Instant::now(),
            log,
            cancel: CancelToken::new_root(),
            state,
            left: Arc::new(Mutex::new(left)),
            told: Mutex::new(Mark::default()),
        });
        inner.jobs.insert(number, Arc::clone(&job));
        if inner.jobs.len() > MAX_KEPT {
            let ended = inner
                .jobs
                .iter()
                .find(|(_, job)| !job.info().runs())
                .map(|(number, _)| *number);
            if let Some(number) = ended {
                inner.jobs.remove(&number);
            }
        }
        job
    }

    /// The job called `id`.
    pub fn get(&self, id: &str) -> Result<Arc<Job>, JobError> {
        let inner = guard(&self.inner);
        let wanted = id.trim();
        inner
            .jobs
            .values()
            .find(|job| job.id == wanted || job.id.strip_prefix('j') == Some(wanted))
            .cloned()
            .ok_or_else(|| JobError::Unknown {
                id: id.to_owned(),
                known: inner
                    .jobs
                    .values()
                    .map(|job| job.id.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<JobInfo> {
        let jobs: Vec<Arc<Job>> = guard(&self.inner).jobs.values().cloned().collect();
        jobs.iter().map(|job| job.info()).collect()
    }

    /// Ends the jobs of the background, with all their descendants, and waits for it.
    pub async fn stop_all(&self, grace: Duration) {
        let jobs: Vec<Arc<Job>> = guard(&self.inner).jobs.values().cloned().collect();
        let running = jobs.iter().filter(|job| job.state() == JobState::Running);
        futures_util::future::join_all(running.map(|job| job.kill(grace))).await;
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in guard(&self.inner).jobs.values() {
            job.cancel.cancel();
        }
    }
}

impl Job {
    /// Its name: `j1`, `j2`, …
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How far its command is.
    #[must_use]
    pub fn state(&self) -> JobState {
        *self.state.borrow()
    }

    /// It as it is listed.
    #[must_use]
    pub fn info(&self) -> JobInfo {
        let family = guard(&self.left).clone();
        JobInfo {
            id: self.id.clone(),
            command: self.command.clone(),
            pid: self.pid,
            state: self.state(),
            age: self.started.elapsed(),
            bytes: lock(&self.log).bytes(),
            left: family.map(|family| family.survivors()).unwrap_or_default(),
        }
    }

    /// Completes when its command has ended.
    pub async fn ended(&self) {
        let mut state = self.state.clone();
        // The sender goes with the task, which ends only after it has said so or with the runtime.
        let _ = state.wait_for(|state| *state != JobState::Running).await;
    }

    /// What it wrote since this was asked last.
    #[must_use]
    pub fn new_output(&self) -> Captured {
        let mut told = guard(&self.told);
        let log = lock(&self.log);
        let since = log.since(*told);
        *told = log.mark();
        since
    }

    /// All it wrote.
    #[must_use]
    pub fn output(&self) -> Captured {
        lock(&self.log).captured()
    }

    /// Ends it with all of its descendants: TERM, up to `grace`, then KILL. Returns what could not be killed.
    pub async fn kill(&self, grace: Duration) -> Vec<Survivor> {
        self.cancel.cancel();
        if timeout(grace, self.ended()).await.is_err() {
            self.cancel.cancel_now();
            self.ended().await;
        }
        let family = guard(&self.left).clone();
        match family {
            Some(family) => family.kill(grace).await,
            None => Vec::new(),
        }
    }
}
