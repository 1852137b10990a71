//! Answers captured from real servers, byte for byte, and what the client makes of each: a snapshot to read.

use std::fmt::Write as _;
use std::path::Path;

use agent_smith_core::cancel::CancelToken;
use serde_json::json;

use crate::support::answers::{Answer, Framing};
use crate::support::ask::{self, Ask};
use crate::support::mock_server::MockServer;
use crate::support::quirk_cases::tools;

/// The answer that a capture holds: a head, a blank line, and the body without the chunked coding.
fn answer(capture: &[u8]) -> Answer {
    let (end, gap) = [("\r\n\r\n", 4), ("\n\n", 2)]
        .iter()
        .filter_map(|(mark, gap)| Some((capture.windows(*gap).position(|part| part == mark.as_bytes())?, *gap)))
        .min()
        .unwrap();
    let head = String::from_utf8(capture[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer::body(status, "", &capture[end + gap..]);
    answer.framing = Framing::Chunked;
    answer.headers = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| {
            !["transfer-encoding", "content-length", "connection"].contains(&name.to_lowercase().as_str())
        })
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    answer
}

#[tokio::test]
async fn captured_answers_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm_captured");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut shown = String::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let server = MockServer::start();
        let capture = answer(&std::fs::read(&path).unwrap());
        let client = ask::client(&server);
        let cancel = CancelToken::new_root();
        writeln!(shown, "{name}").unwrap();
        if name.ends_with("models") {
            server.on_path("/v1/models", capture);
            let catalogue = client.models(&cancel).await.unwrap();
            writeln!(shown, "  models {:?}", catalogue.models).unwrap();
            continue;
        }
        server.answer(capture);
        let ask = Ask {
            tools: tools(&json!(["get_weather", "read_file"])),
            ..Ask::default()
        };
        let outcome = ask.of(&client).await;
        let response = match &outcome {
            Ok(response) => Some(response),
            Err(failure) => {
                let message = failure.error.message.replace(client.server(), "SERVER");
                let (code, retryable) = (&failure.error.code, failure.error.retryable);
                writeln!(
                    shown,
                    "  {code}, {}: {message}",
                    if retryable { "again" } else { "final" }
                )
                .unwrap();
                failure.partial.as_deref()
            }
        };
        let Some(response) = response else { continue };
        writeln!(shown, "  text {:?}, {}", response.message.content, response.finish).unwrap();
        if let Some(reasoning) = &response.message.reasoning {
            writeln!(shown, "  thoughts {:?}", reasoning.text).unwrap();
        }
        for call in &response.message.tool_calls {
            writeln!(shown, "  call {} {}", call.name, call.arguments).unwrap();
        }
        for call in &response.incomplete_calls {
            writeln!(
                shown,
                "  not run {:?} {:?} {:?}",
                call.reason, call.name, call.arguments_raw
            )
            .unwrap();
        }
        if let Some(usage) = &response.usage {
            let (prompt, completion, cached) = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens);
            writeln!(shown, "  usage {prompt} + {completion}, cached {cached:?}").unwrap();
        }
    }
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("llm_captured", shown);
    });
}
