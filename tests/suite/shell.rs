//! The standalone shell, in a terminal.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::{Home, transcript};
use crate::support::mock_server::MockServer;
use crate::support::pty::{Answers, Pty, PtyOptions};

/// The end of the mode's prompt, and of the plain shell line's.
const PROMPT: &str = "❯";
const DOLLAR: &str = "$";
/// How soon a cancelled stream has to be back at the prompt.
const CANCELLED: Duration = Duration::from_millis(200);

fn with_server() -> (MockServer, Home) {
    let server = MockServer::start();
    let home = Home::with_server(&server.url());
    (server, home)
}

fn leave(mut pty: Pty) {
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    pty.assert_sane();
}

#[test]
fn a_line_is_answered_and_the_next_one_too() {
    let (server, home) = with_server();
    server.answer(Answer::says("The first answer."));
    server.answer(Answer::says("The **second** answer."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("one");
    pty.see("The first answer.");
    pty.at_prompt(PROMPT);
    pty.line("two");
    pty.see("The second answer.");
    pty.at_prompt(PROMPT);
    leave(pty);
    let said = transcript(&home.messages());
    assert!(
        said.contains("user: two\nassistant: The **second** answer.\n"),
        "{said}"
    );
}

#[test]
fn a_stream_is_shown_as_it_comes_in_a_terminal_that_is_in_its_line_mode() {
    let (server, home) = with_server();
    server.answer(
        Answer::sse()
            .text("It begins here.\n\nThen ")
            .gate("held")
            .text("it ends.")
            .finish("stop")
            .done(),
    );
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("go");
    pty.see("It begins here.");
    assert!(!pty.is_raw(), "raw during a turn");
    assert!(!pty.screen().contains("it ends"));
    server.gate("held").open();
    pty.see("Then it ends.");
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn ctrl_c_in_a_stream_is_back_at_the_prompt_at_once_and_the_next_line_works() {
    let (server, home) = with_server();
    server.answer(
        Answer::sse()
            .text("Some words.\n\n")
            .gate("held")
            .text("never")
            .finish("stop")
            .done(),
    );
    server.answer(Answer::says("Well again."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("go");
    pty.see("Some words.");
    let pressed = Instant::now();
    pty.send("\x03");
    pty.at_prompt(PROMPT);
    let took = pressed.elapsed();
    assert!(took <= CANCELLED, "{took:?}");
    pty.line("and now?");
    pty.see("Well again.");
    pty.at_prompt(PROMPT);
    server.gate("held").open();
    leave(pty);
}

#[test]
fn ctrl_c_in_a_tool_kills_it_and_comes_back() {
    let (server, home) = with_server();
    server.answer(Answer::calls(&[(
        "call_1",
        "bash",
        json!({"command": "echo started; trap '' TERM; while :; do sleep 0.05; done"}),
    )]));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("run it");
    pty.see("bash");
    pty.see("started");
    let pressed = Instant::now();
    pty.send("\x03");
    pty.at_prompt(PROMPT);
    // Two seconds between its SIGTERM and its SIGKILL, one for its output, and as in a stream.
    let took = pressed.elapsed();
    assert!(took <= Duration::from_secs(3) + CANCELLED, "{took:?}");
    leave(pty);
}

#[test]
fn a_line_typed_during_a_turn_joins_it() {
    let (server, home) = with_server();
    server.answer(
        Answer::sse()
            .text("Thinking.\n\n")
            .gate("held")
            .text("Done.")
            .finish("stop")
            .done(),
    );
    server.answer(Answer::says("With that in mind: yes."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("a question");
    pty.see("Thinking.");
    pty.send("also consider this\r");
    pty.see("queued");
    server.gate("held").open();
    pty.see("With that in mind: yes.");
    pty.at_prompt(PROMPT);
    let messages = server.request(1).json()["messages"].to_string();
    assert!(messages.contains("also consider this"), "{messages}");
    leave(pty);
}

#[test]
fn f_keys_switch_between_the_mode_and_a_shell_line_and_cd_goes_along() {
    let (server, home) = with_server();
    server.answer(Answer::says("I see."));
    std::fs::create_dir(home.project().join("inside")).unwrap();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("\x1bOP");
    pty.at_prompt(DOLLAR);
    pty.line("echo $((6 * 7)); export COLOUR=green");
    pty.see("42");
    pty.at_prompt(DOLLAR);
    pty.line("export COLOUR=green");
    pty.at_prompt(DOLLAR);
    pty.line("cd inside");
    pty.see("inside $");
    pty.send("\x1bOS");
    pty.at_prompt(PROMPT);
    pty.line("where am I?");
    pty.see("I see.");
    pty.at_prompt(PROMPT);
    let prompt = server.request(0).json()["messages"].to_string();
    assert!(prompt.contains("project/inside"), "{prompt}");
    leave(pty);
}

#[test]
fn a_pasted_text_of_several_lines_is_one_line_of_input() {
    let (server, home) = with_server();
    server.answer(Answer::says("Read."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.paste("first line\nsecond line\n\tthird");
    pty.see("third");
    assert!(server.requests().is_empty(), "a paste was taken for Enter");
    pty.send("\r");
    pty.see("Read.");
    pty.at_prompt(PROMPT);
    let messages = &server.request(0).json()["messages"];
    let text = messages.as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.ends_with("first line\nsecond line\n\tthird"), "{text:?}");
    leave(pty);
}

#[test]
fn alt_enter_and_a_backslash_go_on_in_the_next_line() {
    let (server, home) = with_server();
    server.answer(Answer::says("Read."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("one\x1b\rtwo \\\rthree\r");
    pty.see("Read.");
    pty.at_prompt(PROMPT);
    let body = server.request(0).json();
    let text = body["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.ends_with("one\ntwo \nthree"), "{text:?}");
    leave(pty);
}

#[test]
fn lines_are_remembered_over_a_restart_each_mode_its_own() {
    let (server, home) = with_server();
    server.answer_with(|_| Answer::says("Yes."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("remember the aubergine");
    pty.see("Yes.");
    pty.at_prompt(PROMPT);
    pty.send("\x1bOP");
    pty.at_prompt(DOLLAR);
    pty.line("echo shell history");
    pty.at_prompt(DOLLAR);
    // Not even an orderly end is needed.
    pty.signal(libc::SIGKILL);
    pty.end();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("\x1b[A");
    pty.see("❯ remember the aubergine");
    pty.send("\x15");
    pty.send("\x1bOP");
    pty.at_prompt(DOLLAR);
    pty.send("\x1b[A");
    pty.see("$ echo shell history");
    pty.send("\x15");
    leave(pty);
}

#[test]
fn the_conversation_goes_on_after_a_restart() {
    let (server, home) = with_server();
    server.answer_with(|_| Answer::says("Noted."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("my name is Ada");
    pty.see("Noted.");
    pty.at_prompt(PROMPT);
    leave(pty);
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("what is my name?");
    pty.see("Noted.");
    pty.at_prompt(PROMPT);
    let messages = server.request(1).json()["messages"].to_string();
    assert!(messages.contains("my name is Ada"), "{messages}");
    leave(pty);
}

#[test]
fn a_new_size_is_taken_in_at_the_prompt_and_in_a_turn() {
    let (server, home) = with_server();
    let long = "word ".repeat(40);
    server.answer(
        Answer::sse()
            .text(&format!("{long}\n\n"))
            .gate("held")
            .text(&long)
            .finish("stop")
            .done(),
    );
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.resize(24, 100);
    pty.line("go");
    pty.see("word word");
    let widest = |pty: &Pty| {
        pty.screen()
            .lines()
            .map(|line| line.trim_end().chars().count())
            .max()
            .unwrap()
    };
    pty.wait("lines of the new width", |pty| widest(pty) > 80);
    pty.resize(24, 40);
    server.gate("held").open();
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn alt_h_pages_through_the_conversation_and_comes_back_to_the_line() {
    let (server, home) = with_server();
    let long: String = (1..=80).map(|n| format!("Line number {n}.\n\n")).collect();
    server.answer(Answer::says(&long));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("count");
    pty.see("Line number 80.");
    pty.at_prompt(PROMPT);
    pty.send("half a line");
    pty.see("half a line");
    pty.send("\x1bh");
    pty.wait("the view", |pty| {
        pty.is_alternate() && pty.screen().contains("Line number")
    });
    pty.send("g");
    pty.wait("its top", |pty| pty.screen().contains("Line number 1."));
    pty.resize(10, 60);
    pty.wait("a smaller picture", |pty| {
        pty.is_alternate() && !pty.screen().contains("Line number 9.")
    });
    pty.resize(24, 80);
    pty.send("q");
    pty.wait("the first screen", |pty| !pty.is_alternate());
    pty.wait("the line as it was", |pty| pty.last_line().contains("❯ half a line"));
    pty.send("\x15");
    leave(pty);
}

#[test]
fn alt_i_says_that_the_inspector_is_not_there_yet_and_keeps_the_line() {
    let (_server, home) = with_server();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("half a line\x1bi");
    pty.see("The inspector is not there yet");
    pty.wait("the line as it was", |pty| pty.last_line().contains("❯ half a line"));
    pty.send("\x15");
    leave(pty);
}

#[test]
fn commands_are_completed_by_tab_and_hinted_while_typed() {
    let (_server, home) = with_server();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("/us");
    pty.wait("the hint", |pty| pty.last_line().contains("❯ /usage"));
    pty.send("\t");
    pty.send("\r");
    pty.wait("the command's answer", |pty| pty.screen().contains("cached"));
    pty.at_prompt(PROMPT);
    leave(pty);
}

#[test]
fn the_line_can_be_edited_in_the_users_editor() {
    let (server, home) = with_server();
    server.answer(Answer::says("Read."));
    let env = [("EDITOR", "sed -i s/wrong/right/")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.at_prompt(PROMPT);
    pty.send("the wrong word\x0f");
    pty.see("the right word");
    pty.send("\r");
    pty.see("Read.");
    assert!(
        server.request(0).json()["messages"]
            .to_string()
            .contains("the right word")
    );
    pty.at_prompt(PROMPT);
    leave(pty);
}

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
fn signals_and_the_end_of_input_leave_the_terminal_sane() {
    let (server, home) = with_server();
    server.answer_with(|_| {
        Answer::sse()
            .text("Working.\n\n")
            .gate("held")
            .text("x")
            .finish("stop")
            .done()
    });
    for (signal, in_turn) in [
        (libc::SIGTERM, false),
        (libc::SIGHUP, false),
        (libc::SIGTERM, true),
        (libc::SIGHUP, true),
    ] {
        let mut pty = Pty::shell(&home);
        pty.at_prompt(PROMPT);
        if in_turn {
            pty.line("go");
            pty.see("Working.");
        }
        pty.signal(signal);
        assert_eq!(pty.end(), 128, "{signal} {in_turn}");
        pty.assert_sane();
    }
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("/quit");
    assert_eq!(pty.end(), 0);
    pty.assert_sane();
    // In a view, too.
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.send("\x1bh");
    pty.wait("the view", Pty::is_alternate);
    pty.signal(libc::SIGTERM);
    assert_eq!(pty.end(), 128);
    pty.assert_sane();
}

#[test]
fn the_sidecar_works_as_the_core_in_the_process_does_and_may_be_killed() {
    let (server, home) = with_server();
    server.answer(Answer::says("Through the sidecar."));
    server.answer(
        Answer::sse()
            .text("Working.\n\n")
            .gate("held")
            .text("x")
            .finish("stop")
            .done(),
    );
    server.answer(Answer::says("Back again."));
    let env = [("AGENT_SMITH_CARRIER", "sidecar")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.at_prompt(PROMPT);
    pty.line("hello");
    pty.see("Through the sidecar.");
    pty.at_prompt(PROMPT);
    pty.line("go");
    pty.see("Working.");
    let child = only_child_of(pty.pid());
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    pty.see("ended");
    pty.at_prompt(PROMPT);
    pty.line("are you there?");
    pty.see("Back again.");
    pty.at_prompt(PROMPT);
    server.gate("held").open();
    leave(pty);
}

fn only_child_of(pid: u32) -> rustix::process::Pid {
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let (state, parent) = (fields.next()?, fields.next()?.parse::<u32>().ok()?);
        (parent == pid && state != "Z").then_some(number)
    });
    let children: Vec<i32> = children.collect();
    assert_eq!(children.len(), 1, "{children:?}");
    rustix::process::Pid::from_raw(children[0]).unwrap()
}

#[test]
fn a_terminal_that_answers_nothing_still_takes_lines() {
    let (server, home) = with_server();
    server.answer(Answer::says("Even here."));
    let options = PtyOptions {
        answers: Answers::None,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.see("read as they are");
    pty.line("hello");
    pty.see("Even here.");
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    pty.assert_sane();
}

#[test]
fn a_dumb_terminal_gets_text_and_nothing_else() {
    let (server, home) = with_server();
    server.answer(Answer::says("Plain **words**."));
    let env = [("TERM", "dumb")];
    let options = PtyOptions {
        env: &env,
        ..PtyOptions::default()
    };
    let mut pty = Pty::start(&home, &options);
    pty.see("agent_smith");
    pty.line("hello");
    pty.see("Plain words.");
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    let written = pty.written(0);
    assert!(!written.contains('\x1b'), "{written:?}");
    pty.assert_sane();
}

#[test]
fn no_color_means_no_color() {
    let (server, home) = with_server();
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
    let (server, home) = with_server();
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
