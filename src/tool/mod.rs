//! Tools: what the model can call.
//!
//! A tool is one file `x.rs` with its prompt text `x.md` beside it, a `mod` line and a name in `tools!{}`. Its schema
//! comes from the type of its arguments. The [`Registry`] says who may use what, [`execute`] runs one call and always
//! has a result.
//!
//! | file | idea |
//! |---|---|
//! | `spec` | what a tool says of itself; schemas from types |
//! | `registry` | names, and the dual gate: the role matrix and the tool's own list |
//! | `executor` | one call from its JSON text to its result |
//! | `context`, `state` | what a tool is given for a call, and for a session |
//! | `args` | arguments as models write them, and errors they can act on |
//! | `result` | what a tool returns, and what the engine gets |
//! | `looking` | what the tools that only look at files have in common |
//! | `code` | looking into code: walking, searching, symbols |
//! | `versions` | what files were like when they were seen |
//! | `output` | a command's output as the model reads it |
//! | `files`, `replace` | reading a file whole; replacing it at once, losing nothing |
//! | `text` | bytes as lines of text in whatever encoding |
//! | `change` | one change of a file |
//! | `replace_text`, `loose` | finding the text an edit is about, exactly or as it can only be meant |

mod args;
mod change;
mod code;
mod context;
mod executor;
mod files;
mod git_flags;
mod looking;
mod loose;
mod output;
mod registry;
mod replace;
mod replace_text;
mod result;
mod spec;
mod state;
mod summary;
mod text;
mod versions;

mod bash;
mod code_files;
mod code_grep;
mod code_map;
mod code_outline;
mod code_symbols;
mod edit;
mod git;
mod job_kill;
mod job_output;
mod read;
mod write;

pub use change::unified;
pub use code_grep::search_lines;
pub use context::{Progress, ToolContext, ToolLimits, ToolProgress};
pub use executor::execute;
pub use job_output::state_text as job_state_text;
pub use registry::{RegisterError, Registry, ResolveError};
pub use result::{Failure, MutationState, ToolError, ToolOutput, ToolResult};
pub use spec::{Renderer, ToolSpec};
pub use state::{FileChange, KeeperError, NetChange, PreimageKeeper, ToolState, net_changes};
pub use summary::{ComparedFile, compare, summarize};

use futures_util::future::BoxFuture;
use serde_json::Value;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call with its decoded arguments. It watches `ctx.cancel` itself where it can take long.
    fn run<'a>(&'a self, ctx: &'a ToolContext, args: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Declares the built-in tools, in the order they are offered.
macro_rules! tools {
    ($($name:ident),* $(,)?) => {
        /// One of each built-in tool.
        fn builtin() -> Vec<std::sync::Arc<dyn Tool>> {
            vec![$(std::sync::Arc::new($name::Tool::new(include_str!(concat!(stringify!($name), ".md"))))),*]
        }
    };
}

tools! {
    read, write, edit, bash, job_output, job_kill, code_map, code_files, code_grep, code_symbols, code_outline, git
}

/// Runs `work` where it may block: file systems can take their time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // A panic goes on, to where panics of tools are caught; nothing else ends such a task, but a runtime that
        // stops.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::Fatal(crate::error::AgentError::cancelled("tool"))),
        },
    }
}
