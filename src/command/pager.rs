//! `/pager`: the conversation, whole, in a full-screen view.

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "pager",
    args: "",
    help: "Show the conversation to scroll and search",
    details: "",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            host.show_conversation()?;
            Ok(CommandOutput::default())
        })
    },
};
