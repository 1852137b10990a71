//! Model servers on this machine: looks at the ports they usually have.

use std::time::Duration;

use futures_util::future::join_all;

use super::client::Client;
use super::settings::{ClientConfig, Timeouts};
use crate::cancel::CancelToken;

/// How long a server on this machine may take to list its models. One that is there answers in a few milliseconds; a
/// closed port refuses at once.
const WAIT: Duration = Duration::from_millis(300);

/// The servers people run for themselves, with the ports their documentation starts them on.
const USUAL: [(&str, u16); 4] = [
    ("llama.cpp", 8080),
    ("Ollama", 11434),
    ("LM Studio", 1234),
    ("vLLM", 8000),
];

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// What usually listens there.
    pub name: &'static str,
    /// Its address for `llm_config.api_url`.
    pub api_url: String,
    /// The models it has.
    pub models: Vec<String>,
}

/// The servers that answer on the usual ports of this machine, in the order of the table.
pub async fn local_servers(cancel: &CancelToken) -> Vec<LocalServer> {
    servers_on(&USUAL, cancel).await
}

/// The servers that answer on these ports. All are asked at once.
pub async fn servers_on(ports: &[(&'static str, u16)], cancel: &CancelToken) -> Vec<LocalServer> {
    let asked = ports.iter().map(|&(name, port)| ask(name, port, cancel));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(name: &'static str, port: u16, cancel: &CancelToken) -> Option<LocalServer> {
    let api_url = format!("http://127.0.0.1:{port}/v1");
    let mut config = ClientConfig::new(api_url.as_str());
    config.timeouts = Timeouts {
        connect: WAIT,
        timeout: WAIT,
        ..Timeouts::default()
    };
    let client = Client::new(config).ok()?;
    // Whatever else listens there (a web server, mostly) gives no list of models.
    let catalogue = tokio::time::timeout(WAIT, client.models(cancel)).await.ok()?.ok()?;
    Some(LocalServer {
        name,
        api_url,
        models: catalogue.models.into_iter().map(|model| model.id).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers each connection with `body`, or never.
    fn server(answer: Option<(&'static str, &'static str)>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 2048]);
                if let Some((kind, body)) = answer {
                    let length = body.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                } else {
                    open.push(stream);
                }
            }
        });
        port
    }

    fn closed_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn what_lists_models_is_found_and_nothing_else_holds_it_up() {
        let models = server(Some((
            "application/json",
            r#"{"data": [{"id": "qwen"}, {"id": "gemma"}]}"#,
        )));
        let web = server(Some(("text/html", "<html>hello</html>")));
        let silent = server(None);
        let ports = [
            ("llama.cpp", models),
            ("Ollama", closed_port()),
            ("LM Studio", web),
            ("vLLM", silent),
        ];
        let started = std::time::Instant::now();
        let found = servers_on(&ports, &CancelToken::default()).await;
        assert!(started.elapsed() < WAIT * 5, "{:?}", started.elapsed());
        assert_eq!(
            found,
            [LocalServer {
                name: "llama.cpp",
                api_url: format!("http://127.0.0.1:{models}/v1"),
                models: vec!["qwen".into(), "gemma".into()],
            }]
        );
    }

    #[tokio::test]
    async fn a_cancelled_look_finds_nothing_at_once() {
        let cancel = CancelToken::default();
        cancel.cancel();
        let silent = server(None);
        assert_eq!(servers_on(&[("vLLM", silent)], &cancel).await, []);
    }
}
