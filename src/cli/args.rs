//! The arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use super::config::ConfigCommand;
use super::db::DbCommand;

/// A coding agent for the terminal. Without a subcommand it opens its own shell.
#[derive(Debug, Parser)]
#[command(name = "agent-smith", version, about, max_term_width = 100)]
pub(super) struct Args {
    /// Append a debug log to FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub log: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run one turn without a terminal and print the answer
    Exec(ExecArgs),
    /// Serve one session on stdin and stdout, as JSON lines, to the program that started this one
    ///
    /// For hosts that cannot load the core: see docs/EMBEDDING.md. It ends with its client.
    Serve,
    /// Check the host, the carriers, the configuration, the model server, the store and the terminal, and say what to do
    /// about what is wrong
    Doctor {
        /// Move a damaged database aside and bring what is readable in it into a new one
        #[arg(long)]
        repair: bool,
        /// Print the checks as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the configuration, or edit the user's file
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look after the database
    Db {
        #[command(subcommand)]
        command: DbCommand,
    },
}

/// Exit codes: 0 completed, 1 error, 2 wrong usage or configuration, 3 a limit was reached, 130 cancelled.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 completed, 1 error, 2 usage or configuration, 3 a limit was reached, 130 cancelled."
)]
pub(super) struct ExecArgs {
    /// What to do; - reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub prompt: OsString,
    /// Print one event a line as JSON, and last the turn's result
    #[arg(long)]
    pub json: bool,
    /// Start a new conversation (the default)
    #[arg(long, conflicts_with_all = ["resume", "conversation"])]
    pub new: bool,
    /// Go on with the latest conversation of this project
    #[arg(long, conflicts_with = "conversation")]
    pub resume: bool,
    /// Go on with this conversation
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// The role to act in: direct or orchestrator
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// The model to ask; demo is the embedded one that needs no server
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The profile of the configuration to use: a server with its key and its models
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// The directory to work in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Record what is said on the wire, without secrets, in FILE, which must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Answer from the recording in FILE instead of a server
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Keep nothing of this conversation
    #[arg(long)]
    pub ephemeral: bool,
    /// While the turn runs, let each line of stdin join it, as a line typed in the shell does
    #[arg(long)]
    pub steer: bool,
}
