//! Waiting for a client's next input, or for its death.
//!
//! End of file on stdin is not enough: any process the host has forked may hold the other end open long after the host
//! is gone. So the parent itself is watched, through its pidfd, and so is the other end of stdout.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};

/// How often the parent is looked at where there is no pidfd.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// The input can be read, its end included.
    Input,
    /// Nobody can read the output any more.
    OutputClosed,
    /// The process that started this one is gone.
    ParentGone,
}

/// Watches the client.
pub(super) struct Watch {
    output: OwnedFd,
    parent: Option<Pid>,
    parent_end: Option<OwnedFd>,
}

impl Watch {
    /// Watches the reader of `output`, and this process's parent.
    pub(super) fn new(output: OwnedFd) -> Self {
        let parent = getppid();
        Self {
            output,
            parent,
            parent_end: parent.and_then(end_of),
        }
    }

    /// Waits for what happens next. Input that came before the client's death is given first.
    pub(super) fn next(&self, input: &impl AsFd) -> Happening {
        let timeout = Timespec::try_from(LOOK_EVERY)
            .ok()
            .filter(|_| self.parent_end.is_none());
        loop {
            // A pipe without a reader reports an error whatever is asked for.
            let mut watched = vec![
                PollFd::new(input, PollFlags::IN),
                PollFd::new(&self.output, PollFlags::empty()),
            ];
            watched.extend(self.parent_end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
            // Interrupted, or a broken descriptor: the next read tells.
            let polled = poll(&mut watched, timeout.as_ref());
            let happened = |index: usize| watched.get(index).is_some_and(|fd| !fd.revents().is_empty());
            if polled.is_err_and(|error| error != rustix::io::Errno::INTR) || happened(0) {
                return Happening::Input;
            } else if happened(1) {
                return Happening::OutputClosed;
            } else if happened(2) || getppid() != self.parent {
                return Happening::ParentGone;
            }
        }
    }
}

/// A descriptor that becomes readable when the process ends.
fn end_of(process: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    return rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = process;
        None
    }
}
