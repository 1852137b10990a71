//! The bounded queue between the core and one client.
//!
//! Pushing never blocks and never fails, so a client that is slow, stuck or gone cannot hold up a turn. What bounds the
//! queue is joining: a delta that follows another of its stream, not yet taken, becomes part of it; when the queue is
//! full it joins the latest delta of its stream even past other deltas, but never past an event that is not a delta.
//! Events that are no deltas are never dropped. Joined tool output keeps its last [`TOOL_TAIL_BYTES`] only: the whole of
//! it is in the tool's own record.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::protocol::event::{DeltaStream, Event};

/// How many events may wait before deltas join past their neighbours.
pub const QUEUE_CAPACITY: usize = 1024;
/// How much waiting output of one tool is kept.
pub const TOOL_TAIL_BYTES: usize = 64 * 1024;
/// Put where waiting tool output was cut.
const CUT_MARK: &str = "\n[... output skipped ...]\n";

#[derive(Default)]
struct Inner {
    events: VecDeque<Event>,
    closed: bool,
    waker: Option<Box<dyn Fn() + Send>>,
}

/// The queue. Shared by reference; every method may be called from any thread.
pub struct EventQueue {
    inner: Mutex<Inner>,
    arrived: Condvar,
    capacity: usize,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::with_capacity(QUEUE_CAPACITY)
    }
}

impl EventQueue {
    /// A queue in which deltas join past their neighbours from `capacity` events on.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            inner: Mutex::default(),
            arrived: Condvar::new(),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics halfway through a change, so the state behind a poisoned lock is whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn push(&self, mut event: Event) {
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        let was_empty = inner.events.is_empty();
        let full = inner.events.len() >= self.capacity;
        if event.kind.delta_mut().is_some() && join(&mut inner.events, &mut event, full) {
            return;
        }
        inner.events.push_back(event);
        if was_empty {
            if let Some(waker) = &inner.waker {
                waker();
            }
            drop(inner);
            self.arrived.notify_all();
        }
    }

    /// Takes everything that waits; where nothing does, waits up to `timeout` for something.
    pub fn poll(&self, timeout: Duration) -> Vec<Event> {
        let mut inner = self.lock();
        if inner.events.is_empty() && !timeout.is_zero() {
            let deadline = Instant::now() + timeout;
            while inner.events.is_empty() && !inner.closed {
                let Some(left) = deadline
                    .checked_duration_since(Instant::now())
                    .filter(|left| !left.is_zero())
                else {
                    break;
                };
                inner = self
                    .arrived
                    .wait_timeout(inner, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
        inner.events.drain(..).collect()
    }

    /// Takes nothing more and wakes whoever waits, the waker included. What already waits can still be taken.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        if let Some(waker) = &inner.waker {
            waker();
        }
        drop(inner);
        self.arrived.notify_all();
    }

    /// Whether it was closed and everything taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let inner = self.lock();
        inner.closed && inner.events.is_empty()
    }

    /// Calls `waker` whenever the queue stops being empty, and when it is closed; for clients that wait on something
    /// else than `poll`.
    pub fn set_waker(&self, waker: impl Fn() + Send + 'static) {
        let mut inner = self.lock();
        if inner.closed || !inner.events.is_empty() {
            waker();
        }
        inner.waker = Some(Box::new(waker));
    }
}

/// Joins `event`, a delta, with a waiting one of its stream: the last event, or, where `far`, the latest with only
/// deltas behind it. Says whether it did.
fn join(events: &mut VecDeque<Event>, event: &mut Event, far: bool) -> bool {
    let key = (event.turn_id.clone(), event.job_id.clone());
    let Some((stream, text)) = event.kind.delta_mut() else {
        return false;
    };
    let reach = if far { events.len() } else { 1 };
    for waiting in events.iter_mut().rev().take(reach) {
        let same_source = waiting.turn_id == key.0 && waiting.job_id == key.1;
        let Some((waiting_stream, waiting_text)) = waiting.kind.delta_mut() else {
            return false;
        };
        if same_source && waiting_stream == stream {
            let is_tool = matches!(stream, DeltaStream::Tool(_));
            waiting_text.push_str(text);
            if is_tool {
                cut_to_tail(waiting_text);
            }
            return true;
        }
    }
    false
}

fn cut_to_tail(text: &mut String) {
    // Cutting only at twice the size keeps the cost of a push flat.
    if text.len() <= 2 * TOOL_TAIL_BYTES {
        return;
    }
    let mut start = text.len() - TOOL_TAIL_BYTES;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.replace_range(..start, CUT_MARK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::EventKind;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn event(kind: EventKind) -> Event {
        Event {
            kind,
            ts: 0,
            turn_id: Some("t".into()),
            source_role: None,
            job_id: None,
        }
    }

    fn text(text: &str) -> Event {
        event(EventKind::LlmTextDelta { text: text.into() })
    }

    fn output(call: &str, text: &str) -> Event {
        event(EventKind::ToolOutputDelta {
            skipped: 0,
            call_id: call.into(),
            text: text.into(),
        })
    }

    #[test]
    fn neighbours_join_and_a_barrier_keeps_them_apart() {
        let queue = EventQueue::default();
        queue.push(text("a"));
        queue.push(text("b"));
        queue.push(event(EventKind::Prefill { text: String::new() }));
        queue.push(text("c"));
        let kinds: Vec<_> = queue.poll(Duration::ZERO).into_iter().map(|event| event.kind).collect();
        let delta = |text: &str| EventKind::LlmTextDelta { text: text.into() };
        assert_eq!(
            kinds,
            [delta("ab"), EventKind::Prefill { text: String::new() }, delta("c")]
        );
    }

    #[test]
    fn a_full_queue_stays_at_its_size_under_deltas_and_keeps_all_else() {
        let queue = EventQueue::with_capacity(4);
        for index in 0..1000 {
            queue.push(output(if index % 2 == 0 { "x" } else { "y" }, "12"));
        }
        let events = queue.poll(Duration::ZERO);
        assert_eq!(events.len(), 4);
        let total: usize = events
            .into_iter()
            .map(|mut e| e.kind.delta_mut().unwrap().1.len())
            .sum();
        assert_eq!(total, 2000);
        for _ in 0..10 {
            queue.push(event(EventKind::Prefill { text: String::new() }));
        }
        assert_eq!(queue.poll(Duration::ZERO).len(), 10);
    }

    #[test]
    fn waiting_tool_output_keeps_its_end() {
        let queue = EventQueue::default();
        for _ in 0..1000 {
            queue.push(output("x", &"é".repeat(500)));
        }
        queue.push(output("x", "the end"));
        let mut events = queue.poll(Duration::ZERO);
        let (_, text) = events[0].kind.delta_mut().unwrap();
        assert!(text.len() <= 2 * TOOL_TAIL_BYTES + 2000 && text.ends_with("the end") && text.contains("skipped"));
    }

    #[test]
    fn poll_wakes_for_an_event_and_for_the_close() {
        let queue = Arc::new(EventQueue::default());
        let waiting = Arc::clone(&queue);
        let reader = std::thread::spawn(move || {
            let first = waiting.poll(Duration::from_secs(60)).len();
            (first, waiting.poll(Duration::from_secs(60)).len())
        });
        queue.push(text("a"));
        while !queue.lock().events.is_empty() {
            std::thread::yield_now();
        }
        queue.close();
        assert_eq!(reader.join().unwrap(), (1, 0));
        queue.push(text("late"));
        assert!(queue.is_finished());
    }

    #[test]
    fn the_waker_hears_of_the_first_event_and_of_the_close() {
        let queue = EventQueue::default();
        let (sender, calls) = std::sync::mpsc::channel();
        queue.set_waker(move || sender.send(()).unwrap());
        let called = || calls.try_iter().count();
        queue.push(text("a"));
        queue.push(event(EventKind::Prefill { text: String::new() }));
        assert_eq!((called(), queue.poll(Duration::ZERO).len()), (1, 2));
        queue.close();
        assert_eq!(called(), 1);
        queue.set_waker(|| ());
    }

    proptest! {
        #[test]
        fn joining_keeps_every_streams_text_and_the_place_of_barriers(
            steps in proptest::collection::vec((0usize..4, "[a-z]{1,3}"), 0..200), capacity in 1usize..20
        ) {
            let queue = EventQueue::with_capacity(capacity);
            let mut plain: Vec<Event> = Vec::new();
            for (stream, piece) in &steps {
                let next = match stream {
                    0 => text(piece),
                    1 => output("x", piece),
                    2 => output("y", piece),
                    _ => event(EventKind::Prefill { text: piece.clone() }),
                };
                plain.push(next.clone());
                queue.push(next);
            }
            prop_assert_eq!(segments(plain), segments(queue.poll(Duration::ZERO)));
        }
    }

    /// Per stretch between two barriers, the text of each stream; and the barriers.
    fn segments(events: Vec<Event>) -> Vec<(String, [String; 3])> {
        let mut out = vec![(String::new(), <[String; 3]>::default())];
        for event in events {
            let streams = &mut out.last_mut().unwrap().1;
            match event.kind {
                EventKind::LlmTextDelta { text } => streams[0].push_str(&text),
                EventKind::ToolOutputDelta { call_id, text, .. } if call_id == "x" => streams[1].push_str(&text),
                EventKind::ToolOutputDelta { text, .. } => streams[2].push_str(&text),
                EventKind::Prefill { text } => out.push((text, <[String; 3]>::default())),
                other => panic!("unexpected {other:?}"),
            }
        }
        out
    }
}
