//! Named steps of a commit at which a test can stop, fail or end the process.
//!
//! Only in builds with debug assertions: `AGENT_SMITH_FAILPOINT=<step>=<action>` with the action `kill` (SIGKILL, as a
//! crash would), `error` (the step fails as the disk would) or `sleep:<ms>`; a number after `@` in the step's name picks
//! its n-th passing (`commit.pages_synced@3=kill`). `AGENT_SMITH_FAILPOINT_TRACE=<file>` keeps the name of the last step
//! passed in that file, which outlives the process. Both are read once. In release builds a step costs nothing.

use std::io;

/// Every step, in the order a commit passes them; those of the spool come after.
pub const STEPS: [&str; 14] = [
    "commit.begin",
    "commit.locked",
    "commit.opened",
    "commit.merged",
    "commit.applied",
    "commit.grow",
    "commit.pages_written",
    "commit.pages_synced",
    "commit.header_written",
    "commit.header_synced",
    "commit.committed",
    "commit.unlocked",
    "spool.written",
    "spool.renamed",
];

/// Passes a step.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn hit(_step: &'static str) -> io::Result<()> {
    Ok(())
}

/// Passes a step.
#[cfg(debug_assertions)]
pub(crate) fn hit(step: &'static str) -> io::Result<()> {
    active::hit(step)
}

#[cfg(debug_assertions)]
mod active {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[derive(Debug)]
    struct Plan {
        step: String,
        at: u64,
        action: Action,
        passed: AtomicU64,
    }

    #[derive(Debug)]
    enum Action {
        Kill,
        Error,
        Sleep(Duration),
    }

    #[derive(Debug)]
    struct Setup {
        plan: Option<Plan>,
        trace: Option<File>,
    }

    static SETUP: OnceLock<Setup> = OnceLock::new();

    fn parse(text: &str) -> Option<Plan> {
        let (step, action) = text.split_once('=')?;
        let (step, at) = match step.split_once('@') {
            Some((step, at)) => (step, at.parse().ok()?),
            None => (step, 1),
        };
        let action = match action.split_once(':') {
            None if action == "kill" => Action::Kill,
            None if action == "error" => Action::Error,
            Some(("sleep", ms)) => Action::Sleep(Duration::from_millis(ms.parse().ok()?)),
            _ => return None,
        };
        Some(Plan {
            step: step.to_owned(),
            at,
            action,
            passed: AtomicU64::new(0),
        })
    }

    fn setup() -> Setup {
        Setup {
            plan: std::env::var("AGENT_SMITH_FAILPOINT")
                .ok()
                .and_then(|text| parse(&text)),
            trace: std::env::var_os("AGENT_SMITH_FAILPOINT_TRACE")
                .and_then(|path| File::options().write(true).create(true).truncate(false).open(path).ok()),
        }
    }

    pub(super) fn hit(step: &'static str) -> io::Result<()> {
        let setup = SETUP.get_or_init(setup);
        if let Some(trace) = &setup.trace {
            trace.write_all_at(format!("{step:<32}\n").as_bytes(), 0)?;
        }
        let Some(plan) = &setup.plan else { return Ok(()) };
        if plan.step != step || plan.passed.fetch_add(1, Ordering::Relaxed) + 1 != plan.at {
            return Ok(());
        }
        match plan.action {
            Action::Kill => {
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                Ok(())
            }
            Action::Error => Err(io::Error::other(format!("fail point {step}"))),
            Action::Sleep(time) => {
                std::thread::sleep(time);
                Ok(())
            }
        }
    }
}
