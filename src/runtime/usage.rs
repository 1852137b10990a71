//! Token totals of a session: the parent's and, apart, those of each delegated role.

use std::collections::BTreeMap;

use crate::message::Usage;
use crate::role::Role;

/// The totals.
#[derive(Clone, Debug, Default)]
pub struct UsageTracker {
    parent: Usage,
    children: BTreeMap<Role, Usage>,
}

impl UsageTracker {
    /// Starts from what a resumed conversation has used before.
    #[must_use]
    pub fn resumed(parent: Usage, children: BTreeMap<Role, Usage>) -> Self {
        Self { parent, children }
    }

    /// Adds what the user's own conversation used.
    pub fn add_parent(&mut self, usage: &Usage) {
        self.parent.add(usage);
    }

    /// Adds what a delegated child of `role` used.
    pub fn add_child(&mut self, role: Role, usage: &Usage) {
        self.children.entry(role).or_default().add(usage);
    }

    /// The parent's own total.
    #[must_use]
    pub fn parent(&self) -> &Usage {
        &self.parent
    }

    /// The totals by delegated role.
    #[must_use]
    pub fn children(&self) -> &BTreeMap<Role, Usage> {
        &self.children
    }

    /// Everything together.
    #[must_use]
    pub fn total(&self) -> Usage {
        let mut total = self.parent.clone();
        self.children.values().for_each(|child| total.add(child));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_counted_apart_and_in_the_total() {
        let used = |n| Usage {
            prompt_tokens: n,
            requests: 1,
            ..Usage::default()
        };
        let mut tracker = UsageTracker::default();
        tracker.add_parent(&used(1));
        tracker.add_child(Role::Worker, &used(10));
        tracker.add_child(Role::Worker, &used(10));
        tracker.add_child(Role::Explorer, &used(100));
        assert_eq!(tracker.parent().prompt_tokens, 1);
        assert_eq!(tracker.children()[&Role::Worker].prompt_tokens, 20);
        assert_eq!((tracker.total().prompt_tokens, tracker.total().requests), (121, 4));
    }
}
