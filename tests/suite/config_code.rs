//! The sources ask the configuration only for keys that the table has, by the accessor that fits, and no row is
//! without a reader once its room is there.

use std::path::{Path, PathBuf};

use agent_smith_core::config::DottedPath;
use agent_smith_core::config::schema::{At, Kind, Row, at};

fn sources(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Calls such as `.u64("key")`: the accessor and the key.
fn calls(text: &str) -> Vec<(&str, &str)> {
    let accessors = [
        "u64", "opt_u64", "f64", "opt_f64", "bool", "str", "opt_str", "numbers", "texts", "table",
    ];
    let mut found = Vec::new();
    for accessor in accessors {
        let start = format!(".{accessor}(\"");
        for (position, _) in text.match_indices(&start) {
            let rest = &text[position + start.len()..];
            if let Some(end) = rest.find("\")") {
                found.push((accessor, &rest[..end]));
            }
        }
    }
    found
}

fn fits(accessor: &str, row: &Row) -> bool {
    let kind = match accessor {
        "u64" | "opt_u64" | "f64" | "opt_f64" => matches!(row.kind, Kind::Integer(_) | Kind::Number(_)),
        "bool" => row.kind == Kind::Bool,
        "numbers" => row.kind == Kind::Numbers,
        "texts" => row.kind == Kind::Texts,
        "table" => row.kind.is_map(),
        _ => matches!(
            row.kind,
            Kind::Text
                | Kind::Model
                | Kind::Profile
                | Kind::Variable
                | Kind::Choice(_)
                | Kind::RelativePath
                | Kind::Url
                | Kind::Combo
        ),
    };
    let needs_default = matches!(accessor, "u64" | "f64" | "bool" | "str");
    kind && (!needs_default || row.fallback.literal().is_some())
}

#[test]
fn every_key_the_code_asks_for_is_in_the_table() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (accessor, key) in calls(&text) {
            seen += 1;
            let row = DottedPath::parse(key).ok().and_then(|path| match at(path.segments()) {
                At::Key(row) => Some(row),
                _ => None,
            });
            if !row.is_some_and(|row| fits(accessor, row)) {
                wrong.push(format!("{}: .{accessor}(\"{key}\")", file.display()));
            }
        }
    }
    assert!(seen > 5, "the scan finds the calls in the tests of config at least");
    assert!(
        wrong.is_empty(),
        "no such key, or not by this accessor:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_scan_finds_what_is_wrong() {
    let row = |path: &str| match at(&path.split('.').collect::<Vec<_>>()) {
        At::Key(row) => row,
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(
        calls(r#"config.u64("a.b") + config.str("c")"#),
        [("u64", "a.b"), ("str", "c")]
    );
    assert!(fits("f64", row("llm_config.timeout")));
    assert!(!fits("str", row("llm_config.timeout")));
    assert!(!fits("u64", row("tool_step_budget")), "it has no default");
    assert!(fits("opt_u64", row("tool_step_budget")));
}
