//! `code_outline`: what one file declares, nested, with line ranges.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::code::symbols::{Parsers, Symbol};
use super::context::ToolContext;
use super::files::{load, not_found, path_error, short};
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "file_path", alias = "file")]
    path: String,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("code_outline", description, Renderer::Listing, outline)
    }
}

fn outline(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    let resolver = ctx.reading_resolver();
    let place = resolver.resolve(&args.path, false).map_err(path_error)?;
    let name = resolver.shown(&place.path).into_owned();
    let Some(file) = load(&place, &name)? else {
        return Err(not_found(&place, &name));
    };
    let lines = memchr::memchr_iter(b'\n', &file.bytes).count() + usize::from(!file.bytes.ends_with(b"\n"));
    let symbols = Parsers::default().symbols(&place.path, &file.bytes);
    let mut text = format!("{name}: {lines} lines, hash {}", short(&file.hash));
    if symbols.is_empty() {
        text.push_str("; nothing found that is declared.");
    }
    // What is too much is left out from the inside: the outermost tell most.
    let room = ctx.limits.output_chars / 2;
    let deepest = symbols.iter().map(|symbol| symbol.depth).max().unwrap_or(0);
    let shown = (0..=deepest)
        .rev()
        .map(|depth| (depth, lines_of(&symbols, depth)))
        .find(|(depth, lines)| *depth == 0 || lines.len() <= room);
    let (depth, mut body) = shown.unwrap_or_default();
    let hidden = symbols.iter().filter(|symbol| symbol.depth > depth).count();
    if hidden > 0 {
        let _ = write!(text, "; {hidden} inner declarations not shown");
    }
    if body.len() > room {
        let end = super::text::cut(&body, room).rfind('\n').map_or(0, |at| at + 1);
        let left = body[end..].lines().count();
        body.truncate(end);
        let _ = write!(text, "; {left} more after these");
    }
    Ok(ToolOutput::text(format!("{text}\n{body}"))
        .with("path", name)
        .with("hash", file.hash)
        .with("symbols", symbols.len())
        .with("truncated", hidden > 0))
}

fn lines_of(symbols: &[Symbol], depth: usize) -> String {
    let mut text = String::new();
    for symbol in symbols.iter().filter(|symbol| symbol.depth <= depth) {
        let indent = "  ".repeat(symbol.depth);
        let range = if symbol.line == symbol.end_line {
            symbol.line.to_string()
        } else {
            format!("{}-{}", symbol.line, symbol.end_line)
        };
        let _ = writeln!(text, "{indent}{range} {}", symbol.signature);
    }
    text
}
