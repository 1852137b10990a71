//! `/clear`: forgets what was said in this conversation.

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "clear",
    args: "",
    help: "Delete what was said in this conversation, for good",
    details: "The messages are taken out of the store too: nothing of them is resumed or found later. The counts of `/usage` \
              stay. To keep the conversation and begin another, use `/new`.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let count = host.clear_conversation().await?;
            let text = match count {
                0 => "There was nothing to clear.".to_owned(),
                1 => "Cleared: 1 message is gone.".to_owned(),
                _ => format!("Cleared: {count} messages are gone."),
            };
            Ok(CommandOutput::text(text).with_value(json!({"messages": count})))
        })
    },
};
