//! `cjson.safe`: JSON to Lua and back; failures are nil and the reason.

use mlua::serde::SerializeOptions;
use mlua::{Lua, LuaSerdeExt, Table, Value};

use super::failed;

pub(super) fn module(lua: &Lua) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    module.set("null", lua.null())?;
    module.set(
        "encode",
        lua.create_function(|lua, value: Value| {
            let encoded = lua
                .from_value::<serde_json::Value>(value)
                .map(|value| value.to_string());
            match encoded {
                Ok(text) => Ok((Value::String(lua.create_string(text)?), Value::Nil)),
                Err(error) => failed(lua, error),
            }
        })?,
    )?;
    module.set(
        "decode",
        lua.create_function(|lua, text: mlua::LuaString| {
            match serde_json::from_slice::<serde_json::Value>(&text.as_bytes()) {
                Ok(value) => {
                    let options = SerializeOptions::new().set_array_metatable(false).recursion_limit(256);
                    Ok((lua.to_value_with(&value, options)?, Value::Nil))
                }
                Err(error) => failed(lua, error),
            }
        })?,
    )?;
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_there_and_back_as_cjson_takes_them() {
        let lua = Lua::new();
        lua.globals().set("json", module(&lua).unwrap()).unwrap();
        lua.load(
            r#"
            assert(json.encode({}) == "{}")
            assert(json.encode({1, "x", true}) == '[1,"x",true]')
            assert(json.encode({a = json.null}) == '{"a":null}')
            local value = json.decode('{"list": [1, null], "text": "é", "n": 1.5}')
            assert(value.list[1] == 1 and value.list[2] == json.null and value.text == "é" and value.n == 1.5)
            local nothing, reason = json.decode("{")
            assert(nothing == nil and type(reason) == "string")
            nothing, reason = json.encode({f = print})
            assert(nothing == nil and type(reason) == "string")
            "#,
        )
        .exec()
        .unwrap();
    }
}
