//! `git`: looking at a repository, for a role that has no shell.
//!
//! Only listed subcommands with listed flags, and nothing that runs another program: no pager, external diff, text
//! conversion, filter, hook, file system monitor, signature check, or fetch of missing objects, whatever the
//! repository's configuration says. Nothing is written, not even the index.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::context::ToolContext;
use super::git_flags::{SUBCOMMANDS, Subcommand, check};
use super::output::{output_text, push_line, status_text};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};
use crate::process::{CommandSpec, Ending, Environment, Finished, OutputLimits, RunLimits, RunSpec, find_program, run};
use crate::role::Role;

/// How long git may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Settings that would run a program or write, switched off for every call.
const SETTINGS: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "diff.ignoreSubmodules=all",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "command")]
    subcommand: String,
    args: Option<Vec<String>>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec {
                role_allow: Some(&[Role::Orchestrator]),
                ..ToolSpec::reading::<Args>("git", description, Renderer::Text)
            },
        }
    }
}

impl super::Tool for Tool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, ctx: &'a ToolContext, args: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = parse::<Args>(&self.spec, args)?;
            // `log -5 --stat` in one string is meant as what a shell makes of it; a quoted one was already taken apart.
            let mut words = args.subcommand.split_whitespace().map(str::to_owned);
            let name = words
                .next()
                .filter(|name| name != "git")
                .or_else(|| words.next())
                .unwrap_or_default();
            let subcommand = SUBCOMMANDS
                .iter()
                .find(|known| known.name == name)
                .ok_or_else(|| unknown(&name))?;
            let given: Vec<String> = words.chain(args.args.unwrap_or_default()).collect();
            let given = check(subcommand, &given).map_err(|why| ToolError::to_model("git_denied", why))?;
            if ctx.limits.confine_to_root
                && let Some(path) = given.iter().find(|arg| leads_out(arg))
            {
                // Two paths outside of a repository are compared by git without one.
                let why = format!("{path} leads out of the directory that access is confined to.");
                return Err(ToolError::to_model("outside_root", why));
            }
            git(ctx, subcommand, given).await
        })
    }
}

fn unknown(name: &str) -> ToolError {
    let known: Vec<&str> = SUBCOMMANDS.iter().map(|subcommand| subcommand.name).collect();
    ToolError::to_model(
        "git_denied",
        format!("`git {name}` is not available here. There are {}.", known.join(", ")),
    )
}

fn leads_out(arg: &str) -> bool {
    Path::new(arg)
        .components()
        .any(|component| matches!(component, Component::RootDir | Component::ParentDir))
}

/// The variables of git: the turn's without those that steer git, and those that keep it quiet and still.
fn environment(ctx: &ToolContext) -> Environment {
    let still = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_PAGER", "cat"),
        ("TERM", "dumb"),
        ("LC_ALL", "C.UTF-8"),
    ];
    ctx.env
        .scrubbed(&["GIT_*"])
        .scrubbed(&ctx.limits.scrub_env)
        .with_changes(still.map(|(name, value)| (name, Some(value))))
}

async fn git(ctx: &ToolContext, subcommand: &Subcommand, given: Vec<String>) -> Result<ToolOutput, ToolError> {
    let program =
        find_program("git", &ctx.env).ok_or_else(|| ToolError::to_model("no_git", "There is no `git` in PATH."))?;
    let env = environment(ctx);
    let mut settings: Vec<String> = SETTINGS.iter().map(|&setting| setting.to_owned()).collect();
    let command = |args: Vec<OsString>| CommandSpec {
        program: program.clone(),
        args,
        cwd: ctx.cwd.clone(),
        env: env.clone(),
    };
    // Filters have names of the repository's choice, so they are asked for first.
    let ask = [
        "config",
        "--name-only",
        "--get-regexp",
        r"^filter\..*\.(clean|smudge|process|required)$",
    ];
    let listed = run_git(ctx, command(ask.map(OsString::from).to_vec()), 64 * 1024).await?;
    for key in String::from_utf8_lossy(&listed.output.head).lines() {
        let value = if key.ends_with(".required") { "false" } else { "" };
        settings.push(format!("{key}={value}"));
    }
    let mut args = vec![OsString::from("--no-pager")];
    for setting in settings {
        args.extend([OsString::from("-c"), OsString::from(setting)]);
    }
    args.push(subcommand.name.into());
    args.extend(subcommand.always.iter().map(OsString::from));
    let said = given.join(" ");
    args.extend(given.into_iter().map(OsString::from));
    let finished = run_git(ctx, command(args), ctx.limits.output_chars).await?;
    Ok(tell(&format!("git {} {said}", subcommand.name), &finished))
}

async fn run_git(ctx: &ToolContext, command: CommandSpec, room: usize) -> Result<Finished, ToolError> {
    let spec = RunSpec {
        command,
        limits: RunLimits {
            timeout: Some(TIMEOUT),
            kill_grace: ctx.limits.kill_grace,
            ..RunLimits::default()
        },
        output: OutputLimits {
            // What git says first matters most.
            head: room / 4 * 3,
            tail: room / 4,
            file: ctx.limits.output_file_bytes,
            directory: ctx.output_dir(),
            name: "git".to_owned(),
        },
    };
    run(spec, &ctx.cancel, |_| {})
        .await
        .map_err(|error| ToolError::to_model("spawn", format!("{error}.")))
}

fn tell(command: &str, finished: &Finished) -> ToolOutput {
    let mut text = output_text(&finished.output);
    if finished.output.left_out > 0 {
        push_line(&mut text, "[Narrow it: a path, `--stat`, `--name-only`, `-n`.]");
    }
    let failure = match finished.ending {
        Ending::Exited if finished.status.success() => None,
        Ending::Exited => Some(("exit_code", status_text(finished.status))),
        Ending::TimedOut => Some(("timeout", format!("Killed after {} s.", TIMEOUT.as_secs()))),
        Ending::Cancelled => Some(("cancelled", "Cancelled.".to_owned())),
    };
    if let Some((_, line)) = &failure {
        push_line(&mut text, &format!("[{line}]"));
    }
    if text.is_empty() {
        text.push_str("[No output.]");
    }
    let mut output = ToolOutput::text(text)
        .with("command", command.trim_end())
        .with("output_bytes", finished.output.bytes);
    if let Some(path) = &finished.output.path {
        output = output.with("output_file", path.to_string_lossy());
    }
    output.interrupted = finished.ending == Ending::Cancelled;
    match failure {
        Some((code, line)) if !output.interrupted => output.failed(code, line),
        _ => output,
    }
}
