//! Events in a form that is the same whenever, wherever and through whatever carrier the same thing happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::home::Home;

/// Members whose value depends on the clock, on who asked, or on texts and paths that other tests are about.
const MASKED: [&str; 6] = ["ts", "duration_ms", "delay_ms", "reason", "tokens", "tools"];
/// Members that are ids, numbered by when they are first seen.
const IDS: [&str; 3] = ["turn_id", "conversation_id", "job_id"];

/// Ids by the name of their member, with the number each was given.
type Ids = BTreeMap<String, BTreeMap<String, usize>>;

/// Masks ids, times and paths, and joins neighbouring deltas of one stream.
pub fn masked(home: &Home, events: &[Value]) -> Vec<Value> {
    let mut ids = BTreeMap::new();
    let root = home.path().to_str().unwrap();
    let mut out: Vec<Value> = Vec::new();
    for event in events {
        let event = mask(event, root, &mut ids);
        match out.last_mut() {
            Some(last) if joins(last, &event) => {
                let text = format!("{}{}", text_of(last), text_of(&event));
                last["data"]["text"] = json!(text);
            }
            _ => out.push(event),
        }
    }
    out
}

/// How long something took, in the text of a record, masked.
pub fn without_times(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("after ") {
        let (before, after) = rest.split_at(at + "after ".len());
        let seconds = after
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(after.len());
        out.push_str(before);
        rest = if after[seconds..].starts_with(" s") && seconds > 0 {
            out.push_str("<time>");
            &after[seconds..]
        } else {
            after
        };
    }
    out + rest
}

fn text_of(event: &Value) -> &str {
    event["data"]["text"].as_str().unwrap()
}

fn joins(last: &Value, next: &Value) -> bool {
    let same = |member: &str| last["data"][member] == next["data"][member];
    last["type"].as_str().unwrap().ends_with("_delta")
        && last["type"] == next["type"]
        && last["turn_id"] == next["turn_id"]
        && same("call_id")
        && next["data"].get("skipped").is_none()
}

fn mask(value: &Value, root: &str, ids: &mut Ids) -> Value {
    match value {
        Value::Object(members) => {
            let masked = members.iter().map(|(name, value)| {
                let value = match value {
                    Value::String(id) if IDS.contains(&name.as_str()) => {
                        // Each kind of id by itself: Lua keeps no order of members.
                        let known = ids.entry(name.clone()).or_default();
                        let next = known.len() + 1;
                        json!(format!("<{name} {}>", known.entry(id.clone()).or_insert(next)))
                    }
                    _ if MASKED.contains(&name.as_str()) => json!("<masked>"),
                    other => mask(other, root, ids),
                };
                (name.clone(), value)
            });
            Value::Object(masked.collect::<BTreeMap<_, _>>().into_iter().collect())
        }
        // Lua has one empty table, and one kind of number.
        Value::Array(items) if items.is_empty() => json!({}),
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            format!("{:.0}", number.as_f64().unwrap())
                .parse::<i64>()
                .map_or(json!(number), |whole| json!(whole))
        }
        Value::Array(items) => items.iter().map(|item| mask(item, root, ids)).collect(),
        Value::String(text) => {
            let text = text.replace(root, "<home>");
            let port = text.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len());
            Value::String(match port {
                Some(at) => {
                    let digits = text[at..].chars().take_while(char::is_ascii_digit).count();
                    format!("{}<port>{}", &text[..at], &text[at + digits..])
                }
                None => text,
            })
        }
        other => other.clone(),
    }
}

/// One event a line: its type, then its data.
pub fn readable(events: &[Value]) -> String {
    let line = |event: &Value| format!("{} {}\n", event["type"].as_str().unwrap(), event["data"]);
    events.iter().map(line).collect()
}
