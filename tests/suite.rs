//! All integration tests, in one binary: it links once, and tests share their helpers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and may print what it measured; clippy's own exception covers only the bodies of test functions"
)]

mod support;

mod suite {
    mod llm_cases;
    mod llm_cassette;
    mod llm_client;
    mod llm_history;
    mod llm_live;
    mod llm_network;
    mod llm_retry;
    mod llm_soak;
}

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
