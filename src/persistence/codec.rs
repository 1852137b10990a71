//! Records to bytes and back: JSON with sorted keys, so that the same record is always the same bytes.
//!
//! Every value carries its type in the member `_type`; a value of another type, or one whose members are not valid,
//! is an error with its key and never a panic.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::StoreError;

/// The member that names a record's type.
const TYPE: &str = "_type";

/// Deepest nesting of a record. JSON that came over the wire has 128 levels at most (the parser's own limit), and a
/// record adds a few; reading needs a bound of its own, so that a damaged value cannot overflow the stack.
pub const MAX_DEPTH: usize = 256;

/// A record that lives in a keyspace.
pub trait Record: Serialize + DeserializeOwned {
    /// The keyspace, and the record's type.
    const KEYSPACE: &'static str;

    /// Its key, built from its own members.
    ///
    /// # Errors
    /// A member that cannot be part of a key.
    fn key(&self) -> Result<String, StoreError>;

    /// Checks what the type alone does not say. The text is what is wrong.
    ///
    /// # Errors
    /// What is wrong with it.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Encodes a record.
///
/// # Errors
/// A record that is not valid, or that JSON cannot hold.
pub fn encode<R: Record>(record: &R) -> Result<Vec<u8>, StoreError> {
    let key = record.key()?;
    let invalid = |detail: String| invalid::<R>(&key, detail);
    record.validate().map_err(invalid)?;
    let value = serde_json::to_value(record).map_err(|error| invalid(error.to_string()))?;
    let Value::Object(mut map) = value else {
        return Err(invalid("it is not an object".to_owned()));
    };
    if deeper_than(&map, MAX_DEPTH) {
        return Err(invalid(format!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    map.insert(TYPE.to_owned(), Value::String(R::KEYSPACE.to_owned()));
    Ok(to_sorted_bytes(&Value::Object(map)))
}

/// Decodes the record stored under `key`, and checks that it belongs there.
///
/// # Errors
/// A value that is not valid JSON, of another type, not valid, or that belongs under another key.
pub fn decode<R: Record>(key: &str, bytes: &[u8]) -> Result<R, StoreError> {
    let record = decode_unkeyed::<R>(key, bytes)?;
    let own = record.key()?;
    if own == key {
        Ok(record)
    } else {
        Err(invalid::<R>(key, format!("its members belong under {own:?}")))
    }
}

/// Decodes a record wherever it was found; its key is in its own members.
///
/// # Errors
/// A value that is not valid JSON, of another type, or not valid.
pub fn decode_anywhere<R: Record>(bytes: &[u8]) -> Result<R, StoreError> {
    let record = decode_unkeyed::<R>("?", bytes)?;
    record.key()?;
    Ok(record)
}

fn decode_unkeyed<R: Record>(key: &str, bytes: &[u8]) -> Result<R, StoreError> {
    let value = from_bytes(bytes).map_err(|detail| invalid::<R>(key, detail))?;
    let Value::Object(mut map) = value else {
        return Err(invalid::<R>(key, "it is not an object".to_owned()));
    };
    match map.shift_remove(TYPE) {
        Some(Value::String(kind)) if kind == R::KEYSPACE => {}
        Some(other) => return Err(invalid::<R>(key, format!("its type is {other}"))),
        None => return Err(invalid::<R>(key, "it has no type".to_owned())),
    }
    let record: R = serde_json::from_value(Value::Object(map)).map_err(|error| invalid::<R>(key, error.to_string()))?;
    record.validate().map_err(|detail| invalid::<R>(key, detail))?;
    Ok(record)
}

fn invalid<R: Record>(key: &str, detail: String) -> StoreError {
    StoreError::Record {
        keyspace: R::KEYSPACE,
        key: key.to_owned(),
        detail,
    }
}

/// Parses JSON of at most [`MAX_DEPTH`] levels; the error says what is wrong.
///
/// # Errors
/// Bytes that are not JSON, or nested too deep.
pub fn from_bytes(bytes: &[u8]) -> Result<Value, String> {
    // Nearly everything is within the parser's own limit.
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    if depth(bytes) > MAX_DEPTH {
        return Err(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut reader).map_err(|error| format!("not JSON: {error}"))?;
    reader.end().map_err(|error| format!("not JSON: {error}"))?;
    Ok(value)
}

/// How deep the brackets outside of texts are nested.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether an object with these members is nested deeper than `levels`.
fn deeper_than(map: &Map<String, Value>, levels: usize) -> bool {
    fn deep(value: &Value, left: usize) -> bool {
        match value {
            Value::Object(map) => left == 0 || map.values().any(|value| deep(value, left - 1)),
            Value::Array(items) => left == 0 || items.iter().any(|value| deep(value, left - 1)),
            _ => false,
        }
    }
    levels == 0 || map.values().any(|value| deep(value, levels - 1))
}

/// JSON text of `value` with the members of every object in byte order of their names.
#[must_use]
pub fn to_sorted_bytes(value: &Value) -> Vec<u8> {
    // Writing a `Value` into a `Vec` has no way to fail: its keys are strings and its numbers finite.
    serde_json::to_vec(&sorted(value)).unwrap_or_default()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut members: Vec<(&String, &Value)> = map.iter().collect();
            members.sort_by(|a, b| a.0.cmp(b.0));
            Value::Object(
                members
                    .into_iter()
                    .map(|(name, member)| (name.clone(), sorted(member)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Thing {
        id: String,
        value: Value,
    }

    impl Record for Thing {
        const KEYSPACE: &'static str = "thing";
        fn key(&self) -> Result<String, StoreError> {
            Ok(self.id.clone())
        }
        fn validate(&self) -> Result<(), String> {
            if self.id == "bad" {
                Err("bad".to_owned())
            } else {
                Ok(())
            }
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(map.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect()),
            Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(id in "[a-z]{4,9}", value in json()) {
            let thing = Thing { id, value };
            let bytes = encode(&thing).unwrap();
            prop_assert_eq!(decode::<Thing>(&thing.id, &bytes).unwrap(), thing);
        }

        #[test]
        fn the_bytes_do_not_depend_on_the_order_of_members(id in "[a-z]{4,9}", value in json()) {
            let other = Thing { id: id.clone(), value: reversed(&value) };
            prop_assert_eq!(encode(&Thing { id, value }).unwrap(), encode(&other).unwrap());
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<Thing>("k", &bytes);
        }

        #[test]
        fn a_damaged_record_is_a_record_or_an_error(value in json(), at: prop::sample::Index, with: u8) {
            let mut bytes = encode(&Thing { id: "abcd".to_owned(), value }).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = with;
            let _ = decode::<Thing>("abcd", &bytes);
            bytes.truncate(at);
            prop_assert!(decode::<Thing>("abcd", &bytes).is_err());
        }
    }

    #[test]
    fn the_wrong_type_key_or_content_is_an_error_that_names_the_key() {
        let bytes = encode(&Thing {
            id: "a".to_owned(),
            value: Value::Null,
        })
        .unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            r#"{"_type":"thing","id":"a","value":null}"#
        );
        let wrong_key = decode::<Thing>("b", &bytes).unwrap_err().to_string();
        assert!(
            wrong_key.contains("\"b\"") && wrong_key.contains("thing"),
            "{wrong_key}"
        );
        assert!(decode::<Thing>("a", br#"{"_type":"other","id":"a","value":null}"#).is_err());
        assert!(decode::<Thing>("a", br#"{"id":"a","value":null}"#).is_err());
        assert!(decode::<Thing>("a", b"[]").is_err());
        assert!(decode::<Thing>("bad", br#"{"_type":"thing","id":"bad","value":null}"#).is_err());
        assert!(
            encode(&Thing {
                id: "bad".to_owned(),
                value: Value::Null
            })
            .is_err()
        );
    }

    #[test]
    fn what_the_wire_can_nest_is_kept_and_deeper_is_refused_on_both_sides() {
        let nest = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let deep = Thing {
            id: "deep".to_owned(),
            value: nest(128),
        };
        assert_eq!(decode::<Thing>("deep", &encode(&deep).unwrap()).unwrap(), deep);
        assert!(
            encode(&Thing {
                id: "deep".to_owned(),
                value: nest(MAX_DEPTH)
            })
            .is_err()
        );
        assert!(from_bytes("[".repeat(1_000_000).as_bytes()).is_err());
    }
}
