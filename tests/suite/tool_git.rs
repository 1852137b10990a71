//! `git`: it looks, and nothing else, whatever the repository says should run.
#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use agent_smith_core::role::Role;
use serde_json::json;

use crate::support::tools::Yard;

fn git(yard: &Yard, args: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(&yard.root)
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(
        status.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&status.stderr)
    );
}

fn repository() -> Yard {
    let mut yard = Yard::new();
    yard.ctx.role = Role::Orchestrator;
    git(&yard, &["init", "-q"]);
    yard.write("a.txt", "one\n");
    yard.write("b.bin", "two\n");
    git(&yard, &["add", "."]);
    git(&yard, &["commit", "-qm", "first"]);
    yard.write("a.txt", "one\nmore\n");
    yard
}

#[tokio::test]
async fn the_orchestrator_looks_at_what_changed() {
    let yard = repository();
    let result = yard.call("git", json!({"subcommand": "diff"})).await;
    assert!(
        result.ok && result.content.ends_with(" one\n+more\n"),
        "{}",
        result.content
    );
    let result = yard
        .call("git", json!({"subcommand": "log", "args": ["--format=%s", "-1"]}))
        .await;
    assert_eq!(result.content, "first\n");
    let result = yard.call("git", json!({"subcommand": "status --short"})).await;
    assert_eq!(result.content, " M a.txt\n");
    let result = yard
        .call("git", json!({"subcommand": "blame", "args": ["-s", "a.txt"]}))
        .await;
    assert!(
        result.content.contains("one") && result.content.contains("more"),
        "{}",
        result.content
    );
    let result = yard.call("git", json!({"subcommand": "branch"})).await;
    assert_eq!(result.content, "* main\n");
    let result = yard
        .call("git", json!({"subcommand": "show", "args": ["nothing"]}))
        .await;
    assert!(
        !result.ok && result.content.contains("[Exit code 128.]"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn only_the_orchestrator_and_only_what_is_listed() {
    let mut yard = repository();
    for args in [
        json!({"subcommand": "commit", "args": ["-m", "x"]}),
        json!({"subcommand": "diff", "args": ["--output=stolen"]}),
        json!({"subcommand": "branch", "args": ["-D", "main"]}),
    ] {
        let result = yard.call("git", args.clone()).await;
        assert_eq!(result.error.unwrap().code, "git_denied", "{args}");
    }
    yard.ctx.role = Role::Direct;
    let result = yard.call("git", json!({"subcommand": "log"})).await;
    assert_eq!(result.error.unwrap().code, "tool_denied");
}

#[tokio::test]
async fn nothing_that_the_repository_names_is_run() {
    let yard = repository();
    let trap = yard.write(
        "trap.sh",
        format!("#!/bin/sh\ntouch {}/sprung\ncat\n", yard.home.path().display()),
    );
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    yard.write(".gitattributes", "*.txt diff=trap filter=trap\n*.bin diff=command\n");
    yard.write("b.bin", "three\n");
    for (key, value) in [
        ("diff.trap.textconv", trap),
        ("diff.command.command", trap),
        ("diff.external", trap),
        ("filter.trap.clean", trap),
        ("filter.trap.smudge", trap),
        ("filter.trap.required", "true"),
        ("core.fsmonitor", trap),
        ("core.pager", trap),
        ("pager.log", trap),
        ("core.editor", trap),
        ("gpg.program", trap),
        ("log.showSignature", "true"),
        ("alias.status", "!touch sprung"),
        ("core.hooksPath", yard.root.to_str().unwrap()),
    ] {
        git(&yard, &["config", key, value]);
    }
    let sprung = yard.home.path().join("sprung");
    let _ = std::fs::remove_file(&sprung);
    // The trap works: git as it is walks into it.
    let _ = Command::new("git")
        .args(["diff", "--no-pager"])
        .current_dir(&yard.root)
        .output()
        .unwrap();
    let _ = Command::new("git")
        .arg("diff")
        .current_dir(&yard.root)
        .output()
        .unwrap();
    assert!(sprung.exists());
    std::fs::remove_file(&sprung).unwrap();
    let index = std::fs::metadata(yard.root.join(".git/index"))
        .unwrap()
        .modified()
        .unwrap();
    for args in [
        json!({"subcommand": "status"}),
        json!({"subcommand": "diff"}),
        json!({"subcommand": "diff", "args": ["HEAD", "--stat"]}),
        json!({"subcommand": "log", "args": ["-p"]}),
        json!({"subcommand": "show"}),
        json!({"subcommand": "blame", "args": ["a.txt"]}),
        json!({"subcommand": "branch", "args": ["-vv"]}),
    ] {
        let result = yard.call("git", args.clone()).await;
        assert!(result.ok, "{args}: {}", result.content);
        assert!(!sprung.exists(), "{args}");
    }
    let after = std::fs::metadata(yard.root.join(".git/index"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(index, after, "the index was written");
}

#[tokio::test]
async fn a_long_history_is_cut() {
    let mut yard = repository();
    yard.write("big.txt", "line\n".repeat(20_000));
    git(&yard, &["add", "."]);
    yard.ctx.limits.output_chars = 2_000;
    let result = yard
        .call("git", json!({"subcommand": "diff", "args": ["--cached"]}))
        .await;
    assert!(result.content.len() < 3_000);
    assert!(result.content.contains("agent_smith left out"), "{}", result.content);
    assert!(result.content.contains("Narrow it"), "{}", result.content);
}
