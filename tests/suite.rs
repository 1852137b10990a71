//! Every integration test in one binary: one file a subject under tests/suite, one `mod` line each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do; clippy.toml only knows the test functions themselves"
)]

#[path = "suite/command_user.rs"]
mod command_user;
#[path = "suite/config_code.rs"]
mod config_code;
#[path = "suite/config_docs.rs"]
mod config_docs;
#[path = "suite/config_layers.rs"]
mod config_layers;
#[path = "suite/config_merge.rs"]
mod config_merge;
#[path = "suite/prompt_blocks.rs"]
mod prompt_blocks;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
