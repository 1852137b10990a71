//! The ten services of a session, composed once and shared read-only.
//!
//! Each is made from its options, the table `services.<name>` of the configuration; each can be replaced by a handle
//! the caller brings ([`ServiceHandles`]): tests and delegated children do.

use std::sync::Arc;

use crate::config::{Config, Paths};
use crate::error::{AgentError, ErrorKind};
use crate::llm::Tape;
use crate::persistence::Store;
use crate::process::Environment;
use crate::role::{ROLES, Role, RoleSpec, check_dispatch};
use crate::runtime::conversations::{ConversationService, StoredConversations};
use crate::runtime::models::{ConfiguredModels, ModelService};
use crate::runtime::prompts::{BuiltinPrompts, PromptService};
use crate::runtime::tape;
use crate::runtime::tools::{BuiltinTools, ToolService};
use crate::runtime::ui::{TerminalUi, UiService};

/// Knows the roles.
pub trait RoleService: Send + Sync {
    /// The role called `name`.
    ///
    /// # Errors
    /// `policy` with the names there are.
    fn resolve_role(&self, name: &str) -> Result<&'static RoleSpec, AgentError>;
    /// All roles.
    fn list_roles(&self) -> &'static [RoleSpec];
}

/// Decides who may delegate to whom.
pub trait DispatchService: Send + Sync {
    /// Whether `parent` may hand a job to `target`.
    ///
    /// # Errors
    /// `policy` where the edge does not exist.
    fn authorize(&self, parent: Role, target: Role) -> Result<(), AgentError>;
}

/// The built-in catalogue.
#[derive(Debug, Default)]
pub struct Catalogue;

impl RoleService for Catalogue {
    fn resolve_role(&self, name: &str) -> Result<&'static RoleSpec, AgentError> {
        Role::from_name(name).map(Role::spec).ok_or_else(|| {
            let names: Vec<_> = ROLES
                .iter()
                .filter(|spec| spec.user_facing)
                .map(|spec| spec.name)
                .collect();
            let message = format!("there is no role `{name}`");
            AgentError::new(ErrorKind::Policy, "unknown_role", message)
                .from_origin("role")
                .with_hint(format!("choose one of: {}", names.join(", ")))
        })
    }

    fn list_roles(&self) -> &'static [RoleSpec] {
        &ROLES
    }
}

/// The edges of the role matrix.
#[derive(Debug, Default)]
pub struct MatrixDispatch;

impl DispatchService for MatrixDispatch {
    fn authorize(&self, parent: Role, target: Role) -> Result<(), AgentError> {
        if check_dispatch(parent, target) {
            return Ok(());
        }
        let message = format!("{parent} may not delegate to {target}");
        Err(AgentError::new(ErrorKind::Policy, "dispatch_denied", message).from_origin("dispatch"))
    }
}

/// Handles the caller brings instead of the built-in services.
#[derive(Clone, Default)]
pub struct ServiceHandles {
    /// Instead of the role catalogue.
    pub role: Option<Arc<dyn RoleService>>,
    /// Instead of the configured models and their servers.
    pub model: Option<Arc<dyn ModelService>>,
    /// Instead of the built-in tools.
    pub tool: Option<Arc<dyn ToolService>>,
    /// Instead of the dispatch edges.
    pub dispatch: Option<Arc<dyn DispatchService>>,
    /// Instead of the stored conversations.
    pub conversation: Option<Arc<dyn ConversationService>>,
    /// Instead of the user's database.
    pub persistence: Option<Store>,
    /// Instead of the four layers.
    pub config: Option<Config>,
    /// Instead of the terminal rendering.
    pub ui: Option<Arc<dyn UiService>>,
    /// Instead of the built-in prompts.
    pub prompt: Option<Arc<dyn PromptService>>,
    /// Instead of the built-in commands.
    pub command: Option<Arc<crate::command::Registry>>,
    /// Where the wire of all models is recorded, or played from.
    pub tape: Option<Tape>,
}

/// The services. Nothing in here changes after composition; a changed configuration makes new ones.
pub struct Services {
    /// Roles.
    pub role: Arc<dyn RoleService>,
    /// Models and who answers for them.
    pub model: Arc<dyn ModelService>,
    /// Tools.
    pub tool: Arc<dyn ToolService>,
    /// Delegation.
    pub dispatch: Arc<dyn DispatchService>,
    /// Conversations.
    pub conversation: Arc<dyn ConversationService>,
    /// The store.
    pub persistence: Store,
    /// The effective configuration.
    pub config: Config,
    /// Rendering.
    pub ui: Arc<dyn UiService>,
    /// Prompts.
    pub prompt: Arc<dyn PromptService>,
    /// Commands.
    pub command: Arc<crate::command::Registry>,
}

/// Composes the services over a configuration and a store; handles win.
#[must_use]
pub fn compose(config: Config, store: Store, env: &Environment, paths: &Paths, handles: ServiceHandles) -> Services {
    let config = handles.config.unwrap_or(config);
    let persistence = handles.persistence.unwrap_or(store);
    persistence.set_max_blob_bytes(config.u64("persistence.max_blob_bytes"));
    let tape = handles.tape;
    let mut services = Services {
        role: handles.role.unwrap_or_else(|| Arc::new(Catalogue)),
        model: handles.model.unwrap_or_else(|| {
            Arc::new(ConfiguredModels::new(&config, env).keeping_lists_in(paths.agent_cache_dir().join("models")))
        }),
        tool: handles
            .tool
            .unwrap_or_else(|| Arc::new(BuiltinTools::new(&config, &paths.state_dir()))),
        dispatch: handles.dispatch.unwrap_or_else(|| Arc::new(MatrixDispatch)),
        conversation: handles
            .conversation
            .unwrap_or_else(|| Arc::new(StoredConversations::new(persistence.clone()))),
        ui: handles.ui.unwrap_or_else(|| Arc::new(TerminalUi)),
        prompt: handles.prompt.unwrap_or_else(|| Arc::new(BuiltinPrompts::new(&config))),
        command: handles
            .command
            .unwrap_or_else(|| Arc::new(crate::command::Registry::builtin())),
        persistence,
        config,
    };
    services.model = tape::over(tape, services.model);
    services
}
