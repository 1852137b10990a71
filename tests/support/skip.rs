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
        let must = std::env::var_os("AGENT_SMITH_TESTS_MUST_RUN").is_some_and(|value| value == "1");
        assert!(!must, "`{program}` is not installed, and every test must run");
        // Past the harness, which keeps what passing tests print to itself.
        let note = format!(
            "\n!! SKIPPED for want of `{program}`: {}\n",
            std::panic::Location::caller()
        );
        let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
    }
    found
}

/// The shared object of this very build, beside the test's own executable.
#[track_caller]
pub fn core_library() -> PathBuf {
    let name = if cfg!(target_os = "macos") {
        "libagent_smith_core.dylib"
    } else {
        "libagent_smith_core.so"
    };
    let executable = std::env::current_exe().unwrap();
    let directories = executable.ancestors().skip(1).take(2);
    let found = directories.map(|dir: &Path| dir.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("there is no {name} beside {}", executable.display()))
}
