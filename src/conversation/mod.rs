//! A conversation in memory: its transcript, the model-bound window over it, and the journal that keeps it.
//!
//! The transcript is what was said, verbatim; every reduction happens in the window's copy and never reaches the store.

mod counter;
mod journal;
mod transcript;
mod window;

pub use counter::{estimate_message, estimate_tools};
pub use journal::{Journal, JournalReport, TurnRecord, notice};
pub use transcript::{Transcript, is_tool_round};
pub use window::{Trim, TrimLayer, Window, WindowPolicy};
