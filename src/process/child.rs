//! One child: waiting for its end without a signal handler, and never leaving it behind.
//!
//! The end shows on a pidfd in tokio's poller; where there is none (an old kernel, another Unix) a thread waits. The
//! child stays uncollected until [`Child::reap`], so its process id, group and session cannot be given to anyone else
//! while they are still signalled.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::nonce::{Nonce, Survivor, pid_of};
use super::tree::Family;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It is gone, but somebody else collected its status (a host that waits for any child).
    Unknown,
}

impl ExitStatus {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

#[derive(Debug)]
enum Waiter {
    Pidfd(AsyncFd<OwnedFd>),
    Thread(watch::Receiver<bool>),
}

/// A started child. Dropped before it was collected, it is killed with all of its descendants.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    nonce: Nonce,
    started: Instant,
    waiter: Waiter,
    status: Option<ExitStatus>,
}

impl Child {
    pub(super) fn adopt(pid: i32, nonce: Nonce, started: Instant) -> Self {
        Self {
            pid,
            nonce,
            started,
            waiter: pidfd(pid).map_or_else(|| Waiter::Thread(wait_in_thread(pid)), Waiter::Pidfd),
            status: None,
        }
    }

    /// Its process id, which is also the id of its group and session.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The mark its descendants carry.
    #[must_use]
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// How long ago it was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Completes when it has ended; it is not collected yet. May be dropped and called again.
    pub async fn exited(&mut self) {
        if self.status.is_some() {
            return;
        }
        match &mut self.waiter {
            // An error of the poller would mean a broken runtime; the caller's timeout still holds.
            Waiter::Pidfd(fd) => drop(fd.readable().await),
            Waiter::Thread(done) => drop(done.wait_for(|done| *done).await),
        }
    }

    /// Whether it has ended, collected or not.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.status.is_some()
            || pid_of(self.pid).is_none_or(|pid| {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
            })
    }

    /// Collects it if it has ended. From then on its id may belong to somebody else.
    pub fn reap(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = pid_of(self.pid).map_or(Some(ExitStatus::Unknown), |pid| collect(pid, WaitIdOptions::NOHANG));
        }
        self.status
    }

    /// Sends `signal` to its process group, unless it was collected.
    pub fn signal_group(&self, signal: Signal) {
        if self.status.is_none()
            && let Some(pid) = pid_of(self.pid)
        {
            // No such group: everyone in it is gone, which is what the caller wants.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// It and all that descends from it. To be asked before it is collected.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.pid, &self.nonce)
    }

    /// Its living descendants. To be asked before it is collected.
    #[must_use]
    pub fn survivors(&self) -> Vec<Survivor> {
        self.nonce.survivors(self.pid, self.age())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.reap().is_some() {
            return;
        }
        let members = self.family().members();
        self.signal_group(Signal::KILL);
        for member in &members {
            member.signal(Signal::KILL);
        }
        if self.reap().is_none()
            && let Some(pid) = pid_of(self.pid)
        {
            // Killed, but not gone yet (it may hang in the kernel): somebody has to collect it, and not this thread.
            let waiting = std::thread::Builder::new()
                .name("reaper".to_owned())
                .stack_size(64 * 1024)
                .spawn(move || collect(pid, WaitIdOptions::empty()));
            drop(waiting);
        }
    }
}

#[expect(
    unsafe_code,
    reason = "tokio's poller wants a promise that the descriptor stays the same"
)]
fn pidfd(pid: i32) -> Option<AsyncFd<OwnedFd>> {
    #[cfg(target_os = "linux")]
    {
        let fd = rustix::process::pidfd_open(pid_of(pid)?, rustix::process::PidfdFlags::empty()).ok()?;
        // SAFETY: an `OwnedFd` stays open and the same until it is dropped, which happens with the `AsyncFd`.
        unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE).ok() }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pid, Interest::READABLE);
        None
    }
}

fn wait_in_thread(pid: i32) -> watch::Receiver<bool> {
    let (done, receiver) = watch::channel(false);
    let wait = move || {
        if let Some(pid) = pid_of(pid) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        }
        // Nobody listens any more: the child was dropped.
        let _ = done.send(true);
    };
    // Without a thread the sender is dropped, and `wait_for` completes with an error: `reap` then decides.
    drop(
        std::thread::Builder::new()
            .name("wait".to_owned())
            .stack_size(64 * 1024)
            .spawn(wait),
    );
    receiver
}

fn collect(pid: Pid, options: WaitIdOptions) -> Option<ExitStatus> {
    loop {
        return match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | options) {
            Ok(Some(status)) => Some(exit_status(&status)),
            Ok(None) => None,
            Err(Errno::INTR) => continue,
            Err(_) => Some(ExitStatus::Unknown),
        };
    }
}

fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Unknown,
    }
}
