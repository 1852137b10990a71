//! What a carrier chooses about a session, beside what the client says in `hello`.

use serde_json::Value;

use crate::runtime::conversations::ConversationStart;
use crate::runtime::services::ServiceHandles;

/// The choices.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// Which conversation to open.
    pub start: ConversationStart,
    /// The role, before the configured one.
    pub role: Option<String>,
    /// The model, before everything configured.
    pub model: Option<String>,
    /// The profile, before the configured one.
    pub profile: Option<String>,
    /// Keep the conversation in memory only.
    pub ephemeral: bool,
    /// Whether this is a terminal a person works in: it remembers its conversation as the active one, and goes on when
    /// the configuration is bad. Otherwise a bad configuration is an error.
    pub shell: bool,
    /// The layer above all others: settings of this session only, never kept.
    pub overrides: Value,
    /// Services to use instead of the built-in ones.
    pub handles: ServiceHandles,
}
