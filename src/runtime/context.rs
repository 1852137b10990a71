//! What a turn sees of its session: one immutable snapshot.

use std::sync::Arc;

use crate::role::Role;
use crate::runtime::scope::TurnScope;
use crate::runtime::services::Services;

/// The snapshot. Nothing in it changes while the turn runs, whatever the user sets meanwhile.
#[derive(Clone)]
pub struct ExecutionContext {
    /// The session.
    pub session_id: Arc<str>,
    /// The role the turn runs under.
    pub active_role: Role,
    /// The conversation it continues.
    pub conversation_id: Arc<str>,
    /// The services; their `config` is the configuration's snapshot.
    pub services: Arc<Services>,
    /// Where it happens.
    pub scope: TurnScope,
    /// The model asked for in this session or conversation, before everything configured.
    pub model_override: Option<String>,
}
