//! Lines without a line editor: for dumb terminals, pipes and files.

use crate::host::typed::Typed;
use crate::host::{signals, terminal};

/// The next line of `input`; `None` at its end. The prompt is shown to a person only.
pub(super) fn read(input: &Typed, prompt: &str) -> Option<String> {
    if terminal::is_interactive() {
        terminal::write(prompt.as_bytes());
    }
    let _waiting = signals::Waiting::new();
    let line = input.line()?;
    Some(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}
