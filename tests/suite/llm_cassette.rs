//! Recording the wire and playing it again: the same events, and no secret in the file.

use std::path::Path;
use std::sync::Arc;

use agent_smith_core::llm::{ChatResponse, Client, ClientConfig, LlmFailure, Provider, Recorder, Replay, StreamEvent};
use agent_smith_core::message::Message;
use serde_json::json;

use crate::support::answers::{Answer, End};
use crate::support::ask::{Ask, Asked, tool};
use crate::support::mock_server::MockServer;

async fn ask(provider: &dyn Provider, messages: &[Message]) -> Asked {
    let ask = Ask {
        messages: messages.to_vec(),
        tools: vec![tool("look")],
        ..Ask::default()
    };
    ask.collecting(provider).await
}

/// Pieces of one kind joined: where reads cut is not part of what must be the same.
fn joined(events: &[StreamEvent]) -> Vec<StreamEvent> {
    let mut out: Vec<StreamEvent> = Vec::new();
    for event in events {
        match (out.last_mut(), event) {
            (Some(StreamEvent::Text(last)), StreamEvent::Text(text)) => last.push_str(text),
            (Some(StreamEvent::Thinking(last)), StreamEvent::Thinking(text)) => last.push_str(text),
            _ => out.push(event.clone()),
        }
    }
    out
}

fn shown(outcome: &Result<ChatResponse, LlmFailure>) -> String {
    format!("{outcome:?}")
}

/// A client whose exchanges are recorded.
fn recorded(path: &Path, config: ClientConfig) -> (Client, Arc<Recorder>) {
    let client = Client::new(config).unwrap();
    let recorder = Arc::new(Recorder::create(path).unwrap());
    client.record_to(&recorder);
    (client, recorder)
}

/// The transcripts of the requests that are recorded.
fn transcripts() -> Vec<Vec<Message>> {
    let mut after_call = vec![Message::user("Go."), Message::assistant("Looking.")];
    after_call.push(Message::user("And?"));
    vec![
        vec![Message::user("Go.")],
        vec![Message::user("Go again.")],
        after_call.clone(),
        after_call.clone(),
        after_call,
    ]
}

#[tokio::test]
async fn a_replay_tells_the_same() {
    let server = MockServer::start();
    let umlaut = "data: {\"choices\":[{\"delta\":{\"content\":\"\u{fc}ber\"}}]}\n\n".as_bytes();
    server
        .answer(
            Answer::sse()
                .thinking("Hm.")
                .raw(&umlaut[..38])
                .raw(&umlaut[38..])
                .text(" x")
                .finish("stop")
                .usage(3, 4)
                .done(),
        )
        .answer(Answer::calls(&[
            ("", "look", json!({"at": 1})),
            ("c2", "look", json!({"at": 2})),
        ]))
        .answer(Answer::error(429, "Slow down.").header("Retry-After", "3"))
        .answer(Answer::sse().text("Half").end(End::Reset))
        .answer(Answer::reset());
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("wire.jsonl");
    let (client, recorder) = recorded(&path, ClientConfig::new(server.url()));
    let mut live = Vec::new();
    for messages in transcripts() {
        live.push(ask(&client, &messages).await);
    }
    assert_eq!(recorder.failure(), None);
    drop(server);

    let replay = Replay::open(&path).unwrap();
    for (messages, (outcome, events)) in transcripts().iter().zip(&live) {
        let (again, events_again) = ask(&replay, messages).await;
        assert_eq!(shown(&again), shown(outcome));
        assert_eq!(joined(&events_again), joined(events));
    }
    let failure = ask(&replay, &[Message::user("More?")]).await.0.unwrap_err();
    assert_eq!(&*failure.error.code, "replay_mismatch");
}

#[tokio::test]
async fn secrets_do_not_get_into_the_file() {
    let server = MockServer::start();
    let secret = "hunter2-and-more";
    server.answer(
        Answer::sse()
            .raw(format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"your key is {}",
                &secret[..5]
            ))
            .raw(format!("{}\"}}}}]}}\n\n", &secret[5..]))
            .finish("stop")
            .done(),
    );
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("wire.jsonl");
    let config = ClientConfig {
        extra_headers: [("x-token".to_owned(), "other-secret-9".to_owned())].into(),
        ..ClientConfig::new(server.url()).with_key(secret)
    };
    let (client, _) = recorded(&path, config);
    let told = format!("My token is ghp_0123456789abcdefghij and {secret} and other-secret-9.");
    let response = ask(&client, &[Message::user(told)]).await.0.unwrap();
    assert!(
        response.message.content.contains(secret),
        "the user's own answer is not touched"
    );
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(
        !file.contains("hunter2") && !file.contains("other-secret") && !file.contains("ghp_"),
        "{file}"
    );
    assert!(file.contains("[redacted]"));
    assert!(!file.to_lowercase().contains("authorization"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn what_is_no_cassette_is_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.jsonl");
    assert!(Replay::open(&path).unwrap_err().message.contains("cannot be opened"));
    std::fs::write(&path, "{}\n").unwrap();
    assert!(Replay::open(&path).unwrap_err().message.contains("is no recording"));
    std::fs::write(&path, "{\"cassette\":1}\nnonsense\n").unwrap();
    assert!(Replay::open(&path).unwrap_err().message.contains("at line 2"));
    // An existing file is not overwritten.
    let error = Recorder::create(&path).unwrap_err();
    assert_eq!(&*error.code, "cassette");
    std::fs::write(
        &path,
        "{\"cassette\":1}\n{\"request\":{\"model\":\"other\"},\"status\":200}\n",
    )
    .unwrap();
    let failure = ask(&Replay::open(&path).unwrap(), &[Message::user("Go.")])
        .await
        .0
        .unwrap_err();
    assert!(failure.error.message.contains("the model other"));
}
