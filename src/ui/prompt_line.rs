//! The prompt line: mode, state, role, model, how full the window is, what it cost.

use crate::message::Usage;
use crate::protocol::SessionState;
use crate::ui::element::{Element, role_element};
use crate::ui::line::Line;
use crate::ui::lines::{Page, money, role_name};
use crate::ui::text;
use crate::ui::theme::Theme;

/// From this many percent on, how full the window is stands out.
const CONTEXT_HIGH: u8 = 80;
/// The model's name is cut to this many cells.
const MODEL_CELLS: usize = 28;

/// What the prompt line says.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// The mode's name.
    pub mode: &'a str,
    /// What is going on.
    pub state: SessionState,
    /// The active role.
    pub role: &'a str,
    /// The model of the next request; empty where there is none.
    pub model: &'a str,
    /// How full the model's window is, in percent.
    pub context_pct: Option<u8>,
    /// What the conversation took.
    pub usage: &'a Usage,
    /// Lines waiting to join the running turn.
    pub queued: usize,
}

/// The prompt line, ending in a blank. Every character of it is one code point wide: hosts count those.
#[must_use]
pub fn prompt_line(page: &Page, prompt: &Prompt<'_>) -> Line {
    let separator = |line: Line| line.with(" ", Element::PromptSeparator);
    let mut line = Line::of(prompt.mode, Element::PromptMode);
    line = separator(line).with(role_name(prompt.role), role_element(prompt.role));
    if !prompt.model.is_empty() {
        let model = text::shorten(prompt.model, MODEL_CELLS.min(page.width / 3), page.ellipsis());
        line = separator(line).with(&model, Element::PromptModel);
    }
    if let Some(percent) = prompt.context_pct {
        let element = if percent >= CONTEXT_HIGH {
            Element::PromptContextHigh
        } else {
            Element::PromptContext
        };
        line = separator(line).with(&format!("{percent}%"), element);
    }
    if let Some(cost) = prompt.usage.cost.filter(|cost| *cost > 0.0) {
        line = separator(line).with(&money(cost), Element::PromptCost);
    }
    if prompt.queued > 0 {
        line = separator(line).with(&format!("+{}", prompt.queued), Element::PromptQueued);
    }
    if let Some((word, element)) = state(prompt.state) {
        line = separator(line).with(word, element);
    }
    for span in &mut line.spans {
        span.text = one_cell_each(&span.text);
    }
    let sign = if page.unicode { "❯" } else { ">" };
    line.truncate(page.width.saturating_sub(12).max(8), page.ellipsis());
    separator(separator(line).with(sign, Element::PromptSign))
}

/// The prompt line as bytes.
#[must_use]
pub fn prompt_ansi(page: &Page, theme: &Theme, prompt: &Prompt<'_>) -> String {
    prompt_line(page, prompt).ansi(theme)
}

fn state(state: SessionState) -> Option<(&'static str, Element)> {
    match state {
        SessionState::Idle => None,
        SessionState::Thinking => Some(("thinking", Element::PromptThinking)),
        SessionState::Streaming => Some(("streaming", Element::PromptStreaming)),
        SessionState::Tool => Some(("tool", Element::PromptTool)),
        SessionState::Error => Some(("error", Element::PromptError)),
        SessionState::Cancelled => Some(("cancelled", Element::PromptCancelled)),
    }
}

/// `text` with a question mark for every code point that does not take exactly one cell.
fn one_cell_each(text: &str) -> String {
    let fits = |c: char| text::width(c.encode_utf8(&mut [0; 4])) == 1;
    text.chars().map(|c| if fits(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        width: 80,
        unicode: true,
        hyperlinks: false,
        marks: false,
    };

    fn prompt(usage: &Usage) -> Prompt<'_> {
        Prompt {
            mode: "agent_smith",
            state: SessionState::Tool,
            role: "orchestrator",
            model: "qwen3-coder",
            context_pct: Some(83),
            usage,
            queued: 2,
        }
    }

    #[test]
    fn everything_there_is_to_say_is_on_it() {
        let usage = Usage {
            cost: Some(0.12),
            ..Usage::default()
        };
        assert_eq!(
            prompt_line(&PAGE, &prompt(&usage)).described(),
            "<prompt.mode>agent_smith</><prompt.separator> </><role.tank>Tank</><prompt.separator> </>\
             <prompt.model>qwen3-coder</><prompt.separator> </><prompt.context_high>83%</><prompt.separator> </>\
             <prompt.cost>$0.120</><prompt.separator> </><prompt.queued>+2</><prompt.separator> </>\
             <prompt.tool>tool</><prompt.separator> </><prompt.sign>❯</><prompt.separator> </>"
        );
        let bare = Prompt {
            state: SessionState::Idle,
            role: "direct",
            model: "",
            context_pct: None,
            queued: 0,
            ..prompt(&usage)
        };
        assert_eq!(prompt_line(&PAGE, &bare).plain(), "agent_smith Smith $0.120 ❯ ");
    }

    #[test]
    fn each_code_point_is_one_cell_and_the_line_leaves_room_to_type() {
        let usage = Usage::default();
        let odd = Prompt {
            model: "模型-e\u{301}\u{200d}\x1b[2J-with-a-very-long-name-indeed",
            ..prompt(&usage)
        };
        for width in [20, 40, 80] {
            let line = prompt_line(&Page { width, ..PAGE }, &odd).plain();
            assert!(line.chars().all(|c| text::width(&c.to_string()) == 1), "{line:?}");
            assert!(line.chars().count() <= width, "{line:?}");
        }
    }
}
