//! `bash` and the process room under it: what a command is given, how it ends, and that nothing is left behind.

use std::time::{Duration, Instant};

use agent_smith_core::error::ErrorKind;
use agent_smith_core::tool::MutationState;
use serde_json::json;

use crate::support::tools::{Yard, carriers, content_of};

#[tokio::test]
async fn output_status_and_order() {
    let yard = Yard::new();
    let result = yard
        .call("bash", json!({"command": "echo one; echo two >&2; echo three; exit 3"}))
        .await;
    assert_eq!(result.content, "one\ntwo\nthree\n[Exit code 3.]");
    assert!(!result.ok && !result.cancelled);
    assert_eq!(result.error.unwrap().code, "exit_code");
    assert_eq!(result.metadata["exit_code"], 3);
    assert_eq!(result.mutation_state, MutationState::Attempted);
    assert_eq!(*yard.progress.lock().unwrap(), "one\ntwo\nthree\n");
    let result = yard.call("bash", json!({"command": "true"})).await;
    assert!(result.ok);
    assert_eq!(result.content, "[No output.]");
    let result = yard.call("bash", json!({"command": "kill -SEGV $$"})).await;
    assert!(result.content.contains("SIGSEGV"), "{}", result.content);
}

#[tokio::test]
async fn a_command_has_no_terminal_no_input_and_clean_signals() {
    let mut yard = Yard::new();
    yard.ctx.limits.scrub_env = vec!["SECRET_*".to_owned()];
    yard.ctx.env = yard.ctx.env.with_changes([("SECRET_KEY", Some("hunter2"))]);
    let script = r#"
        cat; read -r line && echo "read $line"
        (: </dev/tty) 2>/dev/null && echo has-tty
        # Signals 32 and 33 are the C library's own.
        while read -r name mask; do
            case $name in Sig???:) echo "$name $((0x$mask & 0x7fffffff))";; esac
        done < <(grep -E 'Sig(Blk|Ign)' /proc/self/status)
        echo "pager $PAGER prompt $GIT_TERMINAL_PROMPT secret [$SECRET_KEY] pwd $PWD"
        [ "$(ps -o sid= -p $$ | tr -d ' ')" = $$ ] && echo own-session
    "#;
    let result = yard.call("bash", json!({"command": script})).await;
    assert_eq!(
        result.content,
        format!(
            "SigBlk: 0\nSigIgn: 0\npager cat prompt 0 secret [] pwd {}\nown-session\n",
            yard.root.display()
        )
    );
}

#[tokio::test]
async fn descriptors_of_the_host_are_not_inherited() {
    let yard = Yard::new();
    let (left, _right) = rustix::pipe::pipe().unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&left);
    let command = format!("ls /proc/self/fd | tr '\\n' ' '; [ -e /proc/self/fd/{number} ] && echo leaked");
    let result = yard.call("bash", json!({"command": command})).await;
    assert!(!result.content.contains("leaked"), "{}", result.content);
}

#[tokio::test]
async fn closing_its_output_early_does_not_end_a_command() {
    let yard = Yard::new();
    let result = yard
        .call("bash", json!({"command": "echo x; exec >&- 2>&-; sleep 0.1; exit 7"}))
        .await;
    assert_eq!(result.content, "x\n[Exit code 7.]");
}

#[tokio::test]
async fn a_process_substitution_may_finish_its_output() {
    let yard = Yard::new();
    let result = yard.call("bash", json!({"command": "echo word > >(tr a-z A-Z)"})).await;
    assert_eq!(result.content, "WORD\n");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hold_us() {
    let yard = Yard::new();
    let started = Instant::now();
    let result = yard
        .call("bash", json!({"command": "sleep 1000 & echo $! $AGENT_SMITH_NONCE"}))
        .await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(result.ok);
    let (pid, nonce) = result.content.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!(result.metadata["survivors"], json!([pid.parse::<i32>().unwrap()]));
    assert!(
        result.content.contains(&format!("{pid} (sleep 1000)")),
        "{}",
        result.content
    );
    assert_eq!(carriers(nonce), [pid.parse::<i32>().unwrap()]);
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
}

#[tokio::test]
async fn survivors_that_left_the_group_and_closed_everything_are_told() {
    let yard = Yard::new();
    let command = "setsid sleep 1000 >/dev/null 2>&1 & for i in 1 2 3; do :; done; sleep 0.05; pgrep -n -x sleep";
    let result = yard.call("bash", json!({"command": command})).await;
    let survivors = result.metadata["survivors"].as_array().unwrap();
    assert_eq!(survivors.len(), 1, "{}", result.content);
    let pid = survivors[0].to_string();
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
}

/// What escapes a naive killer: another session, an ignored TERM, a parent that is gone.
const FAMILY: &str = r#"
    setsid bash -c 'trap "" TERM; sleep 1000' >/dev/null 2>&1 &
    (setsid sleep 1000 &) &
    sleep 1000 &
    sleep 0.2
    echo "$AGENT_SMITH_NONCE" > nonce
    wait
"#;

#[tokio::test]
async fn a_timeout_ends_the_whole_family() {
    let mut yard = Yard::new();
    yard.ctx.limits.kill_grace = Duration::from_millis(200);
    let started = Instant::now();
    let result = yard.call("bash", json!({"command": FAMILY, "timeout": 0.6})).await;
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(result.error.unwrap().code, "timeout");
    assert!(!result.cancelled);
    assert!(
        result.content.contains("Killed after its timeout of 0.6 s"),
        "{}",
        result.content
    );
    assert!(!result.metadata.contains_key("survivors"));
    assert_eq!(carriers(yard.text("nonce").trim()), [0; 0]);
}

#[tokio::test]
async fn a_cancel_keeps_the_output_and_ends_the_whole_family() {
    let mut yard = Yard::new();
    yard.ctx.limits.kill_grace = Duration::from_millis(200);
    let cancel = yard.ctx.cancel.clone();
    let marker = yard.root.join("nonce");
    let stop = async {
        let nonce = content_of(&marker).await;
        cancel.cancel();
        nonce
    };
    let command = format!("echo before; {FAMILY}");
    let (result, nonce) = tokio::join!(yard.call("bash", json!({"command": command})), stop);
    assert!(result.cancelled && !result.ok);
    assert_eq!(result.error.unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(result.mutation_state, MutationState::Unknown);
    assert!(
        result.content.starts_with("before\n[Cancelled after"),
        "{}",
        result.content
    );
    assert_eq!(carriers(&nonce), [0; 0]);
}

#[tokio::test]
async fn killing_only_the_group_would_leave_them() {
    // The control of the two tests above: with a naive killer the same family lives on.
    let yard = Yard::new();
    let cancel = yard.ctx.cancel.clone();
    let marker = yard.root.join("nonce");
    let check = async {
        let nonce = content_of(&marker).await;
        let leader = carriers(&nonce)
            .into_iter()
            .find(|pid| {
                let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
                String::from_utf8_lossy(&command).contains("> nonce")
            })
            .unwrap();
        let group = format!("-{leader}");
        let killed = std::process::Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()
            .unwrap();
        assert!(killed.success());
        nonce
    };
    let (result, nonce) = tokio::join!(yard.call("bash", json!({"command": FAMILY})), check);
    cancel.cancel();
    let left = carriers(&nonce);
    assert!(left.len() >= 2, "{left:?}");
    assert_eq!(result.metadata["signal"], 9);
    assert!(result.metadata["survivors"].as_array().unwrap().len() >= 2);
    for pid in left {
        let _ = std::process::Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
    }
}

#[tokio::test]
async fn a_cancel_does_not_wait_where_everything_dies_at_once() {
    let yard = Yard::new();
    let cancel = yard.ctx.cancel.clone();
    let marker = yard.root.join("started");
    let stop = async {
        content_of(&marker).await;
        let asked = Instant::now();
        cancel.cancel();
        asked
    };
    let (result, asked) = tokio::join!(
        yard.call("bash", json!({"command": "echo > started; sleep 1000 | cat"})),
        stop
    );
    assert!(result.cancelled);
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn what_is_stopped_is_ended_too() {
    let yard = Yard::new();
    let started = Instant::now();
    let result = yard
        .call("bash", json!({"command": "kill -STOP $$", "timeout": 0.2}))
        .await;
    assert_eq!(result.error.unwrap().code, "timeout");
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn dropping_the_call_ends_the_whole_family() {
    let yard = Yard::new();
    let marker = yard.root.join("nonce");
    let nonce = tokio::select! {
        _ = yard.call("bash", json!({"command": FAMILY})) => panic!("it waits for ever"),
        nonce = content_of(&marker) => nonce,
    };
    for _ in 0..200 {
        if carriers(&nonce).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left: {:?}", carriers(&nonce));
}

#[tokio::test]
async fn a_nested_agent_carries_the_outer_mark() {
    let mut yard = Yard::new();
    yard.ctx.env = yard.ctx.env.with_changes([("AGENT_SMITH_NONCE", Some("outer"))]);
    let result = yard.call("bash", json!({"command": "echo $AGENT_SMITH_NONCE"})).await;
    assert!(result.content.starts_with("outer:"), "{}", result.content);
}

#[tokio::test]
async fn a_long_output_shows_both_ends_and_is_whole_in_a_file_that_read_pages() {
    let yard = Yard::new();
    let result = yard.call("bash", json!({"command": "seq 1 20000"})).await;
    assert!(result.ok);
    assert!(result.content.starts_with("1\n2\n") && result.content.ends_with("\n19999\n20000\n"));
    assert!(result.content.len() < 17_000, "{}", result.content.len());
    let marker = result.content.lines().find(|line| line.starts_with('[')).unwrap();
    let words: Vec<&str> = marker.trim_matches(['[', ']']).split_whitespace().collect();
    let path = result.metadata["output_file"].as_str().unwrap();
    let offset: u64 = words.last().unwrap().parse().unwrap();
    assert!(marker.contains(path), "{marker}");
    let page = yard
        .call("read", json!({"path": path, "offset": offset, "limit": 1}))
        .await;
    // Line n holds the number n, so the place that is named is the one that was left out.
    assert!(
        page.content.ends_with(&format!("{offset}\t{offset}\n")),
        "{}",
        page.content
    );
}

#[tokio::test]
async fn an_endless_output_is_capped_on_the_disk_and_counted() {
    let mut yard = Yard::new();
    yard.ctx.limits.output_file_bytes = 100_000;
    let result = yard.call("bash", json!({"command": "yes | head -c 5000000"})).await;
    assert_eq!(result.metadata["output_bytes"], 5_000_000);
    let path = result.metadata["output_file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 100_000);
    assert!(
        result.content.contains("the file holds its first 100000 bytes only"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    let yard = Yard::new();
    let result = yard
        .call(
            "bash",
            json!({"command": r"printf 'a\xff\xfeb\0c\033[31mred\033[0m\n'"}),
        )
        .await;
    assert!(
        result.content.starts_with("a\u{fffd}\u{fffd}bcred\n"),
        "{:?}",
        result.content
    );
    assert!(result.content.contains("2 bytes were no UTF-8"), "{}", result.content);
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let mut yard = Yard::new();
    let long = format!("echo {}", "x".repeat(3 << 20));
    let result = yard.call("bash", json!({"command": long})).await;
    assert!(result.content.contains("too long for the system"), "{}", result.content);
    let result = yard.call("bash", json!({"command": "a\0b"})).await;
    assert!(result.content.contains("NUL byte"), "{}", result.content);
    yard.ctx.cwd = yard.root.join("gone");
    let result = yard.call("bash", json!({"command": "true"})).await;
    assert!(
        result.content.contains("cannot enter the directory"),
        "{}",
        result.content
    );
    assert_eq!(result.mutation_state, MutationState::None);
}
