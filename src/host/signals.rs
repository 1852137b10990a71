//! The signals of the standalone host. Only our own executable handles any; the library in another's shell never does.
//!
//! Ctrl-C while a mode works is noted and asked for; SIGTERM and SIGHUP end the program in order: a turn is cancelled
//! first, the terminal comes back to what it was, and the process ends by that very signal, as its parent expects.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::host::terminal;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static ENDING: AtomicI32 = AtomicI32::new(0);
static WAITING: AtomicBool = AtomicBool::new(false);

/// How long work in progress has to come to its end after SIGTERM or SIGHUP: a tool gets two seconds to react to its
/// own SIGTERM, and one more to have its output read.
const GRACE: Duration = Duration::from_secs(5);

/// Handles signals from now on, on a thread of its own.
pub(super) fn watch() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT {
                INTERRUPTED.store(true, Ordering::SeqCst);
                continue;
            }
            let again = ENDING.swap(signal, Ordering::SeqCst) != 0;
            if again || WAITING.load(Ordering::SeqCst) {
                end_by(signal);
            }
            // Should the work not end in time, it is ended.
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                end_by(signal);
            });
        }
    })?;
    Ok(())
}

/// Ends the process as the signal would have, the terminal in order.
pub(super) fn end_by(signal: i32) {
    terminal::restore();
    let _ = emulate_default_handler(signal);
}

/// The signal that asked the program to end.
pub(super) fn ending() -> Option<i32> {
    match ENDING.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Whether Ctrl-C came since it was last asked, or the program is to end.
pub(super) fn take_interrupt() -> bool {
    INTERRUPTED.swap(false, Ordering::SeqCst) || ending().is_some()
}

/// Forgets a Ctrl-C that came before.
pub(super) fn forget_interrupt() {
    INTERRUPTED.store(false, Ordering::SeqCst);
}

/// While it lives the program waits for a line: nothing is lost when a signal ends it there and then.
pub(super) struct Waiting;

impl Waiting {
    /// From here on. A signal that came a moment ago ends the program now.
    pub(super) fn new() -> Self {
        WAITING.store(true, Ordering::SeqCst);
        if let Some(signal) = ending() {
            end_by(signal);
        }
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.store(false, Ordering::SeqCst);
    }
}
