//! Lines without a line editor: for dumb terminals, pipes and files.
//!
//! They are read through Lua's own standard input, as a mode reads answers to its questions: two readers of one input
//! with a buffer each would lose lines to one another.

use mlua::{Function, Lua, Table};

use crate::host::{signals, terminal};

/// Reads lines.
pub(super) struct PlainReader {
    read: Function,
}

impl PlainReader {
    /// A reader of `lua`'s standard input.
    ///
    /// # Errors
    /// Where Lua has no such thing.
    pub(super) fn new(lua: &Lua) -> mlua::Result<Self> {
        let read = lua.globals().get::<Table>("io")?.get("read")?;
        Ok(Self { read })
    }

    /// The next line; `None` at the end of the input. The prompt is shown to a person only.
    pub(super) fn read(&self, prompt: &str) -> Option<String> {
        if terminal::is_interactive() {
            terminal::write(prompt.as_bytes());
        }
        let _waiting = signals::Waiting::new();
        let line: Option<mlua::LuaString> = self.read.call("*l").ok().flatten();
        line.map(|line| {
            String::from_utf8_lossy(&line.as_bytes())
                .trim_end_matches('\r')
                .to_owned()
        })
    }
}
