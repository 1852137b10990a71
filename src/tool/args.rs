//! Arguments as models write them: decoding with tolerance for what is plainly meant, and errors that say what to
//! write instead.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::registry::nearest;
use super::result::ToolError;
use super::spec::ToolSpec;

/// The call's JSON text as an object. Nothing at all is an empty object; an object inside a JSON string is unwrapped.
pub(super) fn decode(spec: &ToolSpec, text: &str) -> Result<Value, ToolError> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = match serde_json::from_str(text) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).unwrap_or(Value::String(inner)),
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(value) => value,
        Err(error) => {
            let cut = error.is_eof();
            let what = if cut {
                "they end in the middle: the call was cut off, try a shorter one".to_owned()
            } else {
                error.to_string()
            };
            return Err(ToolError::to_model(
                "bad_arguments",
                format!(
                    "The arguments of `{}` are not valid JSON: {what}. {}",
                    spec.name,
                    usage(spec)
                ),
            ));
        }
    };
    if value.is_object() {
        Ok(value)
    } else {
        Err(ToolError::to_model(
            "bad_arguments",
            format!(
                "The arguments of `{}` must be a JSON object. {}",
                spec.name,
                usage(spec)
            ),
        ))
    }
}

/// The arguments as `T`, after values of the wrong type that can only mean one thing were put right.
pub(super) fn parse<T: DeserializeOwned>(spec: &ToolSpec, mut args: Value) -> Result<T, ToolError> {
    if let Value::Object(members) = &mut args {
        coerce(spec, members);
    }
    serde_json::from_value(args.clone()).map_err(|error| {
        let known: Vec<&str> = properties(spec).map(|(name, _)| name).collect();
        let hint = args
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .filter(|key| !known.contains(&key.as_str()))
            .find_map(|key| Some(format!(" `{key}` may mean `{}`.", nearest(key, known.iter().copied())?)))
            .unwrap_or_default();
        ToolError::to_model(
            "bad_arguments",
            format!("`{}`: {error}.{hint} {}", spec.name, usage(spec)),
        )
    })
}

fn properties(spec: &ToolSpec) -> impl Iterator<Item = (&str, &Value)> {
    spec.schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.as_str(), schema))
}

/// `"5"` for an integer, `"true"` for a boolean, `5` for a string, `null` for something left out.
fn coerce(spec: &ToolSpec, members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    for (name, schema) in properties(spec) {
        let Some(value) = members.get_mut(name) else { continue };
        let wanted = schema.get("type").and_then(Value::as_str).unwrap_or("");
        let better = match (wanted, &*value) {
            ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
            ("integer", Value::Number(number)) if !number.is_i64() && !number.is_u64() => number
                .as_f64()
                .filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
                .and_then(|number| format!("{number:.0}").parse::<i64>().ok())
                .map(Value::from),
            ("boolean", Value::String(text)) => match text.trim() {
                "true" | "True" | "yes" => Some(Value::Bool(true)),
                "false" | "False" | "no" => Some(Value::Bool(false)),
                _ => None,
            },
            ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
            ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
            ("array", Value::String(text)) => match serde_json::from_str(text) {
                Ok(list @ Value::Array(_)) => Some(list),
                _ => Some(Value::Array(vec![Value::String(text.clone())])),
            },
            _ => None,
        };
        if let Some(better) = better {
            *value = better;
        }
    }
}

/// The arguments in one line: `Arguments: path (string, required), offset (integer).`
fn usage(spec: &ToolSpec) -> String {
    let required = spec.schema.get("required").and_then(Value::as_array);
    let list: Vec<String> = properties(spec)
        .map(|(name, schema)| {
            let kind = match schema.get("enum").and_then(Value::as_array) {
                Some(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
                None => schema.get("type").and_then(Value::as_str).unwrap_or("any").to_owned(),
            };
            let mark = if required.is_some_and(|names| names.iter().any(|required| required == name)) {
                ", required"
            } else {
                ""
            };
            format!("{name} ({kind}{mark})")
        })
        .collect();
    format!("Arguments: {}.", list.join(", "))
}
