//! Several shells in one project: each works in a conversation of its own, and a dead one frees what it had.

use std::os::unix::process::parent_id;
use std::sync::Arc;

use agent_smith_core::error::AgentError;
use agent_smith_core::persistence::{Batch, LiveTerminal, Store, StoreOptions};
use agent_smith_core::protocol::EventKind;
use agent_smith_core::runtime::{
    ConversationService, ConversationStart, OpenedConversation, SessionOptions, StoredConversations,
};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::pty::{PROMPT, Pty, leave};

fn with_server() -> (MockServer, Home) {
    let (server, home) = Home::and_server();
    server.answer_with(|_| Answer::says("Noted."));
    (server, home)
}

fn says(pty: &mut Pty, line: &str) {
    pty.at_prompt(PROMPT);
    pty.line(line);
    pty.see("Noted.");
    pty.at_prompt(PROMPT);
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

/// Conversations among which another process takes the one that was found free right after it was found.
struct Raced(Store);

impl ConversationService for Raced {
    fn open(&self, start: &ConversationStart, project_id: &str) -> Result<OpenedConversation, AgentError> {
        let opened = StoredConversations::new(self.0.clone()).open(start, project_id)?;
        let mut faster = LiveTerminal::new(&opened.record.id, project_id, 1);
        faster.process.pid = parent_id();
        faster.process.start = start_of(parent_id());
        let mut batch = Batch::default();
        batch.put_terminal(faster);
        self.0.commit_blocking(batch);
        Ok(opened)
    }
}

/// When a process started, as its marker has it.
fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').nth(19).unwrap().parse().unwrap()
}

#[test]
fn of_two_shells_that_found_a_conversation_free_the_later_one_begins_another_unless_it_was_asked_for() {
    let (_server, home) = with_server();
    let mut earlier = Pty::shell(&home);
    says(&mut earlier, "hello");
    leave(earlier);
    let kept = home.messages()[0].conversation_id.clone();

    let start = |start: ConversationStart| {
        let store = Store::new(StoreOptions::at(home.database()));
        let mut options = SessionOptions {
            start,
            shell: true,
            ..SessionOptions::default()
        };
        options.handles.conversation = Some(Arc::new(Raced(store)));
        home.session(options)
    };
    let mut later = start(ConversationStart::Auto);
    later.wait(
        "the notice",
        |kind| matches!(kind, EventKind::Notice { text, .. } if text.contains("another terminal")),
    );
    assert_ne!(later.session.status().conversation_id, kept);
    drop(later);

    let mut asked_for = start(ConversationStart::Id(kept.clone()));
    asked_for.submit("hello again");
    asked_for.wait_end();
    assert_eq!(asked_for.session.status().conversation_id, kept);
}
