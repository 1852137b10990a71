//! `/reload`: reads everything that was changed outside.

use std::fmt::Write as _;

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "reload",
    args: "",
    help: "Read the configuration, the index file and your commands again",
    details: "Where the file is bad, what it said before holds. The system prompt is built anew with the next turn.",
    during_turn: false,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let reloaded = host.reload().await?;
            let mut text = if reloaded.problems.is_empty() {
                "Read again: the configuration, the index file, the memories and your commands.".to_owned()
            } else {
                "Read again; what is wrong was left out:\n".to_owned()
            };
            for problem in &reloaded.problems {
                let _ = write!(text, "\n- {problem}");
            }
            match reloaded.user_commands {
                0 => {}
                1 => text.push_str("\n\nThere is 1 command of your own."),
                count => {
                    let _ = write!(text, "\n\nThere are {count} commands of your own.");
                }
            }
            let value = json!({"problems": reloaded.problems, "user_commands": reloaded.user_commands});
            Ok(CommandOutput::text(text).with_value(value))
        })
    },
};
