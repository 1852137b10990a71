//! The model wire: requests to servers that speak Chat Completions, and their answers in all the forms seen in public.
//!
//! `provider` is what the rest of the product sees: the [`Provider`] trait, a request, the events of an answer, the
//! answer or failure. [`Client`] is the provider of a server over HTTP.
//!
//! Out: `history` makes a copy of the transcript that the server takes, `request` writes it into bytes, `exchange`, `send`
//! and `http` carry them. In: `answer` reads the connection under its time limits, `reader` and `sse` make payloads of
//! bytes, `chunk` and `json` decode them, `assembly` with `calls`, `reasoning`, `think` and `usage` puts the answer
//! together, and `failure` says what a failure means. `quirks` is the one table of how servers deviate.

mod answer;
mod assembly;
mod calls;
pub mod cassette;
pub mod catalogue;
mod chunk;
mod client;
mod demo;
mod exchange;
mod failure;
mod fences;
mod finish;
pub mod history;
mod http;
mod ids;
mod json;
mod merge;
mod pool;
mod probe;
mod provider;
pub mod quirks;
mod reader;
mod reasoning;
mod redact;
pub mod request;
pub mod retry;
mod retry_after;
mod secret;
mod send;
mod settings;
pub mod sse;
mod text_calls;
mod text_forms;
mod think;
pub mod usage;
mod words;

pub use answer::read_bytes;
pub use cassette::{Recorder, Replay, Tape};
pub use catalogue::{Catalogue, ModelInfo};
pub use client::Client;
pub use demo::{DEMO_MODEL, DemoProvider};
pub use probe::{LocalServer, local_servers, servers_on};
pub use provider::{
    BoxFuture, ChatRequest, ChatResponse, FinishReason, IncompleteCall, IncompleteReason, LlmFailure, Provider,
    RequestParams, StreamEvent,
};
pub use quirks::Quirks;
pub use retry::{EmptyRetryPolicy, RetryPolicy, random};
pub use secret::{Secret, mask_tokens};
pub use settings::{ClientConfig, ProxySettings, Timeouts};
