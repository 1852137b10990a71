//! The standalone shell where the terminal can do less, or is none.

use std::process::Stdio;

use portable_pty::CommandBuilder;

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::pty::{Answers, PROMPT, Pty, PtyOptions, leave};

#[test]
fn a_terminal_that_answers_nothing_still_takes_lines() {
    let (server, home) = Home::and_server();
    server.answer(Answer::says("Even here."));
    let options = PtyOptions {
        answers: Answers::None,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.see("read as they are");
    let is_asked = |pty: &Pty| pty.last_line().trim_end().ends_with(PROMPT);
    pty.wait("the prompt", is_asked);
    pty.line("hello");
    pty.see("Even here.");
    pty.wait("the next prompt", is_asked);
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    pty.assert_sane();
}

#[test]
fn a_dumb_terminal_gets_text_and_nothing_else() {
    let (server, home) = Home::and_server();
    server.answer(Answer::says("Plain **words**."));
    let env = [("TERM", "dumb")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    let is_asked = |pty: &Pty| pty.last_line().trim_end().ends_with(PROMPT);
    pty.wait("the prompt", is_asked);
    pty.line("hello");
    pty.see("Plain words.");
    pty.wait("the next prompt", is_asked);
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    let written = pty.written(0);
    assert!(!written.contains('\x1b'), "{written:?}");
    pty.assert_sane();
}

#[test]
fn no_color_means_no_color() {
    let (server, home) = Home::and_server();
    server.answer(Answer::says("A **bold** `word`."));
    let env = [("NO_COLOR", "1")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.at_prompt(PROMPT);
    pty.line("hello");
    pty.see("bold");
    pty.at_prompt(PROMPT);
    let written = pty.written(0);
    let colored = colors_in(&written);
    assert!(colored.is_empty(), "{colored:?}");
    leave(pty);
}

/// The escape sequences that choose a colour.
fn colors_in(written: &str) -> Vec<&str> {
    let sequences = written
        .split("\x1b[")
        .skip(1)
        .filter_map(|rest| rest.split_once('m').map(|(codes, _)| codes));
    sequences
        .filter(|codes| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
        .filter(|codes| {
            codes.split(';').any(|code| {
                let code: u32 = code.parse().unwrap_or_default();
                (30..=37).contains(&code) || code == 38 || (40..=48).contains(&code) || (90..=107).contains(&code)
            })
        })
        .collect()
}

#[test]
fn without_a_terminal_lines_are_read_and_answers_printed() {
    let (server, home) = Home::and_server();
    server.answer(Answer::says("First."));
    server.answer(Answer::says("Second."));
    let mut command = home.command([] as [&str; 0]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"one\n\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let places: Vec<_> = ["First.", "Second."]
        .iter()
        .map(|word| text.find(word).unwrap())
        .collect();
    assert!(
        places.is_sorted() && !text.contains('\x1b') && !text.contains(PROMPT),
        "{text:?}"
    );
}

#[test]
fn lines_of_a_pipe_are_worked_on_one_by_one_on_a_terminal_too() {
    let (server, home) = Home::and_server();
    server.answer(Answer::says("First."));
    server.answer(Answer::says("Second."));
    let mut command = CommandBuilder::new("/bin/sh");
    command.args([
        "-c",
        "printf 'one\\ntwo\\n' | \"$0\"",
        env!("CARGO_BIN_EXE_agent-smith"),
    ]);
    command.env_clear();
    command.env("TERM", "xterm-256color");
    home.env()
        .into_iter()
        .for_each(|(name, value)| command.env(name, value));
    command.cwd(home.project());
    let mut pty = Pty::spawn(command, (24, 80), Answers::All);
    assert_eq!(pty.end(), 0);
    let asked: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.json()["messages"].as_array().unwrap().last().unwrap()["content"].to_string())
        .collect();
    assert_eq!(asked, ["\"one\"", "\"two\""], "{}", pty.screen());
    pty.assert_sane();
}

#[test]
fn ctrl_d_during_a_turn_leaves_after_it() {
    let (server, home) = Home::and_server();
    server.answer(Answer::sse().gate("held").text("Slowly.").finish("stop").done());
    let env = [("TERM", "dumb")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.see("agent_smith");
    pty.line("hello");
    server.wait_requests(1);
    pty.send("\x04");
    server.gate("held").open();
    assert_eq!(pty.end(), 0);
    assert!(pty.written(0).contains("Slowly."));
    pty.assert_sane();
}
