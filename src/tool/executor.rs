//! One call, from the model's JSON text to a result the engine can append. There is always a result.
//!
//! The steps: decode the arguments, resolve the tool for the role, see whether to stop, run it, see again, and bring
//! what came into one shape. A panic inside a tool becomes a result of kind `internal`.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::args::decode;
use super::context::ToolContext;
use super::registry::{Registry, ResolveError};
use super::result::{MutationState, ToolError, ToolOutput, ToolResult};
use super::spec::ToolSpec;
use crate::error::{AgentError, ErrorKind};
use crate::failpoint;
use crate::message::ToolCall;

/// How long a tool has to stop once it is urgent: enough for its processes to be killed and collected.
const URGENT_GRACE: Duration = Duration::from_millis(250);

/// Runs `call` for the role of `ctx`. Never fails: whatever goes wrong is in the result.
pub async fn execute(registry: &Registry, call: &ToolCall, ctx: &ToolContext) -> ToolResult {
    let started = Instant::now();
    let result = match registry.resolve(ctx.role, &call.name) {
        Ok(tool) => match decode(tool.spec(), &call.arguments) {
            Ok(_) if ctx.cancel.is_cancelled() => {
                ToolResult::not_run(&call.id, &call.name, AgentError::cancelled("tool"))
            }
            Ok(args) => {
                let work = AssertUnwindSafe(async {
                    failpoint::reach("tool.run");
                    tool.run(ctx, args).await
                })
                .catch_unwind();
                let outcome = tokio::select! {
                    biased;
                    outcome = work => Some(outcome),
                    () = overdue(ctx) => None,
                };
                finish(call, tool.spec(), ctx, outcome)
            }
            Err(error) => failed(call, error),
        },
        Err(error) => {
            let (kind, code) = match error {
                ResolveError::Unknown { .. } => (ErrorKind::Tool, "unknown_tool"),
                ResolveError::Denied { .. } => (ErrorKind::Policy, "tool_denied"),
            };
            let error = AgentError::new(kind, code, error.to_string()).from_origin("tool");
            ToolResult::failed(&call.id, &call.name, error)
        }
    };
    result.took(started.elapsed())
}

/// Completes when a cancelled tool has had its time to stop by itself.
async fn overdue(ctx: &ToolContext) {
    ctx.cancel.cancelled().await;
    tokio::select! {
        () = tokio::time::sleep(ctx.limits.kill_grace + ctx.limits.cancel_grace) => {}
        () = async {
            ctx.cancel.urgent().await;
            tokio::time::sleep(URGENT_GRACE).await;
        } => {}
    }
}

/// What a tool's future came to; the outer level is a panic.
type Outcome = Result<Result<ToolOutput, ToolError>, Box<dyn std::any::Any + Send>>;

fn finish(call: &ToolCall, spec: &ToolSpec, ctx: &ToolContext, outcome: Option<Outcome>) -> ToolResult {
    let halfway = if spec.mutating {
        MutationState::Unknown
    } else {
        MutationState::None
    };
    match outcome {
        Some(Ok(Ok(output))) => finished(call, spec, ctx, output, halfway),
        Some(Ok(Err(error))) => failed(call, error),
        Some(Err(panic)) => {
            let what = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            let error = AgentError::internal("tool", format!("The tool `{}` broke: {what}", spec.name));
            ToolResult {
                mutation_state: halfway,
                ..ToolResult::failed(&call.id, &call.name, error)
            }
        }
        None => {
            let error = AgentError::cancelled("tool");
            ToolResult {
                content: "Cancelled; the tool did not stop by itself and was dropped.".to_owned(),
                mutation_state: halfway,
                ..ToolResult::failed(&call.id, &call.name, error)
            }
        }
    }
}

fn finished(
    call: &ToolCall,
    spec: &ToolSpec,
    ctx: &ToolContext,
    output: ToolOutput,
    halfway: MutationState,
) -> ToolResult {
    // What the tool says it did stands, also where somebody asked to stop meanwhile.
    let cancelled = output.interrupted || ctx.cancel.is_cancelled();
    let error = match (cancelled, output.failure) {
        (true, _) => Some(AgentError::cancelled("tool")),
        (false, failure) => failure.map(AgentError::from),
    };
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        ok: error.is_none(),
        content: output.content,
        cancelled,
        mutation_state: match (spec.mutating, output.interrupted) {
            (false, _) => MutationState::None,
            (true, false) => MutationState::Attempted,
            (true, true) => halfway,
        },
        metadata: output.metadata,
        recall_key: output.recall_key,
        is_terminal: spec.is_terminal && error.is_none(),
        error,
        fatal: false,
        duration_ms: 0,
    }
}

fn failed(call: &ToolCall, error: ToolError) -> ToolResult {
    match error {
        ToolError::ToModel { code, message } => {
            let kind = if code == "bad_arguments" {
                ErrorKind::Schema
            } else {
                ErrorKind::Tool
            };
            let error = AgentError::new(kind, code, message).from_origin("tool");
            ToolResult::failed(&call.id, &call.name, error)
        }
        ToolError::Fatal(error) => ToolResult {
            fatal: !error.is_cancelled(),
            ..ToolResult::failed(&call.id, &call.name, error)
        },
    }
}
