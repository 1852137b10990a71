//! Programs a test needs that a machine may lack. A test without them says so loudly; where every test must run (in CI)
//! it fails.

use std::path::{Path, PathBuf};

/// Where `program` is on the `PATH`. `None` only where tests may be skipped; then it was said.
#[track_caller]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        missing(&format!("`{program}`"));
    }
    found
}

/// Where the headers of a LuaJIT of the system are. `None` as for [`find`].
#[track_caller]
pub fn luajit_headers() -> Option<PathBuf> {
    let prefixes = ["/usr", "/usr/local", "/opt/homebrew"];
    let mut directories = prefixes
        .iter()
        .map(|prefix| Path::new(prefix).join("include/luajit-2.1"));
    let found = directories.find(|directory| directory.join("lua.h").is_file());
    if found.is_none() {
        missing("LuaJIT's headers (libluajit-5.1-dev)");
    }
    found
}

/// A test goes without `what`: says so, or fails.
#[track_caller]
pub fn missing(what: &str) {
    let must = std::env::var_os("AGENT_SMITH_TESTS_MUST_RUN").is_some_and(|value| value == "1");
    assert!(!must, "{what}: not installed, and every test must run");
    // Past the harness, which keeps what passing tests print to itself.
    let note = format!("\n!! SKIPPED for want of {what}: {}\n", std::panic::Location::caller());
    let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
}

/// The shared object of this very build.
#[track_caller]
pub fn core_library() -> PathBuf {
    beside_the_test(if cfg!(target_os = "macos") {
        "libagent_smith_core.dylib"
    } else {
        "libagent_smith_core.so"
    })
}

/// The archive of this very build.
#[track_caller]
pub fn core_archive() -> PathBuf {
    beside_the_test("libagent_smith_core.a")
}

/// A file of this build, which stands beside the test's own executable.
#[track_caller]
fn beside_the_test(name: &str) -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let directories = executable.ancestors().skip(1).take(2);
    let found = directories.map(|dir: &Path| dir.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("there is no {name} beside {}", executable.display()))
}
