//! `/usage`: what the conversation has used.

use serde_json::{Map, Value, json};

use crate::command::registry::{Command, CommandOutput, Completer};
use crate::message::Usage;

pub(super) static COMMAND: Command = Command {
    name: "usage",
    args: "",
    help: "Show the tokens and the cost of this conversation",
    details: "What delegated roles used is counted apart. A `~` marks estimates, where the server did not count.",
    during_turn: true,
    completer: Completer::Nothing,
    run: |_, host| {
        Box::pin(async move {
            let (own, children) = host.usage();
            let mut text =
                String::from("| | requests | prompt | cached | completion | cost |\n|---|--:|--:|--:|--:|--:|\n");
            text.push_str(&row("this conversation", &own));
            for (role, usage) in &children {
                text.push_str(&row(role, usage));
            }
            if own.estimated || children.iter().any(|(_, usage)| usage.estimated) {
                text.push_str("\n~ holds estimates, where the server did not count.\n");
            }
            let by_role: Map<String, Value> = children
                .iter()
                .map(|(role, usage)| (role.clone(), json!(usage)))
                .collect();
            Ok(CommandOutput::text(text).with_value(json!({"own": own, "children": by_role})))
        })
    },
};

fn row(name: &str, usage: &Usage) -> String {
    let mark = if usage.estimated { "~" } else { "" };
    let cached = usage
        .cached_tokens
        .map_or_else(|| "–".to_owned(), |tokens| tokens.to_string());
    let cost = usage
        .cost
        .map_or_else(|| "–".to_owned(), |cost| format!("{mark}${cost:.4}"));
    format!(
        "| {name} | {} | {mark}{} | {cached} | {mark}{} | {cost} |\n",
        usage.requests, usage.prompt_tokens, usage.completion_tokens
    )
}
