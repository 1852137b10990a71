//! `/prompt`: what the model is told before anything is said.

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "prompt",
    args: "",
    help: "Show the system prompt as the model gets it",
    details: "It is built at a conversation's first turn and stays the same from then on, so that the server's cache lives; \
              `/role`, `/reload` and `/new` build it anew.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let prompt = host.system_prompt();
            let value = json!({"text": prompt.text, "frozen": prompt.frozen});
            Ok(CommandOutput::text(prompt.text).with_value(value))
        })
    },
};
