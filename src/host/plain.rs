//! Lines without a line editor: for dumb terminals, pipes and files.
//!
//! They are read through Lua's own standard input, as a mode reads answers to its questions and lines typed during a
//! turn: two readers of one input with a buffer each would lose lines to one another. The end of the input, which Ctrl-D at
//! a terminal tells only once, is for whoever asks next, too.

use mlua::{Function, Lua, Table};

use crate::host::{signals, terminal};

/// Makes of a function that reads one that has come to the end once and for all.
const UNTIL_THE_END: &str = "
local read = ...
local ended = false
return function(...)
	local line = not ended and read(...) or nil
	ended = line == nil
	return line
end
";

/// Reads lines.
pub(super) struct PlainReader {
    read: Function,
}

impl PlainReader {
    /// A reader of `lua`'s standard input; `is_all_there_is` where no line editor reads the terminal as well, whose own
    /// the end of the input would be.
    ///
    /// # Errors
    /// Where Lua has no such thing.
    pub(super) fn new(lua: &Lua, is_all_there_is: bool) -> mlua::Result<Self> {
        let io: Table = lua.globals().get("io")?;
        let mut read: Function = io.get("read")?;
        if is_all_there_is {
            read = lua.load(UNTIL_THE_END).set_name("=plain input").call(read)?;
            io.set("read", &read)?;
        }
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
