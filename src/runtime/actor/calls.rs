//! Lines that call something: commands, commands of the user's own, and lines for the shell.

use std::sync::Arc;

use crate::cancel::CancelToken;
use crate::command::{Command, CommandLine, CommandOutput};
use crate::error::{AgentError, ErrorKind};
use crate::protocol::{EventKind, NoticeLevel, Submit};
use crate::runtime::actor::Actor;
use crate::runtime::inbox::Inbox;
use crate::runtime::start::TurnRequest;

impl Actor {
    pub(super) async fn command(&mut self, call: CommandLine<'_>, submit: &Submit, inbox: &mut Inbox) {
        let registry = Arc::clone(&self.services.command);
        let output = match registry.find(call.name) {
            Some(command) => self.run_command(command, call, inbox).await,
            None => {
                let mine = self.shared.user_commands.read(&registry, &self.cwd);
                match mine.commands.iter().find(|own| own.name == call.name) {
                    Some(own) => {
                        self.say(TurnRequest {
                            line: submit.line.clone(),
                            text: Some(own.expand(call.arguments)),
                            role: own.role,
                            model: own.model.clone(),
                            attachments: submit.attachments.clone(),
                            replaces: None,
                        });
                        return;
                    }
                    None => {
                        // A file that is there and cannot be used is the better answer.
                        let name = format!("{}.md", call.name);
                        let broken = mine.problems.iter().find(|problem| problem.path.ends_with(&name));
                        let names: Vec<&str> = mine.commands.iter().map(|own| own.name.as_str()).collect();
                        registry
                            .get(call.name, &names)
                            .map_err(|error| match broken {
                                Some(problem) => error.with_hint(problem.to_string()),
                                None => error,
                            })
                            .map(|_| CommandOutput::default())
                    }
                }
            }
        };
        // A command that asks the user answers at the end of that.
        if self.dialog.is_none() || output.is_err() {
            self.emit_output(call.name, output);
        }
        if let Some(request) = self.after_command.take() {
            self.say(request);
        }
    }

    async fn run_command(
        &mut self,
        command: &Command,
        call: CommandLine<'_>,
        inbox: &mut Inbox,
    ) -> Result<CommandOutput, AgentError> {
        let running = self.lifecycle.current_turn().is_some();
        if running && !command.during_turn {
            return Err(has_to_wait(&format!("/{}", command.name)));
        }
        if command.args.is_empty() && !call.arguments.trim().is_empty() {
            return Err(command.misused(format!("/{} takes no arguments", command.name)));
        }
        let cancel = CancelToken::new_root();
        self.command_cancel = cancel.clone();
        inbox.attend(&cancel, running, (command.run)(call, self)).await
    }

    pub(super) async fn shell_line(&mut self, line: &str, inbox: &mut Inbox) {
        if self.lifecycle.current_turn().is_some() {
            let error = has_to_wait("a line for the shell");
            self.tell(NoticeLevel::Warn, error.message, error.hint.map(Into::into));
            self.bus.emit(EventKind::Prefill {
                text: format!("!{line}"),
            });
            return;
        }
        let cancel = CancelToken::new_root();
        inbox.attend(&cancel, false, self.run_shell(line, &cancel)).await;
    }
}

fn has_to_wait(what: &str) -> AgentError {
    AgentError::new(
        ErrorKind::Policy,
        "turn_active",
        format!("{what} has to wait until the turn has ended"),
    )
    .from_origin("command")
    .with_hint("cancel the turn, or wait for it")
}
