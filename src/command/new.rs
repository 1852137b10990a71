//! `/new`: a new conversation.

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "new",
    args: "",
    help: "Start a new conversation; the old one is kept",
    details: "",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let id = host.new_conversation()?;
            Ok(CommandOutput::text("A new conversation.").with_value(id.into()))
        })
    },
};
