//! The words servers have for the end of an answer.

use super::provider::FinishReason;

/// What a server's word means. Words are compared without regard to case.
pub(crate) fn reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "end" | "complete" | "completed" | "done"
        | "finished" | "stop_token" => FinishReason::Stop,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "max_completion_tokens"
        | "model_length"
        | "token_limit"
        | "model_context_window_exceeded"
        | "context_length_exceeded"
        | "context_window_exceeded"
        | "max_length" => FinishReason::Length,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" | "function_calls" => FinishReason::ToolCalls,
        "content_filter"
        | "content_filtered"
        | "sensitive"
        | "safety"
        | "prohibited_content"
        | "blocklist"
        | "recitation"
        | "spii"
        | "refusal"
        | "guardrail_intervened" => FinishReason::ContentFilter,
        "error"
        | "network_error"
        | "insufficient_system_resource"
        | "malformed_function_call"
        | "server_error"
        | "internal_error"
        | "abort"
        | "aborted"
        | "cancelled"
        | "timeout" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_servers() {
        for (word, meaning) in [
            ("STOP", FinishReason::Stop),
            ("MAX_TOKENS", FinishReason::Length),
            ("tool_use", FinishReason::ToolCalls),
            ("SAFETY", FinishReason::ContentFilter),
            ("network_error", FinishReason::Error),
            ("tide_out", FinishReason::Other),
        ] {
            assert_eq!(reason(word), meaning, "{word}");
        }
    }
}
