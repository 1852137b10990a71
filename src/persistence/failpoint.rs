//! The steps of a commit at which a test can stop, fail or end the process; see [`crate::failpoint`].

pub(crate) use crate::failpoint::hit;

/// Every step, in the order a commit passes them; those of the spool come after.
pub const STEPS: [&str; 14] = [
    "commit.begin",
    "commit.locked",
    "commit.opened",
    "commit.merged",
    "commit.applied",
    "commit.grow",
    "commit.pages_written",
    "commit.pages_synced",
    "commit.header_written",
    "commit.header_synced",
    "commit.committed",
    "commit.unlocked",
    "spool.written",
    "spool.renamed",
];
