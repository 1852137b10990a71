//! The asynchronous runtime: one a process, made at first use and never dropped.
//!
//! Inside a host the Lua state may be closed, and the module unloaded, while our threads still run; a runtime that
//! outlives everything is the only safe one. Its threads block every signal: signals are the host's business, and a
//! write to a pipe whose reader died must come back as an error instead of ending the user's shell.

use nix::sys::signal::SigSet;
use once_cell::sync::OnceCell;
use tokio::runtime::{Builder, Runtime};

use crate::error::AgentError;

/// Turns wait for one thing at a time; two workers let a tool's output and a stream go on beside each other.
const WORKER_THREADS: usize = 2;
/// Threads for blocking work (file tools, the store).
const MAX_BLOCKING_THREADS: usize = 16;

static RUNTIME: OnceCell<Runtime> = OnceCell::new();

/// The process's runtime.
///
/// # Errors
/// `internal` where the system gives no threads.
pub fn runtime() -> Result<&'static Runtime, AgentError> {
    RUNTIME.get_or_try_init(|| {
        let built = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .thread_name("agent-smith")
            .enable_io()
            .enable_time()
            .on_thread_start(|| {
                // Only fails for arguments that make no sense.
                let _ = SigSet::all().thread_block();
            })
            .build();
        built.map_err(|error| {
            AgentError::internal(
                "runtime",
                format!("the asynchronous runtime cannot be started: {error}"),
            )
        })
    })
}
