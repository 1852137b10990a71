//! Every integration test in one binary: one file a subject under tests/suite, one `mod` line each.

#[path = "suite/config_layers.rs"]
mod config_layers;
#[path = "suite/prompt_blocks.rs"]
mod prompt_blocks;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
