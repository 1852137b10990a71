//! The signals that end a run: each asks for a cancellation, once. Only our own executable handles signals; the library
//! inside a host never does.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::AgentError;

/// Calls `on_signal` with a signal's name for each SIGINT, SIGTERM and SIGHUP from now on, on a thread of its own.
///
/// # Errors
/// `internal` where the handlers cannot be installed.
pub(super) fn watch(on_signal: impl Fn(&'static str) + Send + 'static) -> Result<(), AgentError> {
    let failed = |what: &str, error: &std::io::Error| AgentError::internal("cli", format!("{what}: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| failed("signal handlers cannot be installed", &error))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                on_signal(match signal {
                    SIGINT => "SIGINT",
                    SIGTERM => "SIGTERM",
                    _ => "SIGHUP",
                });
            }
        })
        .map_err(|error| failed("the signal thread cannot be started", &error))?;
    Ok(())
}
