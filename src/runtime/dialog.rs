//! Questions of a command to the user: a command that needs more than its line goes on as a dialog beside the actor and
//! answers at its end.

use serde_json::Value;
use tokio::sync::mpsc;

use crate::cancel::CancelToken;
use crate::error::AgentError;
use crate::protocol::{EventKind, NoticeLevel};
use crate::runtime::bus::EventBus;

/// The actor's end of a dialog.
pub(super) struct Dialog {
    /// Cancels it.
    pub cancel: CancelToken,
    answers: mpsc::UnboundedSender<(String, Value)>,
}

/// The command's end of a dialog.
pub(super) struct Questions {
    bus: EventBus,
    cancel: CancelToken,
    answers: mpsc::UnboundedReceiver<(String, Value)>,
    asked: u64,
}

/// Both ends of a new dialog.
pub(super) fn dialog(bus: &EventBus) -> (Dialog, Questions) {
    let (sender, answers) = mpsc::unbounded_channel();
    let cancel = CancelToken::new_root();
    let questions = Questions {
        bus: bus.clone(),
        cancel: cancel.clone(),
        answers,
        asked: 0,
    };
    let dialog = Dialog {
        cancel,
        answers: sender,
    };
    (dialog, questions)
}

impl Dialog {
    /// Hands an answer over. One to no open question is told by the other end.
    pub fn answer(&self, question_id: String, value: Value) {
        // Where the other end is gone, the dialog is over.
        let _ = self.answers.send((question_id, value));
    }
}

impl Questions {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// `cancelled` where the user gives up.
    pub async fn ask(&mut self, text: &str, choices: &[String], default: Option<&str>) -> Result<String, AgentError> {
        self.asked += 1;
        let id = format!("question-{}", self.asked);
        self.bus.emit(EventKind::Question {
            id: id.clone(),
            text: text.to_owned(),
            choices: choices.to_vec(),
            default: default.map(str::to_owned),
        });
        loop {
            let answer = self.cancel.run("command", self.answers.recv()).await?;
            let Some((question_id, value)) = answer else {
                return Err(AgentError::cancelled("command"));
            };
            if question_id != id {
                self.tell(
                    NoticeLevel::Warn,
                    format!("the question `{question_id}` is not open"),
                    None,
                );
                continue;
            }
            let text = match value {
                Value::String(text) => text.trim().to_owned(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            return Ok(if text.is_empty() {
                default.unwrap_or_default().to_owned()
            } else {
                text
            });
        }
    }

    /// Tells something between two questions.
    pub fn tell(&self, level: NoticeLevel, text: String, hint: Option<String>) {
        self.bus.notice(level, text, hint);
    }

    /// What cancels the dialog.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }
}
