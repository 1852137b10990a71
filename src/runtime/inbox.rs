//! What reaches the actor of a session, and how it waits for something long without losing any of it.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::cancel::CancelToken;
use crate::error::AgentError;
use crate::protocol::{CancelScope, StopReason, Submit, Theme};
use crate::runtime::held::Conversation;
use crate::runtime::setup::Choice;

/// What reaches the actor.
pub(super) enum Message {
    Submit {
        submit: Submit,
        command: bool,
    },
    Cancel {
        scope: CancelScope,
        reason: String,
    },
    Answer {
        question_id: String,
        value: Value,
    },
    Resize {
        cols: u16,
        rows: u16,
    },
    Theme(Theme),
    ViewKey {
        view_id: String,
        key: String,
    },
    Close {
        reason: String,
    },
    /// The running turn ended; its conversation comes back.
    TurnEnded {
        conversation: Box<Conversation>,
        stop_reason: StopReason,
        /// The profile whose server answered in the end, where the first one was down.
        fell_back: Option<String>,
    },
    /// Another process had this conversation open first.
    ConversationTaken(String),
    /// `/setup` came to its end.
    SetupEnded(Result<Choice, AgentError>),
}

/// The messages, and those that came while the actor was waiting for something else.
pub(super) struct Inbox {
    receiver: mpsc::UnboundedReceiver<Message>,
    deferred: VecDeque<Message>,
}

impl Inbox {
    pub(super) fn new(receiver: mpsc::UnboundedReceiver<Message>) -> Self {
        Self {
            receiver,
            deferred: VecDeque::new(),
        }
    }

    /// The next message, in the order they came.
    pub(super) async fn next(&mut self) -> Option<Message> {
        match self.deferred.pop_front() {
            Some(message) => Some(message),
            None => self.receiver.recv().await,
        }
    }

    /// Does `work` to its end. What comes meanwhile waits its turn, but a cancel reaches the work at once; `during_turn`
    /// says that one runs beside it, which the cancel is for as well.
    pub(super) async fn attend<T>(
        &mut self,
        cancel: &CancelToken,
        during_turn: bool,
        work: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                message = self.receiver.recv() => match message {
                    Some(Message::Cancel { .. }) if !during_turn => {
                        if cancel.is_cancelled() {
                            cancel.cancel_now();
                        } else {
                            cancel.cancel();
                        }
                    }
                    Some(message) => {
                        if matches!(message, Message::Cancel { .. } | Message::Close { .. }) {
                            cancel.cancel();
                        }
                        self.deferred.push_back(message);
                    }
                    // Everybody who could send is gone.
                    None => return work.await,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_reaches_the_work_and_the_rest_waits_in_order() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut inbox = Inbox::new(receiver);
        let cancel = CancelToken::new_root();
        let cancelled = || Message::Cancel {
            scope: CancelScope::Turn,
            reason: String::new(),
        };
        for line in ["one", "two"] {
            let submit = Submit {
                line: line.into(),
                ..Submit::default()
            };
            assert!(sender.send(Message::Submit { submit, command: true }).is_ok());
        }
        assert!(sender.send(cancelled()).is_ok());
        inbox.attend(&cancel, false, cancel.cancelled()).await;
        assert!(sender.send(cancelled()).is_ok());
        let mut order = Vec::new();
        for _ in 0..3 {
            order.push(match inbox.next().await {
                Some(Message::Submit { submit, .. }) => submit.line,
                Some(Message::Cancel { .. }) => "cancel".to_owned(),
                _ => "other".to_owned(),
            });
        }
        assert_eq!(order, ["one", "two", "cancel"]);
    }
}
