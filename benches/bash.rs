//! What a `bash` call costs over `bash` itself: medians of many calls of `echo x`.
//!
//! `cargo bench --bench bash`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and stops where it cannot go on"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent_smith_core::message::ToolCall;
use agent_smith_core::process::Environment;
use agent_smith_core::role::Role;
use agent_smith_core::tool::{Registry, ToolContext, execute};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench binary"
)]
unsafe extern "C" {}

const ROUNDS: usize = 500;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let registry = Registry::builtin();
    let ctx = ToolContext::new(Role::Direct, "/tmp".into(), Environment::capture());
    let call = ToolCall {
        id: "c".to_owned(),
        name: "bash".to_owned(),
        arguments: r#"{"command":"echo x"}"#.to_owned(),
        extra: serde_json::Map::new(),
    };
    let (mut plain, mut tool) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let output = Command::new("/usr/bin/bash")
            .args(["-c", "echo x"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        plain.push(started.elapsed());
        assert_eq!(output.stdout, b"x\n");
        let started = Instant::now();
        let result = runtime.block_on(execute(&registry, &call, &ctx));
        tool.push(started.elapsed());
        assert_eq!(result.content, "x\n");
    }
    let (plain, tool) = (median(plain), median(tool));
    println!("std::process, bash -c 'echo x': {plain:?}");
    println!("the bash tool, the same:        {tool:?}");
    println!("difference:                     {:?}", tool.saturating_sub(plain));
}
