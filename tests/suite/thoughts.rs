//! Thoughts and signatures are kept with the conversation and go back as they came, in the same run and after a resume;
//! to another model they do not.

use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::{MockServer, Recorded};

/// The messages of the assistant in a request.
fn answers_in(request: &Recorded) -> Vec<Value> {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "assistant")
        .cloned()
        .collect()
}

#[test]
fn they_go_back_unchanged_to_where_they_came_from() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    std::fs::write(home.project().join("note.txt"), "seven ships\n").unwrap();
    let details =
        json!([{"type": "reasoning.text", "index": 0, "text": "I should look.", "signature": "c2lnbmVk+/=="}]);
    let blocks = json!([{"type": "thinking", "thinking": "I should look.", "signature": "YmxvY2s="}]);
    let extra = json!({"google": {"thought_signature": "dGhvdWdodA=="}});
    let arguments = json!({"path": "note.txt"}).to_string();
    let call = json!([{"index": 0, "id": "call_1", "type": "function", "extra_content": extra,
        "function": {"name": "read", "arguments": arguments}}]);
    server
        .answer(
            Answer::sse()
                .thinking("I should look.")
                .delta(&json!({"reasoning_details": details, "thinking_blocks": blocks}), None)
                .delta(&json!({"tool_calls": call}), None)
                .finish("tool_calls")
                .done(),
        )
        .answer(
            Answer::sse()
                .thinking("Once ")
                .thinking("more.")
                .tool_call(0, "call_2", "read", &arguments)
                .finish("tool_calls")
                .done(),
        )
        .answer(Answer::says("Seven ships."))
        .answer(Answer::says("Still seven."))
        .answer(Answer::says("Seven, I hear."));
    let first = home.run(&["exec", "--json", "What does the note say?"]);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert!(first.stdout.contains("llm_thinking_delta"));
    let id = first.events().1["conversation_id"].as_str().unwrap().to_owned();
    for arguments in [&["And now?"][..], &["--model", "other", "And you?"]] {
        let ran = home.run(&[&["exec", "--conversation", &id], arguments].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }

    // Signed thoughts go back as they came; their plain copy does not go beside them.
    let sent = answers_in(&server.request(2));
    assert_eq!(sent[0]["reasoning_details"], details);
    assert_eq!(sent[0]["thinking_blocks"], blocks);
    assert_eq!(sent[0].get("reasoning_content"), None);
    assert_eq!(sent[0]["tool_calls"][0]["extra_content"], extra);
    assert_eq!(sent[0]["tool_calls"][0]["function"]["arguments"], arguments.as_str());
    // Plain ones go back under the member they came in.
    assert_eq!(sent[1]["reasoning_content"], "Once more.");
    // After the resume, from the store: the same.
    assert_eq!(answers_in(&server.request(3))[..2], sent[..]);
    // Another model gets the calls, and nothing that was sealed for the first.
    let other = answers_in(&server.request(4));
    assert_eq!(other[0]["tool_calls"][0]["id"], "call_1");
    let text = json!(other).to_string();
    assert!(!text.contains("signature") && !text.contains("Once more."), "{text}");
}
