//! `/pager`: the conversation, whole, in a full-screen view.

use crate::command::registry::{Command, CommandOutput};

pub(super) static COMMAND: Command = Command {
    name: "pager",
    args: "",
    help: "Show the conversation to scroll and search",
    during_turn: false,
    run: |_, host| {
        host.show_conversation()?;
        Ok(CommandOutput::default())
    },
};
