//! The states of a session and of its one turn: which may follow which.

use crate::cancel::CancelToken;
use crate::error::{AgentError, ErrorKind};
use crate::runtime::{clock, ids};

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// Made, not yet used.
    Created,
    /// At work, or ready for it.
    Running,
    /// Ended by its client.
    Stopped,
    /// Ended by a failure.
    Failed,
}

/// The turn that runs.
#[derive(Clone, Debug)]
pub struct ActiveTurn {
    /// Its id.
    pub id: String,
    /// Its number within the conversation, from 1.
    pub number: u64,
    /// The root of its cancellation tree.
    pub cancel: CancelToken,
}

/// The record of a session's life.
#[derive(Debug)]
pub struct Lifecycle {
    /// Where it stands.
    pub status: SessionStatus,
    /// When it was started, in milliseconds since the epoch.
    pub started_at: Option<u64>,
    /// When it ended.
    pub stopped_at: Option<u64>,
    /// Why it was stopped.
    pub stop_reason: Option<String>,
    /// What it failed of.
    pub error: Option<AgentError>,
    current_turn: Option<ActiveTurn>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            status: SessionStatus::Created,
            started_at: None,
            stopped_at: None,
            stop_reason: None,
            error: None,
            current_turn: None,
        }
    }
}

fn refused(code: &'static str, message: &str) -> AgentError {
    AgentError::new(ErrorKind::Policy, code, message).from_origin("runtime")
}

impl Lifecycle {
    /// Moves a new session to running.
    ///
    /// # Errors
    /// `policy` where it was started before.
    pub fn start(&mut self) -> Result<(), AgentError> {
        if self.status != SessionStatus::Created {
            return Err(refused("session_state", "the session was started before"));
        }
        self.status = SessionStatus::Running;
        self.started_at = Some(clock::now_ms());
        Ok(())
    }

    /// Ends the session on its client's wish; a running turn is cancelled. Ending twice keeps the first end.
    pub fn stop(&mut self, reason: &str) {
        if self.end(SessionStatus::Stopped) {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    /// Ends the session because of `error`; a running turn is cancelled.
    pub fn fail(&mut self, error: AgentError) {
        if self.end(SessionStatus::Failed) {
            self.error = Some(error);
        }
    }

    fn end(&mut self, status: SessionStatus) -> bool {
        if matches!(self.status, SessionStatus::Stopped | SessionStatus::Failed) {
            return false;
        }
        if let Some(turn) = &self.current_turn {
            turn.cancel.cancel();
        }
        self.status = status;
        self.stopped_at = Some(clock::now_ms());
        true
    }

    /// Opens the `number`th turn of the conversation.
    ///
    /// # Errors
    /// `policy` while a turn is active or the session is not running.
    pub fn begin_turn(&mut self, number: u64) -> Result<ActiveTurn, AgentError> {
        if self.status != SessionStatus::Running {
            return Err(refused("session_state", "the session is not running"));
        }
        if let Some(turn) = &self.current_turn {
            return Err(refused("turn_active", &format!("turn {} is still running", turn.id)));
        }
        let turn = ActiveTurn {
            id: ids::turn(number),
            number,
            cancel: CancelToken::new_root(),
        };
        self.current_turn = Some(turn.clone());
        Ok(turn)
    }

    /// Closes the turn that runs.
    pub fn finish_turn(&mut self) {
        self.current_turn = None;
    }

    /// The turn that runs.
    #[must_use]
    pub fn current_turn(&self) -> Option<&ActiveTurn> {
        self.current_turn.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_at_a_time_and_only_while_running() {
        let mut life = Lifecycle::default();
        assert_eq!(life.begin_turn(1).unwrap_err().code, "session_state");
        life.start().unwrap();
        assert!(life.start().is_err());
        let turn = life.begin_turn(1).unwrap();
        assert_eq!(life.begin_turn(2).unwrap_err().code, "turn_active");
        life.finish_turn();
        assert_ne!(life.begin_turn(2).unwrap().id, turn.id);
    }

    #[test]
    fn stopping_and_failing_cancel_the_turn_and_the_first_end_stays() {
        for fail in [false, true] {
            let mut life = Lifecycle::default();
            life.start().unwrap();
            let turn = life.begin_turn(1).unwrap();
            let child = turn.cancel.new_child();
            if fail {
                life.fail(AgentError::internal("test", "boom"))
            } else {
                life.stop("quit")
            }
            life.stop("again");
            assert!(child.is_cancelled());
            assert_eq!(
                life.status,
                if fail {
                    SessionStatus::Failed
                } else {
                    SessionStatus::Stopped
                }
            );
            assert_eq!(life.stop_reason.as_deref(), (!fail).then_some("quit"));
            assert!(life.begin_turn(2).is_err());
        }
    }
}
