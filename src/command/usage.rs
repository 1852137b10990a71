//! `/usage`: what the conversation has used.

use crate::command::registry::{Command, CommandOutput};
use crate::message::Usage;

pub(super) static COMMAND: Command = Command {
    name: "usage",
    args: "",
    help: "Show the tokens and the cost of this conversation",
    during_turn: true,
    run: |_, host| {
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
        let value = serde_json::json!({"own": own, "children": children.iter().map(|(role, usage)| (role.clone(), serde_json::json!(usage))).collect::<serde_json::Map<_, _>>()});
        Ok(CommandOutput {
            text,
            value: Some(value),
        })
    },
};

fn row(name: &str, usage: &Usage) -> String {
    let mark = if usage.estimated { "~" } else { "" };
    let cached = usage
        .cached_tokens
        .map_or_else(|| "–".to_owned(), |tokens| tokens.to_string());
    let cost = usage.cost.map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}"));
    format!(
        "| {name} | {} | {mark}{} | {cached} | {mark}{} | {cost} |\n",
        usage.requests, usage.prompt_tokens, usage.completion_tokens
    )
}
