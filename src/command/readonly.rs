//! `/readonly`: look, but do not touch.

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "readonly",
    args: "[on | off]",
    help: "Withhold every tool that can change something, or offer them again",
    details: "Without an argument it switches. The shell tool counts as one that can change something. It holds for this \
              session, from the next turn on.",
    during_turn: true,
    completer: Completer::Words(&["on", "off"]),
    run: |call, host| {
        Box::pin(async move {
            let on = match call.arguments {
                "" => !host.read_only(),
                "on" => true,
                "off" => false,
                other => return Err(COMMAND.misused(format!("/readonly takes on or off, not `{other}`"))),
            };
            host.set_read_only(on);
            let text = if on {
                let withheld: Vec<String> = host
                    .tools()
                    .into_iter()
                    .filter(|tool| tool.withheld == Some("read-only"))
                    .map(|tool| format!("`{}`", tool.name))
                    .collect();
                format!("Read-only: {} are withheld from the next turn on.", withheld.join(", "))
            } else {
                "No longer read-only: all tools of the role are offered from the next turn on.".to_owned()
            };
            Ok(CommandOutput::text(text).with_value(json!({"readonly": on})))
        })
    },
};
