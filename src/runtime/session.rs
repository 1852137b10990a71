//! A session: the handle every carrier holds. Ops go in, events come out; nothing here waits for a turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::command::ProfileChoice;
use crate::config::{Config, Paths};
use crate::error::{AgentError, ErrorKind};
use crate::llm::DEMO_MODEL;
use crate::persistence::{ProjectMemory, Store, StoreError, StoreOptions};
use crate::process::Environment;
use crate::protocol::{
    CancelScope, Candidate, Event, EventKind, EventQueue, Hello, NoticeLevel, Op, PROTOCOL_VERSION, SessionState,
    Status, Submit, Theme, Welcome,
};
use crate::role::Role;
use crate::runtime::actor::Actor;
use crate::runtime::bus::EventBus;
use crate::runtime::complete;
use crate::runtime::composition::Composition;
use crate::runtime::conversations::ConversationStart;
use crate::runtime::executor;
use crate::runtime::inbox::Message;
use crate::runtime::options::SessionOptions;
use crate::runtime::scope;
use crate::runtime::screen::Screen;
use crate::runtime::services::Services;
use crate::runtime::shared::Shared;
use crate::runtime::user_commands::UserCommands;

/// What this core can do beyond the first version of the contract.
const CAPABILITIES: [&str; 2] = ["steering", "llm_text_was_thinking"];

/// A session. Dropping it stops what runs.
pub struct Session {
    queue: Arc<EventQueue>,
    shared: Arc<Shared>,
    messages: mpsc::UnboundedSender<Message>,
    screen: Option<Screen>,
    closed: AtomicBool,
}

impl Session {
    /// Opens a session for a client that said `hello`.
    ///
    /// # Errors
    /// `schema` where the contract's versions differ, the role or conversation does not exist, or, unless
    /// `options.shell`, the configuration is bad; `persistence` where a conversation to resume cannot be read.
    pub fn open(hello: Hello, options: SessionOptions) -> Result<(Self, Welcome), AgentError> {
        check_protocol(hello.protocol)?;
        let env = match &hello.env {
            Some(env) => env.iter().collect(),
            None => Environment::capture(),
        };
        let bus = EventBus::default();
        let queue = Arc::new(EventQueue::default());
        let sink = Arc::clone(&queue);
        bus.subscribe(move |event| sink.push(event.clone()));

        let paths = Paths::new(|name| env.get(name).map(ToOwned::to_owned)).map_err(AgentError::from)?;
        let disk = Store::new(StoreOptions::at(paths.database()));
        let project = scope::project(hello.cwd.as_ref());
        let kept = read_kept(&disk, &project.project_id);
        let (patch, memories) = kept.unwrap_or_else(|error| {
            let error = AgentError::from(error);
            bus.notice(NoticeLevel::Warn, error.message, error.hint.map(Into::into));
            (Value::Null, Vec::new())
        });
        let composition = Composition {
            paths,
            handles: options.handles.clone(),
            overrides: options.overrides.clone(),
            profile: options
                .profile
                .clone()
                .map_or(ProfileChoice::Configured, ProfileChoice::Named),
            ephemeral: options.ephemeral,
        };
        let config = effective_config(&composition, patch, options.shell, &bus)?;
        let store = if options.ephemeral {
            Store::new(StoreOptions::ephemeral())
        } else {
            disk
        };
        let services = Arc::new(composition.compose(config, store, &env));
        let name = options
            .role
            .as_deref()
            .unwrap_or_else(|| services.config.str("active_role"));
        let role = user_facing_role(&services, name)?;
        let opened = services.conversation.open(&options.start, &project.project_id)?;
        if options.start == ConversationStart::Auto
            && let Some(greeting) = opened.greeting()
        {
            bus.notice(NoticeLevel::Info, greeting, None);
        }
        let status = first_status(&services, role, &opened.record.id, &options);
        let user_commands = UserCommands::new(composition.paths.user_commands());
        let shared = Arc::new(Shared::new(services, status, hello.cwd.clone().into(), user_commands));
        follow_state(&bus, &shared);
        let screen = if hello.render {
            let theme = Theme {
                palette: hello.palette.clone(),
                styles: None,
            };
            let renderer = shared.services().ui.renderer(&hello.term, &env, &theme)?;
            let screen = Screen::new(renderer, &queue);
            screen.follow(&bus);
            Some(screen)
        } else {
            None
        };
        let (messages, inbox) = mpsc::unbounded_channel();
        let actor = Actor::new(
            hello,
            options,
            composition,
            Arc::clone(&shared),
            role,
            opened,
            memories,
            env,
            bus,
            screen.clone(),
            messages.clone(),
        );
        executor::runtime()?.spawn(actor.run(inbox, Arc::clone(&queue)));
        let welcome = Welcome {
            protocol: PROTOCOL_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: CAPABILITIES.iter().map(|&capability| capability.to_owned()).collect(),
        };
        Ok((
            Self {
                queue,
                shared,
                messages,
                screen,
                closed: AtomicBool::new(false),
            },
            welcome,
        ))
    }

    /// The services as they are now, for callers that ask them directly.
    #[must_use]
    pub fn services(&self) -> Arc<Services> {
        self.shared.services()
    }

    fn send(&self, message: Message) -> Result<(), AgentError> {
        self.messages.send(message).map_err(|_| {
            AgentError::new(ErrorKind::Policy, "session_closed", "the session is closed").from_origin("runtime")
        })
    }

    /// Takes a line the user typed: a command, the input of a turn, or, while one runs, something to join it.
    ///
    /// # Errors
    /// `policy` where the session is closed.
    pub fn submit(&self, submit: Submit) -> Result<(), AgentError> {
        self.send(Message::Submit { submit, command: true })
    }

    /// Takes a line as the input of a turn, even where it looks like a command; checks first that a model can be asked.
    ///
    /// # Errors
    /// As [`Session::submit`]; and `schema` where no server is configured.
    pub fn submit_prompt(&self, submit: Submit) -> Result<(), AgentError> {
        let model = self.status().model;
        self.shared.services().model.provider(&model)?;
        self.send(Message::Submit { submit, command: false })
    }

    /// Stops what runs; asked for again, at once and without waiting for tools to end well. Without anything running it
    /// does nothing.
    pub fn cancel(&self, scope: CancelScope, reason: &str) {
        let _ = self.send(Message::Cancel {
            scope,
            reason: reason.to_owned(),
        });
    }

    /// Answers a question.
    ///
    /// # Errors
    /// `policy` where the session is closed.
    pub fn answer(&self, question_id: String, value: Value) -> Result<(), AgentError> {
        self.send(Message::Answer { question_id, value })
    }

    /// Candidates for the line being typed.
    #[must_use]
    pub fn complete(&self, line: &str, cursor: usize) -> Vec<Candidate> {
        complete::candidates(&self.shared, line, cursor)
    }

    /// What the prompt line needs.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.shared.status();
        if let Some(screen) = &self.screen {
            status.prompt = screen.prompt(&status);
        }
        status
    }

    /// Takes the events that wait; where none does, waits up to `timeout`, or, while something moves on the client's
    /// screen, for the next frame.
    #[must_use]
    pub fn poll(&self, timeout: Duration) -> Vec<Event> {
        let Some(screen) = &self.screen else {
            return self.queue.poll(timeout);
        };
        let events = self.queue.poll(screen.patience(timeout));
        if !events.is_empty() {
            return events;
        }
        screen.tick();
        self.queue.poll(Duration::ZERO)
    }

    /// Calls `waker` whenever events begin to wait.
    pub fn set_waker(&self, waker: impl Fn() + Send + 'static) {
        self.queue.set_waker(waker);
    }

    /// Ends the session; a running turn is cancelled and kept. The last events can still be polled.
    pub fn close(&self, reason: &str) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            let _ = self.send(Message::Close {
                reason: reason.to_owned(),
            });
        }
    }

    /// Whether the session ended and every event was taken.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_finished()
    }

    /// Does any op that may follow `hello`, and gives its answer; for carriers that pass ops through.
    ///
    /// # Errors
    /// Those of the op.
    pub fn call(&self, op: Op) -> Result<Value, AgentError> {
        match op {
            Op::Hello(_) => {
                let message = "hello was said already; a second session needs a core of its own";
                return Err(AgentError::new(ErrorKind::Schema, "second_hello", message).from_origin("protocol"));
            }
            Op::Submit(submit) => self.submit(submit)?,
            Op::Cancel { scope } => self.cancel(scope, "cancel"),
            Op::Answer { question_id, value } => self.answer(question_id, value)?,
            Op::Complete { line, cursor } => return Ok(json!(self.complete(&line, cursor))),
            Op::Status => return Ok(json!(self.status())),
            Op::Resize { cols, rows } => self.send(Message::Resize { cols, rows })?,
            Op::Theme(theme) => self.send(Message::Theme(theme))?,
            Op::ViewKey { view_id, key } => self.send(Message::ViewKey { view_id, key })?,
            Op::Close { reason } => self.close(&reason),
        }
        Ok(Value::Bool(true))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close("dropped");
    }
}

fn check_protocol(client: u32) -> Result<(), AgentError> {
    if client == PROTOCOL_VERSION {
        return Ok(());
    }
    let older = if client < PROTOCOL_VERSION {
        "the client (the Lua package)"
    } else {
        "the core (agent-smith)"
    };
    let message = format!("the client speaks version {client} of the contract, the core {PROTOCOL_VERSION}");
    Err(AgentError::new(ErrorKind::Schema, "protocol_mismatch", message)
        .from_origin("protocol")
        .with_hint(format!("update {older}")))
}

fn read_kept(store: &Store, project_id: &str) -> Result<(Value, Vec<ProjectMemory>), StoreError> {
    let project_id = project_id.to_owned();
    store.read_blocking(move |reader| {
        Ok((
            reader.config_patch()?.unwrap_or(Value::Null),
            reader.memories(&project_id)?,
        ))
    })
}

fn effective_config(
    composition: &Composition,
    patch: Value,
    shell: bool,
    bus: &EventBus,
) -> Result<Config, AgentError> {
    let loaded = composition.load(patch, None);
    let mut problems = loaded.problems.into_iter().map(AgentError::from);
    if shell {
        problems.for_each(|error| bus.notice(NoticeLevel::Error, error.message, error.hint.map(Into::into)));
    } else if let Some(error) = problems.next() {
        return Err(error);
    }
    Ok(loaded.config)
}

/// The role called `name`, if a user can act in it.
pub(super) fn user_facing_role(services: &Services, name: &str) -> Result<Role, AgentError> {
    let spec = services.role.resolve_role(name)?;
    if !spec.user_facing {
        let message = format!("the role `{name}` is for delegated work only");
        return Err(AgentError::new(ErrorKind::Policy, "role_not_user_facing", message)
            .from_origin("role")
            .with_hint("choose direct or orchestrator"));
    }
    Ok(spec.role)
}

fn first_status(services: &Services, role: Role, conversation_id: &str, options: &SessionOptions) -> Status {
    let no_server = services.config.opt_str("llm_config.api_url").is_none() && options.handles.model.is_none();
    let model = match &options.model {
        None if no_server && options.shell => DEMO_MODEL.to_owned(),
        model => services.model.select(role, model.as_deref()).model,
    };
    Status {
        prompt: String::new(),
        state: SessionState::Idle,
        role: role.name().to_owned(),
        label: role.spec().label.to_owned(),
        model,
        conversation_id: conversation_id.to_owned(),
        queued: 0,
        usage: Default::default(),
        context_pct: None,
        keys: keys(&services.config),
    }
}

/// The key combinations the user chose.
pub(super) fn keys(config: &Config) -> BTreeMap<String, String> {
    let chosen = config
        .value_at(&["keys"])
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    chosen
        .filter_map(|(name, combo)| Some((name.clone(), combo.as_str()?.to_owned())))
        .collect()
}

/// Keeps the status's state at what the events say.
fn follow_state(bus: &EventBus, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    bus.subscribe(move |event| {
        if let EventKind::StatusChanged { state } = event.kind {
            shared.change_status(|status| status.state = state);
        }
    });
}
