//! How the standalone shell begins: what it says first, a home without any file, `/setup`.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::pty::{PROMPT, Pty, leave};

#[test]
fn a_home_without_any_file_works_and_setup_connects_a_server() {
    let server = MockServer::start();
    server.on_path(
        "/v1/models",
        Answer::json(200, &json!({"data": [{"id": "tiny"}, {"id": "large"}]})),
    );
    server.answer(Answer::says("ready"));
    server.answer(Answer::says("Hello from the server."));
    let home = Home::new();
    std::fs::write(home.project().join("README.md"), "# Test project\n").unwrap();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.see("demo");
    pty.line("hello");
    // The answer may have pushed it off the screen already.
    pty.wait("the word on how to connect a server", |pty| {
        pty.written(0).contains("No model server")
    });
    pty.see("embedded model");
    pty.at_prompt(PROMPT);
    assert!(!home.config_file().exists());
    pty.line("/setup");
    // A server of the machine this runs on may be offered first.
    pty.see("Which server?");
    if pty.screen().contains("another") {
        pty.line("another");
    }
    pty.see("The address of its API");
    pty.line(&server.url());
    pty.see("Which environment variable");
    pty.line("");
    pty.see("Which model?");
    pty.line("large");
    pty.see("Written to");
    pty.at_prompt(PROMPT);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(home.config_file()).unwrap()).unwrap();
    assert_eq!(written["default_model"], "large");
    assert_eq!(written["llm_config"]["api_url"], server.url());
    pty.line("hello again");
    pty.see("Hello from the server.");
    pty.at_prompt(PROMPT);
    let last = server.requests().last().unwrap().json();
    assert_eq!(last["model"], "large");
    leave(pty);
}

#[test]
fn setup_that_is_given_up_changes_nothing() {
    let home = Home::new();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("/setup");
    pty.see("Which server?");
    pty.send("\x03");
    pty.see("Nothing was changed.");
    pty.at_prompt(PROMPT);
    assert!(!home.config_file().exists());
    leave(pty);
}

#[test]
fn setup_reads_its_answers_from_a_pipe() {
    let server = MockServer::start();
    server.on_path("/v1/models", Answer::json(200, &json!({"data": [{"id": "tiny"}]})));
    server.answer(Answer::says("ready"));
    let home = Home::new();
    let mut command = home.command([] as [&str; 0]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write;
    // "another" is taken for the address where no local server is offered, refused, and asked again.
    let answers = format!("/setup\nanother\n{}\nnone\ntiny\n", server.url());
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Written to"), "{text}");
    assert!(home.config_file().exists());
}

#[test]
fn a_mistake_in_the_configuration_is_told_before_the_first_line_and_stops_nothing() {
    let server = MockServer::start();
    server.answer(Answer::says("All the same."));
    let home = Home::new();
    home.configure(&json!({"default_modle": "x", "default_model": "mock", "llm_config": {"api_url": server.url()}}));
    let mut pty = Pty::shell(&home);
    pty.see("/help lists commands");
    pty.see("did you mean");
    pty.at_prompt(PROMPT);
    pty.line("hello");
    pty.see("All the same.");
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn a_shell_says_which_conversation_it_goes_on_with() {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Noted."));
    let home = Home::with_server(&server.url());
    let mut first = Pty::shell(&home);
    first.at_prompt(PROMPT);
    assert!(!first.screen().contains("Going on with"), "{}", first.screen());
    first.line("sort the shelf");
    first.see("Noted.");
    first.at_prompt(PROMPT);
    let mut second = Pty::shell(&home);
    second.see("open in another terminal");
    second.at_prompt(PROMPT);
    leave(second);
    leave(first);
    let mut third = Pty::shell(&home);
    third.see("(2 messages)");
    third.at_prompt(PROMPT);
    assert!(
        third.screen().contains("Going on with \u{201c}sort the"),
        "{}",
        third.screen()
    );
    leave(third);
}

#[test]
fn what_is_typed_before_the_shell_is_there_is_its_first_line() {
    let server = MockServer::start();
    server.answer(Answer::says("You were fast."));
    let home = Home::with_server(&server.url());
    let mut pty = Pty::shell(&home);
    // The terminal is taken over before anything that takes time.
    pty.wait("the terminal taken over", Pty::is_raw);
    pty.line("quick");
    pty.see("You were fast.");
    pty.at_prompt(PROMPT);
    assert_eq!(pty.screen().matches("quick").count(), 1, "{}", pty.screen());
    leave(pty);
}
