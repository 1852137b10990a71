//! A Chat-Completions server that answers at once and notes when each request came and each answer went.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// When a request was complete, and when its answer had been handed to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    pub arrived: Instant,
    pub answered: Instant,
    pub bytes: usize,
}

/// What is played: tool rounds, then a text of so many chunks.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub rounds: usize,
    pub chunks: usize,
}

#[derive(Default)]
struct State {
    scenario: Option<Scenario>,
    stamps: Vec<Stamp>,
    failures: Vec<String>,
}

/// The server.
pub struct Mock {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Mock {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    pub fn play(&self, scenario: Scenario) {
        *self.state.lock().unwrap() = State {
            scenario: Some(scenario),
            ..State::default()
        };
    }

    /// The stamps of what was played; panics where a tool result did not hold its command's output.
    pub fn stamps(&self) -> Vec<Stamp> {
        let state = self.state.lock().unwrap();
        assert!(state.failures.is_empty(), "{:?}", state.failures);
        state.stamps.clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::with_capacity(256 * 1024, stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(body) = request(&mut reader) {
        let arrived = Instant::now();
        let (number, scenario) = {
            let mut state = state.lock().unwrap();
            let number = state.stamps.len();
            check(&body, number, &mut state.failures);
            (number, state.scenario.unwrap())
        };
        let answer = answer(number, scenario);
        if writer.write_all(&answer).is_err() {
            return;
        }
        let stamp = Stamp {
            arrived,
            answered: Instant::now(),
            bytes: body.len(),
        };
        state.lock().unwrap().stamps.push(stamp);
    }
}

/// The result of the round before must have come back.
fn check(body: &[u8], number: usize, failures: &mut Vec<String>) {
    if number == 0 {
        return;
    }
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    if !last.contains(&format!("round_{number}")) {
        failures.push(format!("request {number} has no result: {last}"));
    }
}

fn request(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn answer(number: usize, scenario: Scenario) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    if number < scenario.rounds {
        let call = number + 1;
        let arguments = format!("{{\\\"command\\\": \\\"echo round_{call}\\\"}}");
        let delta = format!(
            r#"{{"role":"assistant","tool_calls":[{{"index":0,"id":"call_{call}","type":"function","function":{{"name":"bash","arguments":"{arguments}"}}}}]}}"#
        );
        event(&mut out, &delta, "null");
        event(&mut out, "{}", "\"tool_calls\"");
    } else {
        for index in 0..scenario.chunks {
            let word = char::from(b'a' + u8::try_from(index % 26).unwrap());
            event(&mut out, &format!(r#"{{"content":" {word}{word}{word}"}}"#), "null");
        }
        event(&mut out, "{}", "\"stop\"");
    }
    chunk(&mut out, b"data: [DONE]\n\n");
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

fn event(out: &mut Vec<u8>, delta: &str, finish: &str) {
    let data = format!(
        "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"mock-model\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    );
    chunk(out, data.as_bytes());
}

fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}
