//! Every integration test in one binary: one file a subject under tests/suite, one `mod` line each.

#[path = "suite/process_bash.rs"]
mod process_bash;
#[path = "support/tools.rs"]
mod support_tools;
#[path = "suite/tool_code.rs"]
mod tool_code;
#[path = "suite/tool_edit_properties.rs"]
mod tool_edit_properties;
#[path = "suite/tool_files.rs"]
mod tool_files;
#[path = "suite/tool_git.rs"]
mod tool_git;
#[path = "suite/tool_jobs.rs"]
mod tool_jobs;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
