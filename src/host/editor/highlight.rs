//! The line as it is typed: plain.

use reedline::{Highlighter, StyledText};

/// No colours: what is typed here is prose.
pub(super) struct Plain;

impl Highlighter for Plain {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((nu_ansi_term::Style::new(), line.to_owned()));
        text
    }
}
