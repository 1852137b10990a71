//! `/config`: what is set and where, and changes of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::command::host::CommandHost;
use crate::command::line::CommandLine;
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::config::{Entry, Layer, entries, find_entries};
use crate::error::AgentError;

pub(super) static COMMAND: Command = Command {
    name: "config",
    args: "[TEXT | get KEY | set KEY VALUE | unset KEY]",
    help: "Show each setting and where it comes from, or change one",
    details: "Without arguments: every key that is set, with its value and the layer it comes from: `default`, `user file`, \
              `/config set`, `session` or `profile`. With a text: the keys that have it in their name, set or not. `get` tells all about one key. `set` \
              takes a value as JSON where it is JSON (`80`, `false`, `[500, 1000]`) and else as text, checks it, and keeps it for \
              all sessions; `unset` takes that back. A change holds from the next turn on. docs/CONFIG.md lists the keys.",
    during_turn: true,
    completer: Completer::Config,
    run: |call, host| Box::pin(run(call, host)),
};

async fn run(call: CommandLine<'_>, host: &mut dyn CommandHost) -> Result<CommandOutput, AgentError> {
    let (verb, rest) = cut_word(call.arguments);
    let (key, value) = cut_word(rest);
    match verb {
        "" => {
            let all = entries(&host.config());
            let set: Vec<&Entry> = all.iter().filter(|entry| entry.layer != Layer::Unset).collect();
            let mut output = table(&set);
            output
                .text
                .push_str("\n`/config TEXT` finds keys that are not set, too; docs/CONFIG.md has them all.\n");
            Ok(output)
        }
        "get" if !key.is_empty() && value.is_empty() => get(key, host),
        "set" if !key.is_empty() && !value.is_empty() => {
            let changed = host.change_config(key, Some(value)).await?;
            let mut text = format!("`{}` is now {}.", changed.path, changed.value);
            if changed.layer != Layer::Override {
                let _ = write!(
                    text,
                    " What you set is kept, but the layer above it ({}) holds.",
                    changed.layer
                );
            }
            if changed.session_only {
                text.push_str(" It holds until this session ends.");
            }
            Ok(CommandOutput::text(text))
        }
        "unset" if !key.is_empty() && value.is_empty() => {
            let before = crate::config::DottedPath::parse(key).ok();
            let before = before.and_then(|path| crate::config::entry(&host.config(), &path));
            let changed = host.change_config(key, None).await.map_err(|error| match before {
                // Set, but elsewhere.
                Some(entry) if error.hint.is_none() && entry.layer != Layer::Override => {
                    error.with_hint(format!("{} comes from the layer `{}`", words(&entry), entry.layer))
                }
                _ => error,
            })?;
            let text = match changed.layer {
                Layer::Unset => {
                    let holds = changed.value.trim_matches(['(', ')']);
                    format!("`{}` is not set any more, so what holds is: {holds}.", changed.path)
                }
                layer => format!("`{}` is now {} ({layer}).", changed.path, changed.value),
            };
            Ok(CommandOutput::text(text))
        }
        "get" | "unset" => Err(COMMAND.misused(format!("/config {verb} takes one key"))),
        "set" => Err(COMMAND.misused("/config set takes a key and a value")),
        _ => {
            let all = entries(&host.config());
            let found = find_entries(&all, call.arguments);
            if found.is_empty() {
                let message = format!("no key has `{}` in its name", call.arguments);
                return Err(COMMAND.misused(message));
            }
            Ok(table(&found))
        }
    }
}

fn get(key: &str, host: &mut dyn CommandHost) -> Result<CommandOutput, AgentError> {
    let path = crate::config::DottedPath::parse(key)
        .map_err(|error| AgentError::from(crate::config::ConfigError::from(error)))?;
    let config = host.config();
    let Some(entry) = crate::config::entry(&config, &path) else {
        // Part of a table: what is in it.
        let all = entries(&config);
        let inside = |entry: &&Entry| entry.path.segments().starts_with(path.segments());
        let found: Vec<&Entry> = all.iter().filter(inside).collect();
        if !found.is_empty() {
            return Ok(table(&found));
        }
        let message = match crate::config::nearest_key(path.segments()) {
            Some(near) => format!("`{path}` is not a key; did you mean `{near}`?"),
            None => format!("`{path}` is not a key"),
        };
        return Err(COMMAND.misused(message));
    };
    let what = match &entry.value {
        Some(_) => format!("`{}` = {} ({})", entry.path, words(&entry), entry.layer),
        None => format!("`{}` is not set {}", entry.path, words(&entry)),
    };
    let text = format!("{what}\n\n{}\n", entry.row.doc);
    Ok(CommandOutput::text(text).with_value(value(&entry)))
}

/// A value as code; what the absence of one means as words.
fn words(entry: &Entry) -> String {
    match entry.value {
        Some(_) => format!("`{}`", entry.value_words()),
        None => entry.value_words(),
    }
}

fn value(entry: &Entry) -> Value {
    json!({"key": entry.path.to_string(), "value": entry.value, "layer": entry.layer.as_str()})
}

fn table(entries: &[&Entry]) -> CommandOutput {
    let mut text = String::from("| key | value | from |\n|---|---|---|\n");
    for entry in entries {
        let words = words(entry).replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {words} | {} |", entry.path, entry.layer);
    }
    let value = entries.iter().map(|entry| value(entry)).collect();
    CommandOutput::text(text).with_value(Value::Array(value))
}

/// The first word, and what follows without the blanks between. A quoted segment of a key may hold blanks.
fn cut_word(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_at_a_blank_outside_of_quotes() {
        assert_eq!(cut_word("set a.b  [1, 2]"), ("set", "a.b  [1, 2]"));
        assert_eq!(cut_word("a.\"x y\".z 5"), ("a.\"x y\".z", "5"));
        assert_eq!(cut_word(""), ("", ""));
    }
}
