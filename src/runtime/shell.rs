//! `!command`: a line of the user's own for the shell. What it printed is shown, and kept for the next turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cancel::CancelToken;
use crate::message::ToolCall;
use crate::protocol::{CallOutcome, EventKind, MutationState, SessionState, ToolFinish};
use crate::role::Role;
use crate::runtime::actor::Actor;
use crate::runtime::bus::EventBus;
use crate::runtime::clock;
use crate::runtime::scope::project;
use crate::tool::{ToolContext, ToolProgress, execute};

/// What the output of all lines together may have, in characters, as a multiple of what one tool result may have.
const KEPT_RESULTS: usize = 4;
/// How long such a line may take: it is cancelled by who typed it, not by a clock. A year, since a deadline is added to
/// the time of now.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// What the lines of the shell printed since the last turn.
#[derive(Debug, Default)]
pub(super) struct ShellOutput {
    kept: Vec<String>,
    count: u64,
}

impl ShellOutput {
    /// Everything, for the model, and nothing is left. Empty where there was nothing.
    pub(super) fn take_text(&mut self) -> String {
        let mut text = String::new();
        for block in self.kept.drain(..) {
            text.push_str(&block);
            text.push_str("\n\n");
        }
        text
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Keeps what a line printed; the oldest go where it gets too much.
    fn keep(&mut self, command: &str, output: &str, max_chars: usize) {
        // An attribute of one line, whatever was typed.
        let command = command
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('\n', "&#10;");
        self.kept.push(format!(
            "<user_shell command=\"{command}\">\n{}\n</user_shell>",
            output.trim_end()
        ));
        let mut total: usize = self.kept.iter().map(String::len).sum();
        while total > max_chars && self.kept.len() > 1 {
            total -= self.kept.remove(0).len();
        }
    }
}

/// The command of a line that begins with `!`.
pub(super) fn command_of(line: &str) -> Option<&str> {
    let command = line.trim_start().strip_prefix('!')?.trim();
    (!command.is_empty()).then_some(command)
}

impl Actor {
    /// Runs a line in the shell to its end, or until `cancel`.
    pub(super) async fn run_shell(&mut self, command: &str, cancel: &CancelToken) {
        self.shell_output.count += 1;
        let call = ToolCall {
            id: format!("shell-{}", self.shell_output.count),
            name: "bash".to_owned(),
            arguments: json!({"command": command}).to_string(),
            extra: Default::default(),
        };
        let bus = self.bus.clone();
        bus.emit(EventKind::StatusChanged {
            state: SessionState::Tool,
        });
        bus.emit(EventKind::ToolExecutionStarted {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let started = Instant::now();
        let context = self.shell_context(&call.id, cancel, &bus);
        let registry = self.services.tool.registry();
        let result = execute(&registry, &call, &context).await;
        let outcome = CallOutcome {
            call_id: call.id,
            name: call.name,
            mutation_state: MutationState::Unknown,
        };
        let max_chars = context.limits.output_chars.saturating_mul(KEPT_RESULTS);
        self.shell_output.keep(command, &result.content, max_chars);
        bus.emit(if result.cancelled {
            EventKind::ToolExecutionCancelled(outcome)
        } else {
            EventKind::ToolExecutionFinished(ToolFinish {
                outcome,
                ok: result.ok,
                content_chars: result.content.chars().count(),
                content: result.content,
                error: result.error,
                duration_ms: clock::millis(started),
                metadata: result.metadata,
            })
        });
        bus.emit(EventKind::StatusChanged {
            state: SessionState::Idle,
        });
    }

    fn shell_context(&self, call_id: &str, cancel: &CancelToken, bus: &EventBus) -> ToolContext {
        let mut limits = self.services.tool.limits();
        // It is the user's own: it sees all variables, and takes as long as it takes.
        limits.scrub_env = Vec::new();
        limits.bash_timeout = FOR_EVER;
        limits.bash_timeout_max = FOR_EVER;
        let (bus, id) = (bus.clone(), call_id.to_owned());
        ToolContext {
            role: Role::Direct,
            turn_id: String::new(),
            call_id: call_id.to_owned(),
            cancel: cancel.clone(),
            cwd: self.cwd.clone(),
            git_root: project(&self.cwd).git_root,
            env: self.env.clone(),
            progress: Arc::new(move |ToolProgress::Output { text, skipped }| {
                bus.emit(EventKind::ToolOutputDelta {
                    call_id: id.clone(),
                    text,
                    skipped,
                });
            }),
            limits,
            state: Arc::clone(&self.tool_state),
            // What the user's own line changes is the user's to take back.
            keeper: None,
        }
    }
}
