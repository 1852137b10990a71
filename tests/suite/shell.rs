//! The standalone shell, in a terminal.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, transcript};
use crate::support::pty::{PROMPT, Pty, PtyOptions, leave};

/// The end of the plain shell line's prompt.
const DOLLAR: &str = "$";
/// How soon a cancelled stream has to be back at the prompt.
const CANCELLED: Duration = Duration::from_millis(200);

#[test]
fn a_line_is_answered_and_the_next_one_too() {
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
    // A machine that is busy with something else may hold up one of them, not all.
    const ATTEMPTS: usize = 5;
    let (server, home) = Home::and_server();
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    let mut fastest = Duration::MAX;
    for attempt in 0..ATTEMPTS {
        let words = format!("Some words, {attempt}.");
        server.answer(
            Answer::sse()
                .text(&format!("{words}\n\n"))
                .gate("held")
                .text("never")
                .finish("stop")
                .done(),
        );
        pty.line("go");
        pty.see(&words);
        let pressed = Instant::now();
        pty.send("\x03");
        pty.at_prompt(PROMPT);
        fastest = fastest.min(pressed.elapsed());
        if fastest <= CANCELLED {
            break;
        }
    }
    assert!(fastest <= CANCELLED, "{fastest:?}");
    server.answer(Answer::says("Well again."));
    pty.line("and now?");
    pty.see("Well again.");
    pty.at_prompt(PROMPT);
    server.gate("held").open();
    leave(pty);
}

#[test]
fn ctrl_c_in_a_tool_kills_it_and_comes_back() {
    let (server, home) = Home::and_server();
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
    assert!(!pty.is_raw(), "raw while a tool runs");
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
    let (server, home) = Home::and_server();
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
fn what_is_typed_just_before_a_turn_begins_holds_nothing_up_and_is_there_after_it() {
    let (server, home) = Home::and_server();
    server.answer(
        Answer::sse()
            .text("Shown at once.\n\n")
            .gate("held")
            .text("Done.")
            .finish("stop")
            .done(),
    );
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    // In one piece: the second line's beginning, and a late answer to a question, are there before the terminal is back
    // in its line mode.
    pty.send("go\rand th\x1b[2;1R");
    pty.see("Shown at once.");
    server.gate("held").open();
    pty.see("Done.");
    pty.wait("the line at the prompt", |pty| pty.last_line().contains("❯ and th"));
    pty.send("\x15");
    leave(pty);
}

#[test]
fn f_keys_switch_between_the_mode_and_a_shell_line_and_cd_goes_along() {
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
    server.answer_with(|_| Answer::says("Yes."));
    let mut pty = Pty::shell(&home);
    pty.at_prompt(PROMPT);
    pty.line("remember the aubergine");
    pty.see("Yes.");
    pty.at_prompt(PROMPT);
    pty.send("\x1bOP");
    pty.at_prompt(DOLLAR);
    pty.line("echo shell history");
    pty.wait("its output", |pty| pty.screen().matches("shell history").count() == 2);
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
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
    let before = pty.raw.len();
    pty.send("q");
    pty.wait("the first screen", |pty| !pty.is_alternate());
    // The first screen still shows the line as it was before the view; that it is edited again shows in what the editor
    // asks of the terminal.
    pty.wait("the editor", |pty| {
        let written = pty.written(before);
        let behind_view = written.rsplit_once("\x1b[?1049l");
        behind_view.is_some_and(|(_, behind)| behind.contains("\x1b[?2004h"))
    });
    pty.wait("the line as it was", |pty| pty.last_line().contains("❯ half a line"));
    pty.send("\x15");
    leave(pty);
}

#[test]
fn alt_i_says_that_the_inspector_is_not_there_yet_and_keeps_the_line() {
    let (_server, home) = Home::and_server();
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
    let (_server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
fn signals_and_the_end_of_input_leave_the_terminal_sane() {
    let (server, home) = Home::and_server();
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
    let (server, home) = Home::and_server();
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
