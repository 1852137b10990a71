//! `job_output`: what a job wrote since it was asked last, and how far it is.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::context::ToolContext;
use super::output::{list_of, output_text, push_line, status_text};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};
use crate::process::{Ending, Job, JobError, JobInfo, JobState};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "id", alias = "job_id")]
    job: Option<String>,
    #[serde(alias = "timeout")]
    wait: Option<f64>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::reading::<Args>("job_output", description, Renderer::Shell),
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
            let Some(id) = args.job else {
                return Ok(list(&ctx.state.jobs().list()));
            };
            let job = ctx.state.jobs().get(&id).map_err(|error| no_job(&error))?;
            let wait = args
                .wait
                .filter(|seconds| *seconds > 0.0)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or_default()
                .min(ctx.limits.bash_timeout_max);
            tokio::select! {
                biased;
                () = ctx.cancel.cancelled() => {}
                _ = tokio::time::timeout(wait, job.ended()) => {}
            }
            Ok(job_report(&job))
        })
    }
}

pub(super) fn no_job(error: &JobError) -> ToolError {
    ToolError::to_model("no_job", format!("{error}."))
}

/// A job's new output and how far it is.
pub(super) fn job_report(job: &Job) -> ToolOutput {
    let output = job.new_output();
    let info = job.info();
    let mut text = output_text(&output);
    let line = state_text(&info);
    push_line(&mut text, &format!("[Job {}: {line}]", info.id));
    let mut result = ToolOutput::text(text)
        .with("job", info.id.clone())
        .with("command", info.command.clone())
        .with("running", info.runs())
        .with("output_bytes", output.bytes);
    if let Some(path) = &output.path {
        result = result.with("output_file", path.to_string_lossy());
    }
    result
}

/// How far a job is, in a sentence.
#[must_use]
pub fn state_text(info: &JobInfo) -> String {
    match info.state {
        JobState::Running => {
            let pid = info.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
            format!("running for {:.1} s{pid}.", info.age.as_secs_f64())
        }
        JobState::Ended {
            status,
            ending,
            duration,
        } => {
            let mut text = match ending {
                Ending::Exited => status_text(status),
                Ending::TimedOut => "killed after its timeout.".to_owned(),
                Ending::Cancelled => "killed.".to_owned(),
            };
            if text.is_empty() {
                text.push_str("ended with exit code 0.");
            }
            let _ = write!(text, " It took {:.1} s.", duration.as_secs_f64());
            if !info.left.is_empty() {
                let _ = write!(text, " Still running: {}.", list_of(&info.left));
            }
            text
        }
    }
}

fn list(jobs: &[JobInfo]) -> ToolOutput {
    if jobs.is_empty() {
        return ToolOutput::text("There are no jobs.");
    }
    let lines: Vec<String> = jobs
        .iter()
        .map(|info| {
            let command: String = info.command.chars().take(100).collect();
            format!(
                "{}: {} {} bytes of output. `{command}`",
                info.id,
                state_text(info),
                info.bytes
            )
        })
        .collect();
    ToolOutput::text(lines.join("\n")).with("jobs", lines.len())
}
