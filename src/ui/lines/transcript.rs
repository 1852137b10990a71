//! A conversation as one long page.

use crate::message::{Message, Speaker};
use crate::ui::element::Element;
use crate::ui::line::{Line, Span};
use crate::ui::markdown;
use crate::ui::text;

use super::tool::left_out;
use super::{Call, Page, count, role_label, tool_call};

/// Lines of one tool result that are shown.
const RESULT_LINES: usize = 400;
/// Blanks before what belongs to a call.
const INDENT: usize = 2;

/// The whole conversation. `role` names the role whose label the assistant's messages stand under.
#[must_use]
pub fn transcript(page: &Page, messages: &[Message], role: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut speaker = None;
    for message in messages {
        let group = match message.role {
            Speaker::Tool => Speaker::Assistant,
            other => other,
        };
        if speaker.replace(group) != Some(group) {
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            lines.push(match group {
                Speaker::System => Line::of("System", Element::Marker),
                Speaker::User => Line::of("You", Element::PromptMode),
                Speaker::Assistant | Speaker::Tool => role_label(page, role),
            });
        } else if message.role != Speaker::Tool {
            lines.push(Line::new());
        }
        one(page, message, &mut lines);
    }
    lines
}

fn one(page: &Page, message: &Message, lines: &mut Vec<Line>) {
    match message.role {
        Speaker::System => {
            let chars = u64::try_from(message.content.chars().count()).unwrap_or(u64::MAX);
            lines.push(Line::of(
                &format!("{} characters of instructions", count(chars)),
                Element::Marker,
            ));
        }
        Speaker::User => lines.extend(page.wrapped(&[Span::new(&message.content, Element::Text)], 0)),
        Speaker::Tool => lines.extend(result(page, &message.content)),
        Speaker::Assistant => {
            if let Some(reasoning) = &message.reasoning {
                lines.extend(page.wrapped(&[Span::new(reasoning.text.trim(), Element::Thinking)], 0));
                if !reasoning.text.trim().is_empty() {
                    lines.push(Line::new());
                }
            }
            lines.extend(markdown::render(&message.content, page.markdown()));
            if message.incomplete {
                lines.push(Line::of("(the answer was cut here)", Element::Marker));
            }
            if !message.content.is_empty() && !message.tool_calls.is_empty() {
                lines.push(Line::new());
            }
            for call in &message.tool_calls {
                let (name, arguments) = (call.name.as_str(), call.arguments.as_str());
                lines.push(tool_call(page, Call { name, arguments }));
            }
        }
    }
}

fn result(page: &Page, content: &str) -> Vec<Line> {
    let clean = text::strip_escapes(content);
    let clean = clean.trim_end();
    let total = clean.lines().count();
    let mut lines = Vec::new();
    for text in clean.lines().take(RESULT_LINES) {
        lines.extend(page.wrapped(&[Span::new(&text::expand_tabs(text), Element::ToolOutput)], INDENT));
    }
    if total > RESULT_LINES {
        lines.push(left_out(page, total - RESULT_LINES, INDENT));
    }
    lines
}
