//! Jobs: commands in the background, and what commands left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_smith_core::process::JobState;
use agent_smith_core::role::Role;
use serde_json::json;

use crate::support::tools::{Yard, carriers, content_of};

#[tokio::test]
async fn a_job_tells_its_new_output_and_its_end() {
    let yard = Yard::new();
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4";
    let result = yard.call("bash", json!({"command": command, "background": true})).await;
    assert!(result.ok, "{}", result.content);
    assert!(
        result.content.starts_with("one\n[Job j1: running for"),
        "{}",
        result.content
    );
    let result = yard.call("job_output", json!({"job": "j1"})).await;
    assert!(result.content.starts_with("[Job j1: running"), "{}", result.content);
    yard.write("go", "");
    let result = yard.call("job_output", json!({"job": "1", "wait": 10})).await;
    assert!(
        result.content.starts_with("two\n[Job j1: Exit code 4. It took"),
        "{}",
        result.content
    );
    assert_eq!(result.metadata["running"], false);
    let result = yard.call("job_output", json!({})).await;
    assert!(result.content.contains("j1: Exit code 4."), "{}", result.content);
    let result = yard.call("job_output", json!({"job": "j7"})).await;
    assert!(
        result.content.contains("there is no job \"j7\"; there are j1"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn a_job_that_fails_at_once_says_so_at_once() {
    let yard = Yard::new();
    let args = json!({"command": "echo no such port >&2; exit 1", "background": true});
    let result = yard.call("bash", args).await;
    assert!(
        result.content.starts_with("no such port\n[Job j1: Exit code 1."),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn killing_a_job_ends_its_whole_family() {
    let yard = Yard::new();
    let command = "(setsid sleep 1000 &); echo $AGENT_SMITH_NONCE > nonce; sleep 1000";
    yard.call("bash", json!({"command": command, "background": true})).await;
    let nonce = content_of(&yard.root.join("nonce")).await;
    let started = Instant::now();
    let result = yard.call("job_kill", json!({"job": "j1"})).await;
    assert!(result.content.contains("[Job j1: killed."), "{}", result.content);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(carriers(&nonce), [0; 0]);
}

#[tokio::test]
async fn what_a_command_left_running_is_a_job_whose_output_goes_on() {
    let yard = Yard::new();
    let command = "(echo early; until [ -e go ]; do sleep 0.01; done; echo late; echo > written; sleep 1000) & \
                   echo $AGENT_SMITH_NONCE > nonce";
    let result = yard.call("bash", json!({"command": command})).await;
    assert!(result.ok);
    assert!(
        result.content.contains("[Still running as job j1: "),
        "{}",
        result.content
    );
    // Writing to a pipe that was closed would have ended it.
    yard.write("go", "");
    content_of(&yard.root.join("written")).await;
    let result = loop {
        // It is written; that it is read is a moment later.
        let result = yard.call("job_output", json!({"job": "j1"})).await;
        if result.metadata["output_bytes"] != 0 {
            break result;
        }
        tokio::task::yield_now().await;
    };
    assert!(
        result.content.starts_with("late\n[Job j1: ended with exit code 0."),
        "{}",
        result.content
    );
    assert!(result.content.contains("Still running: "), "{}", result.content);
    let nonce = yard.text("nonce");
    assert!(!carriers(nonce.trim()).is_empty());
    let result = yard.call("job_kill", json!({"job": "j1"})).await;
    assert!(!result.content.contains("Still running"), "{}", result.content);
    assert_eq!(carriers(nonce.trim()), [0; 0]);
}

#[tokio::test]
async fn the_jobs_of_a_session_end_with_it() {
    let yard = Yard::new();
    let command = "echo $AGENT_SMITH_NONCE > nonce; sleep 1000";
    yard.call("bash", json!({"command": command, "background": true})).await;
    let nonce = content_of(&yard.root.join("nonce")).await;
    yard.ctx.state.jobs().stop_all(Duration::from_secs(2)).await;
    assert_eq!(carriers(&nonce), [0; 0]);
    assert_ne!(yard.ctx.state.jobs().list()[0].state, JobState::Running);
}

#[tokio::test]
async fn a_state_that_is_dropped_takes_its_jobs_along() {
    let mut yard = Yard::new();
    let command = "echo $AGENT_SMITH_NONCE > nonce; sleep 1000";
    yard.call("bash", json!({"command": command, "background": true})).await;
    let nonce = content_of(&yard.root.join("nonce")).await;
    yard.ctx.state = Arc::default();
    for _ in 0..300 {
        if carriers(&nonce).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left: {:?}", carriers(&nonce));
}

#[tokio::test]
async fn a_job_has_a_timeout_only_where_one_is_asked_for() {
    let yard = Yard::new();
    let args = json!({"command": "sleep 1000", "background": true, "timeout": 0.1});
    yard.call("bash", args).await;
    let result = yard.call("job_output", json!({"job": "j1", "wait": 30})).await;
    assert!(
        result.content.contains("[Job j1: killed after its timeout."),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn jobs_are_allowed_where_bash_is() {
    let yard = Yard::new();
    for role in [Role::Direct, Role::Orchestrator, Role::Worker, Role::Explorer] {
        let offered: Vec<String> = yard
            .registry
            .definitions(role, &[])
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        let has = |name: &str| offered.iter().any(|offered| offered == name);
        assert_eq!(has("bash"), has("job_output"), "{role}");
        assert_eq!(has("bash"), has("job_kill"), "{role}");
    }
}
