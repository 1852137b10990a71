//! The things that are shown one by one: labels, calls, results, notices, errors, counts.
//!
//! Each function gives finished lines for a [`Page`]. None knows of the order of events; that is
//! [`render`](crate::ui::render)'s.

mod files;
pub(crate) mod tool;
mod transcript;
mod usage;

pub use files::changed_files;
pub use tool::{Call, tool_call, tool_cancelled, tool_finished, tool_result};
pub use transcript::transcript;
pub use usage::{count, duration, money, usage};

use crate::error::{AgentError, ErrorKind};
use crate::protocol::NoticeLevel;
use crate::ui::element::{Element, Style, role_element};
use crate::ui::line::{Line, Span};
use crate::ui::markdown::{self, MarkdownOptions};
use crate::ui::term::Abilities;
use crate::ui::wrap::wrap;

/// Running text is not made wider than this, or it would be hard to read; in cells.
const MAX_TEXT_WIDTH: usize = 120;
/// The width of a terminal that does not say.
const DEFAULT_WIDTH: usize = 80;

/// What lines are laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The cells of a line.
    pub width: usize,
    /// Whether characters outside ASCII may be used.
    pub unicode: bool,
    /// Whether links can be followed.
    pub hyperlinks: bool,
    /// Whether marks stand where styles cannot be seen.
    pub marks: bool,
}

impl Page {
    /// The page of a terminal.
    #[must_use]
    pub fn of(abilities: &Abilities) -> Self {
        Self {
            width: match usize::from(abilities.cols) {
                0 => DEFAULT_WIDTH,
                cols => cols,
            },
            unicode: abilities.unicode,
            hyperlinks: abilities.hyperlinks,
            marks: !abilities.attributes,
        }
    }

    /// How Markdown is laid out on it.
    #[must_use]
    pub fn markdown(&self) -> MarkdownOptions {
        MarkdownOptions {
            width: self.width.min(MAX_TEXT_WIDTH),
            unicode: self.unicode,
            hyperlinks: self.hyperlinks,
            marks: self.marks,
        }
    }

    /// The sign for something left out.
    #[must_use]
    pub fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// What stands between the parts of a remark.
    #[must_use]
    pub fn separator(&self) -> &'static str {
        if self.unicode { " · " } else { " - " }
    }

    /// Wraps `spans` behind `indent` blanks.
    fn wrapped(&self, spans: &[Span], indent: usize) -> Vec<Line> {
        let indent = if indent * 2 > self.width { 0 } else { indent };
        let lines = wrap(spans, self.width - indent);
        lines
            .into_iter()
            .map(|mut spans| {
                if indent > 0 && !spans.is_empty() {
                    spans.insert(0, Span::pad(indent));
                }
                Line { spans }
            })
            .collect()
    }

    /// Wraps `text` behind `head`, later lines indented to where the text starts; below it where there is no room beside it.
    fn headed(&self, head: Span, text: &str, style: impl Into<Style>) -> Vec<Line> {
        self.headed_spans(head, &[Span::new(text, style)])
    }

    fn headed_spans(&self, head: Span, text: &[Span]) -> Vec<Line> {
        let indent = crate::ui::text::width(&head.text);
        if indent * 2 > self.width {
            let mut lines = vec![self.fit(Line { spans: vec![head] })];
            lines.extend(self.wrapped(text, 0));
            return lines;
        }
        let mut lines = self.wrapped(text, indent);
        match lines.first_mut() {
            Some(first) if !first.spans.is_empty() && indent > 0 => first.spans[0] = head,
            Some(first) => first.spans.insert(0, head),
            None => lines.push(Line { spans: vec![head] }),
        }
        lines
    }

    /// A line cut at the page's edge.
    fn fit(&self, mut line: Line) -> Line {
        line.truncate(self.width, self.ellipsis());
        line
    }
}

/// The name shown for a role. (The catalogue of roles has the same names; a test compares them.)
#[must_use]
pub fn role_name(role: &str) -> &str {
    match role {
        "direct" => "Smith",
        "orchestrator" => "Tank",
        "worker" => "Niobe",
        "explorer" => "Link",
        other => other,
    }
}

/// Who speaks: the label of the role named `role`.
#[must_use]
pub fn role_label(page: &Page, role: &str) -> Line {
    page.fit(Line::of(role_name(role), role_element(role)))
}

/// Something the user should know.
#[must_use]
pub fn notice(page: &Page, level: NoticeLevel, text: &str, hint: Option<&str>) -> Vec<Line> {
    let (word, element) = match level {
        NoticeLevel::Info => ("note: ", Element::NoticeInfo),
        NoticeLevel::Warn => ("warning: ", Element::NoticeWarn),
        NoticeLevel::Error => ("error: ", Element::NoticeError),
    };
    let mut lines = page.headed(Span::new(word, element), text, Element::NoticeText);
    lines.extend(hint_lines(page, hint));
    lines
}

fn hint_lines(page: &Page, hint: Option<&str>) -> Vec<Line> {
    let hint = hint.filter(|hint| !hint.is_empty());
    hint.map_or_else(Vec::new, |hint| {
        page.wrapped(&[Span::new(hint, Element::NoticeHint)], 2)
    })
}

/// An error, with what caused it and what to do next.
#[must_use]
pub fn error(page: &Page, error: &AgentError) -> Vec<Line> {
    if error.is_cancelled() {
        return vec![cancelled(page)];
    }
    let mut lines = notice(page, NoticeLevel::Error, &error.message, None);
    if let (ErrorKind::Internal, Some(cause)) = (error.kind, &error.cause) {
        // A defect of ours: whoever reports it needs where it came from.
        for level in cause.lines() {
            lines.extend(page.wrapped(&[Span::new(level, Element::Marker)], 2));
        }
    }
    lines.extend(hint_lines(page, error.hint.as_deref()));
    lines
}

/// The turn was cancelled.
#[must_use]
pub fn cancelled(page: &Page) -> Line {
    page.fit(Line::of("cancelled", Element::ToolCancelled))
}

/// A remark about what was shown.
#[must_use]
pub fn remark(page: &Page, text: &str) -> Vec<Line> {
    page.wrapped(&[Span::new(text, Element::Marker)], 0)
}

/// A request will be tried again.
#[must_use]
pub fn retry(page: &Page, attempt: u32, max: u32, delay_ms: u64, error: &AgentError) -> Vec<Line> {
    let text = format!("{} Retry {attempt} of {max} in {}.", error.message, duration(delay_ms));
    notice(page, NoticeLevel::Warn, &text, None)
}

/// A command's answer, which is Markdown; of one that failed, why it did.
#[must_use]
pub fn command_result(page: &Page, command: &str, text: &str, ok: bool) -> Vec<Line> {
    if ok {
        return markdown::render(text, page.markdown());
    }
    let head = Span::new(&format!("/{command}: "), Element::NoticeError);
    page.headed(head, text, Element::NoticeText)
}

/// A question to the user, its choices numbered from 1.
#[must_use]
pub fn question(page: &Page, text: &str, choices: &[String], default: Option<&str>) -> Vec<Line> {
    let mut lines = page.headed(Span::new("? ", Element::Question), text, Element::Question);
    for (index, choice) in choices.iter().enumerate() {
        let head = Span::new(&format!("  {}. ", index + 1), Element::Choice);
        let mut spans = vec![Span::new(choice, Element::Text)];
        if default == Some(choice) {
            spans.push(Span::new(" (default)", Element::Marker));
        }
        lines.extend(page.headed_spans(head, &spans));
    }
    if let Some(default) = default.filter(|default| !choices.iter().any(|choice| choice == default)) {
        lines.extend(page.wrapped(&[Span::new(&format!("default: {default}"), Element::Marker)], 2));
    }
    lines
}

/// A line typed during a turn waits.
#[must_use]
pub fn queued(page: &Page, text: &str, waiting: usize) -> Line {
    let first = text.lines().next().unwrap_or_default();
    let mut line = Line::of(&format!("queued ({waiting}): "), Element::PromptQueued).with(first, Element::Marker);
    line.truncate(page.width, page.ellipsis());
    line
}

/// The model's copy of the transcript was made smaller.
#[must_use]
pub fn trimmed(page: &Page, layer: &str, before: u64, after: u64) -> Line {
    let arrow = if page.unicode { "→" } else { "->" };
    let text = format!("context {layer}: {} {arrow} {} tokens", count(before), count(after));
    page.fit(Line::of(&text, Element::Marker))
}

#[cfg(test)]
mod tests;
