//! Several shells in one project: each works in a conversation of its own, and a dead one frees what it had.

use agent_smith_core::persistence::{LiveTerminal, Store, StoreOptions};

use crate::support::answers::Answer;
use crate::support::gates::wait_until;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::pty::Pty;

const PROMPT: &str = "❯";

fn with_server() -> (MockServer, Home) {
    let server = MockServer::start();
    server.answer_with(|_| Answer::says("Noted."));
    let home = Home::with_server(&server.url());
    (server, home)
}

fn says(pty: &mut Pty, line: &str) {
    pty.at_prompt(PROMPT);
    pty.line(line);
    pty.see("Noted.");
    pty.at_prompt(PROMPT);
}

fn leave(mut pty: Pty) {
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
}

fn terminals(home: &Home) -> Vec<LiveTerminal> {
    let store = Store::new(StoreOptions::at(home.database()));
    store.read_blocking(|reader| reader.terminals()).unwrap()
}

#[test]
fn a_conversation_is_resumed_by_no_second_shell_until_the_first_is_gone() {
    let (server, home) = with_server();
    let heard_of_ada = |request: usize| server.request(request).json()["messages"].to_string().contains("Ada");
    let mut first = Pty::shell(&home);
    says(&mut first, "my name is Ada");
    assert_eq!(terminals(&home).len(), 1);

    let mut second = Pty::shell(&home);
    says(&mut second, "what is my name?");
    assert!(!heard_of_ada(1));
    assert_eq!(terminals(&home).len(), 2);

    first.signal(rustix::process::Signal::KILL.as_raw());
    first.end();
    let mut third = Pty::shell(&home);
    says(&mut third, "and mine?");
    assert!(heard_of_ada(2));

    leave(second);
    leave(third);
    // Those that left by the door say so, and what the killed one said does not count.
    assert_eq!(terminals(&home), []);
}

#[test]
fn shells_started_at_the_same_moment_do_not_share_the_conversation_they_all_found_free() {
    let (_server, home) = with_server();
    let mut earlier = Pty::shell(&home);
    says(&mut earlier, "hello");
    leave(earlier);

    let mut shells: Vec<_> = (0..4).map(|_| Pty::shell(&home)).collect();
    for shell in &mut shells {
        shell.at_prompt(PROMPT);
    }
    wait_until("each has its own conversation", || {
        let mut open: Vec<_> = terminals(&home)
            .into_iter()
            .map(|terminal| terminal.conversation_id)
            .collect();
        open.sort();
        open.dedup();
        open.len() == shells.len()
    });
    shells.into_iter().for_each(leave);
}
