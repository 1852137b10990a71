//! `serve`: the sidecar of a host that cannot load the core.

use std::os::fd::AsFd;

use crate::bridge::sidecar::{Ended, Sidecar};
use crate::cli::{Exit, complain, signals};
use crate::error::AgentError;

/// Serves the client on stdin and stdout.
pub(super) fn run() -> Exit {
    match serve() {
        Ok(Ended::Closed | Ended::ClientGone(_)) => Exit::Completed,
        Ok(Ended::Signal(_)) => Exit::Cancelled,
        Err(error) => {
            complain(&error);
            Exit::Error
        }
    }
}

fn serve() -> Result<Ended, AgentError> {
    let sidecar = Sidecar::default();
    signals::watch(sidecar.stopper())?;
    let own = |fd: std::os::fd::BorrowedFd<'_>| {
        let failed = |error| AgentError::internal("cli", format!("stdin and stdout cannot be used: {error}"));
        fd.try_clone_to_owned().map_err(failed)
    };
    let (input, output) = (own(std::io::stdin().as_fd())?, own(std::io::stdout().as_fd())?);
    sidecar.serve(input, output)
}

/// Closes every descriptor above stderr. A host may leave its own open in its children, and among them the other end of
/// our stdin, which would never come to an end then. To be called before anything else opens one.
#[expect(
    unsafe_code,
    reason = "only whole ranges are closed, and nothing of ours is open yet"
)]
pub(super) fn close_inherited() {
    const FIRST: libc::c_int = 3;
    const LAST: libc::c_int = 1023;
    #[cfg(target_os = "linux")]
    // SAFETY: no descriptor above 2 belongs to any value of this process yet, so none is closed under its owner.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_int::MAX, 0) } == 0 {
        return;
    }
    for fd in FIRST..=LAST {
        // SAFETY: as above; closing one that is not open does nothing.
        unsafe { libc::close(fd) };
    }
}
