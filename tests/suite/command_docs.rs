//! docs/COMMANDS.md is what the registry says.

use agent_smith_core::command::{Registry, is_command_name, markdown};

#[test]
fn command_docs_are_what_the_registry_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/COMMANDS.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, markdown()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == markdown(),
        "docs/COMMANDS.md is not what the registry says; write it anew with UPDATE_DOCS=1 cargo test command_docs"
    );
}

#[test]
fn every_command_has_a_name_of_its_own_and_one_line_of_help() {
    let registry = Registry::builtin();
    for command in registry.list() {
        assert!(is_command_name(command.name));
        assert!(!command.help.is_empty() && !command.help.contains('\n') && !command.help.ends_with('.'));
    }
    let names: Vec<_> = registry.list().iter().map(|command| command.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}
