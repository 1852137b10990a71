//! `/retry`: the last line once more.

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "retry",
    args: "",
    help: "Ask the last line again; its new answer replaces the old one",
    details: "The last turn, failed, cancelled or not, is taken out of the conversation, together with what its tools said, as \
              soon as something of the new one is kept. What its tools did to files stays, and the model is told so. After `/model` it asks the \
              other model.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let line = host.retry()?;
            let first = line.lines().next().unwrap_or_default();
            let short: String = first.chars().take(60).collect();
            let more = if short.len() < line.trim().len() { "…" } else { "" };
            Ok(CommandOutput::text(format!("Again: {short}{more}")).with_value(line.into()))
        })
    },
};
