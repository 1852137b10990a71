//! What commands ask of a session, answered by its actor.

use std::sync::{Arc, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::command::{
    ChangeViews, Changed, CommandHost, HostFuture, JobRow, Loaded, ModelList, ModelRow, ProfileChoice, PromptView,
    Registry, Reloaded, ToolRow,
};
use crate::config::{self, Config, ConfigError, Layer};
use crate::conversation::notice;
use crate::error::{AgentError, ErrorKind};
use crate::llm::Catalogue;
use crate::message::Usage;
use crate::persistence::{Batch, Store};
use crate::process::JobInfo;
use crate::protocol::{Durability, EventKind};
use crate::role::{Role, SelectedModel, ToolAccess, check_tool};
use crate::runtime::actor::Actor;
use crate::runtime::changes;
use crate::runtime::conversations;
use crate::runtime::held::Conversation;
use crate::runtime::scope::project;
use crate::runtime::session::{keys, user_facing_role};
use crate::runtime::start::TurnRequest;
use crate::tool::job_state_text;
use crate::ui::pager::{Document, Pager};

/// The longest text terminals take for the clipboard, in bytes before it is encoded: xterm and others stop at 100,000
/// encoded characters.
const MAX_CLIPBOARD_BYTES: usize = 74_994;

/// What the model is told of `/readonly`.
const READ_ONLY: &str =
    "Read-only: the user has withheld every tool that can change something. Look, think and propose.";
const NOT_READ_ONLY: &str = "No longer read-only: the tools that can change something are offered again.";

impl Actor {
    /// Lets the notes that wait be those that a conversation without a past needs.
    fn tell_anew(&mut self) {
        self.notes = Vec::from_iter(self.read_only.then(|| READ_ONLY.to_owned()));
    }

    /// Goes on with services over another configuration. A turn that runs keeps those it began with.
    pub(super) fn apply_config(&mut self, config: Config) {
        let store = self.services.persistence.clone();
        let services = Arc::new(self.composition.compose(config, store, &self.env));
        self.shared.set_services(Arc::clone(&services));
        self.services = services;
        self.show_selection();
    }

    /// Puts the role, the model and the keys that hold now into the status.
    pub(super) fn show_selection(&self) {
        let model = self.selection().model;
        let (role, keys) = (self.role, keys(&self.services.config));
        self.shared.change_status(|status| {
            status.model = model;
            status.role = role.name().to_owned();
            status.label = role.spec().label.to_owned();
            status.keys = keys;
        });
    }

    /// The patch that `/config set` has kept so far.
    fn kept_patch(&self, store: Store) -> impl Future<Output = Result<Value, AgentError>> + Send + use<> {
        let in_memory = self
            .composition
            .ephemeral
            .then(|| self.services.config.layers().patch.clone());
        async move {
            if let Some(patch) = in_memory {
                return Ok(patch);
            }
            let kept = store.read(|reader| reader.config_patch()).await?;
            Ok(kept.unwrap_or(Value::Null))
        }
    }

    async fn change(&mut self, path: &str, value: Option<&str>) -> Result<Changed, AgentError> {
        let store = self.services.persistence.clone();
        let patch = self.kept_patch(store.clone()).await?;
        let change = match value {
            Some(text) => config::set(&patch, path, text),
            None => config::unset(&patch, path),
        };
        let change = change.map_err(AgentError::from)?;
        let config = self
            .composition
            .with_patch(&self.services.config, &change.patch)
            .map_err(AgentError::from)?;
        let mut batch = Batch::default();
        if change.patch.as_object().is_some_and(serde_json::Map::is_empty) {
            batch.clear_config_patch();
        } else {
            batch.put_config_patch(change.patch);
        }
        let report = store.commit(batch).await;
        for told in report.notices {
            self.bus.emit(notice(told));
        }
        self.apply_config(config);
        let entry = config::entry(&self.services.config, &change.path);
        Ok(Changed {
            value: match &entry {
                Some(entry) if entry.value.is_none() => entry.value_words(),
                Some(entry) => format!("`{}`", entry.value_words()),
                None => "gone".to_owned(),
            },
            layer: entry.map_or(Layer::Unset, |entry| entry.layer),
            path: change.path,
            session_only: report.durability == Durability::MemoryOnly,
        })
    }

    async fn read_again(&mut self) -> Result<Reloaded, AgentError> {
        let store = self.services.persistence.clone();
        let patch = self.kept_patch(store.clone()).await?;
        let project_id = project(&self.cwd).project_id;
        if !self.composition.ephemeral {
            self.memories = store
                .read(move |reader| reader.memories(&project_id))
                .await
                .map_err(AgentError::from)?;
        }
        let loaded = self.composition.load(patch, Some(&self.services.config));
        let mut problems: Vec<String> = loaded.problems.iter().map(ConfigError::to_string).collect();
        self.apply_config(loaded.config);
        let commands = self.shared.user_commands.read(&self.services.command, &self.cwd);
        problems.extend(commands.problems.iter().map(ToString::to_string));
        if let Some(conversation) = &mut self.conversation {
            conversation.thaw();
        }
        Ok(Reloaded {
            problems,
            user_commands: commands.commands.len(),
        })
    }

    async fn clear(&mut self) -> Result<usize, AgentError> {
        let store = self.services.persistence.clone();
        let Some(conversation) = &mut self.conversation else {
            return Err(turn_runs());
        };
        let count = conversation.transcript.messages().len();
        let kept = conversation.record.turns > 0 || conversation.kept > 0;
        conversation.cut(0);
        conversation.thaw();
        conversation.record.title.clear();
        self.shell_output.clear();
        if kept {
            let mut batch = Batch::default();
            batch.clear_messages(&conversation.record.id);
            batch.put_conversation(conversation.record.clone());
            let report = store.commit(batch).await;
            for told in report.notices {
                self.bus.emit(notice(told));
            }
        }
        self.tell_anew();
        Ok(count)
    }

    async fn ask_for_models(&mut self) -> Result<ModelList, AgentError> {
        let services = Arc::clone(&self.services);
        match services.model.fetch_models(&self.command_cancel).await {
            Ok(list) => {
                // What the server says of a model's window counts from now on.
                self.show_selection();
                Ok(model_list(&list))
            }
            Err(error) if error.is_cancelled() => Err(error),
            Err(error) => match services.model.known_models() {
                Some(list) => Ok(ModelList {
                    problem: Some(error.message),
                    ..model_list(&list)
                }),
                None => Err(error),
            },
        }
    }
}

impl CommandHost for Actor {
    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.services.command)
    }

    fn user_commands(&self) -> Loaded {
        let loaded = self.shared.user_commands.read(&self.services.command, &self.cwd);
        Loaded::clone(&loaded)
    }

    fn new_conversation(&mut self) -> Result<String, AgentError> {
        if self.lifecycle.current_turn().is_some() {
            return Err(turn_runs());
        }
        let opened = conversations::fresh(&project(&self.cwd).project_id);
        let id = opened.record.id.clone();
        let conversation = Conversation::new(opened);
        self.usage = Arc::clone(&conversation.usage);
        self.conversation = Some(Box::new(conversation));
        self.model_override.clone_from(&self.session_model);
        self.tell_anew();
        self.show_selection();
        self.shared.change_status(|status| {
            status.conversation_id.clone_from(&id);
            status.usage = Usage::default();
        });
        self.announce();
        Ok(id)
    }

    fn clear_conversation(&mut self) -> HostFuture<'_, usize> {
        Box::pin(self.clear())
    }

    fn usage(&self) -> (Usage, Vec<(String, Usage)>) {
        let tracker = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let children = tracker
            .children()
            .iter()
            .map(|(role, usage)| (role.name().to_owned(), usage.clone()));
        (tracker.parent().clone(), children.collect())
    }

    fn show_conversation(&mut self) -> Result<(), AgentError> {
        let Some(conversation) = &self.conversation else {
            return Err(turn_runs());
        };
        let messages = conversation.transcript.messages().to_vec();
        let document = Document::Conversation(messages, self.role.name().to_owned());
        let title = match conversation.record.title.as_str() {
            "" => "Conversation",
            title => title,
        };
        let pager = Pager::new(title, document);
        self.views.open(Box::new(pager), self.screen.as_ref(), &self.bus)
    }

    fn start_setup(&mut self) -> Result<(), AgentError> {
        self.begin_setup()
    }

    fn quit(&mut self) {
        self.closing = true;
        self.lifecycle.stop("quit");
    }

    fn config(&self) -> Config {
        self.services.config.clone()
    }

    fn change_config<'a>(&'a mut self, path: &'a str, value: Option<&'a str>) -> HostFuture<'a, Changed> {
        Box::pin(self.change(path, value))
    }

    fn reload(&mut self) -> HostFuture<'_, Reloaded> {
        Box::pin(self.read_again())
    }

    fn role(&self) -> Role {
        self.role
    }

    fn set_role(&mut self, name: &str) -> Result<Role, AgentError> {
        let role = user_facing_role(&self.services, name)?;
        if role != self.role {
            self.role = role;
            if let Some(conversation) = &mut self.conversation {
                conversation.thaw();
            }
            self.show_selection();
        }
        Ok(role)
    }

    fn model(&self) -> SelectedModel {
        self.selection()
    }

    fn set_model(&mut self, model: Option<String>) {
        self.model_override = model;
        self.show_selection();
    }

    fn known_models(&self) -> Option<ModelList> {
        self.services.model.known_models().map(|list| model_list(&list))
    }

    fn fetch_models(&mut self) -> HostFuture<'_, ModelList> {
        Box::pin(self.ask_for_models())
    }

    fn tools(&self) -> Vec<ToolRow> {
        let registry = self.services.tool.registry();
        let offered = self.services.tool.definitions(self.role);
        let withheld = |spec: &crate::tool::ToolSpec| {
            if check_tool(self.role, &spec.name) == ToolAccess::Deny || !spec.allows(self.role) {
                Some("not for this role")
            } else if !offered.iter().any(|tool| tool.name == spec.name) {
                Some("disabled")
            } else {
                (self.read_only && spec.mutating).then_some("read-only")
            }
        };
        let row = |tool: &Arc<dyn crate::tool::Tool>| {
            let spec = tool.spec();
            ToolRow {
                name: spec.name.clone().into_owned(),
                summary: first_sentence(&spec.description),
                withheld: withheld(spec),
            }
        };
        registry.list().map(row).collect()
    }

    fn changes(&self) -> HostFuture<'_, ChangeViews> {
        let store = self.services.persistence.clone();
        let conversation_id = self.shared.status().conversation_id;
        // A turn's id begins with its number; where none runs, the last one counts.
        let turn = match (self.lifecycle.current_turn(), &self.conversation) {
            (Some(turn), _) => turn.number,
            (None, Some(conversation)) => conversation.record.turns,
            (None, None) => 0,
        };
        let cwd = self.cwd.clone();
        Box::pin(async move { changes::views(store, conversation_id, turn, cwd).await })
    }

    fn jobs(&self) -> Vec<JobRow> {
        self.tool_state.jobs().list().iter().map(job_row).collect()
    }

    fn kill_job<'a>(&'a mut self, id: &'a str) -> HostFuture<'a, JobRow> {
        Box::pin(async move {
            let job = self.tool_state.jobs().get(id).map_err(|error| {
                AgentError::new(ErrorKind::Policy, "no_job", error.to_string())
                    .from_origin("command")
                    .with_hint("/jobs lists them")
            })?;
            job.kill(self.services.tool.limits().kill_grace).await;
            Ok(job_row(&job.info()))
        })
    }

    fn system_prompt(&self) -> PromptView {
        let frozen = self
            .conversation
            .as_ref()
            .and_then(|held| held.transcript.system.clone());
        match frozen {
            Some(text) => PromptView { text, frozen: true },
            None => {
                let memories = self.memory_entries();
                let built = self
                    .services
                    .prompt
                    .system_prompt(self.role, &project(&self.cwd), &memories);
                PromptView {
                    text: built.text,
                    frozen: false,
                }
            }
        }
    }

    fn retry(&mut self) -> Result<String, AgentError> {
        let last = self.conversation.as_ref().and_then(|held| held.last_turn.clone());
        let Some(last) = last else {
            let message = "nothing was asked yet that could be asked again";
            return Err(AgentError::new(ErrorKind::Policy, "no_last_turn", message).from_origin("runtime"));
        };
        let line = last.line.clone();
        self.after_command = Some(TurnRequest {
            line: line.clone(),
            replaces: Some(last),
            ..TurnRequest::default()
        });
        Ok(line)
    }

    fn set_profile(&mut self, choice: ProfileChoice) -> Result<Option<String>, AgentError> {
        let before = std::mem::replace(&mut self.composition.profile, choice);
        match self.composition.under_profile(&self.services.config) {
            Ok(config) => {
                let name = config.profile_name().map(str::to_owned);
                self.apply_config(config);
                Ok(name)
            }
            Err(error) => {
                self.composition.profile = before;
                Err(error.into())
            }
        }
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn set_read_only(&mut self, on: bool) {
        if self.read_only == on {
            return;
        }
        self.read_only = on;
        let (note, opposite) = if on {
            (READ_ONLY, NOT_READ_ONLY)
        } else {
            (NOT_READ_ONLY, READ_ONLY)
        };
        // What was taken back before it was told needs no telling.
        match self.notes.iter().position(|waiting| waiting == opposite) {
            Some(untold) => drop(self.notes.remove(untold)),
            None => self.notes.push(note.to_owned()),
        }
    }

    fn last_answer(&self) -> Option<String> {
        let answer = self.conversation.as_ref()?.transcript.last_answer();
        (!answer.is_empty()).then(|| answer.to_owned())
    }

    fn copy(&mut self, text: &str) -> Result<(), AgentError> {
        let refused = |code: &'static str, message: String| {
            Err(AgentError::new(ErrorKind::Policy, code, message).from_origin("runtime"))
        };
        if !self.draws {
            return refused(
                "no_terminal",
                "this client has no terminal whose clipboard could be set".to_owned(),
            );
        }
        if text.len() > MAX_CLIPBOARD_BYTES {
            let message = format!(
                "the answer has {} bytes, and terminals take at most {MAX_CLIPBOARD_BYTES} for the clipboard",
                text.len()
            );
            return refused("too_long", message);
        }
        // OSC 52, ended by ST: the terminal takes it out of what it shows.
        self.bus.emit(EventKind::Render {
            ansi: format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text)),
            transient: false,
        });
        Ok(())
    }
}

fn job_row(info: &JobInfo) -> JobRow {
    JobRow {
        id: info.id.clone(),
        command: info.command.clone(),
        state: job_state_text(info).trim_end_matches('.').to_owned(),
        runs: info.runs(),
        bytes: info.bytes,
    }
}

fn turn_runs() -> AgentError {
    AgentError::new(ErrorKind::Policy, "turn_active", "a turn is running").from_origin("runtime")
}

fn model_list(list: &Catalogue) -> ModelList {
    let row = |model: &crate::llm::ModelInfo| ModelRow {
        id: model.id.clone(),
        context_length: model.context_length,
        tools: model.tools,
        price: model.price.map(|price| (price.prompt, price.completion)),
    };
    ModelList {
        models: list.models.iter().map(row).collect(),
        age_s: list.age().as_secs(),
        problem: None,
    }
}

/// The first sentence of a description, in one line.
fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..=end]).to_owned()
}
