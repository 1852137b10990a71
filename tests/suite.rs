//! The one integration binary: a file a topic below `suite/`, shared helpers below `support/`.

#[path = "suite"]
mod suite {
    mod config_layers;
    mod house;
    mod prompt_blocks;
}

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
