//! docs/COMMANDS.md, from the registry.

use std::fmt::Write as _;

use crate::command::registry::Registry;

const HEAD: &str = "# Commands

<!-- Generated from src/command; a test checks it. -->

A line whose first word is `/` and a name is a command. `/etc/hosts is wrong` is none: it is a prompt. A name that does not
exist is never guessed; the nearest one is suggested. Names, arguments and values are completed with Tab.

";

const TAIL: &str = "## The shell

`!COMMAND` runs a line in the shell, where you are, without a terminal and with nothing to read from. Its output is shown, and kept for
the model: it goes before the next thing you say. Cancelling ends it with everything it started. It waits until a running turn has
ended.

## Files

`@PATH` anywhere in what you say attaches a file, or the names in a directory, after your text; `@\"a path\"` where it holds blanks. Only
what lies inside the repository (outside of one: the working directory) is attached, wherever links lead, and at most
`prompt.attachment_chars` characters in all; what was left out is told. A word that is no path of something there stays a word.

## Your own

docs/USER_COMMANDS.md says how to write commands of your own.
";

/// The document.
#[must_use]
pub fn markdown() -> String {
    let registry = Registry::builtin();
    let mut text = HEAD.to_owned();
    text.push_str("| Command | | During a turn |\n|---|---|---|\n");
    for command in registry.list() {
        let during = if command.during_turn { "yes" } else { "no" };
        let _ = writeln!(
            text,
            "| [`{}`](#{}) | {} | {during} |",
            command.usage().replace('|', "\\|"),
            command.name,
            command.help
        );
    }
    for command in registry.list() {
        let _ = write!(
            text,
            "\n## {}\n\n`{}`\n\n{}.",
            command.name,
            command.usage(),
            command.help
        );
        if !command.details.is_empty() {
            let _ = write!(text, " {}", command.details);
        }
        text.push('\n');
    }
    text.push('\n');
    text.push_str(TAIL);
    text
}
