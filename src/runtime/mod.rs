//! The runtime: sessions, their turns, and the services they are made of.
//!
//! It owns no protocol, storage or screen logic: it composes the services, snapshots where a turn happens, drives the
//! engine, and tells what happens as events. A [`Session`] is the handle every carrier uses; behind it one actor (a
//! task) owns all state of the session, so that ops take effect one after the other.

mod actor;
mod bus;
mod changes;
pub mod clock;
mod complete;
mod composition;
mod context;
mod conversations;
mod dialog;
mod executor;
mod files;
pub mod git_repo;
mod held;
mod host;
pub mod ids;
mod inbox;
mod lifecycle;
mod model_lists;
mod models;
mod options;
mod preimages;
mod presence;
mod prompts;
mod scope;
mod screen;
mod services;
mod session;
mod setup;
mod shared;
mod shell;
mod start;
mod steering;
mod tape;
mod tools;
mod turns;
mod ui;
mod usage;
mod user_commands;
mod views;

pub use bus::EventBus;
pub use context::ExecutionContext;
pub use conversations::{ConversationService, ConversationStart, LastTurn, OpenedConversation, StoredConversations};
pub use executor::runtime;
pub use lifecycle::{ActiveTurn, Lifecycle, SessionStatus};
pub use models::{ConfiguredModels, Fallback, ModelService};
pub use options::SessionOptions;
pub use prompts::{BuiltPrompt, BuiltinPrompts, PromptService};
pub use scope::{TurnScope, project};
pub use services::{Catalogue, DispatchService, MatrixDispatch, RoleService, ServiceHandles, Services, compose};
pub use session::Session;
pub use tools::{BuiltinTools, ToolService};
pub use ui::{TerminalUi, UiService};
pub use usage::UsageTracker;

/// What the bridge asks in a panic, and may not ask the store itself.
pub use crate::persistence::is_contained;
