//! `/setup`: connects a model server; asks, tries, and writes the user's file.

use crate::command::registry::{Command, CommandOutput};

pub(super) static COMMAND: Command = Command {
    name: "setup",
    args: "",
    help: "Connect a model server: asks for address, key variable and model, and tries them",
    during_turn: false,
    run: |_, host| {
        host.start_setup()?;
        Ok(CommandOutput::default())
    },
};
