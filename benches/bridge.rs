//! What a call and an event cost a Lua host, through both carriers: `cargo bench --bench bridge`.
//!
//! A process of Debian's `luajit` polls an idle session, and types a command until its answer, an event, is there: that
//! round trip is an op and an event, so an event alone takes less. Fails where a poll costs 20 µs or more, or the median
//! round trip 1 ms or more.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench fails as a test does, and prints"
)]

use std::process::Command;

use serde_json::{Value, json};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench"
)]
unsafe extern "C" {}

/// The most an empty poll may cost, in microseconds.
const POLL_LIMIT: f64 = 20.0;
/// The most the median round trip may take, in microseconds.
const TRIP_LIMIT: f64 = 1000.0;

fn measure(carrier: &str) -> Value {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".config/lilush");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("agent_smith.json"), r#"{"default_model": "demo"}"#).unwrap();
    let executable = std::env::current_exe().unwrap();
    let plan = json!({
        "carrier": carrier,
        "library": executable.parent().unwrap().join("libagent_smith_core.so"),
        "command": env!("CARGO_BIN_EXE_agent-smith"),
        "hello": {"protocol": 1, "cwd": home.path()},
        "trips": 1000,
    });
    let plan_file = home.path().join("plan.json");
    std::fs::write(&plan_file, plan.to_string()).unwrap();
    let output = Command::new("luajit")
        .arg("benches/bridge/bench.lua")
        .arg(&plan_file)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn main() {
    println!("carrier   poll(0)   op and event: p50        p99   (µs)");
    let mut slow = Vec::new();
    for carrier in ["native", "sidecar"] {
        let figures = measure(carrier);
        let [poll, p50, p99] = ["poll0", "trip_p50", "trip_p99"].map(|name| figures[name].as_f64().unwrap());
        println!("{carrier:<8} {poll:>8.2} {p50:>19.0} {p99:>10.0}");
        if poll >= POLL_LIMIT || p50 >= TRIP_LIMIT {
            slow.push(carrier);
        }
    }
    assert!(slow.is_empty(), "too slow: {slow:?}");
}
