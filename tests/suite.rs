//! The one integration binary: a file a topic below `suite/`, shared helpers below `support/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests fail as tests do; clippy.toml only knows the test functions themselves"
)]

mod support;

#[path = "suite"]
mod suite {
    mod bridge_hazards;
    mod bridge_parity;
    mod cancelling;
    mod changed_files;
    mod command_docs;
    mod command_turns;
    mod command_user;
    mod commands;
    mod completing;
    mod config_cli;
    mod config_code;
    mod config_docs;
    mod config_layers;
    mod config_merge;
    mod contract;
    mod costs;
    mod demo;
    mod doctor;
    mod embedding;
    mod exec_cassette;
    mod exec_cli;
    mod exec_disk;
    mod exec_kills;
    mod house;
    mod llm_captured;
    mod llm_cases;
    mod llm_cassette;
    mod llm_client;
    mod llm_framing;
    mod llm_history;
    mod llm_live;
    mod llm_network;
    mod llm_retry;
    mod llm_soak;
    mod lua_shim;
    mod main_job;
    mod prefix;
    mod process_bash;
    mod prompt_blocks;
    mod session_dialogs;
    mod sessions;
    mod shell;
    mod shell_config;
    mod shell_plain;
    mod shell_start;
    mod shell_terminals;
    mod sidecar_serve;
    mod store_basics;
    mod store_cli;
    mod store_kill;
    mod store_powercut;
    mod store_processes;
    mod store_repair;
    mod store_trouble;
    mod thoughts;
    mod tool_code;
    mod tool_edit_properties;
    mod tool_files;
    mod tool_git;
    mod tool_jobs;
    mod tool_replace;
    mod ui_screen;
}

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the test binary"
)]
unsafe extern "C" {}
