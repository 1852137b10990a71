//! The core of agent_smith: a tool-using coding agent that lives as a mode in a Lua-hosted shell.

pub mod bridge;
pub mod cancel;
pub mod cli;
pub mod command;
pub mod completion;
pub mod config;
pub mod conversation;
pub mod error;
pub mod host;
pub mod llm;
pub mod message;
pub mod nearest;
pub mod persistence;
pub mod process;
pub mod prompt;
pub mod protocol;
pub mod role;
pub mod runtime;
pub mod tool;
pub mod turn;
pub mod ui;

mod failpoint;
pub mod message;
pub mod nearest;
pub mod persistence;
pub mod process;
pub mod prompt;
pub mod protocol;
pub mod role;
pub mod runtime;
pub mod tool;
pub mod turn;
pub mod ui;

#[cfg(test)]
#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
