//! The event bus of a session: stamps events and hands each to every subscriber.
//!
//! A subscriber that panics is taken off the bus and reported to the others; it never breaks the turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::{Event, EventKind, NoticeLevel, SessionState};
use crate::runtime::clock;

type Subscriber = Arc<dyn Fn(&Event) + Send + Sync>;

/// The bus. Clones are the same bus.
#[derive(Clone, Default)]
pub struct EventBus {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    subscribers: Vec<Subscriber>,
    /// The state last told: telling the same again is left out.
    state: Option<SessionState>,
}

impl EventBus {
    /// Hands every event from now on to `subscriber`, which must not block.
    pub fn subscribe(&self, subscriber: impl Fn(&Event) + Send + Sync + 'static) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.subscribers.push(Arc::new(subscriber));
    }

    /// Stamps and emits an event that belongs to no turn.
    pub fn emit(&self, kind: EventKind) {
        self.send(kind, None);
    }

    /// Stamps and emits an event of a turn.
    pub fn emit_turn(&self, turn_id: &str, kind: EventKind) {
        self.send(kind, Some(turn_id.to_owned()));
    }

    /// Tells the user something outside any turn.
    pub fn notice(&self, level: NoticeLevel, text: impl Into<String>, hint: Option<String>) {
        self.emit(EventKind::Notice {
            level,
            text: text.into(),
            hint,
        });
    }

    fn send(&self, kind: EventKind, turn_id: Option<String>) {
        // The lock is held while subscribers run: events reach each of them in one order.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let EventKind::StatusChanged { state } = kind
            && inner.state.replace(state) == Some(state)
        {
            return;
        }
        let subscribers = &mut inner.subscribers;
        let event = Event {
            kind,
            ts: clock::now_ms(),
            turn_id,
            source_role: None,
            job_id: None,
        };
        let before = subscribers.len();
        subscribers.retain(|subscriber| catch_unwind(AssertUnwindSafe(|| subscriber(&event))).is_ok());
        if subscribers.len() < before {
            tracing::error!(
                lost = before - subscribers.len(),
                "an event subscriber panicked and was removed"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::EventQueue;
    use std::time::Duration;

    #[test]
    fn a_faulty_subscriber_leaves_the_others_alone() {
        let bus = EventBus::default();
        let queue = Arc::new(EventQueue::default());
        bus.subscribe(|_| panic!("faulty"));
        let sink = Arc::clone(&queue);
        bus.subscribe(move |event| sink.push(event.clone()));
        bus.emit(EventKind::Prefill { text: "1".into() });
        bus.emit_turn("t", EventKind::Prefill { text: "2".into() });
        let events = queue.poll(Duration::ZERO);
        assert_eq!(events.len(), 2);
        assert_eq!(events[1].turn_id.as_deref(), Some("t"));
        assert_eq!(bus.inner.lock().unwrap().subscribers.len(), 1);
    }
}
