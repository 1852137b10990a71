//! Values across the border: Lua tables to JSON by the rules of cjson, and anything serde knows to Lua.
//!
//! The sidecar's client encodes with the host's cjson; a table must mean the same through both carriers. So: keys that
//! are all positive whole numbers make an array (gaps become null, a mostly empty one is refused), everything else makes
//! an object, an empty table makes an object, a whole number is an integer, null is the null light userdata. Text that
//! is no UTF-8 keeps what is readable, with U+FFFD for the rest.

use mlua::serde::SerializeOptions;
use mlua::{Lua, LuaSerdeExt, Value as LuaValue};
use serde::Serialize;
use serde_json::{Map, Number, Value};

/// How deep tables may nest; deeper ones most likely refer to themselves.
const MAX_DEPTH: usize = 100;
/// An array may be this long whatever its gaps (cjson's `safe`) …
const SPARSE_SAFE: u64 = 10;
/// … and beyond that at most this many times as long as it has entries (cjson's `ratio`).
const SPARSE_RATIO: u64 = 2;
/// Up to here every whole number is a double of its own.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The JSON of a Lua value.
///
/// # Errors
/// A sentence for the programmer where the value holds what has no JSON: functions, userdata, threads, numbers that are
/// none, keys that are neither text nor numbers, tables that refer to themselves.
pub(super) fn to_json(value: &LuaValue) -> Result<Value, String> {
    json(value, 0)
}

fn json(value: &LuaValue, depth: usize) -> Result<Value, String> {
    match value {
        LuaValue::Nil => Ok(Value::Null),
        LuaValue::LightUserData(pointer) if pointer.0.is_null() => Ok(Value::Null),
        LuaValue::Boolean(boolean) => Ok(Value::Bool(*boolean)),
        LuaValue::Integer(integer) => Ok(Value::from(*integer)),
        LuaValue::Number(number) => number_to_json(*number),
        LuaValue::String(text) => Ok(Value::String(text.to_string_lossy())),
        LuaValue::Table(table) => table_to_json(table, depth),
        other => Err(format!("a {} has no place in a request", type_name(other))),
    }
}

/// The value's type as Lua's own `type` names it.
pub(super) fn type_name(value: &LuaValue) -> &'static str {
    match value {
        LuaValue::Integer(_) => "number",
        LuaValue::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}

fn number_to_json(number: f64) -> Result<Value, String> {
    if number.fract() == 0.0 && number.abs() < MAX_WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and below 2^53")]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number)
        .map(Value::Number)
        .ok_or_else(|| format!("{number} is no number that can be sent"))
}

/// A table's key.
enum Key {
    Index(u64),
    Name(String),
}

impl Key {
    fn of(value: &LuaValue) -> Result<Self, String> {
        match value {
            LuaValue::Integer(index) => Ok(match u64::try_from(*index) {
                Ok(index) if index > 0 => Self::Index(index),
                _ => Self::Name(index.to_string()),
            }),
            LuaValue::Number(number) => Ok(Self::Name(number.to_string())),
            LuaValue::String(name) => Ok(Self::Name(name.to_string_lossy())),
            other => Err(format!("a {} cannot be a key in a request", type_name(other))),
        }
    }
}

fn table_to_json(table: &mlua::Table, depth: usize) -> Result<Value, String> {
    if depth >= MAX_DEPTH {
        return Err(format!(
            "the table nests deeper than {MAX_DEPTH} levels, or refers to itself"
        ));
    }
    let mut entries = Vec::new();
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        entries.push((Key::of(&key)?, json(&value, depth + 1)?));
    }
    let longest = entries.iter().try_fold(0, |longest: u64, (key, _)| match key {
        Key::Index(index) => Some(longest.max(*index)),
        Key::Name(_) => None,
    });
    match longest {
        Some(length) if length > 0 => array(entries, length),
        _ => Ok(object(entries)),
    }
}

fn array(entries: Vec<(Key, Value)>, length: u64) -> Result<Value, String> {
    let count = entries.len() as u64;
    if length > SPARSE_SAFE && length > count.saturating_mul(SPARSE_RATIO) {
        return Err(format!(
            "a list of {length} places with only {count} values in it is too sparse"
        ));
    }
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let mut values = vec![Value::Null; length];
    for (key, value) in entries {
        if let Key::Index(index) = key
            && let Some(place) = usize::try_from(index - 1).ok().and_then(|index| values.get_mut(index))
        {
            *place = value;
        }
    }
    Ok(Value::Array(values))
}

fn object(entries: Vec<(Key, Value)>) -> Value {
    let named = entries.into_iter().map(|(key, value)| match key {
        Key::Index(index) => (index.to_string(), value),
        Key::Name(name) => (name, value),
    });
    Value::Object(named.collect::<Map<_, _>>())
}

/// The Lua value of anything serde knows: plain tables without metatables, null as the null light userdata.
pub(super) fn to_lua<T: Serialize + ?Sized>(lua: &Lua, value: &T) -> mlua::Result<LuaValue> {
    // JSON that came from a server may nest as deep as the parser lets it (128), inside an event's own levels.
    let options = SerializeOptions::new().set_array_metatable(false).recursion_limit(256);
    lua.to_value_with(value, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn eval(code: &str) -> Result<Value, String> {
        let lua = Lua::new();
        lua.globals().set("null", lua.null()).unwrap();
        to_json(&lua.load(code).eval::<LuaValue>().unwrap())
    }

    #[test]
    fn tables_become_what_cjson_makes_of_them() {
        for (code, expected) in [
            ("{}", json!({})),
            ("{1, 'x', true}", json!([1, "x", true])),
            ("{1, nil, 3}", json!([1, null, 3])),
            ("{[2] = 'x'}", json!([null, "x"])),
            ("{null}", json!([null])),
            ("{a = null, b = {}}", json!({"a": null, "b": {}})),
            ("{80, a = 1}", json!({"1": 80, "a": 1})),
            ("{[0] = 1, [1] = 2}", json!({"0": 1, "1": 2})),
            ("{[1.5] = 1}", json!({"1.5": 1})),
            ("{[-1] = 1}", json!({"-1": 1})),
            ("80.0", json!(80)),
            ("1.25", json!(1.25)),
            ("2^53", json!(9_007_199_254_740_992_u64)),
            ("-3", json!(-3)),
            ("'a\\0b'", json!("a\0b")),
            ("'caf\\195\\169 \\255!'", json!("café \u{fffd}!")),
            ("nil", json!(null)),
        ] {
            assert_eq!(eval(code).unwrap(), expected, "{code}");
        }
    }

    #[test]
    fn what_has_no_json_is_refused_with_a_reason() {
        for (code, reason) in [
            ("{f = print}", "function"),
            ("{coroutine.create(print)}", "thread"),
            ("io.stdout", "userdata"),
            ("{[true] = 1}", "boolean cannot be a key"),
            ("0/0", "no number"),
            ("{1/0}", "no number"),
            ("{[1000] = 1}", "too sparse"),
            ("(function() local t = {} t.t = t return t end)()", "refers to itself"),
        ] {
            let error = eval(code).unwrap_err();
            assert!(error.contains(reason), "{code}: {error}");
        }
    }

    #[test]
    fn events_reach_lua_as_plain_tables() {
        let lua = Lua::new();
        let value = json!({"list": [1, {"x": null}], "none": {}, "big": 1_700_000_000_123_u64, "f": 0.5, "s": "é"});
        lua.globals().set("v", to_lua(&lua, &value).unwrap()).unwrap();
        lua.globals().set("null", lua.null()).unwrap();
        lua.load(
            "assert(#v.list == 2 and v.list[1] == 1 and v.list[2].x == null and getmetatable(v.list) == nil)
             assert(next(v.none) == nil and v.big == 1700000000123 and v.f == 0.5 and v.s == 'é')",
        )
        .exec()
        .unwrap();
    }

    #[test]
    fn deep_json_of_a_server_still_reaches_lua() {
        let mut value = json!(1);
        for _ in 0..127 {
            value = json!([value]);
        }
        let lua = Lua::new();
        assert!(to_lua(&lua, &json!({"data": {"value": value}})).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (-1_i64 << 50..1 << 50).prop_map(Value::from),
            (0.1f64..1e6).prop_map(|number| json!(number.fract() + 0.5)),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..6).prop_map(Value::from),
                proptest::collection::btree_map("[a-z]{1,4}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_survives_the_way_to_lua_and_back(value in values()) {
            let lua = Lua::new();
            prop_assert_eq!(to_json(&to_lua(&lua, &value).unwrap()).unwrap(), value);
        }
    }
}
