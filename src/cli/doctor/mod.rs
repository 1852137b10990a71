//! `agent-smith doctor`: is everything in order, and if not, what to do.
//!
//! One check a question: [`place`] asks where it runs (host, carriers, terminal), [`server`] what is configured and
//! whether the model server answers, [`store`] whether what is kept can be read. Nothing is changed, but with `--repair`
//! a damaged database is moved aside and what is readable in it comes into a new one. No key is ever printed.

mod carrier;
mod place;
mod server;
mod store;

use std::io::Write;

use serde::Serialize;

use crate::cli::{Exit, paths};
use crate::error::AgentError;
use crate::persistence::StoreOptions;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// In order.
    Ok,
    /// It works, and something could be better.
    Warn,
    /// It does not work.
    Fail,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self {
            name,
            verdict,
            text: text.into(),
            next: None,
        }
    }

    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, text)
    }

    fn warn(name: &'static str, text: impl Into<String>) -> Self {
        Self::new(name, Verdict::Warn, text)
    }

    fn fail(name: &'static str, text: impl Into<String>) -> Self {
        Self::new(name, Verdict::Fail, text)
    }

    fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    fn failed(name: &'static str, error: &AgentError) -> Self {
        let check = Self::fail(name, &error.message);
        match &error.hint {
            Some(hint) => check.next(hint.to_string()),
            None => check,
        }
    }
}

/// Runs the subcommand. Ends with 1 where something is broken.
pub(super) fn run(repair_database: bool, json: bool) -> Exit {
    let mut checks = Vec::new();
    match paths() {
        Ok(paths) => {
            let options = StoreOptions::at(paths.database());
            checks.push(place::host(&paths));
            checks.extend(carrier::carriers());
            // Before the configuration, of which the store holds a part.
            let kept = if repair_database {
                store::mend(&options)
            } else {
                store::look(&options)
            };
            checks.extend(server::configuration_and_server(&paths, &options));
            checks.push(kept);
        }
        Err(error) => checks.push(Check::failed("home", &error)),
    }
    checks.push(place::terminal());
    let text = if json {
        serde_json::to_string_pretty(&checks).unwrap_or_default() + "\n"
    } else {
        checks.iter().map(line).collect()
    };
    // Where nobody reads, the exit code still says it.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let broken = checks.iter().any(|check| check.verdict == Verdict::Fail);
    if broken { Exit::Error } else { Exit::Completed }
}

fn line(check: &Check) -> String {
    let word = match check.verdict {
        Verdict::Ok => "ok  ",
        Verdict::Warn => "warn",
        Verdict::Fail => "FAIL",
    };
    let next = check
        .next
        .as_ref()
        .map(|next| format!("\n     -> {next}"))
        .unwrap_or_default();
    format!("{word} {}: {}{next}\n", check.name, check.text)
}
