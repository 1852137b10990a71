//! `agent-smith doctor`: each check when all is well, and when it is not, with the next step.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::answers::Answer;
use crate::support::home::Home;
use crate::support::mock_server::MockServer;
use crate::support::pty::{Pty, PtyOptions};
use crate::support::skip;

/// The checks as JSON, and the exit code.
struct Examined {
    checks: Value,
    code: Option<i32>,
    text: String,
}

fn examine(home: &Home, env: &[(&str, &str)]) -> Examined {
    let mut command = home.command(["doctor", "--json"]);
    command.envs(env.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    Examined {
        checks: serde_json::from_str(&text).unwrap(),
        code: output.status.code(),
        text,
    }
}

impl Examined {
    #[track_caller]
    fn check(&self, name: &str) -> &Value {
        let mut named = self
            .checks
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["name"] == name);
        named.next().unwrap_or_else(|| panic!("no {name}: {:#}", self.checks))
    }

    /// This check has this verdict, and its text and next step hold these words.
    #[track_caller]
    fn says(&self, name: &str, verdict: &str, words: &[&str]) {
        let check = self.check(name);
        assert_eq!(check["verdict"], verdict, "{check:#}");
        for word in words {
            let whole = format!("{} {}", check["text"], check["next"]);
            assert!(whole.contains(word), "{word} is not said: {check:#}");
        }
    }
}

fn models(ids: &[&str]) -> Answer {
    let models: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
    Answer::json(200, &json!({ "object": "list", "data": models }))
}

#[test]
fn all_is_well_and_nothing_is_left_behind() {
    let server = MockServer::start();
    server.answer_with(|_| models(&["mock", "other"]));
    let home = Home::new();
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {"api_url": server.url().replace("//", "//me:my-password@"), "api_key_env": "MY_KEY"},
    }));
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let library = skip::core_library();
    let env = [
        ("MY_KEY", "sk-very-secret"),
        ("AGENT_SMITH_BIN", env!("CARGO_BIN_EXE_agent-smith")),
        ("AGENT_SMITH_CORE", library.to_str().unwrap()),
        ("TMPDIR", temporary.to_str().unwrap()),
    ];
    let all = examine(&home, &env);
    assert_eq!(all.code, Some(0), "{}", all.text);
    let names: Vec<_> = all
        .checks
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "host",
            "native carrier",
            "sidecar carrier",
            "configuration",
            "model server",
            "model",
            "key",
            "store",
            "terminal"
        ]
    );
    for check in all.checks.as_array().unwrap() {
        assert_eq!(check["verdict"], "ok", "{check:#}");
    }
    all.says("native carrier", "ok", &["libagent_smith_core", "loads"]);
    all.says("sidecar carrier", "ok", &["starts in"]);
    all.says(
        "configuration",
        "ok",
        &[
            "~/.config/lilush/agent_smith.json sets 3 keys",
            "/config set keeps no key",
        ],
    );
    all.says("model server", "ok", &["answers in", "2 models"]);
    all.says("model", "ok", &["mock"]);
    all.says("key", "ok", &["MY_KEY is set"]);
    assert!(
        !all.text.contains("sk-very-secret") && !all.text.contains("my-password"),
        "{}",
        all.text
    );
    // It looked and left nothing: no store, no home of the sidecar it tried.
    assert!(!home.database().exists());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    // The key went to the server only.
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.header("authorization") == Some("Bearer sk-very-secret"))
    );
    // For a person it is a line a check.
    let mut command = home.command(["doctor"]);
    let output = command.envs(env).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("ok   ")).count(),
        9,
        "{text}"
    );
}

#[test]
fn a_home_without_anything_is_told_the_first_step() {
    let all = examine(&Home::new(), &[]);
    assert_eq!(all.code, Some(0), "{}", all.text);
    all.says("model server", "warn", &["the embedded demo answers", "/setup"]);
    all.says("configuration", "ok", &["is not there", "the defaults hold"]);
    all.says("store", "ok", &["nothing is kept yet"]);
}

#[test]
fn a_server_that_is_not_there_refuses_or_does_not_answer_is_told_quickly() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::with_server(&format!("http://{closed}/v1"));
    let all = examine(&home, &[]);
    assert_eq!(all.code, Some(1), "{}", all.text);
    all.says("model server", "fail", &["llm_config.api_url"]);

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::with_server(&format!("http://{}/v1", silent.local_addr().unwrap()));
    let begun = Instant::now();
    let all = examine(&home, &[]);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    all.says("model server", "fail", &["within 3 s"]);

    let server = MockServer::start();
    server.answer_with(|_| Answer::error(401, "no such key"));
    let home = Home::with_server(&server.url());
    let all = examine(&home, &[]);
    all.says("model server", "fail", &["refused the credentials"]);

    let server = MockServer::start();
    server.answer_with(|_| Answer::error(404, "no such page"));
    let all = examine(&Home::with_server(&server.url()), &[]);
    assert_eq!(all.code, Some(0), "{}", all.text);
    all.says("model server", "warn", &["no list of its models", "/v1"]);
}

#[test]
fn a_model_the_server_does_not_have_is_told_with_the_nearest() {
    let server = MockServer::start();
    server.answer_with(|_| models(&["qwen3-coder-30b", "gemma-3"]));
    let home = Home::new();
    home.configure(&json!({"default_model": "qwen3-coder-30", "llm_config": {"api_url": server.url()}}));
    let all = examine(&home, &[]);
    all.says(
        "model",
        "warn",
        &["qwen3-coder-30 is not among", "did you mean qwen3-coder-30b?"],
    );
}

#[test]
fn a_configuration_that_is_bad_or_makes_no_sense_is_told() {
    let home = Home::new();
    home.configure_text("{\n  \"default_model\": \"x\",\n  oops\n}");
    let all = examine(&home, &[]);
    assert_eq!(all.code, Some(1), "{}", all.text);
    all.says("configuration", "fail", &["agent_smith.json:3:3"]);
    home.configure(&json!({"models": {"wroker": "x"}}));
    let all = examine(&home, &[]);
    all.says("configuration", "ok", &["sets 1 key"]);
    let warned = all.checks.as_array().unwrap().iter().any(|check| {
        check["verdict"] == "warn"
            && check["name"] == "configuration"
            && check["text"].as_str().unwrap().contains("wroker")
    });
    assert!(warned, "{}", all.text);
}

#[test]
fn a_carrier_that_does_not_work_is_told_and_which_one() {
    let home = Home::new();
    let junk = home.path().join("junk.so");
    std::fs::write(&junk, "no shared object").unwrap();
    let all = examine(&home, &[("AGENT_SMITH_CORE", junk.to_str().unwrap())]);
    all.says(
        "native carrier",
        "warn",
        &["junk.so does not load", "hosts use the sidecar", "AGENT_SMITH_CORE"],
    );
    assert_eq!(all.code, Some(0), "{}", all.text);

    for (script, why) in [
        ("echo 'it cannot run here' >&2; exit 1", "it cannot run here"),
        ("cat", "it answers as something else"),
    ] {
        let program = home.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let all = examine(&home, &[("AGENT_SMITH_BIN", program.to_str().unwrap())]);
        all.says("sidecar carrier", "fail", &["does not start", why, "AGENT_SMITH_BIN"]);
        assert_eq!(all.code, Some(1), "{}", all.text);
    }
    let all = examine(&home, &[("AGENT_SMITH_BIN", "/nowhere/agent-smith")]);
    all.says("sidecar carrier", "fail", &["/nowhere/agent-smith"]);
}

#[test]
fn a_lilush_without_the_mode_is_told_how_to_get_it() {
    let home = Home::new();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let lilush = bin.join("lilush");
    std::fs::write(&lilush, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&lilush, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let all = examine(&home, &[("PATH", &path)]);
    all.says(
        "host",
        "warn",
        &["does not have the mode", "lilpack install agent_smith", "modes.json"],
    );
    let config = home.config_file().parent().unwrap().to_owned();
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("modes.json"), r#"{"F4": "agent_smith"}"#).unwrap();
    examine(&home, &[("PATH", &path)]).says("host", "ok", &["has the mode"]);
}

#[test]
fn the_terminal_is_described_where_there_is_one() {
    let home = Home::new();
    for (env, words) in [
        (
            &[("TERM", "xterm-256color"), ("LANG", "C.UTF-8")][..],
            "ok   terminal: xterm-256color, 80 columns and 24 rows, 256 colours, Unicode",
        ),
        (&[("TERM", "dumb")], "warn terminal: dumb"),
        (
            &[("LANG", "C")],
            "warn terminal: xterm-256color, 80 columns and 24 rows, 256 colours, ASCII",
        ),
    ] {
        let mut terminal = Pty::start(
            &home,
            &PtyOptions {
                arguments: &["doctor"],
                env,
                size: (24, 80),
                ..PtyOptions::default()
            },
        );
        assert_eq!(terminal.end(), 0);
        // Long lines are broken by the screen.
        let written = terminal.written(0);
        assert!(written.contains(words), "{words}\n{written}");
        terminal.assert_sane();
    }
}
