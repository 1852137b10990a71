//! The rules of the house that a compiler does not check: which room may know which, one home for each crate, no test
//! file forgotten, the stated minimum Rust version kept by every dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each room may use besides what everyone may: `protocol`, `error`, `cancel`, `message`, and itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("llm", &[]),
    ("process", &[]),
    ("persistence", &[]),
    ("config", &[]),
    ("ui", &[]),
    ("role", &[]),
    ("tool", &["process", "persistence", "config", "role"]),
    ("conversation", &["persistence"]),
    ("prompt", &["config", "role", "persistence"]),
    ("turn", &["llm", "tool", "conversation", "prompt"]),
    ("dispatch", &["turn", "role"]),
    ("command", &["role", "prompt", "config"]),
    ("completion", &["command", "config"]),
    (
        "runtime",
        &[
            "llm",
            "process",
            "persistence",
            "config",
            "ui",
            "role",
            "tool",
            "conversation",
            "prompt",
            "turn",
            "dispatch",
            "command",
            "completion",
        ],
    ),
    ("bridge", &["runtime", "ui"]),
    (
        "host",
        &[
            "llm",
            "process",
            "persistence",
            "config",
            "ui",
            "role",
            "tool",
            "conversation",
            "prompt",
            "turn",
            "dispatch",
            "command",
            "completion",
            "runtime",
            "bridge",
        ],
    ),
    (
        "cli",
        &[
            "llm",
            "process",
            "persistence",
            "config",
            "ui",
            "role",
            "tool",
            "conversation",
            "prompt",
            "turn",
            "dispatch",
            "command",
            "completion",
            "runtime",
            "bridge",
            "host",
        ],
    ),
];

const EVERYONE: &[&str] = &["protocol", "error", "cancel", "message", "nearest", "failpoint"];

/// The rooms a crate may be named in.
const HOMES: &[(&str, &[&str])] = &[
    ("mlua", &["bridge", "host"]),
    ("reqwest", &["llm", "tool"]),
    ("redb", &["persistence"]),
    ("crossterm", &["ui", "host"]),
    ("signal_hook", &["cli", "host"]),
];

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            out.push(path);
        }
    }
}

/// The room a source file belongs to; files at the top that are no room give `None`.
fn room_of(path: &Path) -> Option<String> {
    let relative = path.strip_prefix(source_root()).unwrap();
    let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
    let room = first.strip_suffix(".rs").unwrap_or(first);
    ROOMS.iter().any(|(name, _)| *name == room).then(|| room.to_owned())
}

/// The code of a file without comments and without its unit tests, which may use what they like.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap().to_owned();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn names_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(prefix).filter_map(move |(at, _)| {
        let starts_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let rest = &code[at + prefix.len()..];
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        starts_word.then_some(&rest[..end])
    })
}

#[test]
fn every_room_uses_only_what_it_may() {
    let mut files = Vec::new();
    rust_files(&source_root(), &mut files);
    let mut breaches = Vec::new();
    for path in files {
        let Some(room) = room_of(&path) else { continue };
        let allowed = ROOMS.iter().find(|(name, _)| *name == room).unwrap().1;
        let code = code(&path);
        assert!(
            !code.contains("use crate::{"),
            "{}: one `use crate::room::…` a line, please",
            path.display()
        );
        for used in names_after(&code, "crate::") {
            if !EVERYONE.contains(&used) && used != room && !allowed.contains(&used) {
                breaches.push(format!("{} ({room}) uses {used}", path.display()));
            }
        }
    }
    assert!(
        breaches.is_empty(),
        "breaches of the dependency rule:\n{}",
        breaches.join("\n")
    );
}

#[test]
fn every_crate_stays_in_its_home() {
    let mut files = Vec::new();
    rust_files(&source_root(), &mut files);
    let mut breaches = Vec::new();
    for path in files {
        let room = room_of(&path).unwrap_or_default();
        let code = code(&path);
        for (name, homes) in HOMES {
            let used = names_after(&code, &format!("{name}::")).next().is_some();
            if used && !homes.contains(&room.as_str()) {
                breaches.push(format!("{} uses {name}", path.display()));
            }
        }
    }
    assert!(
        breaches.is_empty(),
        "crates outside their home:\n{}",
        breaches.join("\n")
    );
}

#[test]
fn every_room_is_listed() {
    for entry in fs::read_dir(source_root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "bin" {
            assert!(
                ROOMS.iter().any(|(room, _)| *room == name),
                "src/{name} is no room of tests/suite/house.rs"
            );
        }
    }
}

#[test]
fn no_test_file_is_forgotten() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let root = fs::read_to_string(tests.join("suite.rs")).unwrap();
    let declared: BTreeSet<_> = root
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mod "))
        .collect();
    for entry in fs::read_dir(tests.join("suite")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            declared.contains(format!("{name};").as_str()),
            "tests/suite/{name}.rs has no mod line in tests/suite.rs"
        );
    }
}

#[test]
fn no_dependency_needs_a_newer_rust_than_stated() {
    let rustc = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Only what this platform builds is sure to be there without a network.
    let output = std::process::Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--offline",
            "--locked",
            "--filter-platform",
            host,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let version = |text: &str| {
        text.split('.')
            .map(|part| part.parse::<u32>().unwrap())
            .collect::<Vec<_>>()
    };
    let packages = metadata["packages"].as_array().unwrap();
    let own = packages
        .iter()
        .find(|package| package["name"] == "agent-smith")
        .unwrap();
    let own = version(own["rust_version"].as_str().expect("a stated minimum"));
    for package in packages {
        if let Some(needed) = package["rust_version"].as_str() {
            assert!(
                version(needed)[..2] <= own[..2],
                "{} needs Rust {needed}",
                package["name"]
            );
        }
    }
}
