//! Lines typed while a turn runs: they wait, and join the turn after its current round.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many lines may wait.
pub const CAPACITY: usize = 5;

/// The waiting lines. Clones are the same queue.
#[derive(Clone, Debug, Default)]
pub struct Steering {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Steering {
    /// Lets a line wait; gives how many wait now, or `None` where the queue is full.
    #[must_use]
    pub fn push(&self, line: String) -> Option<usize> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= CAPACITY {
            return None;
        }
        lines.push_back(line);
        Some(lines.len())
    }

    /// Takes all of them.
    #[must_use]
    pub fn drain(&self) -> Vec<String> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_in_order_up_to_the_capacity() {
        let queue = Steering::default();
        for index in 1..=CAPACITY {
            assert_eq!(queue.push(index.to_string()), Some(index));
        }
        assert_eq!(queue.push("one too many".into()), None);
        assert_eq!(queue.clone().drain(), ["1", "2", "3", "4", "5"]);
        assert!(queue.drain().is_empty());
    }
}
