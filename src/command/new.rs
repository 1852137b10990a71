//! `/new`: a new conversation.

use crate::command::registry::{Command, CommandOutput};

pub(super) static COMMAND: Command = Command {
    name: "new",
    args: "",
    help: "Start a new conversation; the old one is kept",
    during_turn: false,
    run: |_, host| {
        let id = host.new_conversation()?;
        Ok(CommandOutput {
            text: "A new conversation.".to_owned(),
            value: Some(id.into()),
        })
    },
};
