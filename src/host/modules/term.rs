//! `term`: the terminal.

use std::time::Duration;

use crossterm::cursor;
use crossterm::event::{self, Event};
use mlua::{Lua, Table};

use crate::host::{keys, signals, terminal};

/// How long a read of a key waits, as in the first generation's shell.
const KEY_WAIT: Duration = Duration::from_millis(100);

pub(super) fn module(lua: &Lua) -> mlua::Result<Table> {
    let term = lua.create_table()?;
    term.set(
        "write",
        lua.create_function(|_, text: mlua::LuaString| {
            terminal::write(&text.as_bytes());
            Ok(())
        })?,
    )?;
    term.set("window_size", lua.create_function(|_, ()| Ok(terminal::size()))?)?;
    term.set("is_tty", lua.create_function(|_, ()| Ok(terminal::is_tty()))?)?;
    term.set("raw_mode", lua.create_function(|_, ()| Ok(terminal::is_raw()))?)?;
    let act = |action: fn()| {
        lua.create_function(move |_, ()| {
            action();
            Ok(())
        })
    };
    term.set("set_raw_mode", act(terminal::set_raw)?)?;
    term.set("set_sane_mode", act(terminal::set_sane)?)?;
    term.set("hide_cursor", act(|| terminal::write(b"\x1b[?25l"))?)?;
    term.set(
        "show_cursor",
        act(|| {
            if terminal::is_tty() {
                terminal::write(b"\x1b[?25h")
            }
        })?,
    )?;
    term.set("install_cancel_handler", act(signals::forget_interrupt)?)?;
    term.set("remove_cancel_handler", act(signals::forget_interrupt)?)?;
    term.set(
        "check_cancel",
        lua.create_function(|_, ()| Ok(signals::take_interrupt()))?,
    )?;
    term.set(
        "cursor_position",
        lua.create_function(|_, ()| {
            let place = terminal::is_raw().then(|| cursor::position().ok()).flatten();
            Ok(place.map_or((None, None), |(col, row)| (Some(row + 1), Some(col + 1))))
        })?,
    )?;
    term.set("simple_get", lua.create_function(|_, ()| Ok(next_key()))?)?;
    term.set(
        "kitty_notify",
        lua.create_function(|_, (title, body): (String, String)| {
            terminal::write(
                format!("\x1b]99;i=1:d=0:p=title;{title}\x1b\\\x1b]99;i=1:d=1:p=body;{body}\x1b\\").as_bytes(),
            );
            Ok(())
        })?,
    )?;
    term.set(
        "alt_screen",
        lua.create_function(|lua, ()| {
            terminal::enter_alternate();
            let surface = lua.create_table()?;
            surface.set(
                "done",
                lua.create_function(|_, _this: Table| {
                    terminal::leave_alternate();
                    Ok(())
                })?,
            )?;
            Ok(surface)
        })?,
    )?;
    Ok(term)
}

/// The name of the next key; `None` after a moment without one. A program that is to end gives Ctrl-C, so that whatever
/// waits for keys comes to its end.
fn next_key() -> Option<String> {
    if signals::ending().is_some() {
        return Some("CTRL+c".to_owned());
    }
    match event::poll(KEY_WAIT) {
        Ok(true) => match event::read().ok()? {
            Event::Key(key) => keys::name_of(&key),
            _ => None,
        },
        _ => None,
    }
}
