//! `/setup`: connects a model server; asks, tries, and writes the user's file.

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "setup",
    args: "",
    help: "Connect a model server: asks for address, key variable and model, and tries them",
    details: "What works is written to the user's configuration file; a key itself never is, only the name of the \
              variable that holds it. Servers that run on this machine are found and offered.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            host.start_setup()?;
            Ok(CommandOutput::default())
        })
    },
};
