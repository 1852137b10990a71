//! `/diff`: which files the tools changed, and how.

use std::fmt::Write as _;

use serde_json::json;

use crate::command::host::ChangeView;
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::protocol::ChangedFile;

/// Lines of differences shown; of the rest the number is told.
const SHOWN_LINES: usize = 400;

pub(super) static COMMAND: Command = Command {
    name: "diff",
    args: "[all]",
    help: "Show what the tools changed in this turn, or with `all` in this conversation",
    details: "Files are compared with what they were before the first change; one that is as it was again is left out. Files that commands changed are not known here: `!git diff` shows those too.",
    during_turn: true,
    completer: Completer::Words(&["all"]),
    run: |call, host| {
        Box::pin(async move {
            let all = match call.arguments.trim() {
                "" => false,
                "all" => true,
                other => return Err(COMMAND.misused(format!("`/diff` does not know `{other}`"))),
            };
            let views = host.changes().await?;
            let (turn, conversation) = (views.turn, views.conversation);
            let mut text = String::new();
            if conversation.is_empty() {
                text.push_str("The tools have changed no file in this conversation.\n");
            } else {
                listing(&mut text, "This turn", &turn);
                listing(&mut text, "This conversation", &conversation);
                differences(&mut text, if all { &conversation } else { &turn });
            }
            let files = |views: &[ChangeView]| views.iter().map(|view| json!(view.file)).collect::<Vec<_>>();
            let value = json!({"turn": files(&turn), "conversation": files(&conversation)});
            Ok(CommandOutput::text(text).with_value(value))
        })
    },
};

fn listing(text: &mut String, title: &str, views: &[ChangeView]) {
    let _ = match views.len() {
        0 => writeln!(text, "{title}: no file.\n"),
        1 => writeln!(text, "{title}: 1 file.\n"),
        many => writeln!(text, "{title}: {many} files.\n"),
    };
    for ChangeView { file, .. } in views {
        let _ = writeln!(text, "- `{}`{}", file.path, counts(file));
    }
    if !views.is_empty() {
        text.push('\n');
    }
}

fn counts(file: &ChangedFile) -> String {
    let mut out = if file.new { " (new)" } else { "" }.to_owned();
    match (file.added, file.removed) {
        (Some(added), Some(removed)) => {
            let _ = write!(out, " +{added} -{removed}");
        }
        _ => out.push_str(" (cannot be compared)"),
    }
    out
}

fn differences(text: &mut String, views: &[ChangeView]) {
    let mut room = SHOWN_LINES;
    let mut left_out = 0;
    for ChangeView { file, diff } in views {
        let lines = diff.lines().count();
        if diff.is_empty() && (file.added, file.removed) != (Some(0), Some(0)) {
            let _ = writeln!(text, "`{}`: too long or no text to be shown here.\n", file.path);
        } else if lines > room {
            left_out += lines;
        } else if lines > 0 {
            room -= lines;
            // A fence longer than any in the text, which may be Markdown itself.
            let fence = "`".repeat(longest_fence(diff).max(2) + 1);
            let _ = writeln!(text, "{fence}diff\n{}\n{fence}\n", diff.trim_end());
        }
    }
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} more lines are not shown; `!git diff` has them.");
    }
}

/// The most backticks in a row.
fn longest_fence(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
