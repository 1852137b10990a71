//! What the actor does for commands that ask the user, and for a session that has no model server yet.

use std::sync::Arc;

use crate::command::CommandOutput;
use crate::error::{AgentError, ErrorKind};
use crate::llm::{DEMO_MODEL, Provider};
use crate::protocol::{EventKind, NoticeLevel};
use crate::role::{Role, SelectedModel};
use crate::runtime::actor::Actor;
use crate::runtime::dialog::dialog;
use crate::runtime::inbox::Message;
use crate::runtime::setup::{Choice, Setup};

/// The code of the error that no server is configured.
const NO_SERVER: &str = "no_api_url";

impl Actor {
    /// Begins `/setup`.
    pub(in crate::runtime) fn begin_setup(&mut self) -> Result<(), AgentError> {
        if self.dialog.is_some() {
            let message = "another command is asking something";
            return Err(AgentError::new(ErrorKind::Policy, "dialog_open", message)
                .from_origin("command")
                .with_hint("answer it, or cancel it"));
        }
        let (open, questions) = dialog(&self.bus);
        let setup = Setup {
            questions,
            user_file: self.composition.paths.user_file(),
            config: self.services.config.clone(),
            env: self.env.clone(),
        };
        self.dialog = Some(open);
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let outcome = setup.run().await;
            // Where the actor is gone, nobody waits for the outcome.
            let _ = inbox.send(Message::SetupEnded(outcome));
        });
        Ok(())
    }

    /// Tells how `/setup` ended; what it wrote is in force from here on.
    pub(super) fn setup_ended(&mut self, outcome: Result<Choice, AgentError>) {
        self.dialog = None;
        let output = outcome.map(|choice| {
            self.model_override = None;
            self.read_user_file();
            self.setup_text(&choice)
        });
        let output = match output {
            Err(error) if error.kind == ErrorKind::Cancelled => Ok(CommandOutput::text("Nothing was changed.")),
            other => other,
        };
        self.emit_output("setup", output);
    }

    fn setup_text(&self, choice: &Choice) -> CommandOutput {
        let paths = &self.composition.paths;
        let file = paths.shorten(&paths.user_file());
        let model = self.services.model.select(self.role, None).model;
        let mut text = format!("Written to `{file}`.");
        if model == choice.model && self.services.config.opt_str("llm_config.api_url") == Some(&choice.api_url) {
            text.push_str(&format!(" The next line goes to {model} at {}.", choice.api_url));
        } else {
            text.push_str(" Something you set elsewhere is before it, so the next line goes to ");
            text.push_str(&format!("{model}. `/config` shows what is set where."));
        }
        CommandOutput::text(text)
    }

    /// Reads the user's file again and goes on with what it says.
    fn read_user_file(&mut self) {
        let patch = self.services.config.layers().patch.clone();
        let loaded = self.composition.load(patch, Some(&self.services.config));
        for problem in loaded.problems {
            self.tell_error(problem.into());
        }
        self.apply_config(loaded.config);
    }

    /// The model of the next turn: in a terminal without a server that is the embedded one.
    pub(in crate::runtime) fn selection(&self) -> SelectedModel {
        let service = &self.services.model;
        let selection = service.select(self.role, self.model_override.as_deref());
        match service.provider(&selection.model) {
            Err(error) if error.code == NO_SERVER && self.shell => service.select(self.role, Some(DEMO_MODEL)),
            _ => selection,
        }
    }

    /// The model of a turn and who answers for it. In a terminal without a server that is the embedded model; the third
    /// value says whether that has to be told.
    pub(in crate::runtime) fn model_of_turn(
        &mut self,
        role: Role,
        model_override: Option<&str>,
    ) -> Result<(SelectedModel, Arc<dyn Provider>, bool), AgentError> {
        let service = &self.services.model;
        let selection = service.select(role, model_override);
        match service.provider(&selection.model) {
            Ok(provider) => Ok((selection, provider, false)),
            Err(error) if error.code == NO_SERVER && self.shell => {
                let selection = service.select(role, Some(DEMO_MODEL));
                let provider = service.provider(DEMO_MODEL)?;
                let tell = !std::mem::replace(&mut self.told_of_demo, true);
                Ok((selection, provider, tell))
            }
            Err(error) => Err(error),
        }
    }

    /// Emits a command's answer.
    pub(super) fn emit_output(&self, command: &str, output: Result<CommandOutput, AgentError>) {
        let command = command.to_owned();
        self.bus.emit(match output {
            Ok(output) => EventKind::CommandOutput {
                command,
                text: output.text,
                ok: true,
                value: output.value,
            },
            Err(error) => EventKind::CommandOutput {
                command,
                text: error.to_string(),
                ok: false,
                value: None,
            },
        });
    }

    /// A line that is neither a command nor an answer, while a command asks something.
    pub(super) fn refuse_during_dialog(&self, line: String) {
        let text = "a command is asking something; this line was not taken".to_owned();
        self.tell(NoticeLevel::Warn, text, Some("answer it, or cancel it".to_owned()));
        self.bus.emit(EventKind::Prefill { text: line });
    }
}
