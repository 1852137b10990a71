//! Commands: lines that start with `/`.
//!
//! `line` tells a command from a prompt and takes it apart; `registry` has the built-in ones, one file each, from which
//! help, completion and suggestions derive; `user` reads the commands that users and repositories write themselves.

mod front_matter;
mod help;
mod line;
mod new;
mod pager;
mod quit;
mod registry;
mod setup;
mod usage;
mod user;

pub use line::{CommandLine, is_command_name, split_arguments};
pub use registry::{Command, CommandHost, CommandOutput, Registry};
pub use user::{Loaded, Problem, Source, UserCommand, load};

/// The one list of built-in commands.
static BUILTIN: [&Command; 6] = [
    &help::COMMAND,
    &new::COMMAND,
    &pager::COMMAND,
    &quit::COMMAND,
    &setup::COMMAND,
    &usage::COMMAND,
];
