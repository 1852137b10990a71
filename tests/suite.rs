//! Every integration test in one binary: one file a subject under tests/suite, one `mod` line each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper of a test fails the test"
)]

#[path = "suite/store_basics.rs"]
mod store_basics;
#[path = "suite/store_kill.rs"]
mod store_kill;
#[path = "suite/store_powercut.rs"]
mod store_powercut;
#[path = "suite/store_processes.rs"]
mod store_processes;
#[path = "suite/store_repair.rs"]
mod store_repair;
#[path = "suite/store_trouble.rs"]
mod store_trouble;
#[path = "support/power.rs"]
mod support_power;
#[path = "support/store.rs"]
mod support_store;
#[path = "support/victim.rs"]
mod support_victim;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
