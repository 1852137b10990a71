//! The answers a mock server gives: what it writes, piece by piece, and where it waits.
//!
//! Each [`Piece`] of bytes is one TCP write.

use serde_json::{Value, json};

/// One step of an answer's body.
#[derive(Clone, Debug)]
pub enum Piece {
    /// One write.
    Write(Vec<u8>),
    /// Waits until the test opens the gate of this name.
    Gate(String),
    /// Waits some milliseconds.
    Sleep(u64),
}

/// How the length of the body is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Chunked coding.
    #[default]
    Chunked,
    /// `Content-Length` of what is written.
    Length,
    /// `Content-Length` of this number, true or not.
    FalseLength(usize),
    /// Not at all: the end of the connection ends it.
    Eof,
}

/// What happens after the last piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The body ends and the connection can be used again.
    #[default]
    Clean,
    /// The body ends and the connection is closed.
    Close,
    /// The connection is closed without the body's end.
    Cut,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

/// What the server does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Takes the request and never answers.
    Hang,
    /// Resets the connection.
    Reset,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Piece>,
    pub framing: Framing,
    pub end: End,
    pub refusal: Option<Refusal>,
    model: String,
}

impl Answer {
    fn new(status: u16, content_type: &str) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            pieces: Vec::new(),
            framing: Framing::Chunked,
            end: End::Clean,
            refusal: None,
            model: "mock-model".to_owned(),
        }
    }

    /// An event stream with nothing in it yet.
    pub fn sse() -> Self {
        Self::new(200, "text/event-stream")
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        let mut answer = Self::new(status, "application/json").raw(body.to_string());
        answer.framing = Framing::Length;
        answer
    }

    /// A body of any kind.
    pub fn body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::new(status, content_type).raw(body);
        answer.framing = Framing::Length;
        answer
    }

    /// An error in the usual shape.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(
            status,
            &json!({"error": {"message": message, "type": "mock_error", "code": null}}),
        )
    }

    /// A whole streamed answer of only text, with usage.
    pub fn says(text: &str) -> Self {
        Self::sse().text(text).finish("stop").usage(10, 5).done()
    }

    /// A whole streamed answer that calls tools: `(id, name, arguments)`, with usage.
    pub fn calls(calls: &[(&str, &str, Value)]) -> Self {
        let mut answer = Self::sse();
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            answer = answer.tool_call(index, id, name, &arguments.to_string());
        }
        answer.finish("tool_calls").usage(10, 5).done()
    }

    /// A whole answer for a request that is not streamed: the assistant's message and the finish reason.
    pub fn completion(message: &Value, finish: &str) -> Self {
        Self::json(
            200,
            &json!({
                "id": "chatcmpl-mock", "object": "chat.completion", "created": 1, "model": "mock-model",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            }),
        )
    }

    /// Takes the request and never answers.
    pub fn hang() -> Self {
        let mut answer = Self::sse();
        answer.refusal = Some(Refusal::Hang);
        answer
    }

    /// Resets the connection instead of answering.
    pub fn reset() -> Self {
        let mut answer = Self::sse();
        answer.refusal = Some(Refusal::Reset);
        answer
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds one write.
    pub fn raw(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.pieces.push(Piece::Write(bytes.into()));
        self
    }

    /// Adds one event.
    pub fn event(self, payload: &Value) -> Self {
        self.raw(format!("data: {payload}\n\n"))
    }

    /// Adds an event with one choice.
    pub fn delta(self, delta: &Value, finish: Option<&str>) -> Self {
        let payload = json!({
            "id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 1, "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]
        });
        self.event(&payload)
    }

    /// Adds a piece of text.
    pub fn text(self, text: &str) -> Self {
        self.delta(&json!({"role": "assistant", "content": text}), None)
    }

    /// Adds a piece of thoughts.
    pub fn thinking(self, text: &str) -> Self {
        self.delta(&json!({"reasoning_content": text}), None)
    }

    /// Adds a whole call in one event.
    pub fn tool_call(self, index: usize, id: &str, name: &str, arguments: &str) -> Self {
        let function = json!({"name": name, "arguments": arguments});
        self.delta(
            &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
            None,
        )
    }

    /// Adds more arguments of the call at `index`.
    pub fn tool_arguments(self, index: usize, piece: &str) -> Self {
        self.delta(
            &json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            None,
        )
    }

    /// Adds the finish reason.
    pub fn finish(self, reason: &str) -> Self {
        self.delta(&json!({}), Some(reason))
    }

    /// Adds the counts.
    pub fn usage(self, prompt: u64, completion: u64) -> Self {
        let usage =
            json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
        let payload = json!({"id": "chatcmpl-mock", "model": self.model, "choices": [], "usage": usage});
        self.event(&payload)
    }

    /// Adds the sentinel.
    pub fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    /// Waits here until the test opens the gate.
    pub fn gate(mut self, name: &str) -> Self {
        self.pieces.push(Piece::Gate(name.to_owned()));
        self
    }

    /// Waits here for some milliseconds.
    pub fn sleep_ms(mut self, ms: u64) -> Self {
        self.pieces.push(Piece::Sleep(ms));
        self
    }

    /// Sets what happens after the last piece.
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Sets how the length is told.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// All bytes of the body.
    pub fn body_bytes(&self) -> Vec<u8> {
        let writes = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Write(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        writes.collect::<Vec<_>>().concat()
    }
}
