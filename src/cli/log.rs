//! The debug log. It holds what happened, never what was said: no prompt, no answer, no key.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::error::{AgentError, ErrorKind};

/// Appends the log of this process to the file at `path`. `AGENT_SMITH_LOG` may hold another filter than `debug`.
///
/// # Errors
/// `schema` where the file cannot be opened.
pub(super) fn to_file(path: &Path) -> Result<(), AgentError> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| {
            let message = format!("the log file {} cannot be opened: {error}", path.display());
            AgentError::new(ErrorKind::Schema, "log_file", message).from_origin("cli")
        })?;
    // Libraries below us may log headers; only our own rooms speak here unless the user asks for more.
    let filter =
        EnvFilter::try_from_env("AGENT_SMITH_LOG").unwrap_or_else(|_| EnvFilter::new("agent_smith_core=debug"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Mutex::new(file))
        .init();
    tracing::debug!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        "log opened"
    );
    Ok(())
}
