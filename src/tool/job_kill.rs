//! `job_kill`: ends a job with all of its descendants.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::context::ToolContext;
use super::job_output::{job_report, no_job};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "id", alias = "job_id")]
    job: String,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::mutating::<Args>("job_kill", description, Renderer::Shell),
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
            let job = ctx.state.jobs().get(&args.job).map_err(|error| no_job(&error))?;
            job.kill(ctx.limits.kill_grace).await;
            Ok(job_report(&job))
        })
    }
}
