//! `/quit`: leaves.

use crate::command::registry::{Command, CommandOutput};

pub(super) static COMMAND: Command = Command {
    name: "quit",
    args: "",
    help: "Leave; the conversation is kept",
    during_turn: true,
    run: |_, host| {
        host.quit();
        Ok(CommandOutput::default())
    },
};
