//! What a command may ask of the session it runs in. The runtime implements it; commands know nothing else of it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::command::registry::Registry;
use crate::command::user;
use crate::config::{Config, DottedPath, Layer};
use crate::error::AgentError;
use crate::message::Usage;
use crate::protocol::ChangedFile;
use crate::role::{Role, SelectedModel};

/// Something a session does that takes its time.
pub type HostFuture<'a, T> = BoxFuture<'a, Result<T, AgentError>>;

/// A change of the configuration that was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The key, in its shortest spelling.
    pub path: DottedPath,
    /// What holds now, in one line; secrets masked.
    pub value: String,
    /// The layer that it comes from now: another than `/config set` where something lies above or nothing is left.
    pub layer: Layer,
    /// Whether it is kept only until this session ends.
    pub session_only: bool,
}

/// What reading everything again brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// What was not taken, and why; what held before still does.
    pub problems: Vec<String>,
    /// How many commands of the user's own there are.
    pub user_commands: usize,
}

/// A model that a server has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRow {
    /// The id to request it by.
    pub id: String,
    /// How many tokens it can see.
    pub context_length: Option<u64>,
    /// Whether it can call tools, where the server tells.
    pub tools: Option<bool>,
    /// US dollars for a million tokens of prompt and of answer.
    pub price: Option<(f64, f64)>,
}

/// The models of the server in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelList {
    /// The models, in the server's order.
    pub models: Vec<ModelRow>,
    /// How old the list is, in seconds.
    pub age_s: u64,
    /// Why an older list is shown than was asked for.
    pub problem: Option<String>,
}

/// A tool as `/tools` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// What it does, in one sentence.
    pub summary: String,
    /// Why it is not offered; `None` where it is.
    pub withheld: Option<&'static str>,
}

/// A command in the background as `/jobs` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRow {
    /// Its name.
    pub id: String,
    /// Its command.
    pub command: String,
    /// How far it is, in words without a full stop.
    pub state: String,
    /// Whether anything of it still runs.
    pub runs: bool,
    /// Bytes it has written.
    pub bytes: u64,
}

/// The system prompt as `/prompt` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptView {
    /// The text.
    pub text: String,
    /// Whether the conversation has it already; otherwise it is what the next turn would begin with.
    pub frozen: bool,
}

/// A file that tools changed, compared with what it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeView {
    /// What is told of it.
    pub file: ChangedFile,
    /// The difference as a unified diff; empty where it cannot be shown.
    pub diff: String,
}

/// What tools changed; files that are as they were before are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeViews {
    /// In the turn that runs, else in the last one.
    pub turn: Vec<ChangeView>,
    /// In the conversation, earlier sessions included.
    pub conversation: Vec<ChangeView>,
}

/// Which profile to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProfileChoice {
    /// The one that the configuration names, if it names one.
    #[default]
    Configured,
    /// None.
    Off,
    /// This one.
    Named(String),
}

/// What a command may ask of the session it runs in.
pub trait CommandHost: Send {
    /// The built-in commands.
    fn registry(&self) -> Arc<Registry>;
    /// The commands of the user and of the repository, read anew.
    fn user_commands(&self) -> user::Loaded;
    /// Leaves the conversation and starts a new one; gives its id.
    ///
    /// # Errors
    /// `policy` while a turn runs.
    fn new_conversation(&mut self) -> Result<String, AgentError>;
    /// Takes everything that was said out of the conversation, here and in the store; gives how many messages.
    fn clear_conversation(&mut self) -> HostFuture<'_, usize>;
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
    /// The effective configuration.
    fn config(&self) -> Config;
    /// Sets a key, or with no value unsets it, keeps that and goes on with it.
    fn change_config<'a>(&'a mut self, path: &'a str, value: Option<&'a str>) -> HostFuture<'a, Changed>;
    /// Reads the user's file, the kept changes, the memories and the user's commands again; the system prompt is built
    /// anew.
    fn reload(&mut self) -> HostFuture<'_, Reloaded>;
    /// The role in use.
    fn role(&self) -> Role;
    /// Goes on in another role; the system prompt is built anew.
    ///
    /// # Errors
    /// `policy` where there is no such role, or it is for delegated work only.
    fn set_role(&mut self, name: &str) -> Result<Role, AgentError>;
    /// The model of the next turn, and which of the eight steps named it.
    fn model(&self) -> SelectedModel;
    /// Names the model of this conversation, or with `None` leaves it to the configuration.
    fn set_model(&mut self, model: Option<String>);
    /// The server's models as last asked for.
    fn known_models(&self) -> Option<ModelList>;
    /// Asks the server for its models; where it does not answer, the list asked for before with the reason.
    fn fetch_models(&mut self) -> HostFuture<'_, ModelList>;
    /// All tools.
    fn tools(&self) -> Vec<ToolRow>;
    /// What the tools changed, compared with the files as they are now.
    fn changes(&self) -> HostFuture<'_, ChangeViews>;
    /// The commands in the background, those that have ended too.
    fn jobs(&self) -> Vec<JobRow>;
    /// Ends one with everything it started; gives what became of it.
    fn kill_job<'a>(&'a mut self, id: &'a str) -> HostFuture<'a, JobRow>;
    /// The system prompt.
    fn system_prompt(&self) -> PromptView;
    /// Asks the last line again once the command has ended, in place of its last answer; gives the line.
    ///
    /// # Errors
    /// `policy` where there is no last line.
    fn retry(&mut self) -> Result<String, AgentError>;
    /// Goes on under a profile in this session; gives the name of the one in use now.
    ///
    /// # Errors
    /// `schema` where there is no such profile.
    fn set_profile(&mut self, choice: ProfileChoice) -> Result<Option<String>, AgentError>;
    /// Whether tools that change something are withheld.
    fn read_only(&self) -> bool;
    /// Withholds them, or offers them again, from the next turn on.
    fn set_read_only(&mut self, on: bool);
    /// The last thing the model said to the user.
    fn last_answer(&self) -> Option<String>;
    /// Puts a text into the clipboard of the user's terminal.
    ///
    /// # Errors
    /// `policy` where the client has no terminal for that.
    fn copy(&mut self, text: &str) -> Result<(), AgentError>;
}
