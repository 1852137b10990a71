//! t
#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
