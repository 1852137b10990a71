//! The Lua shim under a Lua of its own (Debian's `luajit`), in a strict stand-in of its host.

use std::path::Path;
use std::process::Command;

use crate::support::luajit;

/// Runs test files of `tests/lua`.
#[track_caller]
fn run(names: &[&str]) {
    let Some(luajit) = luajit::program() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(luajit)
        .arg("tests/lua/main.lua")
        .args(names)
        .current_dir(root)
        .env_remove("LUA_PATH")
        .env_remove("LUA_CPATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn lines_output_cancelling_steering_and_questions() {
    run(&["shim_run"]);
}

#[test]
fn keys_views_and_completion() {
    run(&["shim_keys"]);
}

#[test]
fn nothing_that_goes_wrong_inside_reaches_the_host() {
    run(&["shim_faults"]);
}

#[test]
fn the_package_is_whole() {
    run(&["shim_package"]);
}
