//! `/copy`: the last answer into the clipboard.

use crate::command::registry::{Command, CommandOutput, Completer};
use crate::error::{AgentError, ErrorKind};

pub(super) static COMMAND: Command = Command {
    name: "copy",
    args: "",
    help: "Copy the last answer to the clipboard",
    details: "The text goes to the terminal as OSC 52, so it works over SSH too; the terminal (and tmux: `set -g set-clipboard \
              on`) must allow it.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let Some(answer) = host.last_answer() else {
                let message = "there is no answer to copy yet";
                return Err(AgentError::new(ErrorKind::Policy, "no_answer", message).from_origin("command"));
            };
            host.copy(&answer)?;
            let chars = answer.chars().count();
            let text = format!("Copied the last answer, {chars} characters.");
            Ok(CommandOutput::text(text).with_value(answer.into()))
        })
    },
};
