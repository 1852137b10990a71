//! The built-in commands: what each is, and which of them a line calls.

use futures_util::future::BoxFuture;

use crate::command::host::CommandHost;
use crate::command::line::CommandLine;
use crate::error::{AgentError, ErrorKind};
use crate::nearest::nearest;

/// What a command answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandOutput {
    /// Markdown for a person.
    pub text: String,
    /// The same for a program.
    pub value: Option<serde_json::Value>,
}

impl CommandOutput {
    /// An answer for a person only.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: None,
        }
    }

    /// The answer with the same for a program.
    #[must_use]
    pub fn with_value(mut self, value: serde_json::Value) -> Self {
        self.value = Some(value);
        self
    }
}

/// A command at work. While it waits, the session goes on taking what its client sends, and a cancel reaches it.
pub type CommandFuture<'a> = BoxFuture<'a, Result<CommandOutput, AgentError>>;

/// What does a command's work.
pub type Run = for<'a> fn(CommandLine<'a>, &'a mut dyn CommandHost) -> CommandFuture<'a>;

/// What is offered for a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completer {
    /// Nothing.
    Nothing,
    /// The names of commands.
    Commands,
    /// `get`, `set`, `unset`, then keys, then values.
    Config,
    /// `kill`, then the jobs that run.
    Jobs,
    /// Models, and these words.
    Models(&'static [&'static str]),
    /// Roles that a user can act in.
    Roles,
    /// Profiles, and these words.
    Profiles(&'static [&'static str]),
    /// These words.
    Words(&'static [&'static str]),
}

/// A command.
#[derive(Debug)]
pub struct Command {
    /// Its name without the slash.
    pub name: &'static str,
    /// Its arguments, as help shows them.
    pub args: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// The rest of what there is to know, as Markdown; may be empty.
    pub details: &'static str,
    /// Whether it may run while a turn does.
    pub during_turn: bool,
    /// What is offered for its arguments.
    pub completer: Completer,
    /// Does it.
    pub run: Run,
}

impl Command {
    /// How it is typed: its name and arguments.
    #[must_use]
    pub fn usage(&self) -> String {
        let space = if self.args.is_empty() { "" } else { " " };
        format!("/{}{space}{}", self.name, self.args)
    }

    /// The error of a call with arguments it does not take.
    #[must_use]
    pub fn misused(&self, what: impl std::fmt::Display) -> AgentError {
        AgentError::new(ErrorKind::Schema, "command_arguments", what.to_string())
            .from_origin("command")
            .with_hint(format!("it is typed {}", self.usage()))
    }
}

/// The commands of a session, sorted by name.
#[derive(Debug)]
pub struct Registry {
    commands: Vec<&'static Command>,
}

impl Registry {
    /// The built-in commands.
    #[must_use]
    pub fn builtin() -> Self {
        let mut commands = super::BUILTIN.to_vec();
        commands.sort_by_key(|command| command.name);
        Self { commands }
    }

    /// All of them, sorted by name.
    #[must_use]
    pub fn list(&self) -> &[&'static Command] {
        &self.commands
    }

    /// The command called `name`, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Command> {
        self.commands.iter().find(|command| command.name == name).copied()
    }

    /// The command called `name`.
    ///
    /// # Errors
    /// `policy` with the nearest name, those in `others` included; a command is never guessed.
    pub fn get(&self, name: &str, others: &[&str]) -> Result<&'static Command, AgentError> {
        if let Some(command) = self.find(name) {
            return Ok(command);
        }
        let names = self.commands.iter().map(|command| command.name);
        let nearest = nearest(name, names.chain(others.iter().copied()));
        let hint = nearest.map_or_else(
            || "/help lists the commands".to_owned(),
            |name| format!("did you mean /{name}?"),
        );
        Err(AgentError::new(
            ErrorKind::Policy,
            "unknown_command",
            format!("there is no command /{name}"),
        )
        .from_origin("command")
        .with_hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_names_the_nearest() {
        let hint = |name: &str| {
            Registry::builtin()
                .get(name, &["review"])
                .unwrap_err()
                .hint
                .unwrap()
                .to_string()
        };
        assert_eq!(hint("hlep"), "did you mean /help?");
        assert_eq!(hint("qiut"), "did you mean /quit?");
        assert_eq!(hint("reveiw"), "did you mean /review?");
        assert_eq!(hint("zzzzzz"), "/help lists the commands");
    }
}
