//! One message of a transcript: what the engine appends, the store keeps verbatim and the wire sends.
//!
//! Plain data that several rooms share; how a given server wants it written is the wire's business (`llm`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The system prompt.
    System,
    /// The person, or what stands for them.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// A call the model asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Links the call to its result; unique within its message.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, possibly broken.
    pub arguments: String,
    /// What the server wants back unchanged with the call (signatures).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// What the model thought before it answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The thoughts as text; may be empty where only a sealed form came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The member the server sent it in (`reasoning_content`, `reasoning`), so that it can go back under that name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Structured blocks (signed or encrypted), merged per index, to go back unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Value>,
}

impl Reasoning {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.details.is_empty()
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Speaker,
    /// The text; empty for an assistant message that only calls tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The calls of an assistant message, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool's name, on a tool message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model's thoughts, on an assistant message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Members of the server's message that must go back unchanged.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// The server and model an assistant message came from: signatures and sealed thoughts go back to no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<String>,
    /// Where the full text of a tool result can be had again when it is elided from the model's copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall_key: Option<String>,
    /// Set where the answer was cut: it holds what had come, and is no whole answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Message {
    /// A message of `role` with only text.
    #[must_use]
    pub fn text(role: Speaker, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            reasoning: None,
            extra: Map::new(),
            served_by: None,
            recall_key: None,
            incomplete: false,
        }
    }

    /// The system message.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(Speaker::System, content)
    }

    /// A user's message.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(Speaker::User, content)
    }

    /// A model's message.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(Speaker::Assistant, content)
    }

    /// The result of the call `call_id` of the tool `name`.
    #[must_use]
    pub fn tool(call_id: impl Into<String>, name: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(call_id.into()),
            name: Some(name.into()),
            ..Self::text(Speaker::Tool, content)
        }
    }
}

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name the model calls it by.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object schema.
    pub parameters: Value,
}

/// Tokens one or more requests took, as the server counted them, or estimated where it did not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of everything sent.
    pub prompt_tokens: u64,
    /// Tokens of everything that came back, thoughts included.
    pub completion_tokens: u64,
    /// Of the prompt's, those the server had in its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Of the completion's, those spent on thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The price, in the currency the server bills in (US dollars with every server known to tell).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How many requests are counted in.
    #[serde(default)]
    pub requests: u64,
    /// Set where at least one part is our estimate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

impl Usage {
    /// Prompt and completion together.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        fn sum<T: std::ops::Add<Output = T> + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a + b),
                (one, other) => one.or(other),
            }
        }
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.cost = sum(self.cost, other.cost);
        self.requests = self.requests.saturating_add(other.requests);
        self.estimated |= other.estimated;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_members_are_left_out_of_the_record() {
        let text = serde_json::to_string(&Message::tool("c1", "read", "x")).unwrap();
        assert_eq!(
            text,
            r#"{"role":"tool","content":"x","tool_call_id":"c1","name":"read"}"#
        );
    }

    #[test]
    fn usage_adds_what_is_known() {
        let mut total = Usage {
            prompt_tokens: 3,
            requests: 1,
            ..Usage::default()
        };
        total.add(&Usage {
            prompt_tokens: 4,
            cached_tokens: Some(2),
            requests: 1,
            ..Usage::default()
        });
        assert_eq!(
            (total.prompt_tokens, total.cached_tokens, total.requests),
            (7, Some(2), 2)
        );
    }
}
