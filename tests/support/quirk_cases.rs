//! Plays the recorded quirks of real servers: each fixture becomes an answer of the mock server, write for write.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_smith_core::message::ToolDefinition;
use base64::Engine as _;
use serde_json::Value;

use super::answers::{Answer, End, Framing, Piece, Refusal};

/// The pause after each write, so that the client mostly reads each by itself.
const GAP_MS: u64 = 1;

/// One fixture.
#[derive(Clone)]
pub struct Case(pub Value);

/// The files of all fixtures, name and contents, in the order of their names.
pub fn case_files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm_quirks/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// All fixtures, by id.
pub fn cases() -> Vec<Case> {
    let files = case_files().into_iter();
    files
        .map(|(_, contents)| Case(serde_json::from_str(&contents).unwrap()))
        .collect()
}

/// The fixture called `id`.
#[track_caller]
pub fn case(id: &str) -> Case {
    cases()
        .into_iter()
        .find(|case| case.id() == id)
        .unwrap_or_else(|| panic!("no case {id}"))
}

/// The tools that cases offer.
pub fn tools(names: &Value) -> Vec<ToolDefinition> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm_quirks/tools.json");
    let all: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let wanted: Vec<&str> = names
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    all.iter()
        .map(|tool| serde_json::from_value::<ToolDefinition>(tool["function"].clone()).unwrap())
        .filter(|tool| wanted.contains(&tool.name.as_str()))
        .collect()
}

impl Case {
    pub fn id(&self) -> &str {
        self.0["id"].as_str().unwrap()
    }

    pub fn expect(&self) -> &Value {
        &self.0["expect"]
    }

    /// A number of the case's timing.
    pub fn timing(&self, key: &str) -> Option<Duration> {
        self.0["timing"][key].as_u64().map(Duration::from_millis)
    }

    /// The answer the case describes.
    pub fn answer(&self) -> Answer {
        let http = &self.0["http"];
        let mut answer = Answer::sse();
        answer.status = u16::try_from(http["status"].as_u64().unwrap_or(200)).unwrap();
        answer.headers = http["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), fill(value.as_str().unwrap())))
            .collect();
        for chunk in http["chunks"].as_array().into_iter().flatten() {
            match chunk {
                Value::String(text) => answer = answer.raw(fill(text)).sleep_ms(GAP_MS),
                object if object.get("b64").is_some() => {
                    let text = object["b64"].as_str().unwrap();
                    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
                    answer = answer.raw(bytes).sleep_ms(GAP_MS);
                }
                object if object.get("repeat").is_some() => {
                    answer = answer.raw(repeated(object)).sleep_ms(GAP_MS);
                }
                object => answer.pieces.push(Piece::Sleep(object["sleep_ms"].as_u64().unwrap())),
            }
        }
        answer.framing = match http["framing"].as_str().unwrap_or("chunked") {
            "chunked" => Framing::Chunked,
            "eof" => Framing::Eof,
            "length" => match http["content_length"].as_u64() {
                Some(length) => Framing::FalseLength(usize::try_from(length).unwrap()),
                None => Framing::Length,
            },
            other => panic!("unknown framing {other}"),
        };
        answer.end = match http["end"].as_str().unwrap_or("close") {
            "close" if http["clean_end"] == Value::Bool(false) => End::Cut,
            "close" => End::Close,
            "reset" => End::Reset,
            "hang" => End::Hang,
            other => panic!("unknown end {other}"),
        };
        answer.refusal = match http["before_headers"].as_str() {
            None => None,
            Some("hang") => Some(Refusal::Hang),
            Some("reset") => Some(Refusal::Reset),
            Some(other) => panic!("unknown refusal {other}"),
        };
        answer
    }
}

/// `{repeat, times}` as text.
pub fn repeated(object: &Value) -> String {
    let times = usize::try_from(object["times"].as_u64().unwrap()).unwrap();
    object["repeat"].as_str().unwrap().repeat(times)
}

/// Fills in `{{http_date+S}}`, `{{epoch_s+S}}` and `{{epoch_ms+MS}}`.
fn fill(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let now = SystemTime::now();
    let epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    while let Some(at) = rest.find("{{") {
        let Some(end) = rest[at..].find("}}").map(|end| at + end) else {
            break;
        };
        let filled = rest[at + 2..end].split_once('+').and_then(|(kind, number)| {
            let number: u64 = number.parse().ok()?;
            Some(match kind {
                "http_date" => httpdate::fmt_http_date(now + Duration::from_secs(number)),
                "epoch_s" => (epoch.as_secs() + number).to_string(),
                "epoch_ms" => (epoch.as_millis() + u128::from(number)).to_string(),
                _ => return None,
            })
        });
        match filled {
            Some(filled) => {
                out.push_str(&rest[..at]);
                out.push_str(&filled);
                rest = &rest[end + 2..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    out
}
