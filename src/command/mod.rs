//! Commands: lines that start with `/`.
//!
//! `line` tells a command from a prompt and takes it apart; `user` reads the commands that users and repositories write
//! themselves.

mod front_matter;
mod line;
mod user;

pub use line::{CommandLine, is_command_name, split_arguments};
pub use user::{Loaded, Problem, Source, UserCommand, load};
