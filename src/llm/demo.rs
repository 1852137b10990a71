//! `demo`, the embedded model: a script behind the provider trait, so that the real loop can be seen at work with no
//! key and no network.
//!
//! It looks at the directory like a model would: asks for a listing, then for the index or README and for what git
//! knows, and answers from what the tools returned and nothing else. The engine does not know that it is no model.

use crate::cancel::CancelToken;
use crate::llm::provider::{BoxFuture, ChatRequest, ChatResponse, FinishReason, LlmFailure, Provider, StreamEvent};
use crate::message::{Message, Speaker, ToolCall};

mod answer;

/// The name that asks for it.
pub const DEMO_MODEL: &str = "demo";

/// Files that introduce a project, best first; compared without regard to case.
const INTRODUCTIONS: [&str; 6] = [
    "INDEX.md",
    "README.md",
    "README",
    "README.txt",
    "README.rst",
    "AGENTS.md",
];
/// How many lines of the introduction it reads.
const READ_LINES: u32 = 40;
const LIST_COMMAND: &str = "ls -1Ap";
const GIT_COMMAND: &str = "git log --oneline -n 5 && echo --- && git status --short";

/// The embedded model.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoProvider;

/// The results of one turn's calls so far, by what they were asked for.
#[derive(Debug, Default)]
struct Seen<'a> {
    question: &'a str,
    listing: Option<&'a str>,
    introduction: Option<(String, &'a str)>,
    git: Option<&'a str>,
}

impl<'a> Seen<'a> {
    /// Looks at what came after the last thing the user said.
    fn of(messages: &'a [Message]) -> Self {
        let mut seen = Self::default();
        let last_user = messages.iter().rposition(|message| message.role == Speaker::User);
        let Some(start) = last_user else { return seen };
        seen.question = &messages[start].content;
        let calls = || messages[start..].iter().flat_map(|message| &message.tool_calls);
        for message in &messages[start..] {
            let Some(call) = message
                .tool_call_id
                .as_ref()
                .and_then(|id| calls().find(|call| call.id == *id))
            else {
                continue;
            };
            let result = message.content.as_str();
            match Purpose::of(call) {
                Some(Purpose::List) => seen.listing = Some(result),
                Some(Purpose::Read(path)) => seen.introduction = Some((path, result)),
                Some(Purpose::Git) => seen.git = Some(result),
                None => {}
            }
        }
        seen
    }
}

/// What a call of ours is for.
#[derive(Debug, PartialEq, Eq)]
enum Purpose {
    List,
    Read(String),
    Git,
}

impl Purpose {
    fn of(call: &ToolCall) -> Option<Self> {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
        match (call.name.as_str(), arguments["command"].as_str()) {
            ("bash", Some(LIST_COMMAND)) | ("code_map", _) => Some(Self::List),
            ("bash", Some(GIT_COMMAND)) | ("git", _) => Some(Self::Git),
            ("read", _) => Some(Self::Read(arguments["path"].as_str()?.to_owned())),
            _ => None,
        }
    }
}

fn call(id: &str, name: &str, arguments: &serde_json::Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
        extra: Default::default(),
    }
}

/// The next step: what it says, and what it asks for.
fn step(request: &ChatRequest<'_>) -> (String, Vec<ToolCall>) {
    let offers = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let seen = Seen::of(request.messages);
    let Some(listing) = seen.listing else {
        let listing = if offers("bash") {
            call("demo_list", "bash", &serde_json::json!({"command": LIST_COMMAND}))
        } else if offers("code_map") {
            call("demo_list", "code_map", &serde_json::json!({}))
        } else {
            return (answer::without_tools(), Vec::new());
        };
        return ("I'll look at what is here.\n".to_owned(), vec![listing]);
    };
    let introduction = answer::introduction(listing, &INTRODUCTIONS).filter(|_| offers("read"));
    if seen.git.is_none() && seen.introduction.is_none() {
        let mut calls = Vec::new();
        if let Some(path) = introduction {
            let arguments = serde_json::json!({"path": path, "limit": READ_LINES});
            calls.push(call("demo_read", "read", &arguments));
        }
        if offers("bash") {
            calls.push(call("demo_git", "bash", &serde_json::json!({"command": GIT_COMMAND})));
        } else if offers("git") {
            calls.push(call(
                "demo_git",
                "git",
                &serde_json::json!({"subcommand": "log", "args": ["--oneline", "-n", "5"]}),
            ));
        }
        if !calls.is_empty() {
            return ("Now what it says of itself, and its history.\n".to_owned(), calls);
        }
    }
    (answer::compose(&seen), Vec::new())
}

impl Provider for DemoProvider {
    fn chat<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: &'a mut (dyn FnMut(StreamEvent) + Send),
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmFailure>> {
        Box::pin(async move {
            cancel.check("llm")?;
            let (text, calls) = step(&request);
            for piece in text.split_inclusive(' ') {
                sink(StreamEvent::Text(piece.to_owned()));
            }
            for (index, call) in calls.iter().enumerate() {
                sink(StreamEvent::ToolCallDetected {
                    index,
                    id: call.id.clone(),
                    name: call.name.clone(),
                });
            }
            let finish = if calls.is_empty() {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            };
            let message = Message {
                tool_calls: calls,
                ..Message::assistant(text)
            };
            Ok(ChatResponse::from_message(message, finish))
        })
    }
}
