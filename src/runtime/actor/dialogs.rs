//! What the actor does for commands that ask the user, and for a session that has no model server yet.

use std::sync::Arc;

use crate::command::CommandOutput;
use crate::config::{self, Paths};
use crate::error::{AgentError, ErrorKind};
use crate::llm::{DEMO_MODEL, Provider};
use crate::protocol::{EventKind, NoticeLevel};
use crate::role::SelectedModel;
use crate::runtime::actor::{Actor, Message};
use crate::runtime::dialog::dialog;
use crate::runtime::services;
use crate::runtime::setup::{Choice, Setup};

impl Actor {
    /// Begins `/setup`.
    pub(super) fn begin_setup(&mut self) -> Result<(), AgentError> {
        if self.dialog.is_some() {
            let message = "another command is asking something";
            return Err(AgentError::new(ErrorKind::Policy, "dialog_open", message)
                .from_origin("command")
                .with_hint("answer it, or cancel it"));
        }
        let paths = self.paths()?;
        let (open, questions) = dialog(&self.bus);
        let setup = Setup {
            questions,
            user_file: paths.user_file(),
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
        let output = outcome.and_then(|choice| {
            self.reload()?;
            self.model_override = None;
            self.setup_text(&choice)
        });
        let output = match output {
            Err(error) if error.kind == ErrorKind::Cancelled => Ok(CommandOutput::text("Nothing was changed.")),
            other => other,
        };
        self.emit_output("setup", output);
    }

    fn setup_text(&self, choice: &Choice) -> Result<CommandOutput, AgentError> {
        let paths = self.paths()?;
        let file = paths.shorten(&paths.user_file());
        let model = self.services.model.select(self.role, None).model;
        let mut text = format!("Written to `{file}`.");
        if model == choice.model && self.services.config.opt_str("llm_config.api_url") == Some(&choice.api_url) {
            text.push_str(&format!(" The next line goes to {model} at {}.", choice.api_url));
        } else {
            text.push_str(" Something you set elsewhere is before it, so the next line goes to ");
            text.push_str(&format!("{model}. `/config` shows what is set where."));
        }
        Ok(CommandOutput::text(text))
    }

    fn paths(&self) -> Result<Paths, AgentError> {
        Paths::new(|name| self.env.get(name).map(ToOwned::to_owned)).map_err(AgentError::from)
    }

    /// Reads the configuration again and puts the services of it in force.
    pub(super) fn reload(&mut self) -> Result<(), AgentError> {
        let paths = self.paths()?;
        let old = self.services.config.layers().clone();
        let loaded = config::load(
            &paths.user_file(),
            old.patch,
            old.ephemeral,
            Some(&self.services.config),
        );
        for problem in loaded.problems {
            self.tell_error(problem.into());
        }
        let store = self.services.persistence.clone();
        let state_dir = paths.state_dir();
        let composed = services::compose(loaded.config, store, &self.env, &state_dir, self.handles.clone());
        self.services = Arc::new(composed);
        self.current_services.replace(Arc::clone(&self.services));
        let model = self
            .services
            .model
            .select(self.role, self.model_override.as_deref())
            .model;
        self.set_status(|status| status.model = model);
        Ok(())
    }

    /// The model of a turn and who answers for it. In a terminal without a server that is the embedded model; the second
    /// value says whether that has to be told.
    pub(super) fn model_of_turn(&mut self) -> Result<(SelectedModel, Arc<dyn Provider>, bool), AgentError> {
        let service = &self.services.model;
        let selection = service.select(self.role, self.model_override.as_deref());
        match service.provider(&selection.model) {
            Ok(provider) => Ok((selection, provider, false)),
            Err(error) if error.code == "no_api_url" && self.shell => {
                let selection = service.select(self.role, Some(DEMO_MODEL));
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
