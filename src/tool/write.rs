//! `write`: a whole file, new or in place of the old one.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::change::{Change, Target};
use super::context::ToolContext;
use super::files::{names_hash, short};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "file_path", alias = "file", alias = "filename")]
    path: String,
    #[serde(alias = "text", alias = "contents")]
    content: String,
    #[serde(alias = "hash")]
    expected_hash: Option<String>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::mutating::<Args>("write", description, Renderer::Diff),
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
            let target = Target::lock(ctx, &args.path, true).await?;
            super::blocking(move || write(target, &args)).await
        })
    }
}

fn write(target: Target, args: &Args) -> Result<ToolOutput, ToolError> {
    let before = target.load()?;
    let name = target.name().to_owned();
    if let Some(expected) = &args.expected_hash {
        match &before {
            None => {
                return Err(ToolError::to_model(
                    "hash_mismatch",
                    format!(
                        "{name} does not exist, so it has no hash {expected}; leave expected_hash out to create it."
                    ),
                ));
            }
            Some(before) if !names_hash(expected, &before.hash) => {
                return Err(ToolError::to_model(
                    "hash_mismatch",
                    format!(
                        "{name} is not what you expect: its hash is {}, not {expected}. Read it again.",
                        short(&before.hash)
                    ),
                ));
            }
            Some(_) => {}
        }
    }
    let bytes = args.content.as_bytes().to_vec();
    let lines = args.content.lines().count();
    let said = match &before {
        None => format!("Created {name}"),
        Some(before) if before.bytes == bytes => {
            return Ok(
                ToolOutput::text(format!("{name} has exactly this content already; nothing was written."))
                    .with("path", name)
                    .with("hash", before.hash.clone()),
            );
        }
        Some(before) => format!(
            "Replaced {name} (it had {} lines, hash {})",
            memchr::memchr_iter(b'\n', &before.bytes).count(),
            short(&before.hash)
        ),
    };
    let Change { hash, notes, diff } = target.commit(before, bytes)?;
    let mut text = format!(
        "{said}: {lines} lines, {} bytes, hash {}.",
        args.content.len(),
        short(&hash)
    );
    for note in notes {
        text.push('\n');
        text.push_str(&note);
    }
    Ok(ToolOutput::text(text)
        .with("path", name)
        .with("hash", hash)
        .with("lines", lines)
        .with("bytes", args.content.len())
        .with("diff", diff))
}
