//! `agent-smith config`: what is shown, and the file in an editor.

use std::os::unix::fs::PermissionsExt;

use agent_smith_core::config;
use agent_smith_core::persistence::{Batch, Store, StoreOptions};
use serde_json::{Value, json};

use crate::support::home::{Home, Ran};
use crate::support::pty::{Pty, PtyOptions};

fn configured() -> Home {
    let home = Home::new();
    home.configure(&json!({
        "default_model": "big",
        "llm_config": {"api_url": "http://me:secret@127.0.0.1:1/v1", "extra_headers": {"X-Key": "secret"}},
    }));
    let mut batch = Batch::new();
    batch.put_config_patch(json!({"models": {"worker": "small"}}));
    Store::new(StoreOptions::at(home.database())).commit_blocking(batch);
    home
}

#[test]
fn each_key_is_shown_with_its_value_and_layer() {
    let home = configured();
    let ran = home.run(&["config", "show"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let line = |key: &str| {
        let found = ran
            .stdout
            .lines()
            .find(|line| line.split_whitespace().next() == Some(key));
        found
            .unwrap_or_else(|| panic!("no {key} in\n{}", ran.stdout))
            .to_owned()
    };
    for (key, value, layer) in [
        ("default_model", "\"big\"", "user file"),
        ("models.worker", "\"small\"", "/config set"),
        ("llm_config.timeout", "600", "default"),
        ("tool_step_budget", "(unlimited)", "unset"),
    ] {
        let line = line(key);
        assert!(line.contains(value) && line.ends_with(layer), "{line}");
    }
    assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);

    let some = home.run(&["config", "show", "llm_config.models", "--json"]);
    assert_eq!(some.code, Some(2), "nothing is set there: {}", some.stdout);
    let some = home.run(&["config", "show", "models", "--json"]);
    let shown: Value = serde_json::from_str(&some.stdout).unwrap();
    assert_eq!(
        shown,
        json!({"models.worker": {"value": "small", "layer": "/config set"}})
    );
    let set = home.run(&["config", "show", "--set"]);
    assert_eq!(set.stdout.lines().count(), 4, "{}", set.stdout);
    let none = home.run(&["config", "show", "llm_config.api_ulr"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""));
    assert!(
        none.stderr.contains("did you mean llm_config.api_url?"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_bad_file_is_told_and_what_holds_is_shown_all_the_same() {
    let home = configured();
    home.configure(&json!({"default_model": "big", "llm_config": {"timeout": "soon"}}));
    let ran = home.run(&["config", "show", "default_model"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stdout.contains("\"big\""), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("llm_config.timeout") && ran.stderr.contains("agent-smith config edit"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_path_and_the_schema_are_printed_and_nothing_else() {
    let home = Home::new();
    let path = home.run(&["config", "path"]);
    assert_eq!(
        (path.code, path.stdout),
        (Some(0), format!("{}\n", home.config_file().display()))
    );
    let schema = home.run(&["config", "schema"]);
    assert_eq!(
        serde_json::from_str::<Value>(&schema.stdout).unwrap(),
        config::json_schema()
    );
}

/// Runs `config edit` with an editor that is a script; `$1` is the file.
fn edit(home: &Home, script: &str) -> Ran {
    let editor = home.path().join("the editor");
    std::fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(["config", "edit"]);
    // A name with a blank, quoted as for a shell; and VISUAL before EDITOR.
    command
        .env("VISUAL", format!("'{}'", editor.display()))
        .env("EDITOR", "false");
    Ran::of(command.output().unwrap())
}

#[test]
fn the_file_is_edited_and_checked() {
    let home = Home::new();
    // There was none.
    let ran = edit(&home, r#"echo '{"default_model": "new"}' > "$1""#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("reads well"), "{}", ran.stderr);
    let written = std::fs::read_to_string(home.config_file()).unwrap();
    assert_eq!(written, "{\"default_model\": \"new\"}\n");

    // What is bad is told with its place, and stays for the next try.
    for (bad, words) in [
        (r#"{"default_model": "new",}"#, "agent_smith.json:1:25"),
        (r#"{"defualt_model": "new"}"#, "did you mean `default_model`"),
        (r#"{"profile": "gone"}"#, "there is no profile"),
    ] {
        let ran = edit(&home, &format!("echo '{bad}' > \"$1\""));
        assert_eq!(ran.code, Some(2), "{bad}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{bad}: {}", ran.stderr);
        assert!(ran.stderr.contains("the file stays as it is"), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(home.config_file()).unwrap().trim(), bad);
    }
    let ran = edit(&home, "exit 3");
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("the editor") && ran.stderr.contains("EDITOR"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_editor_that_writes_nothing_leaves_no_file() {
    let home = Home::new();
    let ran = edit(&home, "true");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!home.config_file().exists());
}

#[test]
fn a_person_is_asked_whether_to_edit_again() {
    let home = Home::new();
    // The first time it writes nonsense, the second time it mends it.
    let editor = home.path().join("editor");
    let script = r#"#!/bin/sh
if [ -e "$HOME/once" ]; then echo '{"default_model": "x"}' > "$1"; else echo '{' > "$1"; fi
touch "$HOME/once""#;
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Pty::start(
        &home,
        &PtyOptions {
            arguments: &["config", "edit"],
            env: &[("EDITOR", editor.to_str().unwrap())],
            ..PtyOptions::default()
        },
    );
    terminal.see("Edit it again?");
    terminal.line("");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.written(0).contains("reads well"));
}
