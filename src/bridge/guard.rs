//! What stands at every entry of the core: the fork check, and the catch that turns a panic into an error.
//!
//! A host may fork at any time, and the child has none of our threads: waiting there for anything of ours would hang
//! for ever, and a lock may have been held by a thread that no longer exists. So the process that opened a session is
//! remembered, and any other is told so at once, before a lock is touched.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{AgentError, ErrorKind};
use crate::runtime::is_contained;

/// The process whose threads the runtime has; 0 before there are any.
static RUNTIME_OWNER: AtomicU32 = AtomicU32::new(0);

/// The process something belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pid: u32,
}

impl Owner {
    /// Claims the runtime for this process.
    ///
    /// # Errors
    /// `forked` where a process this one was forked from has it.
    pub(super) fn claim() -> Result<Self, AgentError> {
        let owner = Self {
            pid: std::process::id(),
        };
        match RUNTIME_OWNER.compare_exchange(0, owner.pid, Ordering::SeqCst, Ordering::SeqCst) {
            Err(other) if other != owner.pid => Err(forked()),
            _ => Ok(owner),
        }
    }

    /// Whether this is still the owner's process. A system call, no lock.
    pub(super) fn is_here(self) -> bool {
        std::process::id() == self.pid
    }

    /// # Errors
    /// `forked` in any other process.
    pub(super) fn check(self) -> Result<(), AgentError> {
        if self.is_here() { Ok(()) } else { Err(forked()) }
    }
}

fn forked() -> AgentError {
    let message = "this process was forked from the one the session belongs to and cannot use it";
    AgentError::new(ErrorKind::Policy, "forked", message)
        .from_origin("bridge")
        .with_hint("use agent_smith in the shell itself, not in a background job or a pipeline of it")
}

/// Runs `work`; a panic in it comes back as an `internal` error.
///
/// # Errors
/// Those of `work`, and `internal`.
pub fn catch<T>(work: impl FnOnce() -> Result<T, AgentError>) -> Result<T, AgentError> {
    // What `work` shares with others is behind locks that take a poisoned state for what it is.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(defect(&*panic)))
}

fn defect(panic: &(dyn Any + Send)) -> AgentError {
    let mut error = AgentError::internal("bridge", format!("agent_smith hit a defect: {}", reason(panic)))
        .with_hint("the session goes on; please report this");
    error.cause = PLACE.with_borrow_mut(Option::take).map(String::into_boxed_str);
    error
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

thread_local! {
    /// Where the last panic of this thread was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic is logged and not printed: the terminal belongs to the host. With a backtrace, where the user asks
/// for one by `RUST_BACKTRACE`. A panic that the store expects of a damaged file is no defect of ours and is passed over:
/// the store tells of it in its own words.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(on_panic)));
}

fn on_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!("panicked at {place}"));
    if is_contained() {
        tracing::debug!(place, "the store contains: {}", reason(panic.payload()));
        return;
    }
    let backtrace = Backtrace::capture();
    let backtrace = match backtrace.status() {
        BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => String::new(),
    };
    tracing::error!(place, "{}{backtrace}", reason(panic.payload()));
    // A panic while the thread ends has no place to keep it.
    let _ = PLACE.try_with(|last| last.replace(place));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::{Batch, Store, StoreOptions};

    #[test]
    fn a_panic_comes_back_as_internal_with_its_reason() {
        let error = catch(|| -> Result<(), AgentError> { panic!("boom {}", 7) }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(error.message.contains("boom 7") && error.hint.is_some());
        assert_eq!(catch(|| Ok(5)).unwrap(), 5);
    }

    #[test]
    fn the_hook_keeps_the_place_of_our_own_panics_and_none_of_the_stores() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(StoreOptions::at(home.path().join("x.redb")));
        let mut batch = Batch::new();
        batch.put_config_patch(serde_json::json!({}));
        store.commit_blocking(batch);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(on_panic));
        let contained = store.read_blocking(|_| -> Result<(), _> { panic!("the engine met a damaged page") });
        let after_the_store = PLACE.take();
        let caught = catch_unwind(|| panic!("a defect of ours"));
        let after_ours = PLACE.take();
        std::panic::set_hook(before);
        assert!(contained.is_err() && caught.is_err());
        assert_eq!(after_the_store, None);
        assert!(after_ours.unwrap().contains("guard.rs"));
    }

    #[test]
    fn another_process_is_refused() {
        let owner = Owner::claim().unwrap();
        assert!(owner.check().is_ok() && Owner::claim().is_ok());
        let other = Owner {
            pid: owner.pid.wrapping_add(1),
        };
        assert_eq!(other.check().unwrap_err().code, "forked");
    }
}
