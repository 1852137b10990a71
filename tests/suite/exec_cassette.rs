//! `exec --record` and `--replay`: a run on the wire, and the same run again with the server gone.

use serde_json::{Value, json};

use crate::support::answers::{Answer, End};
use crate::support::home::{Home, Ran};
use crate::support::masked::masked;
use crate::support::mock_server::MockServer;

/// The events of a run in a form that two runs can be compared by; the result last.
fn events(home: &Home, ran: &Ran) -> Vec<Value> {
    let (events, result) = ran.events();
    let mut events: Vec<Value> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    events.push(json!({"type": "turn_result", "data": result}));
    masked(home, &events)
}

#[test]
fn a_run_is_played_again_without_its_server() {
    let server = MockServer::start();
    server
        .answer(Answer::error(503, "Loading model"))
        .answer(
            Answer::sse()
                .thinking("Let me ")
                .thinking("look.")
                .text("Looking.")
                .tool_call(0, "c1", "read", &json!({"path": "note.txt"}).to_string())
                .finish("tool_calls")
                .usage(100, 20)
                .done(),
        )
        .answer(Answer::sse().finish("stop").done())
        .answer(
            Answer::sse()
                .text("The note says: ")
                .text("seven ships.")
                .finish("stop")
                .usage(130, 9)
                .done(),
        );
    let home = Home::new();
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {"api_url": server.url(), "retry_backoff_ms": [1]},
        "empty_response_retry_backoff_ms": [1],
    }));
    std::fs::write(home.project().join("note.txt"), "seven ships\n").unwrap();
    let file = home.path().join("run.jsonl");
    let file = file.to_str().unwrap();
    let live = home.run(&["exec", "--json", "--record", file, "What does the note say?"]);
    assert_eq!((live.code, live.stderr.as_str()), (Some(0), ""), "{}", live.stdout);
    assert_eq!(server.requests().len(), 4);
    drop(server);

    // Not even the configuration names the server any more, or a model.
    home.configure(&json!({"llm_config": {"retry_backoff_ms": [1]}, "empty_response_retry_backoff_ms": [1]}));
    let again = home.run(&["exec", "--json", "--replay", file, "What does the note say?"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "{}", again.stdout);
    assert_eq!(events(&home, &again), events(&home, &live));
    assert!(live.stdout.contains("seven ships."), "{}", live.stdout);
}

#[test]
fn a_failed_run_fails_again_in_the_same_way() {
    for answer in [
        Answer::error(401, "No such key."),
        Answer::sse().text("Half").end(End::Reset),
        Answer::sse().text("Half").end(End::Clean),
    ] {
        let server = MockServer::start();
        server.answer(answer);
        let home = Home::with_server(&server.url());
        let file = home.path().join("run.jsonl");
        let file = file.to_str().unwrap();
        let live = home.run(&["exec", "--json", "--record", file, "Go."]);
        assert_eq!(live.code, Some(1), "{}", live.stdout);
        drop(server);
        let again = home.run(&["exec", "--json", "--replay", file, "Go."]);
        assert_eq!(again.code, Some(1), "{}", again.stdout);
        assert_eq!(events(&home, &again), events(&home, &live));
    }
}

#[test]
fn no_secret_gets_into_the_file() {
    let secrets = [
        ("key", "hunter2-and-more"),
        ("header", "header-secret-9"),
        ("password", "url-pass-word"),
        ("query", "query-value-77"),
        ("body", "body-secret-55"),
    ];
    let of = |name: &str| secrets.iter().find(|secret| secret.0 == name).unwrap().1;
    let server = MockServer::start();
    // The server tells each of them: in an error, in one event, and cut by two.
    let mut told = Answer::sse();
    for (_, secret) in secrets {
        let (head, tail) = secret.split_at(4);
        told = told
            .text(&format!("{secret} and "))
            .text(head)
            .text(&format!("{tail}, "));
    }
    server
        .answer(Answer::error(503, &secrets.map(|secret| secret.1).join(" ")))
        .answer(told.finish("stop").usage(1, 2).done());
    let home = Home::new();
    let api_url = server.url().replace("://", &format!("://me:{}@", of("password")));
    home.configure(&json!({
        "default_model": "mock",
        "llm_config": {
            "api_url": format!("{api_url}?api_key={}", of("query")),
            "api_key_env": "THE_KEY",
            "retry_backoff_ms": [1],
            "extra_headers": {"X-Token": of("header")},
            "extra_body": {"route": {"client_secret": of("body")}},
        },
    }));
    let file = home.path().join("run.jsonl");
    let mut command = home.command(["exec", "--json", "--record"]);
    let prompt = format!("Is {} well kept?", of("key"));
    command.arg(&file).arg(&prompt).env("THE_KEY", of("key"));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    // They were sent.
    let request = server.request(0);
    assert!(request.path.contains(of("query")), "{}", request.path);
    assert_eq!(request.header("x-token"), Some(of("header")));
    assert_eq!(request.json()["route"]["client_secret"], of("body"));

    let text = std::fs::read_to_string(&file).unwrap();
    for (name, secret) in secrets {
        assert!(!text.contains(secret), "the {name} is in the file:\n{text}");
        assert!(
            !text.contains(&secret[4..]),
            "a part of the {name} is in the file:\n{text}"
        );
    }
    // The user sees what the server said, but errors tell no secret.
    let (events, result) = ran.events();
    assert!(result["text"].as_str().unwrap().contains(of("key")));
    let retry = events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .find(|event| event.contains("llm_retry_scheduled"))
        .unwrap();
    for (name, secret) in secrets {
        assert!(!retry.contains(secret), "the {name} is told: {retry}");
    }
    // What is left of it can still be played.
    drop(server);
    let mut command = home.command(["exec", "--json", "--replay"]);
    command.arg(&file).arg(&prompt);
    let again = Ran::of(command.output().unwrap());
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    let (_, result) = again.events();
    assert!(
        result["text"]
            .as_str()
            .unwrap()
            .starts_with("[redacted] and [redacted], "),
        "{result}"
    );
}

#[test]
fn a_recording_that_cannot_be_made_or_does_not_fit_is_told() {
    let server = MockServer::start();
    server.answer(Answer::says("Once."));
    let home = Home::with_server(&server.url());
    let file = home.path().join("run.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(
        home.run(&["exec", "--record", file, "--replay", file, "Go."]).code,
        Some(2)
    );
    assert_eq!(home.run(&["exec", "--record", file, "Go."]).code, Some(0));
    let twice = home.run(&["exec", "--record", file, "Go."]);
    assert_eq!((twice.code, twice.stdout.as_str()), (Some(1), ""));
    assert!(
        twice.stderr.contains("run.jsonl") && twice.stderr.contains("exists"),
        "{}",
        twice.stderr
    );
    assert_eq!(
        server.requests().len(),
        1,
        "nothing is asked where it cannot be recorded"
    );
    let other = home.run(&["exec", "--replay", file, "--model", "other", "Go."]);
    assert!(
        other.stderr.contains("it was made with the model mock"),
        "{}",
        other.stderr
    );
    let missing = home.run(&["exec", "--replay", "nowhere.jsonl", "Go."]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("nowhere.jsonl cannot be opened"),
        "{}",
        missing.stderr
    );
}
