//! The core of agent_smith: a tool-using coding agent that lives as a mode in a Lua-hosted shell.
//!
//! # The map
//!
//! | room | what lives there |
//! |---|---|
//! | [`protocol`] | ops in, events out: the whole contract of every carrier |
//! | [`error`], [`cancel`], [`message`], [`nearest`] | what every room shares |
//! | [`llm`], [`process`], [`persistence`], [`config`], [`role`], [`ui`] | leaves that do not know each other |
//! | [`tool`], [`conversation`], [`prompt`], [`command`], [`completion`] | built on the leaves |
//! | [`turn`] | the engine: one turn's loop |
//! | [`runtime`] | sessions, their actor, the ten services |
//! | [`bridge`], [`host`], [`cli`] | carriers: the Lua module and the sidecar, the standalone shell, the command line |
//!
//! A typed line becomes an op, the session's actor makes it a command or a turn, the turn asks the model and runs tools in
//! a loop with each finished round durable before the next request, and everything is told as events in a bounded queue
//! that the client polls. Below the bridge there is no Lua. Who may use whom is in docs/ARCHITECTURE.md, and
//! tests/suite/house.rs fails on a breach.

pub mod bridge;
pub mod cancel;
pub mod cli;
pub mod command;
pub mod completion;
pub mod config;
pub mod conversation;
pub mod error;
mod failpoint;
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

#[cfg(test)]
#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
