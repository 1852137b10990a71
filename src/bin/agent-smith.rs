//! The executable: hands over to `cli`.

use std::process::ExitCode;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the executable"
)]
unsafe extern "C" {}

fn main() -> ExitCode {
    agent_smith_core::cli::main()
}
