//! What helps while a line is typed: the completion menu, and the hint behind the cursor.
//!
//! Both ask the mode, which is Lua and stays on its thread; the line editor wants helpers that could move to another.
//! So the helpers hold nothing, and the mode is lent to them for as long as a line is read.

use std::cell::RefCell;
use std::rc::Rc;

use nu_ansi_term::Style;
use reedline::{Completer, DefaultHinter, Hinter, History, Span, Suggestion};

/// One way to go on with a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct Completion {
    /// Where what it replaces begins, in bytes.
    pub start: usize,
    /// What replaces the line from there to the cursor.
    pub value: String,
    /// What to show in the menu instead of the value.
    pub display: Option<String>,
    /// A remark beside it.
    pub hint: Option<String>,
    /// The rest of the line, where it only adds to it.
    pub suffix: Option<String>,
}

type Complete = Rc<dyn Fn(&str) -> Vec<Completion>>;

thread_local! {
    static CURRENT: RefCell<Option<Complete>> = const { RefCell::new(None) };
}

/// What a mode knows of lines: how they may go on.
#[derive(Clone)]
pub(in crate::host) struct Assistant(Complete);

impl Assistant {
    pub(in crate::host) fn new(complete: impl Fn(&str) -> Vec<Completion> + 'static) -> Self {
        Self(Rc::new(complete))
    }

    /// Lends it to the helpers of the editor on this thread.
    pub(super) fn lend(&self) -> Lent {
        CURRENT.with_borrow_mut(|current| *current = Some(Rc::clone(&self.0)));
        Lent
    }
}

/// The end of lending.
pub(super) struct Lent;

impl Drop for Lent {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(Option::take);
    }
}

fn completions(line: &str) -> Vec<Completion> {
    let current = CURRENT.with_borrow(Clone::clone);
    current.map_or_else(Vec::new, |complete| complete(line))
}

/// Feeds the menu.
pub(super) struct MenuCompleter;

impl Completer for MenuCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        // A mode completes the line of several the cursor is in.
        let Some(before) = line.get(..pos) else {
            return Vec::new();
        };
        let offset = before.rfind('\n').map_or(0, |at| at + 1);
        completions(&before[offset..])
            .into_iter()
            .filter(|completion| completion.start <= before.len() - offset)
            .map(|completion| Suggestion {
                value: completion.value,
                display_override: completion.display,
                description: completion.hint,
                span: Span::new(offset + completion.start, pos),
                ..Suggestion::default()
            })
            .collect()
    }
}

/// The hint: the first completion that only adds to the line, else the last line that began like this one.
pub(super) struct LineHinter {
    style: Style,
    history: DefaultHinter,
    suffix: String,
}

impl LineHinter {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            history: DefaultHinter::default().with_style(style),
            suffix: String::new(),
        }
    }
}

impl Hinter for LineHinter {
    fn handle(&mut self, line: &str, pos: usize, history: &dyn History, colors: bool, cwd: &str) -> String {
        self.suffix.clear();
        let typing = pos == line.len() && !line.is_empty() && !line.ends_with(char::is_whitespace);
        if typing {
            let last = line.rsplit('\n').next().unwrap_or_default();
            let suffix = completions(last).into_iter().find_map(|completion| completion.suffix);
            self.suffix = suffix.unwrap_or_default();
        }
        if self.suffix.is_empty() {
            return self.history.handle(line, pos, history, colors, cwd);
        }
        if colors {
            self.style.paint(&self.suffix).to_string()
        } else {
            self.suffix.clone()
        }
    }

    fn complete_hint(&self) -> String {
        if self.suffix.is_empty() {
            self.history.complete_hint()
        } else {
            self.suffix.clone()
        }
    }

    fn next_hint_token(&self) -> String {
        if self.suffix.is_empty() {
            self.history.next_hint_token()
        } else {
            self.suffix.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reedline::FileBackedHistory;

    fn assistant() -> Assistant {
        Assistant::new(|line| match line {
            "/co" => vec![
                Completion {
                    start: 0,
                    value: "/config".into(),
                    hint: Some("settings".into()),
                    suffix: Some("nfig".into()),
                    ..Completion::default()
                },
                Completion {
                    start: 0,
                    value: "/recent".into(),
                    ..Completion::default()
                },
            ],
            _ => Vec::new(),
        })
    }

    #[test]
    fn the_menu_replaces_from_where_the_completion_begins_in_the_line_of_the_cursor() {
        let assistant = assistant();
        let _lent = assistant.lend();
        let found = MenuCompleter.complete("first\n/co rest", 9);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].value.as_str(), found[0].span), ("/config", Span::new(6, 9)));
        assert_eq!(found[0].description.as_deref(), Some("settings"));
        assert_eq!(MenuCompleter.complete("é", 1), []);
    }

    #[test]
    fn a_hint_is_the_completion_else_the_history_and_nothing_once_the_loan_is_over() {
        let mut history = FileBackedHistory::new(10).unwrap();
        history
            .save(reedline::HistoryItem::from_command_line("/compare these"))
            .unwrap();
        let mut hinter = LineHinter::new(Style::new());
        let assistant = assistant();
        {
            let _lent = assistant.lend();
            assert_eq!(hinter.handle("/co", 3, &history, false, ""), "nfig");
            assert_eq!(hinter.complete_hint(), "nfig");
            assert_eq!(hinter.handle("/com", 4, &history, false, ""), "pare these");
            assert_eq!(hinter.complete_hint(), "pare these");
        }
        assert_eq!(hinter.handle("/co", 3, &history, false, ""), "mpare these");
    }
}
