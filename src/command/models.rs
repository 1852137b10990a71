//! `/models`: what the server has.

use std::fmt::Write as _;

use serde_json::json;

use crate::command::host::{CommandHost, ModelList, ModelRow};
use crate::command::line::CommandLine;
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::error::AgentError;

/// How old a list may be to be shown without asking again, in seconds: an hour.
const FRESH_S: u64 = 3600;
/// How many models are shown; a public server has hundreds, and a part of the name finds the rest.
const SHOWN: usize = 50;

pub(super) static COMMAND: Command = Command {
    name: "models",
    args: "[TEXT] [--refresh]",
    help: "List the models of the server",
    details: "The list is kept and asked for again when it is older than an hour, or with `--refresh`. A text shows only the \
              models that have it in their name. The server is asked for it here and nowhere else.",
    during_turn: false,
    completer: Completer::Words(&["--refresh"]),
    run: |call, host| Box::pin(run(call, host)),
};

async fn run(call: CommandLine<'_>, host: &mut dyn CommandHost) -> Result<CommandOutput, AgentError> {
    let (flags, words): (Vec<&str>, Vec<&str>) = call
        .arguments
        .split_whitespace()
        .partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--refresh") {
        return Err(COMMAND.misused(format!("`{unknown}` is no option of /models")));
    }
    let list = match host.known_models() {
        Some(list) if flags.is_empty() && list.age_s <= FRESH_S => list,
        _ => host.fetch_models().await?,
    };
    let current = host.model().model;
    let fits = |row: &&ModelRow| {
        words
            .iter()
            .all(|word| row.id.to_lowercase().contains(&word.to_lowercase()))
    };
    let found: Vec<&ModelRow> = list.models.iter().filter(fits).collect();
    Ok(CommandOutput::text(text(&list, &found, &current)).with_value(json!({
        "age_s": list.age_s,
        "models": found.iter().map(|row| json!({
            "id": row.id, "context_length": row.context_length, "tools": row.tools, "price": row.price,
        })).collect::<Vec<_>>(),
    })))
}

fn text(list: &ModelList, found: &[&ModelRow], current: &str) -> String {
    let mut text = String::new();
    if let Some(problem) = &list.problem {
        let _ = writeln!(text, "The server was asked and did not answer: {problem}\n");
    }
    text.push_str("| model | context | tools | $ per million tokens, in / out |\n|---|--:|---|--:|\n");
    for row in found.iter().take(SHOWN) {
        let mark = if row.id == current { " (in use)" } else { "" };
        let context = row
            .context_length
            .map_or_else(|| "–".to_owned(), |tokens| tokens.to_string());
        let tools = match row.tools {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        let price = row.price.map_or_else(
            || "–".to_owned(),
            |(prompt, answer)| format!("{prompt:.2} / {answer:.2}"),
        );
        let _ = writeln!(text, "| `{}`{mark} | {context} | {tools} | {price} |", row.id);
    }
    if found.len() > SHOWN {
        let _ = writeln!(
            text,
            "\n{} more; `/models TEXT` shows those with TEXT in their name.",
            found.len() - SHOWN
        );
    }
    let _ = writeln!(
        text,
        "\n{} of {} models, asked for {}.",
        found.len().min(SHOWN),
        list.models.len(),
        age(list.age_s)
    );
    text
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit() {
        let told: Vec<String> = [0, 59, 60, 3599, 7200, 200_000].into_iter().map(age).collect();
        assert_eq!(
            told,
            [
                "just now",
                "just now",
                "1 min ago",
                "59 min ago",
                "2 h ago",
                "2 days ago"
            ]
        );
    }
}
