//! The ways to a server: TLS with an authority of one's own, proxies, redirects.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_smith_core::llm::{ChatResponse, Client, ClientConfig, LlmFailure, ProxySettings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::answers::Answer;
use crate::support::ask::{self, Ask};
use crate::support::mock_server::MockServer;

async fn ask(config: ClientConfig) -> Result<ChatResponse, LlmFailure> {
    Ask::default().of(&Client::new(config)?).await
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/tls")
        .join(name)
}

/// A server that speaks TLS and gives one short answer to each connection; its port.
fn tls_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let mut request = [0; 4096];
            // A client that does not trust us ends here.
            if !matches!(stream.read(&mut request), Ok(count) if count > 0) {
                continue;
            }
            let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Sealed.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    port
}

#[tokio::test]
async fn a_server_with_its_own_authority_needs_its_file() {
    let url = format!("https://localhost:{}/v1", tls_server());
    let trusted = ClientConfig {
        ca_file: Some(fixture("ca.pem")),
        ..ClientConfig::new(&url)
    };
    assert_eq!(ask(trusted).await.unwrap().message.content, "Sealed.");
    let failure = ask(ClientConfig::new(&url)).await.unwrap_err();
    assert_eq!((&*failure.error.code, failure.error.retryable), ("connection", false));
    assert!(
        failure.error.message.contains("certificate is not trusted"),
        "{}",
        failure.error.message
    );
    assert!(failure.error.hint.unwrap().contains("ca_file"));
}

#[tokio::test]
async fn a_bad_certificate_file_is_told() {
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().join("empty.pem");
    std::fs::write(&empty, "nothing\n").unwrap();
    for (path, words) in [
        (empty, "holds no certificate"),
        (home.path().join("absent.pem"), "cannot be read"),
    ] {
        let config = ClientConfig {
            ca_file: Some(path.clone()),
            ..ClientConfig::new("https://localhost:1/v1")
        };
        let error = ask(config).await.unwrap_err().error;
        assert_eq!(&*error.code, "bad_ca_file");
        assert!(
            error.message.contains(words) && error.message.contains(&*path.to_string_lossy()),
            "{}",
            error.message
        );
    }
    // A plain address needs no certificates and does not look for them.
    let config = ClientConfig {
        ca_file: Some(home.path().join("absent.pem")),
        ..ClientConfig::new("http://127.0.0.1:1/v1")
    };
    assert_eq!(&*ask(config).await.unwrap_err().error.code, "connection");
}

#[tokio::test]
async fn proxies_carry_what_is_far_and_nothing_that_is_here() {
    let proxy = MockServer::start();
    proxy.answer_with(|_| Answer::says("Through the proxy."));
    let far = |no_proxy: &str| ClientConfig {
        proxies: ProxySettings {
            http: Some(proxy.origin()),
            no_proxy: no_proxy.to_owned(),
            ..ProxySettings::default()
        },
        ..ClientConfig::new("http://models.invalid:8000/v1")
    };
    assert_eq!(ask(far("")).await.unwrap().message.content, "Through the proxy.");
    assert_eq!(proxy.request(0).path, "http://models.invalid:8000/v1/chat/completions");
    assert_eq!(
        &*ask(far("other.example,.invalid")).await.unwrap_err().error.code,
        "connection"
    );

    let here = MockServer::start();
    here.answer_with(|_| Answer::says("Direct."));
    for url in [here.url(), here.url().replace("127.0.0.1", "localhost")] {
        let config = ClientConfig {
            proxies: far("").proxies,
            ..ClientConfig::new(url)
        };
        assert_eq!(ask(config).await.unwrap().message.content, "Direct.");
    }
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let server = MockServer::start();
    server
        .answer(Answer::body(307, "text/plain", "").header("Location", "/v2/chat/completions"))
        .answer(Answer::says("Here."));
    let config = || ClientConfig::new(server.url()).with_key("sk-secret-key");
    assert_eq!(ask(config()).await.unwrap().message.content, "Here.");
    assert_eq!(server.request(1).path, "/v2/chat/completions");
    assert_eq!(server.request(1).body, server.request(0).body);

    let thief = MockServer::start();
    for status in [301, 302, 303, 307, 308] {
        server.answer(Answer::body(status, "text/plain", "").header("Location", &thief.url()));
        let failure = ask(config()).await.unwrap_err();
        assert_eq!(&*failure.error.code, "not_found");
        assert!(
            failure.error.message.contains(&thief.origin()),
            "{}",
            failure.error.message
        );
    }
    assert!(thief.requests().is_empty());
    server.answer_with(|_| Answer::body(307, "text/plain", "").header("Location", "/v1/chat/completions"));
    assert!(ask(config()).await.unwrap_err().error.message.contains("in a circle"));
}

#[tokio::test]
async fn a_compressed_stream_is_not_held_back() {
    let server = MockServer::start();
    let pieces = crate::support::quirk_cases::case("frame-gzip").answer();
    let mut answer = Answer::sse().header("Content-Encoding", "gzip");
    for (at, piece) in pieces
        .pieces
        .into_iter()
        .filter(|piece| matches!(piece, crate::support::answers::Piece::Write(_)))
        .enumerate()
    {
        if at == 3 {
            answer = answer.gate("middle");
        }
        answer.pieces.push(piece);
    }
    server.answer(answer);
    let client = ask::client(&server);
    let gate = server.gate("middle");
    let (seen, mut texts) = tokio::sync::mpsc::unbounded_channel();
    let asking = tokio::spawn(async move {
        let ask = Ask::default();
        ask.telling(&client, |event| seen.send(event).unwrap()).await
    });
    gate.reached().await;
    let mut early = String::new();
    while let Some(event) = texts.recv().await {
        if let agent_smith_core::llm::StreamEvent::Text(text) = event {
            early.push_str(&text);
            break;
        }
    }
    assert!(!early.is_empty() && !gate.is_open());
    gate.open();
    assert_eq!(
        asking.await.unwrap().unwrap().message.content,
        "The lighthouse keeper counts seven ships."
    );
}
