//! The table as docs/CONFIG.md.

use std::fmt::Write as _;

use super::schema::{self, Fallback, Kind, Literal, Row, SECTIONS, Section};

const INTRO: &str = "\
# Configuration

<!-- Generated from the table in src/config/schema/rows.rs; a test compares. To write it anew:
     UPDATE_DOCS=1 cargo test config_docs -->

Your file is `~/.config/lilush/agent_smith.json` (below `$XDG_CONFIG_HOME`, where that is set to an absolute path). It is
plain JSON and holds only what differs from the defaults; nothing in it is required. To use a model server, two lines do:

```json
{
  \"default_model\": \"qwen3-coder-30b\",
  \"llm_config\": { \"api_url\": \"http://127.0.0.1:8080/v1\" }
}
```

## Layers

What holds is the sum of four layers; a higher one wins. Tables merge key by key, everything else replaces.

| | Layer | Where it comes from |
|---|---|---|
| 4 | session | the command line, and what lasts only as long as the shell |
| 3 | `/config set` | changes made in the shell, kept in the store |
| 2 | user file | `agent_smith.json` |
| 1 | default | built in, as printed below |

A profile in use (see *Profiles*) lies over all four. `/config` shows every key with the layer it comes from.

- `/config get <key>` shows one, `/config set <key> <value>` changes one, `/config unset <key>` takes the change back.
- A value is read as JSON where it is JSON (`80`, `false`, `[2000, 8000]`), else as a text. To set a text that looks like
  JSON, quote it: `\"80\"`.
- A name with a dot or a colon is quoted in a key: `llm_config.models.\"a/b:c\".temperature`.
- A value is checked before it is kept; a key that does not exist is refused, and the nearest one is named.
- `agent-smith config schema` prints the JSON Schema of the file for your editor.

A mistake in the file never stops the shell: it is told with its place, and what held before goes on to hold (at the
first start: the part of the file without the mistake). `agent-smith exec` ends with exit code 2 instead.

The built-in layer is exactly this; other defaults in the tables below are applied where the key is used.

```json
";

/// The text of docs/CONFIG.md.
#[must_use]
pub fn markdown() -> String {
    let mut text = INTRO.to_owned();
    text.push_str(&serde_json::to_string_pretty(schema::built_in()).unwrap_or_default());
    text.push_str("\n```\n");
    for section in SECTIONS {
        write_section(&mut text, section);
    }
    text
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n## {}\n\n{}\n", section.title, section.intro);
    let _ = write!(text, "\n| Key | Value | Default | |\n|---|---|---|---|\n");
    for row in section.rows {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            row.path,
            cell(&value_words(row.kind)),
            cell(&default_words(row.fallback)),
            cell(&doc(row)),
        );
    }
    let examples = section.rows.iter().filter(|row| row.overridable).map(set_command);
    let _ = write!(text, "\n```text\n{}\n```\n", examples.collect::<Vec<_>>().join("\n"));
}

fn doc(row: &Row) -> String {
    if row.overridable {
        return row.doc.to_owned();
    }
    format!("{} Only in the user file.", row.doc)
}

fn value_words(kind: Kind) -> String {
    match kind {
        Kind::Choice(choices) => choices
            .iter()
            .map(|choice| format!("`{choice}`"))
            .collect::<Vec<_>>()
            .join(" or "),
        Kind::Bool => "`true` or `false`".to_owned(),
        kind => kind.words().into_owned(),
    }
}

fn default_words(fallback: Fallback) -> String {
    match fallback {
        Fallback::BuiltIn(literal) => format!("`{}`", literal.to_value()),
        Fallback::AtUse(Literal::Texts([])) => "none".to_owned(),
        Fallback::AtUse(literal) => format!("`{}`, at use", literal.to_value()),
        Fallback::Unset(words) => words.to_owned(),
    }
}

/// How the row's example is typed. What is a text in JSON needs no quotes there.
fn set_command(row: &Row) -> String {
    let value = match serde_json::from_str(row.example) {
        Ok(serde_json::Value::String(text)) => text,
        _ => row.example.to_owned(),
    };
    let path = row
        .path
        .replace("<role>", "worker")
        .replace("<name>", "local")
        .replace("<model>", "\"a/b:c\"");
    format!("/config set {path} {value}")
}

/// A text that can stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
