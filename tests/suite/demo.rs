//! The embedded model drives the real loop on the real directory.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use agent_smith_core::llm::{ChatRequest, DemoProvider, Provider};
use agent_smith_core::message::{Message, ToolDefinition};
use agent_smith_core::protocol::EventKind;
use serde_json::json;

use crate::support::home::{Home, types};

/// Names no other repository has.
fn random_names() -> Vec<String> {
    (0..4)
        .map(|_| {
            let mut bytes = [0u8; 6];
            getrandom::fill(&mut bytes).unwrap();
            bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
        })
        .collect()
}

fn git(dir: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}

/// A repository with a source file, a README and a commit of these names.
fn repository(home: &Home, names: &[String]) {
    let dir = home.project();
    git(&dir, &["init", "-q"]);
    std::fs::write(dir.join(format!("{}.rs", names[0])), "fn main() {}\n").unwrap();
    std::fs::write(
        dir.join("README.md"),
        format!("# The {} project\n\nIt does things.\n", names[1]),
    )
    .unwrap();
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-q", "-m", &format!("Add {}", names[2])]);
    std::fs::write(dir.join(format!("{}.txt", names[3])), "new\n").unwrap();
}

#[test]
fn each_answer_holds_its_own_repositorys_names_and_none_of_the_others() {
    let (home_a, home_b) = (Home::new(), Home::new());
    let (names_a, names_b) = (random_names(), random_names());
    repository(&home_a, &names_a);
    repository(&home_b, &names_b);
    for (home, own, other) in [(&home_a, &names_a, &names_b), (&home_b, &names_b, &names_a)] {
        let ran = home.run(&["exec", "--json", "--model", "demo", "What is here?"]);
        let (events, result) = ran.events();
        let text = result["text"].as_str().unwrap();
        assert!(own.iter().all(|name| text.contains(name)), "{own:?} in {text}");
        assert!(other.iter().all(|name| !text.contains(name)), "{other:?} in {text}");
        let tools: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolExecutionFinished(finish) => Some((finish.outcome.name.as_str(), finish.ok)),
                _ => None,
            })
            .collect();
        assert_eq!(tools, [("bash", true), ("read", true), ("bash", true)]);
        assert!(types(&events).contains(&"turn_persisted".to_owned()));
    }
}

#[test]
fn outside_a_repository_and_in_an_empty_directory_it_answers_as_well() {
    let ran = Home::new().run(&["exec", "--model", "demo", "What is here?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("0 entries") && ran.stdout.contains("No commits"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_orchestrator_has_a_demo_too() {
    let home = Home::new();
    let names = random_names();
    repository(&home, &names);
    let ran = home.run(&["exec", "--model", "demo", "--role", "orchestrator", "What is here?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty());
}

/// Asks the demo until it answers; every call gets what `results` makes of its name.
async fn answer_with(results: impl Fn(&str, &str) -> String) -> String {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: String::new(),
        parameters: json!({}),
    };
    let tools = [tool("bash"), tool("read")];
    let provider: Arc<dyn Provider> = Arc::new(DemoProvider);
    let mut messages = vec![Message::user("What is here?")];
    for _ in 0..5 {
        let params = Default::default();
        let request = ChatRequest {
            model: "demo",
            messages: &messages,
            tools: &tools,
            params: &params,
            stream: true,
        };
        let answer = provider
            .chat(request, &mut |_| {}, &Default::default())
            .await
            .unwrap()
            .message;
        if answer.tool_calls.is_empty() {
            return answer.content;
        }
        messages.push(answer.clone());
        for call in &answer.tool_calls {
            messages.push(Message::tool(
                &call.id,
                &call.name,
                results(&call.name, &call.arguments),
            ));
        }
    }
    panic!("no answer after five rounds: {messages:?}");
}

#[tokio::test]
async fn changing_a_tools_result_changes_the_answer() {
    let plain = |name: &str, arguments: &str| match name {
        "read" => "1\t# Alpha\n".to_owned(),
        _ if arguments.contains("git") => "abcdef1 first\n---\n".to_owned(),
        _ => "README.md\nalpha.rs\n".to_owned(),
    };
    let answer = answer_with(plain).await;
    for (tool, marker, other) in [
        ("ls", "alpha.rs", "README.md\nbeta.rs\n"),
        ("read", "Alpha", "1\t# Beta\n"),
        ("git", "first", "1234567 second\n---\n"),
    ] {
        assert!(answer.contains(marker));
        let changed = answer_with(|name, arguments| {
            let is_it = name == tool || arguments.contains(tool);
            if is_it {
                other.to_owned()
            } else {
                plain(name, arguments)
            }
        })
        .await;
        assert_ne!(changed, answer, "{tool}");
        assert!(!changed.contains(marker), "{tool}: {changed}");
    }
    assert_eq!(
        answer_with(plain).await,
        answer,
        "the same results give the same answer"
    );
}
