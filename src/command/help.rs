//! `/help`: the commands there are.

use crate::command::registry::{Command, CommandOutput, Completer};
use crate::command::user::UserCommand;

pub(super) static COMMAND: Command = Command {
    name: "help",
    args: "[COMMAND]",
    help: "List the commands, or say what one does",
    details: "Commands of your own are listed after the built-in ones; a file of them that cannot be used is told here.",
    during_turn: true,
    completer: Completer::Commands,
    run: |call, host| {
        Box::pin(async move {
            let registry = host.registry();
            let mine = host.user_commands();
            if call.arguments.is_empty() {
                let mut text: String = registry.list().iter().map(|command| line(command)).collect();
                if !mine.commands.is_empty() {
                    text.push_str("\nYour own:\n\n");
                    text.extend(mine.commands.iter().map(own_line));
                }
                if !mine.problems.is_empty() {
                    text.push_str("\nNot as written:\n\n");
                    text.extend(mine.problems.iter().map(|problem| format!("- {problem}\n")));
                }
                text.push_str("\n`!COMMAND` runs a line in the shell; `@PATH` attaches a file to what you type.\n");
                return Ok(CommandOutput::text(text));
            }
            let name = call.arguments.trim_start_matches('/');
            if registry.find(name).is_none()
                && let Some(own) = mine.commands.iter().find(|own| own.name == name)
            {
                let text = format!("{}\n{}: `{}`\n", own_line(own), own.source, own.path.display());
                return Ok(CommandOutput::text(text));
            }
            let names: Vec<&str> = mine.commands.iter().map(|own| own.name.as_str()).collect();
            let command = registry.get(name, &names)?;
            let mut text = line(command);
            if !command.details.is_empty() {
                text.push('\n');
                text.push_str(command.details);
                text.push('\n');
            }
            Ok(CommandOutput::text(text))
        })
    },
};

fn line(command: &Command) -> String {
    format!("- `{}`: {}\n", command.usage(), command.help)
}

fn own_line(command: &UserCommand) -> String {
    let hint = command.argument_hint.as_deref().unwrap_or_default();
    let space = if hint.is_empty() { "" } else { " " };
    format!("- `/{}{space}{hint}`: {}\n", command.name, command.description)
}
