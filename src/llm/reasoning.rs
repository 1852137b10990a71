//! The model's thoughts, in all the members servers have for them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::chunk::Delta;
use super::json::{self, Carry};
use super::merge;
use crate::message::Reasoning;

/// Collects the thoughts of one answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningAssembly {
    reasoning: Reasoning,
    carry: Carry,
}

impl ReasoningAssembly {
    /// Takes the thoughts of a piece and returns what of them is new to show. The same words under two names, or in a
    /// member and in blocks, are shown once.
    pub fn apply(&mut self, delta: &Delta<'_>) -> Option<String> {
        let named = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_text", delta.reasoning_text),
            ("thinking", delta.thinking),
        ];
        // The member that was used first goes on being used, so that a server with two names gets back one of them.
        let known = named
            .iter()
            .position(|(name, raw)| *name == self.reasoning.field && raw.is_some());
        let text = known
            .into_iter()
            .chain(0..named.len())
            .filter_map(|at| named[at].1.map(|raw| (named[at].0, raw)))
            .find_map(|(name, raw)| {
                let text = json::text(raw, &mut self.carry)?.into_owned();
                (!text.is_empty()).then_some((name, text))
            });
        let blocks = delta.reasoning_details.map(json::value);
        let from_blocks = blocks.as_ref().map(block_text).unwrap_or_default();
        if let Some(Value::Array(blocks)) = blocks {
            merge::blocks(&mut self.reasoning.details, blocks);
        }
        match text {
            Some((name, text)) => {
                if self.reasoning.field.is_empty() {
                    name.clone_into(&mut self.reasoning.field);
                }
                self.add(&text);
                Some(text)
            }
            None if self.reasoning.field.is_empty() && !from_blocks.is_empty() => {
                self.add(&from_blocks);
                Some(from_blocks)
            }
            None => None,
        }
    }

    /// Adds thoughts that came inside the text, which have no member to go back under.
    pub fn add(&mut self, text: &str) {
        self.reasoning.text.push_str(text);
    }

    /// What there is so far.
    pub fn finish(mut self) -> Option<Reasoning> {
        if let Some(rest) = self.carry.flush() {
            self.reasoning.text.push(rest);
        }
        (!self.reasoning.is_empty()).then_some(self.reasoning)
    }
}

/// The readable text of blocks.
fn block_text(blocks: &Value) -> String {
    let texts = blocks.as_array().into_iter().flatten().filter_map(|block| {
        ["text", "summary", "thinking"]
            .iter()
            .find_map(|key| block.get(*key).and_then(Value::as_str))
    });
    texts.collect()
}

/// The two kinds of text in a `content` member: a string, or a list of parts.
pub(crate) fn content_parts(raw: &RawValue, mut on_text: impl FnMut(&str), mut on_thinking: impl FnMut(&str)) {
    let parts = match json::value(raw) {
        Value::Array(parts) => parts,
        part @ Value::Object(_) => vec![part],
        _ => return,
    };
    for part in &parts {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let thinks = kind.starts_with("thinking") || kind.starts_with("reasoning");
        let body = ["thinking", "reasoning", "text", "content", "summary", "refusal"]
            .iter()
            .find_map(|key| part.get(*key));
        let text = match (part, body) {
            (Value::String(text), _) | (_, Some(Value::String(text))) => text.clone(),
            (_, Some(blocks @ Value::Array(_))) => block_text(blocks),
            _ => continue,
        };
        if thinks { on_thinking(&text) } else { on_text(&text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(deltas: &[&str]) -> (String, Reasoning) {
        let mut assembly = ReasoningAssembly::default();
        let mut shown = String::new();
        for delta in deltas {
            shown.extend(assembly.apply(&serde_json::from_str(delta).unwrap()));
        }
        (shown, assembly.finish().unwrap())
    }

    #[test]
    fn thoughts_in_blocks_alone_are_shown_and_kept() {
        let (shown, reasoning) = shown(&[
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"One ","index":0}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"two.","index":0}]}"#,
        ]);
        assert_eq!((shown.as_str(), reasoning.text.as_str()), ("One two.", "One two."));
        assert_eq!(reasoning.details[0]["summary"], "One two.");
        assert_eq!(reasoning.field, "");
    }

    #[test]
    fn the_member_used_first_stays_and_an_empty_one_hides_no_other() {
        let (shown, reasoning) = shown(&[
            r#"{"reasoning_content":"","reasoning":"a "}"#,
            r#"{"reasoning_content":"b","reasoning":"b"}"#,
        ]);
        assert_eq!((shown.as_str(), reasoning.field.as_str()), ("a b", "reasoning"));
    }
}
