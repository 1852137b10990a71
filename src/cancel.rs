//! The cancellation tree: a root token a turn, a child token a tool or delegated job.
//!
//! Cancelling a token cancels everything below it at once and nothing above it. What is cancelled may take its time to
//! end well (a process that is asked to go); being cancelled once more, it may not.

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::error::AgentError;

/// One node of the tree. Clones are the same node.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    inner: CancellationToken,
    urgent: CancellationToken,
}

impl CancelToken {
    /// A token with nothing above it.
    #[must_use]
    pub fn new_root() -> Self {
        Self::default()
    }

    /// A token that is cancelled with this one, and can be cancelled alone.
    #[must_use]
    pub fn new_child(&self) -> Self {
        Self {
            inner: self.inner.child_token(),
            urgent: self.urgent.child_token(),
        }
    }

    /// Cancels this token and everything below it. Doing it twice is the same as once.
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Cancels this token and everything below it, and ends the time to end well.
    pub fn cancel_now(&self) {
        self.inner.cancel();
        self.urgent.cancel();
    }

    /// Completes when there is no time left to end well.
    pub fn urgent(&self) -> WaitForCancellationFuture<'_> {
        self.urgent.cancelled()
    }

    /// Whether this token, or one above it, was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    /// Completes when the token is cancelled; for `select! { biased; .. }`.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.inner.cancelled()
    }

    /// `Err` with the canonical error when cancelled, for `?` between two steps.
    pub fn check(&self, origin: &'static str) -> Result<(), AgentError> {
        if self.is_cancelled() {
            Err(AgentError::cancelled(origin))
        } else {
            Ok(())
        }
    }

    /// Runs `work` until it ends or the token is cancelled, whichever is first; dropped work stops at its next await.
    pub async fn run<T>(&self, origin: &'static str, work: impl Future<Output = T>) -> Result<T, AgentError> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(AgentError::cancelled(origin)),
            value = work => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_reaches_everything_below_and_nothing_above() {
        let root = CancelToken::new_root();
        let child = root.new_child();
        let grandchild = child.new_child();
        let sibling = root.new_child();
        child.cancel();
        assert!(grandchild.is_cancelled() && grandchild.check("test").is_err());
        assert!(!root.is_cancelled() && !sibling.is_cancelled());
        root.cancel();
        assert!(sibling.is_cancelled() && root.new_child().is_cancelled());
    }

    #[tokio::test]
    async fn only_the_second_kind_of_cancelling_is_urgent() {
        let root = CancelToken::new_root();
        let child = root.new_child();
        root.cancel();
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, child.urgent())
                .await
                .is_err()
        );
        root.cancel_now();
        child.urgent().await;
    }

    #[tokio::test]
    async fn run_prefers_the_cancellation() {
        let token = CancelToken::new_root();
        assert_eq!(token.run("test", async { 1 }).await.unwrap(), 1);
        token.cancel();
        assert!(token.run("test", async { 1 }).await.unwrap_err().is_cancelled());
    }
}
