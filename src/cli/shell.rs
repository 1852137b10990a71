//! No subcommand: the standalone shell.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::config::Paths;
use crate::error::{AgentError, ErrorKind};
use crate::host::{self, HostOptions};

use super::{Exit, complain};

/// Whoever works on the Lua files points this at their directory; the embedded ones are then not used.
const LUA: &str = "AGENT_SMITH_LUA";
/// `native` or `sidecar` allows only that way to the core; without it the first that works is taken.
const CARRIER: &str = "AGENT_SMITH_CARRIER";

pub(super) fn run() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            complain(&error);
            return Exit::Usage.into();
        }
    };
    match host::run(options) {
        Ok(code) => code.into(),
        Err(error) => {
            complain(&AgentError::new(ErrorKind::Internal, "shell", error.to_string()).from_origin("host"));
            Exit::Error.into()
        }
    }
}

fn options() -> Result<HostOptions, AgentError> {
    #[expect(clippy::disallowed_methods, reason = "our own process; read once, at its start")]
    let cwd = std::env::current_dir().map_err(|error| {
        AgentError::new(
            ErrorKind::Schema,
            "cwd",
            format!("the current directory cannot be read: {error}"),
        )
    })?;
    let history = Paths::new(|name| std::env::var_os(name)).map(|paths| paths.state_dir().join("history"));
    Ok(HostOptions {
        cwd,
        env: std::env::vars_os().collect(),
        lua: std::env::var_os(LUA).filter(|path| !path.is_empty()).map(Into::into),
        history: history.ok(),
        mode: mode()?,
    })
}

/// What the mode is told beyond its description: which program it lives in, and how it may reach the core.
fn mode() -> Result<Value, AgentError> {
    let mut core = Map::new();
    match std::env::var(CARRIER)
        .ok()
        .filter(|carrier| !carrier.is_empty())
        .as_deref()
    {
        None => {}
        Some(carrier @ ("native" | "sidecar")) => {
            core.insert("only".to_owned(), carrier.into());
        }
        Some(other) => {
            let message = format!("{CARRIER} is {other:?}; it takes native or sidecar");
            return Err(AgentError::new(ErrorKind::Schema, "carrier", message).from_origin("cli"));
        }
    }
    if let Some(own) = std::env::current_exe()
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok())
    {
        core.insert("command".to_owned(), own.into());
    }
    Ok(json!({"host": {"name": "agent-smith", "version": env!("CARGO_PKG_VERSION")}, "core": core}))
}
