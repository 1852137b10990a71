//! The whole system prompt of each role, as a person would read it, and what holds of all of them.

use std::path::Path;

use agent_smith_core::prompt::{MemoryEntry, ProjectContext, build_system_prompt, load_index_file};
use agent_smith_core::role::{ROLES, Role};
use agent_smith_core::runtime::SessionOptions;

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;

fn project() -> ProjectContext {
    ProjectContext {
        cwd: "/home/ann/shop/api".into(),
        git_root: Some("/home/ann/shop".into()),
        origin: Some("git@example.org:ann/shop.git".to_owned()),
        normalized_origin: Some("example.org/ann/shop".to_owned()),
        project_id: "0f1e2d3c4b5a6978".to_owned(),
        local: false,
    }
}

#[test]
fn each_role_has_its_prompt() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(
        root.path().join("INDEX.md"),
        "# Shop\n\n- api: the server\n- web: the pages\n",
    )
    .unwrap();
    let index = load_index_file(root.path(), "INDEX.md", 1000).unwrap();
    let memories = [
        MemoryEntry::new(
            "test-command",
            "Run the tests with `make check`.\nThey need no network.",
        ),
        MemoryEntry::new("style", "Tabs in Makefiles only."),
    ];
    for spec in &ROLES {
        let prompt = build_system_prompt(spec.role, Some(&project()), index.as_ref(), &memories);
        insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("prompt_{}", spec.name), prompt);
        });
    }
}

#[test]
fn blocks_come_in_order_and_empty_ones_leave_no_gap() {
    let index = agent_smith_core::prompt::IndexFile {
        path: "INDEX.md".to_owned(),
        text: "index text".to_owned(),
        truncated: false,
    };
    let memories = [MemoryEntry::new("m1", "one")];
    for with_project in [false, true] {
        for with_index in [false, true] {
            for with_memories in [false, true] {
                let project = with_project.then(project);
                let prompt = build_system_prompt(
                    Role::Direct,
                    project.as_ref(),
                    with_index.then_some(&index),
                    if with_memories { &memories } else { &[] },
                );
                let headings: Vec<&str> = prompt.lines().filter(|line| line.starts_with("## ")).collect();
                let mut expected = Vec::new();
                if with_project {
                    expected.push("## Project information");
                }
                // The index belongs to a project; without one there is no place it could come from.
                if with_project && with_index {
                    expected.push("## Project context");
                }
                if with_memories {
                    expected.push("## Project memory index");
                }
                assert_eq!(headings, expected);
                assert!(!prompt.contains("\n\n\n") && !prompt.ends_with('\n'), "{prompt:?}");
                assert_eq!(prompt.contains("project_id: "), with_project && with_memories);
            }
        }
    }
}

#[test]
fn the_prompt_is_the_same_bytes_every_time_and_names_no_date() {
    let prompt = build_system_prompt(Role::Direct, Some(&project()), None, &[]);
    assert_eq!(prompt, build_system_prompt(Role::Direct, Some(&project()), None, &[]));
    let year = |text: &str| {
        text.as_bytes()
            .windows(4)
            .any(|w| w.starts_with(b"20") && w.iter().all(u8::is_ascii_digit))
    };
    for spec in &ROLES {
        assert!(
            !year(&build_system_prompt(spec.role, None, None, &[])),
            "{} names a year",
            spec.name
        );
    }
}

#[test]
fn the_direct_prompt_leaves_room_for_the_tools() {
    // 3,500 characters for prompt and tool schemas as serialized, of which the tools take 1,800 at most.
    let prompt = build_system_prompt(Role::Direct, Some(&project()), None, &[]);
    let serialized = serde_json::to_string(&prompt).unwrap();
    assert!(
        serialized.chars().count() <= 1_700,
        "{} characters",
        serialized.chars().count()
    );
}

/// The limit for a direct turn's system prompt together with its tools, both as they are serialized, while the tools are
/// those for exploring, editing, the shell and git.
const DIRECT_CHARS: usize = 6_500;

#[test]
fn the_direct_prompt_and_its_tools_as_serialized_stay_short() {
    let server = MockServer::start();
    server.answer(Answer::says("ok"));
    let home = Home::with_server(&server.url());
    let git = home.project().join(".git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let config = "[remote \"origin\"]\n\turl = git@example.org:ann/shop.git\n";
    std::fs::write(git.join("config"), config).unwrap();
    let mut session = home.session(SessionOptions::default());
    session.ask("hello");
    let body = server.request(0).json();
    let chars = |value: &serde_json::Value| serde_json::to_string(value).unwrap().chars().count();
    let (prompt, tools) = (chars(&body["messages"][0]["content"]), chars(&body["tools"]));
    println!(
        "direct: prompt {prompt} + tools {tools} = {} characters",
        prompt + tools
    );
    for tool in body["tools"].as_array().unwrap() {
        println!("  {}: {}", tool["function"]["name"], chars(tool));
    }
    assert_eq!(body["messages"][0]["role"], "system");
    assert!(tools > 1_000, "the tools are offered");
    assert!(prompt + tools <= DIRECT_CHARS, "{prompt} + {tools}");
}

#[test]
fn the_index_file_is_looked_for_at_the_root_only_and_never_outside() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("repo");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/INDEX.md"), "not this one").unwrap();
    std::fs::write(home.path().join("AGENTS.md"), "nor this one").unwrap();
    assert_eq!(load_index_file(&root, "INDEX.md", 100).unwrap(), None);
    std::os::unix::fs::symlink("../AGENTS.md", root.join("INDEX.md")).unwrap();
    let error = load_index_file(&root, "INDEX.md", 100).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("INDEX.md leads out of {} and was not read", root.display())
    );
    assert!(
        load_index_file(Path::new("/nowhere/at/all"), "INDEX.md", 100)
            .unwrap()
            .is_none()
    );
}
