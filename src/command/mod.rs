//! Commands: lines that start with `/`.
//!
//! `line` tells a command from a prompt and takes it apart; `registry` has the built-in ones, one file each, from which
//! help, completion, docs/COMMANDS.md and suggestions derive; `host` is what they may ask of the session; `user` reads the
//! commands that users and repositories write themselves.

mod clear;
mod config;
mod copy;
mod diff;
mod docs;
mod front_matter;
mod help;
mod host;
mod jobs;
mod line;
mod model;
mod models;
mod new;
mod pager;
mod profile;
mod prompt;
mod quit;
mod readonly;
mod registry;
mod reload;
mod retry;
mod role;
mod setup;
mod tools;
mod usage;
mod user;

pub use docs::markdown;
pub use host::{
    ChangeView, ChangeViews, Changed, CommandHost, HostFuture, JobRow, ModelList, ModelRow, ProfileChoice, PromptView,
    Reloaded, ToolRow,
};
pub use line::{CommandLine, is_command_name, split_arguments};
pub use registry::{Command, CommandFuture, CommandOutput, Completer, Registry, Run};
pub use user::{Loaded, Problem, Source, UserCommand, load};

/// The one list of built-in commands.
static BUILTIN: [&Command; 20] = [
    &clear::COMMAND,
    &config::COMMAND,
    &copy::COMMAND,
    &diff::COMMAND,
    &help::COMMAND,
    &jobs::COMMAND,
    &model::COMMAND,
    &models::COMMAND,
    &new::COMMAND,
    &pager::COMMAND,
    &profile::COMMAND,
    &prompt::COMMAND,
    &quit::COMMAND,
    &readonly::COMMAND,
    &reload::COMMAND,
    &retry::COMMAND,
    &role::COMMAND,
    &setup::COMMAND,
    &tools::COMMAND,
    &usage::COMMAND,
];
