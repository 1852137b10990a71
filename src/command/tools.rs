//! `/tools`: what the model may use.

use std::fmt::Write as _;

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};

pub(super) static COMMAND: Command = Command {
    name: "tools",
    args: "",
    help: "List the tools, and which of them the role is offered",
    details: "`tools.disabled` in the configuration withholds tools from every role, `/readonly` those that can change something.",
    during_turn: true,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let tools = host.tools();
            let mut text = String::from("| tool | | what it does |\n|---|---|---|\n");
            for tool in &tools {
                let offered = tool.withheld.unwrap_or("offered");
                let _ = writeln!(
                    text,
                    "| `{}` | {offered} | {} |",
                    tool.name,
                    tool.summary.replace('|', "\\|")
                );
            }
            let value = tools
                .iter()
                .map(|tool| json!({"name": tool.name, "withheld": tool.withheld}));
            let value = serde_json::Value::Array(value.collect());
            Ok(CommandOutput::text(text).with_value(value))
        })
    },
};
