//! Which conversation this process has open, said in the store: the next shell that resumes by itself takes another one.

use tokio::sync::mpsc;

use crate::conversation::notice;
use crate::persistence::{Batch, ConversationRecord, LiveTerminal, ProcessStamp, Store};
use crate::runtime::bus::EventBus;
use crate::runtime::clock;
use crate::runtime::inbox::Message;

/// Says it, for one session.
pub(super) struct Presence {
    store: Store,
    bus: EventBus,
    inbox: mpsc::UnboundedSender<Message>,
}

impl Presence {
    /// For the session that reads `inbox`; what the store has to tell goes to `bus`.
    pub(super) fn new(store: Store, bus: EventBus, inbox: mpsc::UnboundedSender<Message>) -> Self {
        Self { store, bus, inbox }
    }

    /// Says, beside the session's work, that `conversation` is open here. Two shells that started in the same moment may
    /// both have found it free: the later one is told to leave it to the other.
    pub(super) fn announce(&self, conversation: &ConversationRecord) {
        let here = LiveTerminal::new(&conversation.id, &conversation.project_id, clock::now_ms());
        let (store, bus, inbox) = (self.store.clone(), self.bus.clone(), self.inbox.clone());
        tokio::spawn(async move {
            let mut batch = Batch::default();
            batch.put_terminal(here.clone());
            let report = store.commit(batch).await;
            report.notices.into_iter().map(notice).for_each(|event| bus.emit(event));
            let Ok(live) = store.read(|reader| reader.terminals()).await else {
                return;
            };
            if live.iter().any(|other| is_before(other, &here)) {
                // Where the session is over, nothing is to be left.
                let _ = inbox.send(Message::ConversationTaken(here.conversation_id));
            }
        });
    }

    /// Says that nothing is open here any more. What a killed process said is void without this.
    pub(super) async fn leave(&self) {
        let mut batch = Batch::default();
        batch.remove_terminal(&ProcessStamp::current());
        self.store.commit(batch).await;
    }
}

/// Whether `other` is another process that had the conversation of `here` open first.
fn is_before(other: &LiveTerminal, here: &LiveTerminal) -> bool {
    other.conversation_id == here.conversation_id
        && other.process != here.process
        && (other.opened, &other.process) < (here.opened, &here.process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_found_it_free_exactly_one_gives_way() {
        let here = LiveTerminal::new("c", "p", 10);
        let mut other = here.clone();
        other.process.pid += 1;
        for opened in [9, 10, 11] {
            other.opened = opened;
            assert_ne!(is_before(&other, &here), is_before(&here, &other), "{opened}");
        }
        assert!(!is_before(&here, &here));
        other.conversation_id = "d".to_owned();
        assert!(!is_before(&other, &here) && !is_before(&here, &other));
    }
}
