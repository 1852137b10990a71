//! What is going on right now, as the lines a spinner stands on.

use crate::ui::element::Element;
use crate::ui::line::{Line, Span};
use crate::ui::lines::Page;
use crate::ui::text;

/// Milliseconds a spinner's sign stands.
const SIGN_MS: u64 = 100;
const SIGNS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SIGNS_ASCII: [&str; 4] = ["|", "/", "-", "\\"];

/// How much of thoughts and output is kept to show its end, in bytes.
const TAIL_BYTES: usize = 400;
/// Running tools that are shown.
const MOST_TOOLS: usize = 4;

/// A tool that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    call_id: String,
    name: String,
    since: u64,
    tail: String,
}

impl Running {
    /// A tool that starts now.
    #[must_use]
    pub fn new(call_id: &str, name: &str, now: u64) -> Self {
        Self {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            since: now,
            tail: String::new(),
        }
    }
}

/// What is going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// A request is out.
    Thinking {
        /// Since when.
        since: u64,
        /// The end of the model's thoughts.
        tail: String,
    },
    /// The answer arrives.
    Streaming,
    /// The model writes a call.
    Calling {
        /// The tool.
        name: String,
        /// Since when.
        since: u64,
    },
    /// Tools run.
    Tools(Vec<Running>),
    /// A request waits to be tried again.
    Waiting {
        /// Until when.
        until: u64,
    },
    /// The turn was asked to stop.
    Cancelling {
        /// Since when.
        since: u64,
    },
}

impl Activity {
    /// A request goes out.
    #[must_use]
    pub fn thinking(now: u64) -> Self {
        Self::Thinking {
            since: now,
            tail: String::new(),
        }
    }

    /// Whether its lines change as time passes.
    #[must_use]
    pub fn moves(&self) -> bool {
        !matches!(self, Self::Idle | Self::Streaming)
    }

    /// Thoughts arrive.
    pub fn think(&mut self, now: u64, thoughts: &str) {
        if !matches!(self, Self::Thinking { .. }) {
            *self = Self::thinking(now);
        }
        if let Self::Thinking { tail, .. } = self {
            keep_tail(tail, thoughts);
        }
    }

    /// A tool starts, beside those that run.
    pub fn start_tool(&mut self, tool: Running) {
        match self {
            Self::Tools(running) => running.push(tool),
            _ => *self = Self::Tools(vec![tool]),
        }
    }

    /// A running tool printed something.
    pub fn tool_output(&mut self, call_id: &str, output: &str) {
        if let Self::Tools(running) = self
            && let Some(tool) = running.iter_mut().find(|tool| tool.call_id == call_id)
        {
            keep_tail(&mut tool.tail, output);
        }
    }

    /// A tool ended.
    pub fn end_tool(&mut self, call_id: &str) {
        if let Self::Tools(running) = self {
            running.retain(|tool| tool.call_id != call_id);
            if running.is_empty() {
                *self = Self::Idle;
            }
        }
    }

    /// The lines that show it.
    #[must_use]
    pub fn lines(&self, page: &Page, now: u64) -> Vec<Line> {
        let spinner = |what: &str, since: u64, tail: &str| spinner(page, now, what, now.saturating_sub(since), tail);
        match self {
            Self::Idle | Self::Streaming => Vec::new(),
            Self::Thinking { since, tail } => vec![spinner("thinking", *since, tail)],
            Self::Calling { name, since } => vec![spinner(&format!("writing a call of {name}"), *since, "")],
            Self::Tools(running) => {
                let lines = running.iter().take(MOST_TOOLS);
                lines.map(|tool| spinner(&tool.name, tool.since, &tool.tail)).collect()
            }
            Self::Waiting { until } => {
                let seconds = until.saturating_sub(now).div_ceil(1000);
                vec![sign(page, now).with(&format!("next try in {seconds} s"), Element::Thinking)]
            }
            Self::Cancelling { since } => vec![spinner("cancelling", *since, "")],
        }
    }
}

fn sign(page: &Page, now: u64) -> Line {
    let signs: &[&str] = if page.unicode { &SIGNS } else { &SIGNS_ASCII };
    let at = usize::try_from(now / SIGN_MS).unwrap_or(0) % signs.len();
    let mut line = Line::of(signs[at], Element::Spinner);
    line.spans.push(Span::pad(1));
    line
}

/// `⠋ what 3 s · the end of what came`. Times below a second are not worth a change.
fn spinner(page: &Page, now: u64, what: &str, elapsed: u64, tail: &str) -> Line {
    let mut line = sign(page, now).with(what, Element::Thinking);
    if elapsed >= 1000 {
        line = line.with(&format!(" {} s", elapsed / 1000), Element::Usage);
    }
    let clean = text::strip_escapes(tail);
    let last = clean.trim_end().lines().next_back().unwrap_or_default();
    let last = text::expand_tabs(last.trim_start());
    let separator = page.separator();
    // A line that ended in the last column would look wrapped on some terminals.
    let room = page.width.saturating_sub(line.width() + text::width(separator) + 1);
    if !last.is_empty() && room > 8 {
        line = line
            .with(separator, Element::Usage)
            .with(end_of(&last, room), Element::Thinking);
    }
    line.truncate(page.width.saturating_sub(1).max(1), page.ellipsis());
    line
}

/// The end of `text` that fits into `room` cells.
fn end_of(text: &str, room: usize) -> &str {
    let mut start = text.len();
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += text::width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        start = at;
    }
    text[start..].trim_start()
}

fn keep_tail(tail: &mut String, more: &str) {
    tail.push_str(more);
    if tail.len() > 2 * TAIL_BYTES {
        let mut cut = tail.len() - TAIL_BYTES;
        while !tail.is_char_boundary(cut) {
            cut += 1;
        }
        tail.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        width: 40,
        unicode: true,
        hyperlinks: false,
        marks: false,
    };

    fn shown(activity: &Activity, now: u64) -> String {
        crate::ui::line::plain(&activity.lines(&PAGE, now))
    }

    #[test]
    fn thoughts_and_output_show_their_end() {
        let mut activity = Activity::thinking(1000);
        assert_eq!(shown(&activity, 1000), "⠋ thinking");
        activity.think(
            1000,
            "First I look at it.\nThen I consider everything there is to consider",
        );
        assert_eq!(shown(&activity, 4100), "⠙ thinking 3 s · g there is to consider");
        activity.start_tool(Running::new("a", "bash", 5000));
        activity.start_tool(Running::new("b", "read", 5000));
        activity.tool_output("a", "10%\r20%\r\x1b[32m30%\x1b[0m");
        activity.tool_output("nobody", "x");
        assert_eq!(shown(&activity, 5000), "⠋ bash · 30%\n⠋ read");
        activity.end_tool("a");
        activity.end_tool("b");
        assert_eq!(activity, Activity::Idle);
    }

    #[test]
    fn what_is_kept_does_not_grow() {
        let mut activity = Activity::thinking(0);
        for _ in 0..1000 {
            activity.think(0, "ünd so weiter ");
        }
        let Activity::Thinking { tail, .. } = &activity else {
            panic!("not thinking")
        };
        assert!(tail.len() <= 2 * TAIL_BYTES);
        assert_eq!(shown(&Activity::Waiting { until: 2500 }, 1000), "⠋ next try in 2 s");
    }
}
