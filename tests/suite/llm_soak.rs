//! A soak: many streamed turns over sockets, each with a fault of some class, or none.
//!
//! The promise that is checked on each turn: what the client hands on is exactly what was sent, or a beginning of it
//! that is reported as incomplete; calls are whole or not run. A parser that is broken on purpose goes through the same
//! check and must fail it.
//!
//! `AGENT_SMITH_SOAK_TURNS` sets the number of turns, `AGENT_SMITH_SOAK_SEED` the seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent_smith_core::llm::{Client, ClientConfig, StreamEvent};
use serde_json::{Value, json};

use crate::support::answers::{Answer, End};
use crate::support::ask::{Ask, tool};
use crate::support::mock_server::MockServer;

/// Turns in an ordinary test run.
const TURNS: u64 = 300;

/// Turns that run at the same time.
const WORKERS: u64 = 8;

/// What goes wrong in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// Nothing: the answer must come whole.
    None,
    /// Reads cut anywhere, also inside characters: must come whole.
    Borders,
    /// CRLF, comments, blank lines, heartbeats, other fields: must come whole.
    Noise,
    /// No sentinel: must come whole.
    NoSentinel,
    /// The connection is reset after the finish: must come whole.
    ResetAfterFinish,
    /// Half characters cut between events: must come whole.
    HalfCharacters,
    /// The connection is reset in the middle.
    Reset,
    /// The connection is closed in the middle, without the end of the coding.
    Cut,
    /// The body ends cleanly in the middle.
    CleanEnd,
    /// The server says in the stream that it failed.
    ErrorEvent,
    /// One event is mangled.
    Mangled,
    /// The stream goes silent.
    Stall,
    /// The server refuses.
    Refusal,
    /// The tokens run out inside the call.
    Length,
}

const FAULTS: [Fault; 14] = [
    Fault::None,
    Fault::Borders,
    Fault::Noise,
    Fault::NoSentinel,
    Fault::ResetAfterFinish,
    Fault::HalfCharacters,
    Fault::Reset,
    Fault::Cut,
    Fault::CleanEnd,
    Fault::ErrorEvent,
    Fault::Mangled,
    Fault::Stall,
    Fault::Refusal,
    Fault::Length,
];

impl Fault {
    fn comes_whole(self) -> bool {
        matches!(
            self,
            Self::None | Self::Borders | Self::Noise | Self::NoSentinel | Self::ResetAfterFinish | Self::HalfCharacters
        )
    }
}

/// A small generator of random numbers (SplitMix64), so that a seed gives the same turns everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What is sent in one turn.
#[derive(Clone, Debug, Default)]
struct Sent {
    text: String,
    thoughts: String,
    /// The arguments of each call, whole.
    calls: Vec<String>,
}

/// What a client made of it.
#[derive(Clone, Debug, Default)]
struct Got {
    text: String,
    thoughts: String,
    calls: Vec<String>,
    incomplete: Vec<String>,
    /// Whether it says that the answer is complete.
    complete: bool,
}

/// One turn: the events to send, what they say, and what goes wrong.
struct Turn {
    fault: Fault,
    sent: Sent,
    events: Vec<String>,
}

const WORDS: [&str; 12] = [
    "lighthouse ",
    "über ",
    "東京 ",
    "👋🏽 ",
    "a\nb ",
    "\"quoted\" ",
    "data: [DONE] ",
    "\u{2028}",
    "<tool",
    "[x] ",
    "` ",
    "\\u00e9 ",
];

fn turn(random: &mut Random, fault: Fault) -> Turn {
    let mut sent = Sent::default();
    let mut events = Vec::new();
    let event = |delta: Value, finish: Option<&str>| {
        let payload = json!({"id": "soak", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {payload}\n\n")
    };
    for _ in 0..random.below(4) {
        let word = *random.pick(&WORDS);
        sent.thoughts.push_str(word);
        events.push(event(json!({"reasoning_content": word}), None));
    }
    for _ in 0..3 + random.below(20) {
        let word = *random.pick(&WORDS);
        sent.text.push_str(word);
        if fault == Fault::HalfCharacters && word.starts_with('👋') {
            // The escapes of the two halves, in two events; then the rest of the word.
            for half in ["\\ud83d", "\\udc4b"] {
                events.push(format!(
                    "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{half}\"}}}}]}}\n\n"
                ));
            }
            events.push(event(json!({"content": &word['👋'.len_utf8()..]}), None));
        } else {
            events.push(event(json!({"content": word}), None));
        }
    }
    let calls = if fault == Fault::Length { 1 } else { random.below(3) };
    for index in 0..calls {
        let arguments = json!({"path": random.pick(&WORDS), "n": random.below(1000)}).to_string();
        let id = format!("call_{index}");
        events.push(event(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "look", "arguments": ""}}]}),
            None,
        ));
        let characters: Vec<char> = arguments.chars().collect();
        for piece in characters.chunks(1 + random.below(6)) {
            let piece: String = piece.iter().collect();
            events.push(event(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                None,
            ));
        }
        sent.calls.push(arguments);
    }
    if fault == Fault::Length {
        // The last piece of the arguments is not sent.
        events.pop();
        events.push(event(json!({}), Some("length")));
    } else {
        events.push(event(json!({}), Some(if calls > 0 { "tool_calls" } else { "stop" })));
    }
    Turn { fault, sent, events }
}

/// The bytes of a turn as the server writes them.
fn writes(turn: &Turn, random: &mut Random) -> (Vec<Vec<u8>>, End) {
    let mut events = turn.events.clone();
    let done = "data: [DONE]\n\n".to_owned();
    // Somewhere before the finish, with something after it lost.
    let middle = random.below(events.len() - 1);
    let mut end = End::Clean;
    match turn.fault {
        Fault::None | Fault::Borders | Fault::Noise | Fault::HalfCharacters | Fault::Length => events.push(done),
        Fault::NoSentinel => {}
        Fault::ResetAfterFinish => end = End::Reset,
        Fault::Reset | Fault::Cut | Fault::CleanEnd | Fault::Stall => {
            events.truncate(middle);
            if random.below(2) == 0 {
                // Half an event more.
                let half = &turn.events[middle];
                let at = (1..half.len() - 4).nth(random.below(half.len() - 5)).unwrap();
                let at = (0..=at).rev().find(|at| half.is_char_boundary(*at)).unwrap();
                events.push(half[..at].to_owned());
            }
            end = match turn.fault {
                Fault::Reset => End::Reset,
                Fault::Cut => End::Cut,
                Fault::Stall => End::Hang,
                _ => End::Clean,
            };
        }
        Fault::ErrorEvent => {
            events.truncate(middle);
            events.push("data: {\"error\":{\"message\":\"Lost.\",\"code\":502}}\n\n".to_owned());
            events.push(done);
        }
        Fault::Mangled => {
            let event = &events[middle];
            let at = event.find("\"delta\"").unwrap() + 3;
            events[middle] = format!("{}{}", &event[..at], &events[(middle + 1).min(events.len() - 1)]);
            events.push(done);
        }
        Fault::Refusal => {}
    }
    if turn.fault == Fault::Noise {
        let noise = [
            ": ping\n\n",
            "\n\n",
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "data:\n\n",
            "id: 7\nretry: 10\n",
        ];
        let mut noisy = Vec::new();
        for event in events {
            if random.below(2) == 0 {
                noisy.push((*random.pick(&noise)).to_owned());
            }
            noisy.push(if random.below(2) == 0 {
                event.replace('\n', "\r\n")
            } else {
                event
            });
        }
        events = noisy;
    }
    if turn.fault == Fault::Borders {
        let bytes = events.concat().into_bytes();
        let mut writes = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (write, tail) = rest.split_at((1 + random.below(90)).min(rest.len()));
            writes.push(write.to_vec());
            rest = tail;
        }
        return (writes, end);
    }
    (events.into_iter().map(String::into_bytes).collect(), end)
}

/// What is wrong with an outcome, if anything.
fn wrong(turn: &Turn, got: &Got) -> Option<String> {
    let sent = &turn.sent;
    let begins = sent.text.starts_with(&got.text) && sent.thoughts.starts_with(&got.thoughts);
    if !begins {
        return Some("shows what was not sent".to_owned());
    }
    let whole = sent.text == got.text && sent.thoughts == got.thoughts && sent.calls == got.calls;
    if turn.fault.comes_whole() && !(got.complete && whole) {
        return Some("loses a part of a good answer".to_owned());
    }
    if !turn.fault.comes_whole() && got.complete && !whole {
        // Cut by a limit is told by the finish reason, and the call is reported.
        let told = turn.fault == Fault::Length && got.incomplete.len() == 1 && sent.text == got.text;
        if !told {
            return Some("passes a part for the whole".to_owned());
        }
    }
    if got.calls.iter().any(|call| !sent.calls.contains(call)) {
        return Some("runs a call that was not sent".to_owned());
    }
    let begun = |raw: &String| sent.calls.iter().any(|call| call.starts_with(raw.as_str()));
    if !got.incomplete.iter().all(begun) {
        return Some("reports a call that was not sent".to_owned());
    }
    None
}

/// The client's outcome of a turn.
async fn run(turn: &Turn, random: &mut Random, server: &MockServer, client: &Client) -> Got {
    let (writes, end) = writes(turn, random);
    let mut answer = Answer::sse().end(end);
    if turn.fault == Fault::Refusal {
        answer = Answer::error(*random.pick(&[400, 401, 429, 500, 503, 529]), "Refused.");
    } else {
        for write in writes {
            answer = answer.raw(write);
        }
    }
    server.answer(answer);
    let ask = Ask {
        tools: vec![tool("look")],
        ..Ask::default()
    };
    let mut shown = String::new();
    let outcome = ask
        .telling(client, |event| {
            if let StreamEvent::Text(text) = event {
                shown.push_str(&text);
            }
        })
        .await;
    let (response, complete) = match outcome {
        Ok(response) => (Some(response), true),
        Err(failure) => (failure.partial.map(|partial| *partial), false),
    };
    let Some(response) = response else {
        return Got::default();
    };
    assert_eq!(
        shown, response.message.content,
        "the events tell another text than the answer"
    );
    Got {
        complete,
        thoughts: response
            .message
            .reasoning
            .map(|reasoning| reasoning.text)
            .unwrap_or_default(),
        calls: response
            .message
            .tool_calls
            .into_iter()
            .map(|call| call.arguments)
            .collect(),
        incomplete: response
            .incomplete_calls
            .into_iter()
            .map(|call| call.arguments_raw)
            .collect(),
        text: response.message.content,
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_turn_is_whole_or_says_that_it_is_not() {
    let turns = setting("AGENT_SMITH_SOAK_TURNS", TURNS);
    let seed = setting("AGENT_SMITH_SOAK_SEED", 1);
    let workers = (0..WORKERS).map(|worker| {
        tokio::spawn(async move {
            let server = Arc::new(MockServer::start());
            let mut config = ClientConfig::new(server.url());
            config.timeouts.stream_stall = Duration::from_millis(150);
            let client = Client::new(config).unwrap();
            let mut counts: BTreeMap<Fault, (u32, u32)> = BTreeMap::new();
            let mut problems = Vec::new();
            for number in (worker..turns).step_by(usize::try_from(WORKERS).unwrap()) {
                let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number));
                let fault = FAULTS[usize::try_from(number).unwrap() / 8 % FAULTS.len()];
                let turn = turn(&mut random, fault);
                let got = run(&turn, &mut random, &server, &client).await;
                let count = counts.entry(fault).or_default();
                count.0 += 1;
                count.1 += u32::from(got.complete);
                if let Some(why) = wrong(&turn, &got) {
                    problems.push(format!(
                        "turn {number} ({fault:?}) {why}:\n  sent {:?}\n  got {got:?}",
                        turn.sent
                    ));
                }
            }
            (counts, problems)
        })
    });
    let mut counts: BTreeMap<Fault, (u32, u32)> = BTreeMap::new();
    let mut problems = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        let (some, bad) = worker.await.unwrap();
        for (fault, (turns, complete)) in some {
            let count = counts.entry(fault).or_default();
            count.0 += turns;
            count.1 += complete;
        }
        problems.extend(bad);
    }
    println!("{turns} turns, seed {seed}: {} wrong", problems.len());
    for (fault, (turns, complete)) in &counts {
        println!(
            "  {:<18} {turns:>6} turns, {complete:>6} complete",
            format!("{fault:?}")
        );
    }
    assert!(
        problems.is_empty(),
        "{} turns are wrong\n{}",
        problems.len(),
        problems.join("\n")
    );
    assert!(counts.values().all(|(turns, _)| *turns > 0) || turns < 8 * 14);
}

/// A parser as it is often written: it splits what each read brings, skips what it cannot read, and takes the end of
/// the body for the end of the answer.
fn broken_parser(writes: &[Vec<u8>]) -> Got {
    let mut got = Got {
        complete: true,
        ..Got::default()
    };
    let mut calls: BTreeMap<u64, String> = BTreeMap::new();
    for write in writes {
        for line in String::from_utf8_lossy(write).lines() {
            let Some(payload) = line.strip_prefix("data: ") else {
                continue;
            };
            let Ok(chunk) = serde_json::from_str::<Value>(payload) else {
                continue;
            };
            let delta = &chunk["choices"][0]["delta"];
            got.text.push_str(delta["content"].as_str().unwrap_or_default());
            got.thoughts
                .push_str(delta["reasoning_content"].as_str().unwrap_or_default());
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                calls
                    .entry(call["index"].as_u64().unwrap_or(0))
                    .or_default()
                    .push_str(arguments);
            }
        }
    }
    got.calls = calls.into_values().collect();
    got
}

#[test]
fn the_check_finds_a_broken_parser() {
    let mut found: BTreeMap<Fault, u32> = BTreeMap::new();
    for number in 0..u64::try_from(FAULTS.len()).unwrap() * 20 {
        let mut random = Random(number);
        let fault = FAULTS[usize::try_from(number).unwrap() % FAULTS.len()];
        let turn = turn(&mut random, fault);
        let (writes, _) = writes(&turn, &mut random);
        if fault != Fault::Refusal && wrong(&turn, &broken_parser(&writes)).is_some() {
            *found.entry(fault).or_default() += 1;
        }
    }
    println!("the broken parser fails: {found:?}");
    // What a naive parser does well, and what it must be caught at.
    assert_eq!(found.get(&Fault::None), None);
    for fault in [
        Fault::Borders,
        Fault::HalfCharacters,
        Fault::Reset,
        Fault::Cut,
        Fault::CleanEnd,
        Fault::ErrorEvent,
        Fault::Mangled,
        Fault::Stall,
        Fault::Length,
    ] {
        assert!(found.contains_key(&fault), "{fault:?} is not found: {found:?}");
    }
}
