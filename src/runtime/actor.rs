//! The actor of a session: the one task that owns its state. Ops reach it as messages and take effect one by one; a turn
//! runs beside it, so that cancelling, steering and commands work meanwhile.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::cancel::CancelToken;
use crate::command::{CommandHost, CommandLine, ProfileChoice};
use crate::error::AgentError;
use crate::persistence::ProjectMemory;
use crate::process::Environment;
use crate::protocol::{
    CancelScope, EventKind, EventQueue, Hello, NoticeLevel, SessionState, StopReason, Submit, Theme,
};
use crate::role::Role;
use crate::runtime::bus::EventBus;
use crate::runtime::composition::Composition;
use crate::runtime::conversations::{ConversationStart, OpenedConversation};
use crate::runtime::dialog::Dialog;
use crate::runtime::held::Conversation;
use crate::runtime::ids;
use crate::runtime::inbox::{Inbox, Message};
use crate::runtime::lifecycle::{Lifecycle, SessionStatus};
use crate::runtime::options::SessionOptions;
use crate::runtime::presence::Presence;
use crate::runtime::screen::Screen;
use crate::runtime::services::Services;
use crate::runtime::setup::no_server_notice;
use crate::runtime::shared::Shared;
use crate::runtime::shell::{self, ShellOutput};
use crate::runtime::start::TurnRequest;
use crate::runtime::steering::Steering;
use crate::runtime::turns;
use crate::runtime::usage::UsageTracker;
use crate::runtime::views::Views;
use crate::tool::ToolState;

mod calls;
mod dialogs;

/// How long jobs of the background have to end well when the session ends; a carrier waits for it.
const JOBS_GRACE: Duration = Duration::from_millis(250);

/// The actor.
pub(super) struct Actor {
    pub(super) session_id: Arc<str>,
    pub(super) composition: Composition,
    /// The services as they are now: the same as the shared ones.
    pub(super) services: Arc<Services>,
    pub(super) shared: Arc<Shared>,
    pub(super) bus: EventBus,
    pub(super) screen: Option<Screen>,
    pub(super) views: Views,
    /// Where this is a terminal that keeps its conversations.
    presence: Option<Presence>,
    /// The questions a command is asking.
    dialog: Option<Dialog>,
    inbox: mpsc::UnboundedSender<Message>,
    pub(super) lifecycle: Lifecycle,
    pub(super) role: Role,
    /// The model that the session was started with; that of each new conversation.
    pub(super) session_model: Option<String>,
    pub(super) model_override: Option<String>,
    pub(super) read_only: bool,
    pub(super) cwd: PathBuf,
    pub(super) env: Environment,
    /// At home here between turns, with the turn's task while one runs.
    pub(super) conversation: Option<Box<Conversation>>,
    /// What the conversation used, also while a turn has it.
    pub(super) usage: Arc<Mutex<UsageTracker>>,
    pub(super) steering: Steering,
    pub(super) tool_state: Arc<ToolState>,
    pub(super) memories: Vec<ProjectMemory>,
    /// What the model is to be told with the next turn.
    pub(super) notes: Vec<String>,
    pub(super) shell_output: ShellOutput,
    /// Whether a person works here, at a terminal.
    pub(super) shell: bool,
    told_of_demo: bool,
    pub(super) remember: bool,
    /// Whether the conversation was chosen by us and may be left to a terminal that was faster.
    may_give_way: bool,
    /// Whether the client draws what `render` events hold.
    pub(super) draws: bool,
    pub(super) closing: bool,
    /// Stops the command that runs.
    pub(super) command_cancel: CancelToken,
    /// The turn that the command that runs asks for.
    pub(super) after_command: Option<TurnRequest>,
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
        composition: Composition,
        shared: Arc<Shared>,
        role: Role,
        opened: OpenedConversation,
        memories: Vec<ProjectMemory>,
        env: Environment,
        bus: EventBus,
        screen: Option<Screen>,
        inbox: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let mut lifecycle = Lifecycle::default();
        // A new lifecycle always starts.
        let _ = lifecycle.start();
        let services = shared.services();
        let tool_state = Arc::clone(&shared.tool_state);
        let remember = options.shell && !options.ephemeral;
        let presence = remember.then(|| Presence::new(services.persistence.clone(), bus.clone(), inbox.clone()));
        let may_give_way = options.start == ConversationStart::Auto;
        let session_model = options.model;
        let model_override = session_model.clone().or_else(|| opened.record.model_override.clone());
        let conversation = Conversation::new(opened);
        Self {
            session_id: ids::session().into(),
            composition,
            services,
            shared,
            bus,
            screen,
            views: Views::new(hello.term.rows),
            presence,
            dialog: None,
            inbox,
            lifecycle,
            role,
            session_model,
            model_override,
            read_only: false,
            cwd: hello.cwd.into(),
            env,
            usage: Arc::clone(&conversation.usage),
            conversation: Some(Box::new(conversation)),
            steering: Steering::default(),
            tool_state,
            memories,
            notes: Vec::new(),
            shell_output: ShellOutput::default(),
            shell: options.shell,
            told_of_demo: false,
            remember,
            may_give_way,
            draws: hello.render && hello.term.is_tty,
            closing: false,
            command_cancel: CancelToken::new_root(),
            after_command: None,
            inputs: 0,
            settled: 0,
        }
    }

    /// Works off messages until the session ends, then closes the queue. A defect in one op is told as an error and does
    /// not end the session.
    pub(super) async fn run(mut self, inbox: mpsc::UnboundedReceiver<Message>, queue: Arc<EventQueue>) {
        self.announce();
        let mut inbox = Inbox::new(inbox);
        while let Some(message) = inbox.next().await {
            let handled = AssertUnwindSafe(self.handle(message, &mut inbox)).catch_unwind().await;
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
        // First, so that who sees the session closed cannot hand over anything any more.
        drop(inbox);
        queue.close();
    }

    /// Says which conversation is open here.
    pub(super) fn announce(&self) {
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

    async fn handle(&mut self, message: Message, inbox: &mut Inbox) {
        match message {
            Message::Submit { submit, command } => self.submit(submit, command, inbox).await,
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
            Message::Theme(theme) => self.set_theme(&theme),
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
                fell_back,
            } => self.turn_ended(conversation, stop_reason, fell_back),
        }
    }

    pub(super) fn tell(&self, level: NoticeLevel, text: String, hint: Option<String>) {
        self.bus.notice(level, text, hint);
    }

    pub(super) fn tell_error(&self, error: AgentError) {
        self.tell(NoticeLevel::Error, error.message, error.hint.map(Into::into));
    }

    fn set_theme(&mut self, theme: &Theme) {
        let Some(screen) = &self.screen else { return };
        for problem in screen.set_theme(theme) {
            self.tell(NoticeLevel::Warn, problem, None);
        }
        self.views.redraw(None, screen, &self.bus);
    }

    async fn submit(&mut self, submit: Submit, command: bool, inbox: &mut Inbox) {
        self.inputs += 1;
        if !submit.cwd.is_empty() {
            self.cwd = PathBuf::from(&submit.cwd);
            self.shared.set_cwd(self.cwd.clone());
        }
        if !submit.env.is_empty() {
            self.env = self.env.with_changes(submit.env.clone());
            // A key or a proxy may be among what changed.
            self.apply_config(self.services.config.clone());
        }
        if command && let Some(call) = CommandLine::parse(&submit.line) {
            self.command(call, &submit, inbox).await;
        } else if command && let Some(line) = shell::command_of(&submit.line) {
            self.shell_line(line, inbox).await;
        } else if !submit.line.trim().is_empty() || !submit.attachments.is_empty() {
            self.say(TurnRequest {
                attachments: submit.attachments,
                ..TurnRequest::line(submit.line)
            });
        }
    }

    /// Starts a turn, or lets the line join the one that runs.
    fn say(&mut self, request: TurnRequest) {
        if self.dialog.is_some() {
            self.refuse_during_dialog(request.line);
        } else if self.lifecycle.current_turn().is_some() {
            self.steer(request);
        } else if let Err(error) = self.start_turn(request) {
            self.tell_error(error);
            self.bus.emit(EventKind::StatusChanged {
                state: SessionState::Error,
            });
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

    fn steer(&mut self, request: TurnRequest) {
        let line = request.line;
        let text = self.with_files(request.text.as_deref().unwrap_or(&line), &request.attachments);
        match self.steering.push(line.clone(), text) {
            Some(queued) => {
                self.shared.change_status(|status| status.queued = queued);
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

    fn start_turn(&mut self, request: TurnRequest) -> Result<(), AgentError> {
        let Some(mut conversation) = self.conversation.take() else {
            return Err(AgentError::internal(
                "runtime",
                "the conversation is still with an earlier turn",
            ));
        };
        let job = self.turn_job(&mut conversation, request);
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
            let (stop_reason, fell_back) = turns::run(job, &mut conversation).await;
            // Where the actor is gone, nobody needs the conversation any more.
            let _ = inbox.send(Message::TurnEnded {
                conversation,
                stop_reason,
                fell_back,
            });
        });
        Ok(())
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
        self.give_back(self.steering.drain_typed());
    }

    fn give_back(&self, lines: Vec<String>) {
        if !lines.is_empty() {
            self.shared.change_status(|status| status.queued = 0);
            self.bus.emit(EventKind::Prefill { text: lines.join("\n") });
        }
    }

    fn turn_ended(&mut self, conversation: Box<Conversation>, stop_reason: StopReason, fell_back: Option<String>) {
        let usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).total();
        let conversation_id = conversation.record.id.clone();
        self.conversation = Some(conversation);
        self.lifecycle.finish_turn();
        if let Some(profile) = fell_back
            && let Err(error) = self.set_profile(ProfileChoice::Named(profile))
        {
            self.tell_error(error);
        }
        let waiting = self.steering.drain_typed();
        self.shared.change_status(|status| {
            status.queued = 0;
            status.usage = usage;
            status.conversation_id = conversation_id;
        });
        // A turn may have had a role or model of its own.
        self.show_selection();
        if waiting.is_empty() {
            return;
        }
        // Lines that came too late to join the turn are the next one's; those it failed on go back to the user.
        if stop_reason == StopReason::Error || self.lifecycle.status != SessionStatus::Running {
            self.give_back(waiting);
        } else if let Err(error) = self.start_turn(TurnRequest::line(waiting.join("\n"))) {
            self.tell_error(error);
        }
    }
}
