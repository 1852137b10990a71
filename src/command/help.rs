//! `/help`: the commands there are.

use crate::command::registry::{Command, CommandOutput};

pub(super) static COMMAND: Command = Command {
    name: "help",
    args: "[COMMAND]",
    help: "List the commands, or say what one does",
    during_turn: true,
    run: |call, host| {
        let registry = host.registry();
        let line = |command: &Command| {
            let space = if command.args.is_empty() { "" } else { " " };
            format!("- `/{}{space}{}` {}\n", command.name, command.args, command.help)
        };
        if call.arguments.is_empty() {
            return Ok(CommandOutput::text(
                registry.list().iter().map(|command| line(command)).collect::<String>(),
            ));
        }
        let command = registry.get(call.arguments.trim_start_matches('/'))?;
        Ok(CommandOutput::text(line(command)))
    },
};
