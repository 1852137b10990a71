//! The rendering of a session, for clients that asked for it.

use crate::protocol::TermInfo;

/// Makes renderers.
pub trait UiService: Send + Sync {
    /// Whether there is anything to draw on.
    fn draws(&self, term: &TermInfo) -> bool;
}

/// The built-in rendering.
#[derive(Debug, Default)]
pub struct TerminalUi;

impl UiService for TerminalUi {
    fn draws(&self, term: &TermInfo) -> bool {
        term.is_tty
    }
}
