//! The one terminal of the process: its modes, its second screen, and the way back from all of them.
//!
//! Whoever leaves the program, and however, goes through [`restore`]: it undoes what was switched on and nothing else,
//! from any thread.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::{cursor, event, execute, terminal};

static RAW: AtomicBool = AtomicBool::new(false);
static ALTERNATE: AtomicBool = AtomicBool::new(false);
static ENHANCED_KEYS: AtomicBool = AtomicBool::new(false);
static OUTPUT_GONE: AtomicBool = AtomicBool::new(false);

/// The size of a terminal that does not tell its own.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

/// Writes to the terminal, at once. Where nobody reads any more, that is remembered and later writes do nothing.
pub(super) fn write(bytes: &[u8]) {
    if output_gone() {
        return;
    }
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        OUTPUT_GONE.store(true, Ordering::Relaxed);
    }
}

/// Whether a write failed: the reader of our output went away.
pub(super) fn output_gone() -> bool {
    OUTPUT_GONE.load(Ordering::Relaxed)
}

/// Whether the output is a terminal.
pub(super) fn is_tty() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person sits at both ends.
pub(super) fn is_interactive() -> bool {
    is_tty() && io::stdin().is_terminal()
}

/// Rows and columns.
pub(super) fn size() -> (u16, u16) {
    if !is_tty() {
        return DEFAULT_SIZE;
    }
    match terminal::size() {
        Ok((cols, rows)) if cols > 0 && rows > 0 => (rows, cols),
        _ => DEFAULT_SIZE,
    }
}

/// Whether keys come one by one, unechoed.
pub(super) fn is_raw() -> bool {
    RAW.load(Ordering::Relaxed)
}

/// Keys one by one from here on. Where there is no terminal, nothing changes.
pub(super) fn set_raw() {
    if terminal::enable_raw_mode().is_ok() {
        RAW.store(true, Ordering::Relaxed);
    }
}

/// Lines, as the user had them at the start.
pub(super) fn set_sane() {
    let _ = terminal::disable_raw_mode();
    RAW.store(false, Ordering::Relaxed);
}

/// The second screen, raw and without a cursor.
pub(super) fn enter_alternate() {
    set_raw();
    ALTERNATE.store(true, Ordering::Relaxed);
    let _ = execute!(
        io::stdout(),
        terminal::EnterAlternateScreen,
        event::EnableBracketedPaste,
        cursor::Hide
    );
}

/// Back from the second screen.
pub(super) fn leave_alternate() {
    if ALTERNATE.swap(false, Ordering::Relaxed) {
        let _ = execute!(
            io::stdout(),
            event::DisableBracketedPaste,
            terminal::LeaveAlternateScreen,
            cursor::Show
        );
    }
    set_sane();
}

/// Remembers that the line editor asks for enhanced key reports while it reads.
pub(super) fn note_enhanced_keys(on: bool) {
    ENHANCED_KEYS.store(on, Ordering::Relaxed);
}

/// Undoes everything, the line editor's settings included.
pub(super) fn restore() {
    let editing = terminal::is_raw_mode_enabled().unwrap_or(false);
    leave_alternate();
    if editing && is_tty() {
        if ENHANCED_KEYS.load(Ordering::Relaxed) {
            let _ = execute!(io::stdout(), event::PopKeyboardEnhancementFlags);
        }
        let _ = execute!(io::stdout(), event::DisableBracketedPaste, cursor::Show);
        write(b"\x1b[0m\r\n");
    }
}

/// Restores the terminal at the end of a scope, a panic's included.
pub(super) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}
