//! The Lua shim under a Lua of its own (Debian's `luajit`), in a strict stand-in of its host.

use std::path::Path;
use std::process::Command;

use crate::support::home::Home;
use crate::support::skip;

/// Runs test files of `tests/lua`, with these variables besides.
#[track_caller]
fn run(names: &[&str], variables: &[(&str, &Path)]) {
    let Some(luajit) = skip::find("luajit") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(luajit);
    command.arg("tests/lua/main.lua").args(names).current_dir(root);
    command.env_remove("LUA_PATH").env_remove("LUA_CPATH");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[track_caller]
fn run_over(carrier: &str) {
    let home = Home::new();
    let library = skip::core_library();
    run(
        &["shim_carriers"],
        &[
            ("HOME", home.path()),
            ("AGENT_SMITH_CORE", &library),
            ("AGENT_SMITH_BIN", Path::new(env!("CARGO_BIN_EXE_agent-smith"))),
            ("TEST_CARRIER", Path::new(carrier)),
        ],
    );
}

#[test]
fn lines_output_cancelling_steering_and_questions() {
    run(&["shim_run"], &[]);
}

#[test]
fn keys_views_and_completion() {
    run(&["shim_keys"], &[]);
}

#[test]
fn nothing_that_goes_wrong_inside_reaches_the_host() {
    run(&["shim_faults"], &[]);
}

#[test]
fn the_package_is_whole() {
    run(&["shim_package"], &[]);
}

#[test]
fn over_the_core_in_the_process_nothing_that_goes_wrong_reaches_the_host() {
    run_over("native");
}

#[test]
fn over_the_sidecar_nothing_that_goes_wrong_reaches_the_host() {
    run_over("sidecar");
}
