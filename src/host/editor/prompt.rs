//! What stands before the line, and when a line is not yet at its end.

use std::borrow::Cow;

use crossterm::style::Color;
use reedline::{Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, ValidationResult, Validator};

/// A mode's prompt: one line, styled already.
#[derive(Debug)]
pub(in crate::host) struct ModePrompt(pub String);

impl Prompt for ModePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing found: ",
        };
        Cow::Owned(format!("({failing}history: {}) ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        // The prompt brings its own colours.
        Color::Reset
    }
}

/// A line that ends with an odd number of backslashes goes on.
pub(super) struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        let slashes = line.len() - line.trim_end_matches('\\').len();
        if slashes % 2 == 1 {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// A line without the backslashes that only said it goes on.
pub(super) fn joined(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line.split('\n').peekable();
    while let Some(part) = rest.next() {
        let slashes = part.len() - part.trim_end_matches('\\').len();
        if rest.peek().is_none() {
            out.push_str(part);
        } else {
            out.push_str(if slashes % 2 == 1 {
                &part[..part.len() - 1]
            } else {
                part
            });
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_the_end_continues_the_line_and_is_not_part_of_it() {
        let goes_on = |line: &str| matches!(Continued.validate(line), ValidationResult::Incomplete);
        for (line, expected) in [
            ("a", false),
            ("a\\", true),
            ("a\\\\", false),
            ("\\\\\\", true),
            ("a\\\nb", false),
            ("", false),
        ] {
            assert_eq!(goes_on(line), expected, "{line:?}");
        }
        for (line, expected) in [
            ("a\\\nb", "a\nb"),
            ("a\nb", "a\nb"),
            ("a\\\\\nb", "a\\\\\nb"),
            ("x", "x"),
            ("", ""),
            ("C:\\", "C:\\"),
        ] {
            assert_eq!(joined(line), expected);
        }
    }
}
