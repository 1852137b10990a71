//! The table as JSON Schema, for editors and other programs.

use serde_json::{Map, Value, json};

use super::schema::{self, Fallback, Row, is_wildcard};

/// The JSON Schema (draft 2020-12) of the user's file. It accepts exactly what [`super::validate()`] accepts.
#[must_use]
pub fn json_schema() -> Value {
    let mut root = table(&[]);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Configuration of agent_smith");
    root
}

/// The schema of the table at a path of the rows' own segments, wildcards included.
fn table(path: &[&'static str]) -> Value {
    let mut properties = Map::new();
    let mut others = json!(false);
    for name in schema::children(path) {
        let below: Vec<&'static str> = path.iter().copied().chain([name]).collect();
        let row = schema::rows().find(|row| row.segments().eq(below.iter().copied()));
        let child = row.map_or_else(|| table(&below), key);
        if is_wildcard(name) {
            others = child;
        } else {
            properties.insert(name.to_owned(), child);
        }
    }
    let mut schema = json!({"type": "object"});
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    if others.is_object() {
        schema["propertyNames"] = json!({"minLength": 1});
    }
    schema["additionalProperties"] = others;
    schema
}

fn key(row: &Row) -> Value {
    let mut schema = row.kind.json_schema();
    schema["description"] = json!(row.doc);
    match row.fallback {
        Fallback::BuiltIn(literal) | Fallback::AtUse(literal) => schema["default"] = literal.to_value(),
        Fallback::Unset(_) => {}
    }
    if let Ok(example) = serde_json::from_str::<Value>(row.example) {
        schema["examples"] = json!([example]);
    }
    schema
}
