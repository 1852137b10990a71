//! A Lua of its own for tests: Debian's `luajit`.

use std::path::PathBuf;

/// Where a developer's machine may do without, and the place that checks everything may not.
const MUST_RUN: &str = "AGENT_SMITH_TESTS_MUST_RUN";

/// The program; `None`, said loudly, where there is none and the test may be left out.
#[track_caller]
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join("luajit"))
        .find(|program| program.is_file());
    if found.is_none() {
        let must = std::env::var_os(MUST_RUN).is_some_and(|value| value == "1");
        assert!(
            !must,
            "luajit is not installed, and {MUST_RUN}=1 says this test must run"
        );
        eprintln!(
            "SKIPPED: luajit is not installed (Debian: apt-get install luajit); set {MUST_RUN}=1 to fail instead"
        );
    }
    found
}
