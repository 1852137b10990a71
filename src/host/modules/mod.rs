//! The host's modules that a mode may require: those the shim uses, as the first generation's shell has them, and no
//! more. A mode that works here asks nothing of a shell that the real one does not give.

mod json;
mod ps;
mod std_module;
mod term;

use mlua::{Lua, Table, Value};

use crate::host::surroundings::Surroundings;
use crate::host::typed::Typed;

/// Makes the modules known to `require`.
///
/// # Errors
/// Where Lua has no memory left.
pub(super) fn install(lua: &Lua, surroundings: &Surroundings, input: &Typed) -> mlua::Result<()> {
    let handles = ps::Handles::default();
    let modules: [(&str, Table); 7] = [
        ("term", term::module(lua)?),
        ("std", std_module::std(lua, surroundings)?),
        ("std.core", std_module::core(lua)?),
        ("std.ps", ps::module(lua, &handles, surroundings)?),
        ("socket", ps::socket(lua, &handles, input)?),
        ("cjson.safe", json::module(lua)?),
        ("agent_smith.core", crate::bridge::native::module(lua)?),
    ];
    let loaded: Table = lua.globals().get::<Table>("package")?.get("loaded")?;
    for (name, module) in modules {
        loaded.set(name, module)?;
    }
    let input = input.clone();
    let read = lua.create_function(move |lua, format: Option<String>| match format.as_deref() {
        None | Some("*l" | "l") => input.line().map(|line| lua.create_string(line)).transpose(),
        Some(other) => Err(mlua::Error::runtime(format!("only lines are read here, not {other:?}"))),
    })?;
    lua.globals().get::<Table>("io")?.set("read", read)?;
    // The variables are the user's, not the process's.
    let surroundings = surroundings.clone();
    let getenv = lua.create_function(move |lua, name: String| match surroundings.var(&name) {
        Some(value) => lua.create_string(value.as_encoded_bytes()).map(Value::String),
        None => Ok(Value::Nil),
    })?;
    lua.globals().get::<Table>("os")?.set("getenv", getenv)
}

/// A failure as these modules tell it: nil and the reason.
fn failed(lua: &Lua, reason: impl ToString) -> mlua::Result<(Value, Value)> {
    let reason = lua.create_string(reason.to_string())?;
    Ok((Value::Nil, Value::String(reason)))
}
