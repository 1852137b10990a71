//! A mode that is written in Lua, as the rest of the host sees it.

use std::path::Path;

use mlua::{Function, Lua, LuaSerdeExt, Table, Value};

use crate::host::editor::Completion;
use crate::host::manifest::ModeDescription;
use crate::host::surroundings::Surroundings;
use crate::host::typed::Typed;
use crate::host::{modules, package, terminal};

/// The host's side of a mode.
const OBJECTS: &str = include_str!("mode.lua");

/// What came of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// What went wrong, for the user.
    pub problem: Option<String>,
    /// What the next line begins with.
    pub prefill: Option<String>,
    /// Whether the user wants to leave.
    pub leave: bool,
}

/// The Lua state with the package and the host's modules in it.
///
/// # Errors
/// Where Lua cannot be set up.
pub(super) fn state(surroundings: &Surroundings, input: &Typed, directory: Option<&Path>) -> mlua::Result<Lua> {
    let lua = Lua::new();
    modules::install(&lua, surroundings, input)?;
    package::install(&lua, directory)?;
    Ok(lua)
}

/// A mode.
pub(super) struct LuaMode {
    handle: Table,
}

impl LuaMode {
    /// Loads what the description names.
    ///
    /// # Errors
    /// Where a module is missing or raises.
    pub(super) fn new(lua: &Lua, description: &ModeDescription, more: &serde_json::Value) -> mlua::Result<Self> {
        let described = match lua.to_value(description)? {
            Value::Table(table) => table,
            _ => lua.create_table()?,
        };
        if let Value::Table(more) = lua.to_value(more)? {
            for pair in more.pairs::<Value, Value>() {
                let (key, value) = pair?;
                described.set(key, value)?;
            }
        }
        let width = lua.create_function(|_, ()| Ok(terminal::size().1))?;
        let load: Function = lua.globals().get("require")?;
        let objects: Function = lua.load(OBJECTS).set_name("=host/mode.lua").eval()?;
        Ok(Self {
            handle: objects.call((described, load, width))?,
        })
    }

    fn call<R: mlua::FromLuaMulti>(&self, name: &str, args: impl mlua::IntoLuaMulti) -> mlua::Result<R> {
        self.handle.get::<Function>(name)?.call(args)
    }

    /// The prompt as it is now.
    pub(super) fn prompt(&self) -> String {
        self.call::<mlua::LuaString>("prompt", ())
            .map(|text| lossy(&text))
            .unwrap_or_else(|_| "> ".to_owned())
    }

    /// Works on a line to its end.
    pub(super) fn run(&self, line: &str) -> Ran {
        type Outcome = (i32, Option<mlua::LuaString>, Option<mlua::LuaString>, bool, bool);
        match self.call::<Outcome>("run", line) {
            Ok((status, error, prefill, _, leave)) => Ran {
                problem: (status != 0).then(|| error.map_or_else(|| format!("status {status}"), |text| lossy(&text))),
                prefill: prefill.map(|text| lossy(&text)),
                leave,
            },
            Err(error) => Ran {
                problem: Some(error.to_string()),
                ..Ran::default()
            },
        }
    }

    /// Whether the mode wants a key combination.
    pub(super) fn takes(&self, combo: &str) -> bool {
        self.call("takes", combo).unwrap_or(false)
    }

    /// Hands a key combination over, with the line it was pressed in; gives the line as it is then.
    pub(super) fn combo(&self, combo: &str, line: &str) -> Result<String, String> {
        let line = self
            .call::<mlua::LuaString>("combo", (combo, line))
            .map_err(|error| error.to_string())?;
        Ok(lossy(&line))
    }

    /// Tells the mode that it is switched to; a sentence where it refuses.
    pub(super) fn activate(&self) -> Result<(), String> {
        match self.call::<(Value, Option<String>)>("activate", ()) {
            Ok((Value::Nil | Value::Boolean(false), problem)) => {
                Err(problem.unwrap_or_else(|| "the mode cannot be switched to".to_owned()))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Lets the mode tell what there is to tell before the first line; gives what that line begins with.
    pub(super) fn greet(&self) -> Option<String> {
        let line = self.call::<mlua::LuaString>("greet", ()).ok()?;
        Some(lossy(&line)).filter(|line| !line.is_empty())
    }

    /// How a line may go on.
    pub(super) fn complete(&self, line: &str) -> Vec<Completion> {
        let found: mlua::Result<Vec<Table>> = self.call("complete", line);
        let completion = |item: Table| {
            Some(Completion {
                start: item.get("start").ok()?,
                value: item.get("value").ok()?,
                display: item.get("display").ok().flatten(),
                hint: item.get("hint").ok().flatten(),
                suffix: item.get("suffix").ok().flatten(),
            })
        };
        found.unwrap_or_default().into_iter().filter_map(completion).collect()
    }
}

impl Clone for LuaMode {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
        }
    }
}

fn lossy(text: &mlua::LuaString) -> String {
    String::from_utf8_lossy(&text.as_bytes()).into_owned()
}
