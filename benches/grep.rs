//! `code_grep`'s search against ripgrep on a large tree: the same file:line sets, and how long both take.
//!
//! `cargo bench --bench grep -- DIRECTORY [PATTERN…]`; without a directory a tree of 50,000 files is made.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and stops where it cannot go on"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use agent_smith_core::process::Environment;
use agent_smith_core::role::Role;
use agent_smith_core::tool::{ToolContext, search_lines};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench binary"
)]
unsafe extern "C" {}

const ROUNDS: usize = 9;

type Lines = BTreeSet<(String, u64)>;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ripgrep(root: &Path, pattern: &str) -> Option<(Lines, Duration)> {
    let started = Instant::now();
    let output = Command::new("rg")
        .args([
            "--no-config",
            "--no-heading",
            "--with-filename",
            "-n",
            "-0",
            "--",
            pattern,
            ".",
        ])
        .current_dir(root)
        .output()
        .ok()?;
    let took = started.elapsed();
    let lines = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == 0)?;
            let number = line[at + 1..].split(|byte| *byte == b':').next()?;
            let path = String::from_utf8_lossy(&line[..at]).trim_start_matches("./").to_owned();
            Some((path, std::str::from_utf8(number).ok()?.parse().ok()?))
        })
        .collect();
    Some((lines, took))
}

fn made_tree(root: &Path) {
    for n in 0..50_000 {
        let directory = root.join(format!("d{}/e{}", n % 50, n % 500));
        std::fs::create_dir_all(&directory).unwrap();
        let text: String = (0..40)
            .map(|line| format!("let value_{line} = compute({n}, {line});\n"))
            .collect();
        std::fs::write(directory.join(format!("f{n}.rs")), text).unwrap();
    }
    std::fs::write(root.join("d7/rare.rs"), "a very rare_term_indeed\n").unwrap();
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let made = tempfile::tempdir().unwrap();
    let (root, mut patterns): (PathBuf, Vec<String>) = match args.next() {
        Some(root) => (root.into(), args.collect()),
        None => {
            made_tree(made.path());
            (
                made.path().to_owned(),
                vec!["rare_term_indeed".to_owned(), r"compute\(4\d+, 39".to_owned()],
            )
        }
    };
    if patterns.is_empty() {
        patterns = [
            "PM_RESUME",
            "EXPORT_SYMBOL_GPL",
            r"\bstatic (inline )?int \w+_probe\(",
            "(?i)needle",
        ]
        .map(str::to_owned)
        .to_vec();
    }
    let ctx = ToolContext::new(Role::Direct, root.canonicalize().unwrap(), Environment::capture());
    for pattern in patterns {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut sets = None;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let lines = search_lines(&ctx, &pattern).unwrap();
            ours.push(started.elapsed());
            if let Some((rg, took)) = ripgrep(&root, &pattern) {
                theirs.push(took);
                let lines: Lines = lines.into_iter().collect();
                sets = Some((lines.len(), rg.len(), lines == rg));
            }
        }
        let ours = median(ours);
        match sets {
            Some((mine, rg, same)) => {
                let theirs = median(theirs);
                println!(
                    "{pattern}: {ours:?} against {theirs:?} ({:.2}x), {mine} and {rg} lines, same: {same}",
                    ours.as_secs_f64() / theirs.as_secs_f64()
                );
                assert!(same, "the sets differ");
            }
            None => println!("{pattern}: {ours:?} (no rg here to compare with)"),
        }
    }
}
