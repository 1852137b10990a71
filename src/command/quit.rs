//! `/quit`: leaves.

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "quit",
    args: "",
    help: "Leave; the conversation is kept",
    details: "",
    during_turn: true,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            host.quit();
            Ok(CommandOutput::default())
        })
    },
};
