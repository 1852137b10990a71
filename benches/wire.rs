//! What the model wire costs: parsing in MB/s, a stream of many small chunks over a socket, writing a long request,
//! and the way to the first request.
//!
//! `cargo bench --bench wire` prints a table; each figure is the median of several runs. CPU is that of the client's
//! thread alone, so that the server in this process does not count.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement fails by panicking and prints what it found"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use agent_smith_core::cancel::CancelToken;
use agent_smith_core::llm::{
    ChatRequest, Client, ClientConfig, Provider, Quirks, RequestParams, StreamEvent, read_bytes, request,
};
use agent_smith_core::message::{Message, ToolCall, ToolDefinition};
use serde_json::{Map, json};

/// Runs for each figure.
const RUNS: usize = 9;

/// Chunks of the streamed answer.
const CHUNKS: usize = 20_000;

fn main() {
    // `cargo test` builds benches too and calls them with its own arguments: then there is nothing to do.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    println!("{:<52} {:>12} {:>12}", "figure", "median", "best");
    parsing();
    streaming();
    writing();
    first_request();
}

fn report(name: &str, unit: &str, mut values: Vec<f64>, more_is_better: bool) {
    values.sort_by(f64::total_cmp);
    let best = if more_is_better {
        values[values.len() - 1]
    } else {
        values[0]
    };
    println!("{name:<52} {:>9.2} {unit} {best:>9.2} {unit}", values[values.len() / 2]);
}

fn event(delta: &serde_json::Value) -> String {
    let payload = json!({
        "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "bench-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]
    });
    format!("data: {payload}\n\n")
}

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn tools() -> Vec<ToolDefinition> {
    let tool = |number: usize| ToolDefinition {
        name: format!("tool_{number}"),
        description: "What it does and when to use it, in a few words. ".repeat(12),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}),
    };
    (0..17).map(tool).collect()
}

/// MB/s of framing, decoding and assembly together.
fn parsing() {
    let words = [
        "The lighthouse ",
        "keeper counts ",
        "seven\\n ships",
        "über 東京 ",
        "a<b ",
    ];
    let text: String = (0..CHUNKS)
        .map(|at| event(&json!({"content": words[at % words.len()]})))
        .collect();
    let mut calls = event(
        &json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "tool_0", "arguments": "{\"path\":\""}}]}),
    );
    for _ in 0..CHUNKS {
        calls += &event(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "abcd"}}]}));
    }
    calls += &event(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]}));
    let thoughts: String = (0..CHUNKS)
        .map(|at| event(&json!({"reasoning_content": words[at % words.len()]})))
        .collect();
    let long = event(&json!({"content": "abcdefghijklmnop".repeat(256 * 1024)}));
    let tools = tools();
    for (name, body, read) in [
        ("parse text, 20,000 events, reads of 8 KiB", text.clone() + END, 8192),
        ("parse text, 20,000 events, reads of 64 bytes", text + END, 64),
        ("parse a call's arguments, 20,000 events", calls + END, 8192),
        ("parse thoughts, 20,000 events", thoughts + END, 8192),
        ("parse one event of 4 MiB, reads of 8 KiB", long + END, 8192),
    ] {
        let values = (0..RUNS).map(|_| {
            let begun = Instant::now();
            let mut length = 0;
            let mut sink = |event| {
                if let StreamEvent::Text(text) = event {
                    length += text.len();
                }
            };
            read_bytes(&tools, body.as_bytes().chunks(read), &mut sink).unwrap();
            std::hint::black_box(length);
            #[expect(clippy::cast_precision_loss, reason = "a size in bytes")]
            let bytes = body.len() as f64;
            bytes / 1e6 / begun.elapsed().as_secs_f64()
        });
        report(name, "MB/s", values.collect(), true);
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

/// A server that answers each request with the same bytes, written in pieces.
fn server(pieces: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            while read_request(&mut stream) {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                for piece in &pieces {
                    if stream
                        .write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
                        .is_err()
                    {
                        break;
                    }
                }
                let _ = stream.write_all(b"0\r\n\r\n");
            }
        }
    });
    format!("http://{address}/v1")
}

fn read_request(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let Ok(count) = stream.read(&mut buffer) else {
            return false;
        };
        if count == 0 {
            return false;
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse::<usize>()
                .ok()
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return true;
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn ask(client: &Client, sink: &mut (dyn FnMut(StreamEvent) + Send)) {
    let messages = [Message::user("Go.")];
    let tools = tools();
    let params = RequestParams::default();
    let request = ChatRequest {
        model: "m",
        messages: &messages,
        tools: &tools,
        params: &params,
        stream: true,
    };
    client.chat(request, sink, &CancelToken::new_root()).await.unwrap();
}

/// A stream of many small chunks, each its own write and its own HTTP chunk.
fn streaming() {
    let mut pieces: Vec<String> = (0..CHUNKS).map(|_| event(&json!({"content": "word "}))).collect();
    pieces.push(END.to_owned());
    let client = Client::new(ClientConfig::new(server(pieces))).unwrap();
    let runtime = runtime();
    let (mut wall, mut spent, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (begun, before) = (Instant::now(), cpu());
        let mut count = 0.0;
        runtime.block_on(ask(&client, &mut |_| count += 1.0));
        wall.push(begun.elapsed().as_secs_f64() * 1e3);
        spent.push((cpu() - before).as_secs_f64() * 1e3);
        events.push(count);
    }
    report("stream 20,000 chunks over a socket, wall", "ms", wall, false);
    report("stream 20,000 chunks over a socket, CPU", "ms", spent, false);
    report("stream 20,000 chunks, events to the sink", "  ", events, false);
}

/// The body of a request after many rounds.
fn writing() {
    for rounds in [20, 100, 300] {
        let mut messages = vec![Message::system("You are an agent. ".repeat(200)), Message::user("Go.")];
        for round in 0..rounds {
            let mut assistant = Message::assistant("");
            assistant.tool_calls.push(ToolCall {
                id: format!("call_{round}"),
                name: "tool_0".to_owned(),
                arguments: format!("{{\"path\":\"src/file_{round}.rs\",\"limit\":100}}"),
                extra: Map::new(),
            });
            messages.push(assistant);
            messages.push(Message::tool(
                format!("call_{round}"),
                "tool_0",
                "a line of output\n".repeat(20),
            ));
        }
        let tools = tools();
        let params = RequestParams::default();
        let request = ChatRequest {
            model: "m",
            messages: &messages,
            tools: &tools,
            params: &params,
            stream: true,
        };
        let quirks = Quirks::default();
        let mut size = 4096;
        let values = (0..RUNS * 5).map(|_| {
            let begun = Instant::now();
            let body = request::body(&request, &quirks, "m@h", size).unwrap();
            size = body.len();
            begun.elapsed().as_secs_f64() * 1e6
        });
        let values = values.collect();
        report(
            &format!("write the request after {rounds} rounds ({size} bytes)"),
            "µs",
            values,
            false,
        );
    }
}

/// From nothing to the first answer: the client, the connection, the request, a short answer.
fn first_request() {
    let url = server(vec![event(&json!({"content": "hi"})) + END]);
    let runtime = runtime();
    let mut build = Vec::new();
    let mut first = Vec::new();
    let mut later = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let client = Client::new(ClientConfig::new(&url)).unwrap();
        build.push(begun.elapsed().as_secs_f64() * 1e3);
        runtime.block_on(ask(&client, &mut |_| {}));
        first.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        runtime.block_on(ask(&client, &mut |_| {}));
        later.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    report("make a client for a plain address", "ms", build, false);
    report("client, connection and first short answer", "ms", first, false);
    report("a short answer on the open connection", "ms", later, false);
}

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench binary"
)]
unsafe extern "C" {}
