//! A tool that only looks at files, where that may block: such tools differ in their arguments and in what they look for.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::args::parse;
use super::context::ToolContext;
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};

/// What such a tool does with its arguments.
type Look<A> = fn(&ToolContext, &A) -> Result<ToolOutput, ToolError>;

/// The tool, with arguments of the type `A`.
pub(super) struct Looking<A> {
    spec: ToolSpec,
    look: Look<A>,
}

impl<A: JsonSchema> Looking<A> {
    /// The tool called `name`, which `look` does.
    pub(super) fn named(name: &'static str, description: &'static str, renderer: Renderer, look: Look<A>) -> Self {
        Self {
            spec: ToolSpec::reading::<A>(name, description, renderer),
            look,
        }
    }
}

impl<A: DeserializeOwned + Send + 'static> super::Tool for Looking<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, ctx: &'a ToolContext, args: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = parse::<A>(&self.spec, args)?;
            let (ctx, look) = (ctx.clone(), self.look);
            super::blocking(move || look(&ctx, &args)).await
        })
    }
}
