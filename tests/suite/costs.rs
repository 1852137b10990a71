//! What a turn used and cost: told by the server, by its price list, or estimated; estimates are marked.

use agent_smith_core::message::Usage;
use agent_smith_core::protocol::EventKind;
use agent_smith_core::runtime::SessionOptions;
use serde_json::json;

use crate::support::answers::Answer;
use crate::support::home::{Home, TestSession};
use crate::support::mock_server::MockServer;

/// The usage of one turn.
fn used(session: &mut TestSession) -> Usage {
    session.forget();
    session.submit("Go.");
    let end = session.wait_end();
    session.wait("the end of the line", |kind| {
        matches!(kind, EventKind::InputSettled { .. })
    });
    match end {
        EventKind::TurnCompleted(end) => end.usage,
        other => panic!("{other:?}"),
    }
}

fn with_usage(usage: &serde_json::Value) -> Answer {
    Answer::sse()
        .text("Yes.")
        .finish("stop")
        .event(&json!({"choices": [], "usage": usage}))
        .done()
}

#[test]
fn told_by_the_server_then_by_its_list_then_estimated() {
    let server = MockServer::start();
    let list = json!({"data": [
        {"id": "mock", "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.000001"}},
    ]});
    server.on_path("/v1/models", Answer::json(200, &list));
    let home = Home::with_server(&server.url());
    let options = SessionOptions {
        ephemeral: true,
        ..SessionOptions::default()
    };
    let mut session = home.session(options.clone());
    let counts = json!({"prompt_tokens": 100, "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 4}});

    // Before the list was asked for, nothing is known of prices, and nobody asks for it.
    server.answer(with_usage(&counts));
    let usage = used(&mut session);
    assert_eq!((usage.cost, usage.estimated), (None, false));
    assert_eq!((usage.cached_tokens, usage.reasoning_tokens), (Some(40), Some(4)));
    assert_eq!(server.requests().len(), 1);

    // By the list: the cached part at its own price.
    assert!(session.command("/models").0);
    server.answer(with_usage(&counts));
    let usage = used(&mut session);
    let cost = 60.0 * 3e-6 + 40.0 * 1e-6 + 10.0 * 15e-6;
    assert!(
        (usage.cost.unwrap() - cost).abs() < 1e-12 && usage.estimated,
        "{usage:?}"
    );

    // What the server says itself counts more.
    let mut told = counts.clone();
    told["cost"] = json!(0.25);
    server.answer(with_usage(&told));
    let usage = used(&mut session);
    assert_eq!((usage.cost, usage.estimated), (Some(0.25), false));

    // No count at all: an estimate, and its price one more.
    server.answer(Answer::sse().text("Yes.").finish("stop").done());
    let usage = used(&mut session);
    assert!(
        usage.estimated && usage.prompt_tokens > 100 && usage.completion_tokens > 0,
        "{usage:?}"
    );
    assert!(usage.cost.unwrap() > 0.0);

    // The conversation's own total, and the mark of an estimate, are shown.
    let (_, table) = session.command("/usage");
    assert!(table.contains("~$0.25"), "{table}");
    assert!(table.contains("| 4 |"), "{table}");
}
