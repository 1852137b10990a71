//! `/jobs`: the commands that run in the background.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::command::host::CommandHost;
use crate::command::line::{CommandLine, split_arguments};
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::error::AgentError;

/// How much of a command's text a line of the list has room for, in characters.
const COMMAND_CHARS: usize = 60;

pub(super) static COMMAND: Command = Command {
    name: "jobs",
    args: "[kill JOB]",
    help: "List the commands in the background, or end one",
    details: "What the model started in the background, and what a command left running. `kill` ends a job with everything \
              it started. All of them end with the session.",
    during_turn: true,
    completer: Completer::Jobs,
    run: |call, host| Box::pin(run(call, host)),
};

async fn run(call: CommandLine<'_>, host: &mut dyn CommandHost) -> Result<CommandOutput, AgentError> {
    match split_arguments(call.arguments)[..] {
        [] => Ok(list(host)),
        ["kill", id] => {
            let row = host.kill_job(id).await?;
            Ok(CommandOutput::text(format!("`{}`: {}.", row.id, row.state)).with_value(value(&row)))
        }
        ["kill"] => Err(COMMAND.misused("/jobs kill takes the name of one job")),
        _ => Err(COMMAND.misused(format!("/jobs does not know `{}`", call.arguments))),
    }
}

fn list(host: &dyn CommandHost) -> CommandOutput {
    let jobs = host.jobs();
    if jobs.is_empty() {
        return CommandOutput::text("Nothing runs in the background.").with_value(json!([]));
    }
    let mut text = String::from("| job | state | output | command |\n|---|---|--:|---|\n");
    for row in &jobs {
        let mut command: String = row.command.chars().take(COMMAND_CHARS).collect();
        if command.len() < row.command.len() {
            command.push('…');
        }
        let command = command.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | {} bytes | `{command}` |",
            row.id, row.state, row.bytes
        );
    }
    CommandOutput::text(text).with_value(jobs.iter().map(value).collect())
}

fn value(row: &crate::command::host::JobRow) -> Value {
    json!({"job": row.id, "running": row.runs, "state": row.state, "output_bytes": row.bytes, "command": row.command})
}
