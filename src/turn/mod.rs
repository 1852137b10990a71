//! The turn engine: calls the model in a loop and runs the tools it asks for, until it stops.
//!
//! [`run`] is the loop; `request` makes one model call with its two retry layers; `batch` runs the calls of one answer;
//! `end` folds everything into the result. The engine knows neither the session nor the screen: it gets a
//! [`TurnContext`], tells what happens through its event sink, and has each finished round made durable by the journal
//! before the next request goes out.

mod batch;
mod context;
mod engine;
mod request;
mod unusable;

pub use context::{EventSink, Server, Servers, TurnContext, TurnLimits, TurnResult};
pub use engine::run;
