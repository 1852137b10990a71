//! Lines typed while a turn runs: they wait, and join the turn after its current round.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many lines may wait.
pub const CAPACITY: usize = 5;

/// The waiting lines. Clones are the same queue.
#[derive(Clone, Debug, Default)]
pub struct Steering {
    lines: Arc<Mutex<VecDeque<Line>>>,
}

/// A waiting line.
#[derive(Clone, Debug)]
struct Line {
    typed: String,
    /// The same with the files it mentions.
    text: String,
}

impl Steering {
    /// Lets a line wait, `text` being the same with the files it mentions; gives how many wait now, or `None` where the
    /// queue is full.
    #[must_use]
    pub fn push(&self, typed: String, text: String) -> Option<usize> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= CAPACITY {
            return None;
        }
        lines.push_back(Line { typed, text });
        Some(lines.len())
    }

    /// Takes all of them, as they go to the model.
    #[must_use]
    pub fn drain(&self) -> Vec<String> {
        self.take().into_iter().map(|line| line.text).collect()
    }

    /// Takes all of them, as they were typed.
    #[must_use]
    pub fn drain_typed(&self) -> Vec<String> {
        self.take().into_iter().map(|line| line.typed).collect()
    }

    fn take(&self) -> VecDeque<Line> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_in_order_up_to_the_capacity() {
        let queue = Steering::default();
        for index in 1..=CAPACITY {
            assert_eq!(queue.push(index.to_string(), format!("{index}!")), Some(index));
        }
        assert_eq!(queue.push("one too many".into(), String::new()), None);
        assert_eq!(queue.clone().drain(), ["1!", "2!", "3!", "4!", "5!"]);
        assert!(queue.drain().is_empty());
        assert_eq!(queue.push("a".into(), "b".into()), Some(1));
        assert_eq!(queue.drain_typed(), ["a"]);
    }
}
