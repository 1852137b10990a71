//! `bash`: a command in its own session, its output as it comes, its end within a known time.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::context::{ToolContext, ToolProgress};
use super::job_output::job_report;
use super::output::{list_of, output_text, push_line, status_text};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};
use crate::process::{
    Captured, CommandSpec, Ending, Environment, ExitStatus, Finished, Job, OutputDelta, OutputLimits, RunLimits,
    RunSpec, find_program, run,
};

/// How long a job of the background is watched before the answer: one that cannot start has failed by then.
const BACKGROUND_LOOK: Duration = Duration::from_millis(300);
/// From here on the time a command took is worth telling.
const TOLD_DURATION: Duration = Duration::from_secs(10);
/// Variables that keep programs from waiting for somebody: pagers, editors, password prompts, colours.
const QUIET: [(&str, &str); 10] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "cmd", alias = "script")]
    command: String,
    timeout: Option<f64>,
    background: Option<bool>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::mutating::<Args>("bash", description, Renderer::Shell),
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
            let asked = args
                .timeout
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
            if args.background.unwrap_or(false) {
                return background(ctx, &args.command, asked).await;
            }
            let timeout = asked
                .unwrap_or(ctx.limits.bash_timeout)
                .min(ctx.limits.bash_timeout_max);
            let progress = Arc::clone(&ctx.progress);
            let watch = move |OutputDelta { text, skipped }| progress(ToolProgress::Output { text, skipped });
            let mut finished = run(spec(ctx, &args.command, Some(timeout))?, &ctx.cancel, watch)
                .await
                .map_err(|error| ToolError::to_model("spawn", format!("{error}.")))?;
            // After a kill nothing is left but what cannot be killed, and reading on would be of no use.
            let left = finished.left.take().filter(|_| finished.ending == Ending::Exited);
            let job = left
                .filter(|_| !finished.survivors.is_empty())
                .map(|left| ctx.state.jobs().adopt(left, &finished, &args.command));
            Ok(tell(&args.command, timeout, &finished, job.as_deref()))
        })
    }
}

/// Starts a job, and waits a moment for one that fails at once.
async fn background(ctx: &ToolContext, command: &str, timeout: Option<Duration>) -> Result<ToolOutput, ToolError> {
    let job = ctx
        .state
        .jobs()
        .start(spec(ctx, command, timeout)?, command)
        .map_err(|error| ToolError::to_model("spawn", format!("{error}.")))?;
    let _ = tokio::time::timeout(BACKGROUND_LOOK, job.ended()).await;
    let output = job_report(&job);
    Ok(output.with("command", command))
}

/// The environment of a command: the turn's, without what it must not see, and quiet.
fn environment(ctx: &ToolContext) -> Environment {
    ctx.env
        .scrubbed(&ctx.limits.scrub_env)
        .with_changes(QUIET.map(|(name, value)| (name, Some(value))))
}

fn spec(ctx: &ToolContext, command: &str, timeout: Option<Duration>) -> Result<RunSpec, ToolError> {
    let shell = find_program("bash", &ctx.env)
        .or_else(|| find_program("sh", &ctx.env))
        .ok_or_else(|| ToolError::to_model("no_shell", "There is neither `bash` nor `sh` in PATH."))?;
    Ok(RunSpec {
        command: CommandSpec {
            program: shell,
            args: vec![OsString::from("-c"), OsString::from(command)],
            cwd: ctx.cwd.clone(),
            env: environment(ctx),
        },
        limits: RunLimits {
            timeout,
            kill_grace: ctx.limits.kill_grace,
            ..RunLimits::default()
        },
        output: OutputLimits {
            head: ctx.limits.output_chars / 2,
            tail: ctx.limits.output_chars / 2,
            file: ctx.limits.output_file_bytes,
            directory: ctx.output_dir(),
            name: file_name(&ctx.turn_id, &ctx.call_id),
        },
    })
}

/// A name for a call's output file that is a plain file name whatever the ids are.
fn file_name(turn_id: &str, call_id: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(40)
            .collect()
    };
    match (plain(turn_id), plain(call_id)) {
        (turn, call) if turn.is_empty() && call.is_empty() => "output".to_owned(),
        (turn, call) => format!("{turn}-{call}"),
    }
}

fn tell(command: &str, timeout: Duration, finished: &Finished, left_job: Option<&Job>) -> ToolOutput {
    let seconds = finished.duration.as_secs_f64();
    let (headline, failure) = match (finished.ending, finished.status) {
        (Ending::Cancelled, _) => (format!("Cancelled after {seconds:.1} s."), None),
        (Ending::TimedOut, _) => (
            format!(
                "Killed after its timeout of {} s. Ask for more with `timeout` if it needs more, or run it in the \
                 `background`.",
                timeout.as_secs_f64()
            ),
            Some("timeout"),
        ),
        (Ending::Exited, status) => {
            let failure = match status {
                ExitStatus::Code(0) | ExitStatus::Unknown => None,
                ExitStatus::Code(_) => Some("exit_code"),
                ExitStatus::Signal(_) => Some("signal"),
            };
            (status_text(status), failure)
        }
    };
    let mut text = output_text(&finished.output);
    if let Some(job) = left_job {
        let list = list_of(&finished.survivors);
        push_line(&mut text, &format!("[Still running as job {}: {list}.]", job.id()));
    } else if !finished.survivors.is_empty() {
        push_line(
            &mut text,
            &format!("[Could not be killed: {}.]", list_of(&finished.survivors)),
        );
    }
    if let Some(hint) = hint(command, &finished.output, finished.status) {
        push_line(&mut text, &format!("[{hint}]"));
    }
    if !headline.is_empty() {
        push_line(&mut text, &format!("[{headline}]"));
    }
    if finished.ending == Ending::Exited && finished.duration >= TOLD_DURATION {
        push_line(&mut text, &format!("[Took {seconds:.0} s.]"));
    }
    if text.is_empty() {
        text.push_str("[No output.]");
    }
    let mut output = ToolOutput::text(text)
        .with("command", command)
        .with("duration_ms", millis(finished.duration))
        .with("output_bytes", finished.output.bytes)
        .with("output_lines", finished.output.lines);
    match finished.status {
        ExitStatus::Code(code) => output = output.with("exit_code", code),
        ExitStatus::Signal(signal) => output = output.with("signal", signal),
        ExitStatus::Unknown => {}
    }
    if let Some(path) = &finished.output.path {
        output = output.with("output_file", path.to_string_lossy());
    }
    if !finished.survivors.is_empty() {
        let pids: Vec<i32> = finished.survivors.iter().map(|survivor| survivor.pid).collect();
        output = output.with("survivors", pids);
    }
    if let Some(job) = left_job {
        output = output.with("job", job.id());
    }
    output.interrupted = finished.ending == Ending::Cancelled;
    match failure {
        Some(code) => output.failed(code, headline),
        None => output,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What to try instead where a command needed somebody to answer.
fn hint(command: &str, output: &Captured, status: ExitStatus) -> Option<&'static str> {
    if status.success() {
        return None;
    }
    let tail = if output.tail.is_empty() {
        &output.head
    } else {
        &output.tail
    };
    let tail = String::from_utf8_lossy(&tail[tail.len().saturating_sub(2_000)..]);
    let refused = [
        "a terminal is required",
        "a password is required",
        "no tty present",
        "interactive authentication is required",
    ];
    if command.contains("sudo") && refused.iter().any(|text| tail.contains(text)) {
        Some("sudo cannot ask for a password here: there is no terminal. Do without it, or ask the user to run it.")
    } else if tail.contains("could not read Username") || tail.contains("terminal prompts disabled") {
        Some("git cannot ask for credentials here. Ask the user to set them up.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_files_have_plain_names() {
        assert_eq!(file_name("t/../1", "call:a b"), "t____1-call_a_b");
        assert_eq!(file_name("", ""), "output");
    }

    #[test]
    fn who_waits_for_an_answer_is_told_that_none_comes() {
        let says = |text: &str| Captured {
            head: text.as_bytes().to_vec(),
            ..Captured::default()
        };
        let sudo = says("sudo: a terminal is required to read the password; either use the -S option\n");
        assert!(
            hint("sudo ls", &sudo, ExitStatus::Code(1))
                .unwrap()
                .contains("there is no terminal")
        );
        assert_eq!(hint("sudo ls", &sudo, ExitStatus::Code(0)), None);
        let git = says("fatal: could not read Username for 'https://x': terminal prompts disabled\n");
        assert!(
            hint("git fetch", &git, ExitStatus::Code(128))
                .unwrap()
                .contains("credentials")
        );
        assert_eq!(hint("false", &says(""), ExitStatus::Code(1)), None);
    }
}
