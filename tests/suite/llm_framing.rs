//! However an answer is framed and cut, it is the same answer.

use agent_smith_core::llm::{ChatResponse, StreamEvent, read_bytes};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::ask::tool;

/// How the events of a stream are written.
#[derive(Clone, Debug)]
struct Framing {
    line_end: &'static str,
    mark: bool,
    space: bool,
    /// The payload as several data lines.
    many_lines: bool,
    /// What stands before each event.
    noise: Vec<&'static str>,
    sentinel: bool,
    /// A blank line after the last event.
    closed: bool,
    /// Into how large pieces the bytes are cut.
    cut: usize,
}

const NOISE: [&str; 7] = [
    "",
    ": ping\n\n",
    ":\n",
    "event: message\n",
    "id: 7\nretry: 10\n",
    "data:\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
];

fn framings() -> impl Strategy<Value = Framing> {
    let line_ends = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let noise = prop::collection::vec(prop::sample::select(NOISE.to_vec()), 1..5);
    let flags = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (line_ends, noise, flags, 1..200_usize).prop_map(|(line_end, noise, flags, cut)| Framing {
        line_end,
        mark: flags.0,
        space: flags.1,
        many_lines: flags.2,
        noise,
        sentinel: flags.3,
        closed: flags.4,
        cut,
    })
}

impl Framing {
    fn bytes(&self, payloads: &[Value]) -> Vec<u8> {
        let mut text = String::new();
        let colon = if self.space { "data: " } else { "data:" };
        for (at, payload) in payloads.iter().enumerate() {
            text.push_str(self.noise[at % self.noise.len()]);
            let json = if self.many_lines {
                serde_json::to_string_pretty(payload).unwrap()
            } else {
                payload.to_string()
            };
            for line in json.lines() {
                text.push_str(&format!("{colon}{line}\n"));
            }
            text.push('\n');
        }
        if self.sentinel {
            text.push_str(&format!("{colon}[DONE]\n\n"));
        }
        if !self.closed {
            text.truncate(text.trim_end().len());
        }
        let text = text.replace('\n', self.line_end);
        let mark = if self.mark { "\u{feff}" } else { "" };
        format!("{mark}{text}").into_bytes()
    }
}

/// The payloads of an answer: thoughts, text, a call in pieces, the finish, the counts.
fn payloads(texts: &[String], arguments: Option<&str>) -> Vec<Value> {
    let chunk = |delta: Value, finish: Option<&str>| json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut out = vec![chunk(json!({"reasoning_content": "Hm."}), None)];
    out.extend(texts.iter().map(|text| chunk(json!({"content": text}), None)));
    if let Some(value) = arguments {
        let arguments = json!({"path": value}).to_string();
        let middle = (0..=arguments.len() / 2)
            .rev()
            .find(|at| arguments.is_char_boundary(*at));
        let (head, tail) = arguments.split_at(middle.unwrap());
        let call = |function: Value| json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]});
        out.push(chunk(call(json!({"name": "look", "arguments": head})), None));
        out.push(chunk(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": tail}}]}),
            None,
        ));
    }
    out.push(chunk(
        json!({}),
        Some(if arguments.is_some() { "tool_calls" } else { "stop" }),
    ));
    out.push(json!({"id": "r", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}));
    out
}

/// The answer, and the text its events tell.
fn read(bytes: &[u8], cut: usize) -> (ChatResponse, String) {
    let mut told = String::new();
    let mut sink = |event| {
        if let StreamEvent::Text(text) = event {
            told.push_str(&text);
        }
    };
    let outcome = read_bytes(&[tool("look")], bytes.chunks(cut), &mut sink);
    (outcome.unwrap_or_else(|failure| panic!("{failure}")), told)
}

proptest! {
    #[test]
    fn framing_and_cuts_do_not_matter(
        framing in framings(),
        texts in prop::collection::vec("[a-zé東👋 \\n\\r\"\\\\:\u{2028}]{0,12}", 1..6),
        arguments in prop::option::of("[a-zé👋\\n\"\\\\]{0,9}"),
    ) {
        let payloads = payloads(&texts, arguments.as_deref());
        let (response, told) = read(&framing.bytes(&payloads), framing.cut);
        prop_assert_eq!(&response.message.content, &texts.concat());
        prop_assert_eq!(&told, &response.message.content);
        prop_assert_eq!(&response.message.reasoning.unwrap().text, "Hm.");
        let calls: Vec<_> = response.message.tool_calls.iter().map(|call| call.arguments.clone()).collect();
        let wanted: Vec<_> = arguments.iter().map(|value| json!({"path": value}).to_string()).collect();
        prop_assert_eq!(calls, wanted);
        prop_assert_eq!(response.usage.unwrap().completion_tokens, 4);
    }
}

#[test]
fn a_line_of_a_megabyte_is_a_line() {
    let long = "seven ships and ü ".repeat(60_000);
    let framing = Framing {
        line_end: "\r\n",
        mark: true,
        space: false,
        many_lines: false,
        noise: vec![": ping\n\n"],
        sentinel: true,
        closed: true,
        cut: 1399,
    };
    let bytes = framing.bytes(&payloads(std::slice::from_ref(&long), None));
    assert!(bytes.len() > 1 << 20);
    assert_eq!(read(&bytes, framing.cut).0.message.content, long);
}
