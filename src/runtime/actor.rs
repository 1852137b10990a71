//! The actor of a session: the one task that owns its state. Ops reach it as messages and take effect one by one; a turn
//! runs beside it, so that cancelling, steering and commands work meanwhile.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::command::{self, CommandHost, CommandLine};
use crate::conversation::{Transcript, Window};
use crate::error::{AgentError, ErrorKind};
use crate::message::Usage;
use crate::persistence::ProjectMemory;
use crate::process::Environment;
use crate::prompt::{MemoryEntry, with_note};
use crate::protocol::{
    CancelScope, EventKind, EventQueue, Hello, NoticeLevel, SessionState, Status, StopReason, Submit, Theme,
};
use crate::role::Role;
use crate::runtime::bus::EventBus;
use crate::runtime::context::ExecutionContext;
use crate::runtime::conversations::{self, ConversationStart, OpenedConversation};
use crate::runtime::dialog::Dialog;
use crate::runtime::ids;
use crate::runtime::lifecycle::{Lifecycle, SessionStatus};
use crate::runtime::options::SessionOptions;
use crate::runtime::presence::Presence;
use crate::runtime::scope::{TurnScope, project};
use crate::runtime::screen::Screen;
use crate::runtime::services::{CurrentServices, ServiceHandles, Services};
use crate::runtime::setup::{Choice, no_server_notice};
use crate::runtime::steering::Steering;
use crate::runtime::turns::{self, Conversation, PROMPT_STATE, TurnJob};
use crate::runtime::usage::UsageTracker;
use crate::runtime::views::Views;
use crate::tool::ToolState;
use crate::ui::pager::{Document, Pager};

mod dialogs;

/// How long jobs of the background have to end well when the session ends; a carrier waits for it.
const JOBS_GRACE: Duration = Duration::from_millis(250);

/// What reaches the actor.
pub(super) enum Message {
    Submit {
        submit: Submit,
        command: bool,
    },
    Cancel {
        scope: CancelScope,
        reason: String,
    },
    Answer {
        question_id: String,
        value: Value,
    },
    Resize {
        cols: u16,
        rows: u16,
    },
    Theme(Theme),
    ViewKey {
        view_id: String,
        key: String,
    },
    Close {
        reason: String,
    },
    /// The running turn ended; its conversation comes back.
    TurnEnded {
        conversation: Box<Conversation>,
        stop_reason: StopReason,
    },
    /// Another process had this conversation open first.
    ConversationTaken(String),
    /// `/setup` came to its end.
    SetupEnded(Result<Choice, AgentError>),
}

/// The actor.
pub(super) struct Actor {
    session_id: Arc<str>,
    services: Arc<Services>,
    /// Where the session finds the services, for when they are replaced.
    current_services: CurrentServices,
    handles: ServiceHandles,
    bus: EventBus,
    status: Arc<Mutex<Status>>,
    screen: Option<Screen>,
    views: Views,
    /// Where this is a terminal that keeps its conversations.
    presence: Option<Presence>,
    /// The questions a command is asking.
    dialog: Option<Dialog>,
    inbox: mpsc::UnboundedSender<Message>,
    lifecycle: Lifecycle,
    role: Role,
    model_override: Option<String>,
    cwd: PathBuf,
    env: Environment,
    /// At home here between turns, with the turn's task while one runs.
    conversation: Option<Box<Conversation>>,
    steering: Steering,
    tool_state: Arc<ToolState>,
    memories: Vec<ProjectMemory>,
    shell: bool,
    told_of_demo: bool,
    remember: bool,
    /// Whether the conversation was chosen by us and may be left to a terminal that was faster.
    may_give_way: bool,
    closing: bool,
    /// Lines handed over so far, and how many of them were told to be worked off.
    inputs: u64,
    settled: u64,
}

impl Actor {
    #[expect(
        clippy::too_many_arguments,
        reason = "called once; a struct of the same fields would only name them twice"
    )]
    pub(super) fn new(
        hello: Hello,
        options: SessionOptions,
        current_services: CurrentServices,
        role: Role,
        opened: OpenedConversation,
        memories: Vec<ProjectMemory>,
        env: Environment,
        bus: EventBus,
        status: Arc<Mutex<Status>>,
        screen: Option<Screen>,
        inbox: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let mut lifecycle = Lifecycle::default();
        // A new lifecycle always starts.
        let _ = lifecycle.start();
        let services = current_services.get();
        let remember = options.shell && !options.ephemeral;
        let presence = remember.then(|| Presence::new(services.persistence.clone(), bus.clone(), inbox.clone()));
        let may_give_way = options.start == ConversationStart::Auto;
        Self {
            session_id: ids::session().into(),
            services,
            current_services,
            handles: options.handles,
            bus,
            status,
            screen,
            views: Views::new(hello.term.rows),
            presence,
            dialog: None,
            inbox,
            lifecycle,
            role,
            model_override: options.model.or_else(|| opened.record.model_override.clone()),
            cwd: hello.cwd.into(),
            env,
            conversation: Some(Box::new(in_memory(opened))),
            steering: Steering::default(),
            tool_state: Arc::new(ToolState::default()),
            memories,
            shell: options.shell,
            told_of_demo: false,
            remember,
            may_give_way,
            closing: false,
            inputs: 0,
            settled: 0,
        }
    }

    /// Works off messages until the session ends, then closes the queue. A defect in one op is told as an error and does
    /// not end the session.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>, queue: Arc<EventQueue>) {
        self.announce();
        while let Some(message) = inbox.recv().await {
            let handled = AssertUnwindSafe(async { self.handle(message) }).catch_unwind().await;
            if handled.is_err() {
                let text = "an internal error: the last input was not worked on".to_owned();
                self.bus.notice(
                    NoticeLevel::Error,
                    text,
                    Some("try again, and please report this".to_owned()),
                );
                self.bus.emit(EventKind::StatusChanged {
                    state: SessionState::Error,
                });
            }
            self.settle();
            if self.closing && self.lifecycle.current_turn().is_none() {
                break;
            }
        }
        // What was started in the background does not outlive the session.
        self.tool_state.jobs().stop_all(JOBS_GRACE).await;
        if let Some(presence) = &self.presence {
            presence.leave().await;
        }
        queue.close();
    }

    /// Says which conversation is open here.
    fn announce(&self) {
        if let (Some(presence), Some(conversation)) = (&self.presence, &self.conversation) {
            presence.announce(&conversation.record);
        }
    }

    /// Tells, once, that nothing is left to do for the lines handed over.
    fn settle(&mut self) {
        if self.settled < self.inputs && self.lifecycle.current_turn().is_none() && self.dialog.is_none() {
            self.settled = self.inputs;
            self.bus.emit(EventKind::InputSettled {
                inputs: self.inputs,
                closing: self.closing,
            });
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Submit { submit, command } => self.submit(submit, command),
            Message::Cancel { scope, reason } => self.cancel(scope, &reason),
            Message::Answer { question_id, value } => match &self.dialog {
                Some(dialog) => dialog.answer(question_id, value),
                None => self.tell(
                    NoticeLevel::Warn,
                    format!("there is no question `{question_id}` to answer"),
                    None,
                ),
            },
            Message::Resize { cols, rows } => {
                if let Some(screen) = &self.screen {
                    screen.resize(cols, rows);
                    self.views.redraw(Some(rows), screen, &self.bus);
                }
            }
            Message::Theme(theme) => {
                let problems = self
                    .screen
                    .as_ref()
                    .map(|screen| screen.set_theme(&theme))
                    .unwrap_or_default();
                problems
                    .into_iter()
                    .for_each(|problem| self.tell(NoticeLevel::Warn, problem, None));
                if let Some(screen) = &self.screen {
                    self.views.redraw(None, screen, &self.bus);
                }
            }
            Message::ViewKey { view_id, key } => {
                if let Err(error) = self.views.key(&view_id, &key, self.screen.as_ref(), &self.bus) {
                    self.tell(NoticeLevel::Warn, error.message, None);
                }
            }
            Message::ConversationTaken(id) => self.leave_conversation(&id),
            Message::SetupEnded(outcome) => self.setup_ended(outcome),
            Message::Close { reason } => {
                self.closing = true;
                if let Some(dialog) = self.dialog.take() {
                    dialog.cancel.cancel();
                }
                self.lifecycle.stop(&reason);
            }
            Message::TurnEnded {
                conversation,
                stop_reason,
            } => self.turn_ended(conversation, stop_reason),
        }
    }

    fn tell(&self, level: NoticeLevel, text: String, hint: Option<String>) {
        self.bus.notice(level, text, hint);
    }

    fn tell_error(&self, error: AgentError) {
        self.tell(NoticeLevel::Error, error.message, error.hint.map(Into::into));
    }

    fn set_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn submit(&mut self, submit: Submit, command: bool) {
        self.inputs += 1;
        if !submit.cwd.is_empty() {
            self.cwd = PathBuf::from(&submit.cwd);
        }
        if !submit.env.is_empty() {
            self.env = self.env.with_changes(submit.env.clone());
        }
        if command && let Some(call) = CommandLine::parse(&submit.line) {
            self.command(&call);
            return;
        }
        if submit.line.trim().is_empty() {
            return;
        }
        if self.dialog.is_some() {
            self.refuse_during_dialog(submit.line);
        } else if self.lifecycle.current_turn().is_some() {
            self.steer(submit.line);
        } else if let Err(error) = self.start_turn(submit.line) {
            self.tell_error(error);
            self.bus.emit(EventKind::StatusChanged {
                state: SessionState::Error,
            });
        }
    }

    fn command(&mut self, call: &CommandLine<'_>) {
        let registry = Arc::clone(&self.services.command);
        let running = self.lifecycle.current_turn().is_some();
        let output = registry.get(call.name).and_then(|command| {
            if running && !command.during_turn {
                let message = format!("/{} has to wait until the turn has ended", command.name);
                let error = AgentError::new(ErrorKind::Policy, "turn_active", message).from_origin("command");
                return Err(error.with_hint("cancel the turn, or wait for it"));
            }
            (command.run)(call, self)
        });
        // A command that asks the user answers at the end of that.
        if self.dialog.is_none() || output.is_err() {
            self.emit_output(call.name, output);
        }
    }

    /// Begins a new conversation where nothing was said yet in the one that another terminal resumed first.
    fn leave_conversation(&mut self, id: &str) {
        let is_open = self.conversation.as_ref().is_some_and(|open| open.record.id == id);
        if is_open && self.may_give_way && self.inputs == 0 && self.new_conversation().is_ok() {
            let text = "the last conversation was resumed by another terminal at the same moment; this is a new one";
            self.tell(NoticeLevel::Info, text.to_owned(), None);
        }
    }

    fn steer(&mut self, line: String) {
        match self.steering.push(line.clone()) {
            Some(queued) => {
                self.set_status(|status| status.queued = queued);
                self.bus.emit(EventKind::InputQueued { text: line, queued });
            }
            None => {
                let hint = "wait for the current step, or cancel the turn".to_owned();
                self.tell(
                    NoticeLevel::Warn,
                    "too many lines wait already; this one was not taken".to_owned(),
                    Some(hint),
                );
                self.bus.emit(EventKind::Prefill { text: line });
            }
        }
    }

    fn start_turn(&mut self, line: String) -> Result<(), AgentError> {
        let Some(mut conversation) = self.conversation.take() else {
            return Err(AgentError::internal(
                "runtime",
                "the conversation is still with an earlier turn",
            ));
        };
        let job = self.turn_job(&mut conversation, line);
        let (job, tell_of_demo) = match job {
            Ok(job) => job,
            Err(error) => {
                self.conversation = Some(conversation);
                return Err(error);
            }
        };
        let inbox = self.inbox.clone();
        let bus = self.bus.clone();
        tokio::spawn(async move {
            if tell_of_demo {
                let (text, hint) = no_server_notice(&job.turn.cancel).await;
                bus.notice(NoticeLevel::Info, text, hint);
            }
            let stop_reason = turns::run(job, &mut conversation).await;
            // Where the actor is gone, nobody needs the conversation any more.
            let _ = inbox.send(Message::TurnEnded {
                conversation,
                stop_reason,
            });
        });
        Ok(())
    }

    /// What the next turn needs; and whether the user has to hear first that the embedded model answers.
    fn turn_job(&mut self, conversation: &mut Conversation, line: String) -> Result<(TurnJob, bool), AgentError> {
        let scope = TurnScope {
            project: project(&self.cwd),
            env: self.env.clone(),
        };
        let (selection, provider, tell_of_demo) = self.model_of_turn()?;
        let memories: Vec<_> = self
            .memories
            .iter()
            .map(|memory| MemoryEntry::new(&memory.id, &memory.content))
            .collect();
        let built = self.services.prompt.system_prompt(self.role, &scope.project, &memories);
        let told = conversation.told.as_ref();
        let note = told.and_then(|told| built.state.note_since(told, Some(&scope.project)));
        if conversation.transcript.system.is_none() {
            built
                .notices
                .into_iter()
                .for_each(|text| self.tell(NoticeLevel::Warn, text, None));
            conversation.record.system_prompt = Some(built.text.clone());
            conversation.transcript.system = Some(built.text);
        }
        conversation.tell(built.state);
        let record = &mut conversation.record;
        record.role = self.role.name().to_owned();
        record.cwd = scope.project.cwd.display().to_string();
        record.model_override.clone_from(&self.model_override);
        if record.title.is_empty() {
            record.title = title(&line);
        }
        let turn = self.lifecycle.begin_turn(record.turns + 1)?;
        self.set_status(|status| {
            status.model.clone_from(&selection.model);
            status.role = self.role.name().to_owned();
            status.label = self.role.spec().label.to_owned();
        });
        let input = with_note(note.as_deref(), &line);
        let job = TurnJob {
            context: ExecutionContext {
                session_id: Arc::clone(&self.session_id),
                active_role: self.role,
                conversation_id: conversation.record.id.as_str().into(),
                services: Arc::clone(&self.services),
                scope,
                model_override: self.model_override.clone(),
            },
            turn,
            provider,
            model: selection,
            input: crate::message::Message::user(input),
            line,
            bus: self.bus.clone(),
            steering: self.steering.clone(),
            tool_state: Arc::clone(&self.tool_state),
            remember: self.remember,
        };
        Ok((job, tell_of_demo))
    }

    fn cancel(&mut self, _scope: CancelScope, reason: &str) {
        if let Some(dialog) = &self.dialog {
            dialog.cancel.cancel();
        }
        let Some(turn) = self.lifecycle.current_turn() else {
            return;
        };
        if turn.cancel.is_cancelled() {
            // Asked again: it does not wait any longer for tools to end well.
            turn.cancel.cancel_now();
            return;
        }
        self.bus.emit_turn(
            &turn.id,
            EventKind::TurnCancelRequested {
                reason: reason.to_owned(),
            },
        );
        turn.cancel.cancel();
        // Lines that waited to join this turn go back to the user; what is typed from now on is for the next one.
        self.give_back(self.steering.drain());
    }

    fn give_back(&self, lines: Vec<String>) {
        if !lines.is_empty() {
            self.set_status(|status| status.queued = 0);
            self.bus.emit(EventKind::Prefill { text: lines.join("\n") });
        }
    }

    fn turn_ended(&mut self, conversation: Box<Conversation>, stop_reason: StopReason) {
        let usage = conversation
            .usage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .total();
        let conversation_id = conversation.record.id.clone();
        self.conversation = Some(conversation);
        self.lifecycle.finish_turn();
        let waiting = self.steering.drain();
        self.set_status(|status| {
            status.queued = 0;
            status.usage = usage;
            status.conversation_id = conversation_id;
        });
        if waiting.is_empty() {
            return;
        }
        // Lines that came too late to join the turn are the next one's; those it failed on go back to the user.
        if stop_reason == StopReason::Error || self.lifecycle.status != SessionStatus::Running {
            self.give_back(waiting);
        } else if let Err(error) = self.start_turn(waiting.join("\n")) {
            self.tell_error(error);
        }
    }
}

impl CommandHost for Actor {
    fn registry(&self) -> Arc<command::Registry> {
        Arc::clone(&self.services.command)
    }

    fn new_conversation(&mut self) -> Result<String, AgentError> {
        if self.lifecycle.current_turn().is_some() {
            return Err(AgentError::new(ErrorKind::Policy, "turn_active", "a turn is running").from_origin("runtime"));
        }
        let opened = conversations::fresh(&project(&self.cwd).project_id);
        let id = opened.record.id.clone();
        self.conversation = Some(Box::new(in_memory(opened)));
        self.set_status(|status| {
            status.conversation_id.clone_from(&id);
            status.usage = Usage::default();
        });
        self.announce();
        Ok(id)
    }

    fn usage(&self) -> (Usage, Vec<(String, Usage)>) {
        let Some(conversation) = &self.conversation else {
            return Default::default();
        };
        let tracker = conversation.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let children = tracker
            .children()
            .iter()
            .map(|(role, usage)| (role.name().to_owned(), usage.clone()));
        (tracker.parent().clone(), children.collect())
    }

    fn show_conversation(&mut self) -> Result<(), AgentError> {
        let Some(conversation) = &self.conversation else {
            return Err(AgentError::new(ErrorKind::Policy, "turn_active", "a turn is running").from_origin("runtime"));
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
}

fn in_memory(opened: OpenedConversation) -> Conversation {
    let OpenedConversation {
        record,
        messages,
        usage,
        ..
    } = opened;
    let mut parent = Usage::default();
    let mut children: BTreeMap<Role, Usage> = BTreeMap::new();
    for used in usage {
        match (&used.child_job, Role::from_name(&used.role)) {
            (Some(_), Some(role)) => children.entry(role).or_default().add(&used.usage),
            _ => parent.add(&used.usage),
        }
    }
    let kept = messages.len();
    let told = record
        .extra
        .get(PROMPT_STATE)
        .cloned()
        .and_then(|state| serde_json::from_value(state).ok());
    Conversation {
        transcript: Transcript::resumed(record.id.clone(), record.system_prompt.clone(), messages),
        record,
        window: Window::default(),
        kept,
        usage: Arc::new(Mutex::new(UsageTracker::resumed(parent, children))),
        told,
    }
}

/// The first line of what the user said first, as the conversation's name in lists.
fn title(line: &str) -> String {
    const MAX_CHARS: usize = 80;
    line.trim()
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_CHARS)
        .collect()
}
