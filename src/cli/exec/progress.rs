//! The progress of a turn on stderr, one line a happening; what the answer itself is goes to stdout.

use std::io::IsTerminal;

use serde_json::Value;

use crate::cli::write_stderr;
use crate::protocol::{ChangedFile, EventKind, NoticeLevel, ToolFinish};

/// How much of a tool's arguments is shown.
const MAX_ARGUMENT_CHARS: usize = 100;

/// Writes the progress.
pub(super) struct Progress {
    /// Whether a person watches: then lines are dimmed.
    dim: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            dim: std::io::stderr().is_terminal() && !plain,
        }
    }

    pub(super) fn event(&self, kind: &EventKind) {
        match kind {
            EventKind::ToolExecutionStarted { name, arguments, .. } => {
                self.line(&format!("> {name} {}", argument(arguments)));
            }
            EventKind::ToolExecutionFinished(finish) if !finish.ok => self.line(&format!("  {}", failure(finish))),
            EventKind::LlmRetryScheduled {
                attempt,
                max,
                delay_ms,
                error,
            } => {
                self.line(&format!(
                    "  {}; trying again in {delay_ms} ms ({attempt} of {max})",
                    error.message
                ));
            }
            EventKind::ContextTrimmed { layer, before, after } => {
                self.line(&format!("  context: {layer} {before} -> {after} tokens"));
            }
            EventKind::FilesChanged { files } => {
                let names: Vec<_> = files.iter().map(changed).collect();
                self.line(&format!("  changed: {}", names.join(", ")));
            }
            EventKind::Notice { level, text, hint } => {
                let hint = hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                let word = if *level == NoticeLevel::Info {
                    ""
                } else {
                    "agent-smith: "
                };
                write_stderr(&format!("{word}{text}{hint}\n"));
            }
            _ => {}
        }
    }

    fn line(&self, text: &str) {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write_stderr(&if self.dim {
            format!("\x1b[2m{text}\x1b[0m\n")
        } else {
            format!("{text}\n")
        });
    }
}

fn changed(file: &ChangedFile) -> String {
    let lines = |sign: char, lines: Option<usize>| match lines {
        Some(lines) if lines > 0 => format!(" {sign}{lines}"),
        _ => String::new(),
    };
    let new = if file.new { " (new)" } else { "" };
    format!(
        "{}{new}{}{}",
        file.path,
        lines('+', file.added),
        lines('-', file.removed)
    )
}

fn failure(finish: &ToolFinish) -> String {
    let first = finish.content.lines().next().unwrap_or_default();
    let message = finish.error.as_ref().map_or(first, |error| error.message.as_str());
    format!("{} failed: {message}", finish.outcome.name)
}

/// The argument that says most: a command or path, else the first; on one line, cut.
fn argument(arguments: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(arguments).ok();
    let member = |name: &str| {
        parsed
            .as_ref()
            .and_then(|value| value.get(name))
            .and_then(Value::as_str)
    };
    let first = || parsed.as_ref()?.as_object()?.values().find_map(Value::as_str);
    let text = ["command", "path", "pattern", "query"]
        .iter()
        .find_map(|name| member(name))
        .or_else(first);
    let line = text
        .unwrap_or(arguments)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if line.chars().count() <= MAX_ARGUMENT_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_ARGUMENT_CHARS).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_argument_on_one_line() {
        assert_eq!(argument(r#"{"timeout": 5, "command": "a\n  b"}"#), "a b");
        assert_eq!(argument(r#"{"x": "y"}"#), "y");
        assert_eq!(argument("broken {"), "broken {");
        assert_eq!(
            argument(&format!(r#"{{"path":"{}"}}"#, "x".repeat(300)))
                .chars()
                .count(),
            101
        );
    }
}
