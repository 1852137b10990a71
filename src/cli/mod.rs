//! The command line of the executable: one file a subcommand, one declaration from which parsing and help derive.

mod args;
mod config;
mod db;
mod doctor;
mod exec;
mod log;
mod serve;
mod shell;
mod signals;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Args, Command};

use crate::bridge::{catch, quiet_panics};
use crate::config::Paths;
use crate::error::AgentError;

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The turn was completed.
    Completed = 0,
    /// Something failed.
    Error = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A limit was reached.
    BudgetExhausted = 3,
    /// The user interrupted.
    Cancelled = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs the executable on the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version go to stdout and are no failure; clap prints both where they belong.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { ExitCode::SUCCESS } else { Exit::Usage.into() };
        }
    };
    if matches!(args.command, Some(Command::Serve)) {
        serve::close_inherited();
    }
    if let Some(path) = &args.log
        && let Err(error) = log::to_file(path)
    {
        complain(&error);
        return Exit::Usage.into();
    }
    // A panic is told here, in one line and with the place it was at; the hook itself says nothing.
    quiet_panics();
    catch(|| Ok(dispatch(args.command))).unwrap_or_else(|defect| {
        let place = defect.cause.as_deref().unwrap_or("at an unknown place");
        write_stderr(&format!(
            "agent-smith: {}, {place}; please report this\n",
            one_line(&defect.message)
        ));
        Exit::Error.into()
    })
}

fn dispatch(command: Option<Command>) -> ExitCode {
    match command {
        Some(Command::Exec(exec)) => exec::run(exec).into(),
        Some(Command::Serve) => serve::run().into(),
        Some(Command::Doctor { repair, json }) => doctor::run(repair, json).into(),
        Some(Command::Config { command }) => config::run(command).into(),
        Some(Command::Db { command }) => db::run(&command).into(),
        None => shell::run(),
    }
}

/// Where the user's files are, by this process's own environment.
fn paths() -> Result<Paths, AgentError> {
    Ok(Paths::new(|name| std::env::var_os(name))?)
}

/// Tells the user of an error in one line on stderr, with its hint.
fn complain(error: &AgentError) {
    write_stderr(&format!("agent-smith: {}\n", one_line(&error.to_string())));
}

/// Writes to stderr. Where that is closed there is nobody left to tell.
fn write_stderr(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(": ")
}
