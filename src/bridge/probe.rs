//! Whether a shared object is the module, for a program that wants to know before a host tries.

use std::path::Path;

use mlua::{Function, Lua, Table, Value};

use crate::protocol::PROTOCOL_VERSION;

/// The module's entry, as a host asks for it.
const ENTRY: &str = "luaopen_agent_smith_core";

/// Loads the shared object into a Lua state of its own, as a host does, and gives the version it says it has. No session
/// is opened, so it starts no thread. It stays mapped until the process ends.
///
/// # Errors
/// A sentence that says why no host of this kind can use it.
pub fn load_library(library: &Path) -> Result<String, String> {
    #[expect(unsafe_code, reason = "a state that may load modules in C is what is asked about")]
    // SAFETY: the code run in it is the one line below, and the library is the one the user's own host would load.
    let lua = unsafe { Lua::unsafe_new() };
    let (protocol, version) = open(&lua, library).map_err(|error| first_line(&error.to_string()))?;
    if protocol == PROTOCOL_VERSION {
        Ok(version)
    } else {
        Err(format!(
            "it is version {version}, which speaks version {protocol} of the contract and not {PROTOCOL_VERSION}"
        ))
    }
}

/// The versions of the contract and of the module.
fn open(lua: &Lua, library: &Path) -> mlua::Result<(u32, String)> {
    let load: Function = lua.load("return package.loadlib(...)").into_function()?;
    let (opener, why): (Value, Option<String>) = load.call((library.to_string_lossy(), ENTRY))?;
    let Value::Function(opener) = opener else {
        let why = why.unwrap_or_else(|| "it cannot be loaded".to_owned());
        return Err(mlua::Error::runtime(why));
    };
    let module: Table = opener.call(())?;
    let foreign = |_| mlua::Error::runtime("it is another module");
    Ok((
        module.get("protocol").map_err(foreign)?,
        module.get("version").map_err(foreign)?,
    ))
}

fn first_line(text: &str) -> String {
    let text = text.strip_prefix("runtime error: ").unwrap_or(text);
    text.lines().next().unwrap_or("no reason given").to_owned()
}
