//! The built-in commands, and what they may ask of the session they run in.

use std::sync::Arc;

use crate::command::line::CommandLine;
use crate::error::{AgentError, ErrorKind};
use crate::message::Usage;
use crate::nearest::nearest;

/// What a command may ask of the session it runs in.
pub trait CommandHost {
    /// The commands there are, for `/help`.
    fn registry(&self) -> Arc<Registry>;
    /// Leaves the conversation and starts a new one; gives its id.
    ///
    /// # Errors
    /// `policy` while a turn runs.
    fn new_conversation(&mut self) -> Result<String, AgentError>;
    /// What the conversation has used: the parent's own part, and each delegated role's.
    fn usage(&self) -> (Usage, Vec<(String, Usage)>);
    /// Opens the conversation in a full-screen view.
    ///
    /// # Errors
    /// `policy` while a turn has it, and where the client draws nothing.
    fn show_conversation(&mut self) -> Result<(), AgentError>;
    /// Begins to ask the user for a model server. The command's answer comes at the end of that.
    ///
    /// # Errors
    /// `policy` while another command asks something.
    fn start_setup(&mut self) -> Result<(), AgentError>;
    /// Ends the session.
    fn quit(&mut self);
}

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
    /// Whether it may run while a turn does.
    pub during_turn: bool,
    /// Does it.
    pub run: fn(&CommandLine<'_>, &mut dyn CommandHost) -> Result<CommandOutput, AgentError>,
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

    /// The command called `name`.
    ///
    /// # Errors
    /// `policy` with the nearest name; a command is never guessed.
    pub fn get(&self, name: &str) -> Result<&'static Command, AgentError> {
        if let Some(command) = self.commands.iter().find(|command| command.name == name) {
            return Ok(command);
        }
        let nearest = nearest(name, self.commands.iter().map(|command| command.name));
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
        let hint = |name: &str| Registry::builtin().get(name).unwrap_err().hint.unwrap().to_string();
        assert_eq!(hint("hlep"), "did you mean /help?");
        assert_eq!(hint("qiut"), "did you mean /quit?");
        assert_eq!(hint("zzzzzz"), "/help lists the commands");
    }
}
