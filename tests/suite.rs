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
#[path = "suite/store_trouble.rs"]
mod store_trouble;
#[path = "support/store.rs"]
mod support_store;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
