//! `std` and `std.core`: where the user is, the environment, files, and the handler of Ctrl-C.

use mlua::{Lua, Table, Value};

use super::failed;
use crate::host::signals;
use crate::host::surroundings::Surroundings;

pub(super) fn std(lua: &Lua, surroundings: &Surroundings) -> mlua::Result<Table> {
    let fs = lua.create_table()?;
    let place = surroundings.clone();
    fs.set(
        "cwd",
        lua.create_function(move |lua, ()| lua.create_string(place.cwd().as_os_str().as_encoded_bytes()))?,
    )?;
    fs.set(
        "read_file",
        lua.create_function(|lua, path: String| match ::std::fs::read(path) {
            Ok(bytes) => Ok((Value::String(lua.create_string(bytes)?), Value::Nil)),
            Err(error) => failed(lua, error),
        })?,
    )?;
    let module = lua.create_table()?;
    module.set("fs", fs)?;
    let variables = surroundings.clone();
    module.set(
        "environ",
        lua.create_function(move |lua, ()| {
            let environ = lua.create_table()?;
            for (name, value) in variables.env() {
                environ.set(
                    lua.create_string(name.as_encoded_bytes())?,
                    lua.create_string(value.as_encoded_bytes())?,
                )?;
            }
            Ok(environ)
        })?,
    )?;
    Ok(module)
}

pub(super) fn core(lua: &Lua) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    // SIGINT has a harmless handler throughout; what a mode puts back here is there already.
    module.set(
        "register_signal",
        lua.create_function(|_, _signal: i32| {
            signals::forget_interrupt();
            Ok(())
        })?,
    )?;
    Ok(module)
}
