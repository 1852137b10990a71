//! `agent-smith doctor`: is everything in order, and if not, what to do.
//!
//! With `--repair` a damaged database is moved aside, what is readable in it comes into a new one, and it is said what was
//! and was not.

use std::io::Write;

use serde::Serialize;

use crate::cli::{Exit, paths};
use crate::config::{self, Paths};
use crate::error::AgentError;
use crate::persistence::{self, RepairReport, StoreOptions, repair};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
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

    fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }

    fn failed(name: &'static str, error: &AgentError) -> Self {
        let check = Self::new(name, Verdict::Fail, &error.message);
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
            checks.extend(configuration(&paths));
            let options = StoreOptions::at(paths.database());
            checks.push(if repair_database {
                mend(&options)
            } else {
                store(&options)
            });
        }
        Err(error) => checks.push(Check::failed("home", &error)),
    }
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

fn configuration(paths: &Paths) -> Vec<Check> {
    let file = paths.user_file();
    let loaded = config::load(&file, serde_json::Value::Null, serde_json::Value::Null, None);
    let mut checks: Vec<_> = loaded
        .problems
        .iter()
        .map(|problem| Check::failed("configuration", &AgentError::from(problem)))
        .collect();
    if checks.is_empty() {
        let there = if file.exists() {
            "reads well"
        } else {
            "is not there; the defaults hold"
        };
        checks.push(Check::new(
            "configuration",
            Verdict::Ok,
            format!("{} {there}", file.display()),
        ));
    }
    let Some(url) = loaded.config.opt_str("llm_config.api_url") else {
        checks.push(
            Check::new("model server", Verdict::Warn, "none is configured")
                .next("set llm_config.api_url in the user's file, or use --model demo"),
        );
        return checks;
    };
    checks.push(Check::new("model server", Verdict::Ok, url));
    if let Some(name) = loaded.config.opt_str("llm_config.api_key_env") {
        checks.push(key(name, url));
    }
    checks
}

/// Whether the key is there; never what it is.
fn key(name: &str, url: &str) -> Check {
    let on_this_machine = ["://127.", "://localhost", "://[::1]"]
        .iter()
        .any(|place| url.contains(place));
    if std::env::var_os(name).is_some_and(|key| !key.is_empty()) {
        Check::new("key", Verdict::Ok, format!("the variable {name} is set"))
    } else if on_this_machine {
        let text = format!("the variable {name} is not set; a server on this machine mostly needs none");
        Check::new("key", Verdict::Ok, text)
    } else {
        Check::new("key", Verdict::Warn, format!("the variable {name} is not set"))
            .next(format!("export {name}=… before the shell starts"))
    }
}

fn store(options: &StoreOptions) -> Check {
    match persistence::stats(options) {
        Ok(stats) if !stats.damaged.is_empty() => {
            let text = format!("works; {} damaged files were moved aside", stats.damaged.len());
            Check::new("store", Verdict::Warn, text).next("agent-smith doctor --repair brings back what is readable")
        }
        Ok(stats) if stats.spooled > 0 => {
            let text = format!(
                "works; {} batches wait beside it and are merged by the next turn",
                stats.spooled
            );
            Check::new("store", Verdict::Warn, text)
        }
        Ok(stats) if stats.file_bytes == 0 => Check::new("store", Verdict::Ok, "nothing is kept yet"),
        Ok(stats) => {
            let records: u64 = stats.keyspaces.iter().map(|space| space.records).sum();
            let size = crate::cli::db::bytes(stats.file_bytes);
            Check::new(
                "store",
                Verdict::Ok,
                format!("{}: {records} records in {size}", stats.path.display()),
            )
        }
        Err(error) => Check::failed("store", &AgentError::from(error)).next("agent-smith doctor --repair"),
    }
}

fn mend(options: &StoreOptions) -> Check {
    let report = match repair(options) {
        Ok(report) => report,
        Err(error) => return Check::failed("store", &AgentError::from(error)),
    };
    let RepairReport {
        path,
        sound,
        damage,
        moved_to,
        salvaged,
    } = report;
    let mut text = if sound {
        format!("{} is sound", path.display())
    } else {
        let damage = damage.unwrap_or_else(|| "it cannot be read".to_owned());
        let to = moved_to
            .map(|to| format!("; moved to {}", to.display()))
            .unwrap_or_default();
        format!("{} was damaged ({damage}){to}", path.display())
    };
    let mut lost = false;
    for part in salvaged {
        let count = |map: &std::collections::BTreeMap<&'static str, u64>| map.values().sum::<u64>();
        text.push_str(&format!(
            "\n     {}: {} records reached, {} found loose, {} new in the database",
            part.source.display(),
            count(&part.reached),
            count(&part.loose),
            count(&part.added)
        ));
        for (keyspace, added) in &part.added {
            text.push_str(&format!("\n       {keyspace}: {added}"));
        }
        for what in &part.unreadable {
            lost = true;
            text.push_str(&format!("\n       not readable: {what}"));
        }
    }
    Check::new("store", if lost { Verdict::Warn } else { Verdict::Ok }, text)
}
