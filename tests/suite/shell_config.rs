//! `/config` typed in the standalone shell, in a terminal: keys, their values now, and values to set, all by Tab.

use serde_json::json;

use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::pty::{PROMPT, Pty, PtyOptions, leave};

/// A wide terminal, so that a candidate and its hint have room beside each other.
fn start(home: &Home) -> Pty {
    let options = PtyOptions {
        size: (30, 120),
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(home, &options);
    pty.at_prompt(PROMPT);
    pty
}

/// Leaves the menu and the line for an empty one.
fn again(pty: &mut Pty) {
    pty.send("\x03");
    pty.at_prompt(PROMPT);
}

#[test]
fn config_keys_values_and_hints_come_by_tab() {
    let server = MockServer::start();
    let home = Home::new();
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {"api_url": server.url(), "retry_max_retries": 5},
    }));
    let mut pty = start(&home);
    // The verbs; then the only key that begins so, and what may be set.
    pty.send("/config ");
    pty.send("\t");
    pty.see("unset");
    again(&mut pty);
    pty.send("/config set context_management.en");
    pty.send("\t");
    pty.wait("the key", |pty| {
        pty.last_line().ends_with("❯ /config set context_management.enabled")
    });
    pty.send(" f");
    pty.send("\t");
    pty.wait("the value", |pty| {
        pty.last_line()
            .ends_with("❯ /config set context_management.enabled false")
    });
    pty.send("\r");
    pty.see("context_management.enabled is now false.");
    pty.at_prompt(PROMPT);
    // Several keys: a menu of them, each with its value now and the layer that comes from.
    pty.send("/config get llm_config.retry_");
    pty.send("\t");
    pty.see("llm_config.retry_max_retries");
    pty.see("5 [user file]");
    pty.see("60000 [default]");
    again(&mut pty);
    // What was set a moment ago is what may be unset, with its value as the hint.
    pty.send("/config unset ");
    pty.send("\t");
    pty.wait("the key that is set", |pty| {
        pty.last_line().ends_with("❯ /config unset context_management.enabled")
    });
    pty.send("\r");
    pty.see("context_management.enabled is now true (default).");
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn what_may_follow_is_shown_dim_behind_the_cursor_while_typing() {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    let mut pty = start(&home);
    pty.send("/config get tool_step");
    pty.wait("the rest of the key", |pty| {
        pty.last_line().ends_with("❯ /config get tool_step_budget")
    });
    // The rest is only offered: the arrow takes it.
    pty.send("\x1b[C");
    pty.send("\r");
    pty.see("tool_step_budget is not set (unlimited)");
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn a_bad_user_file_is_told_and_the_shell_works_all_the_same() {
    let home = Home::new();
    home.configure_text("{\n  \"default_model\": 5,\n  \"tool_step_budget\": 9\n}");
    let mut pty = start(&home);
    pty.see("default_model");
    pty.see("agent_smith.json");
    pty.line("/config get tool_step_budget");
    // What of it is good holds all the same.
    pty.see("tool_step_budget = 9 (user file)");
    pty.at_prompt(PROMPT);
    pty.line("/config set default_model better");
    pty.see("default_model is now \"better\".");
    pty.at_prompt(PROMPT);
    leave(pty);
}
