//! Arbitrary bytes as an answer: framing, decoding and assembly.
//!
//! The first byte says into how large pieces the rest is cut. Nothing may panic; where the reads cut must not matter; the
//! events must tell the same as the answer; calls that can be run have arguments that are JSON objects and unique ids.

#![no_main]

use std::collections::HashSet;

use agent_smith_core::llm::{ChatResponse, StreamEvent, read_bytes};
use agent_smith_core::message::ToolDefinition;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// What came out: the code of the failure, the answer, and what its events tell.
fn read(pieces: &[&[u8]]) -> (Option<String>, Option<ChatResponse>, String, String) {
    let tools = ["get_weather", "read_file"].map(|name| ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}),
    });
    let (mut text, mut thoughts) = (String::new(), String::new());
    let mut sink = |event| match event {
        StreamEvent::Text(piece) => text.push_str(&piece),
        StreamEvent::Thinking(piece) => thoughts.push_str(&piece),
        StreamEvent::TextWasThinking => thoughts.push_str(&std::mem::take(&mut text)),
        StreamEvent::HeadersReceived | StreamEvent::ToolCallDetected { .. } => {}
    };
    let outcome = read_bytes(&tools, pieces.iter().copied(), &mut sink);
    match outcome {
        Ok(response) => (None, Some(response), text, thoughts),
        Err(failure) => (Some(failure.error.message.clone()), failure.partial.map(|partial| *partial), text, thoughts),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = data.split_first() else { return };
    let pieces: Vec<&[u8]> = body.chunks(usize::from(*size).max(1)).collect();
    let cut = read(&pieces);
    let whole = read(&[body]);
    assert_eq!(cut.0, whole.0, "cuts change the failure");
    assert_eq!(cut.1, whole.1, "cuts change the answer");
    let (_, response, text, thoughts) = cut;
    if let Some(response) = response {
        assert_eq!(text, response.message.content, "the events tell another text");
        let kept = response.message.reasoning.map(|reasoning| reasoning.text).unwrap_or_default();
        assert_eq!(thoughts, kept, "the events tell other thoughts");
        let mut ids = HashSet::new();
        for call in &response.message.tool_calls {
            assert!(serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok(), "runnable without an object");
            assert!(!call.id.is_empty() && ids.insert(call.id.clone()), "ids are not unique");
        }
    }
});
