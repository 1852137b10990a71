//! The standalone shell: what runs when `agent-smith` is called without a subcommand.
//!
//! It is a small Lua host of our own: it reads the package's description, gives the mode the same modules and objects
//! the real shell gives, edits lines, and switches between the mode and a plain shell line. The mode is the very one
//! that lives in other shells, so whatever it asks of its host is asked here every day.
//!
//! [`manifest`] is the package's description, [`package`] its Lua files, [`modules`] what `require` finds, [`mode`] a
//! mode at work, [`editor`] the line being typed, [`plain`] lines where there is no screen to edit on, [`typed`] what both leave, [`shell_line`]
//! the other mode, [`terminal`] and [`signals`] the way back from everything. Only this room and `bridge` know Lua; only
//! this room and `cli` handle signals.

mod app;
mod editor;
mod keys;
pub mod manifest;
mod mode;
mod modules;
pub mod package;
mod plain;
mod shell_line;
mod signals;
mod surroundings;
mod terminal;
mod typed;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use manifest::Manifest;

/// Why the shell cannot start.
#[derive(Debug, Error)]
pub enum HostError {
    /// The package is not in order.
    #[error(transparent)]
    Manifest(#[from] manifest::ManifestError),
    /// The mode does not load.
    #[error("The mode cannot be loaded: {0}")]
    Lua(#[from] mlua::Error),
    /// The system refuses something basic.
    #[error("The shell cannot start: {0}")]
    System(#[from] io::Error),
}

/// How the shell is to start.
#[derive(Debug)]
pub struct HostOptions {
    /// The user's directory.
    pub cwd: PathBuf,
    /// The environment.
    pub env: Vec<(OsString, OsString)>,
    /// Lua files to use instead of the embedded ones.
    pub lua: Option<PathBuf>,
    /// Where histories are kept; nowhere without it.
    pub history: Option<PathBuf>,
    /// More members of the mode's description: how it finds the core, for instance.
    pub mode: serde_json::Value,
}

/// Runs the shell until the user leaves; gives the process's exit code.
///
/// # Errors
/// Where it cannot start.
pub fn run(options: HostOptions) -> Result<u8, HostError> {
    let _guard = terminal::Guard;
    signals::watch()?;
    let mut app = app::App::new(options)?;
    let code = app.run();
    drop(app);
    if let Some(signal) = signals::ending() {
        signals::end_by(signal);
    }
    Ok(code)
}
