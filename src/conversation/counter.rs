//! The size of messages in tokens, estimated: there is no tokenizer that fits every model, so four characters count as
//! one token and each message costs a little for its frame.

use crate::message::{Message, ToolDefinition};

/// Characters a token, on average, in English text and code.
const CHARS_PER_TOKEN: usize = 4;
/// Tokens of a message's frame (role, separators).
const MESSAGE_OVERHEAD: u64 = 4;

fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// The estimated tokens of one message: text, thoughts, ids, tool names and arguments.
#[must_use]
pub fn estimate_message(message: &Message) -> u64 {
    // Bytes instead of characters would overcount other scripts three times; counting is one pass over the text.
    let mut chars = message.content.chars().count();
    chars += message
        .reasoning
        .as_ref()
        .map_or(0, |reasoning| reasoning.text.chars().count());
    chars += message.tool_call_id.as_ref().map_or(0, String::len);
    for call in &message.tool_calls {
        chars += call.id.len() + call.name.len() + call.arguments.chars().count();
    }
    tokens(chars) + MESSAGE_OVERHEAD
}

/// The estimated tokens of the offered tools.
#[must_use]
pub fn estimate_tools(tools: &[ToolDefinition]) -> u64 {
    let chars = |tool: &ToolDefinition| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    tools.iter().map(|tool| tokens(chars(tool))).sum()
}
