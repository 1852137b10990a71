//! The tools of a session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::config::Config;
use crate::message::ToolDefinition;
use crate::role::Role;
use crate::tool::{Registry, ToolLimits};

/// Knows the tools.
pub trait ToolService: Send + Sync {
    /// All of them.
    fn registry(&self) -> Arc<Registry>;
    /// Those offered to `role`.
    fn definitions(&self, role: Role) -> Vec<ToolDefinition>;
    /// The limits of all of them.
    fn limits(&self) -> ToolLimits;
}

/// The built-in tools, less those the user has disabled.
pub struct BuiltinTools {
    registry: Arc<Registry>,
    disabled: Vec<String>,
    limits: ToolLimits,
}

impl BuiltinTools {
    /// The tools as `config` has them; long outputs go below `state_dir`.
    #[must_use]
    pub fn new(config: &Config, state_dir: &Path) -> Self {
        let names = |path: &str| config.texts(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let seconds = |path: &str| Duration::try_from_secs_f64(config.f64(path)).unwrap_or(Duration::MAX);
        let mut scrub_env = names("tools.bash.scrub_env");
        // The models' keys are the shell's, not the commands': that of the server in use, and those of the profiles that
        // are not.
        scrub_env.extend(config.opt_str("llm_config.api_key_env").map(str::to_owned));
        let profiles = config.value_at(&["profiles"]).and_then(Value::as_object);
        let profiles = profiles.into_iter().flat_map(serde_json::Map::values);
        let keys = profiles.filter_map(|profile| profile.get("api_key_env")?.as_str());
        scrub_env.extend(keys.map(str::to_owned));
        let limits = ToolLimits {
            output_chars: usize::try_from(config.u64("tools.output_chars")).unwrap_or(usize::MAX),
            bash_timeout: seconds("tools.bash.timeout"),
            bash_timeout_max: seconds("tools.bash.max_timeout"),
            confine_to_root: config.bool("tools.confine_to_root"),
            output_dir: Some(state_dir.join("outputs")),
            scrub_env,
            ..ToolLimits::default()
        };
        Self {
            registry: Arc::new(Registry::builtin()),
            disabled: names("tools.disabled"),
            limits,
        }
    }
}

impl ToolService for BuiltinTools {
    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    fn definitions(&self, role: Role) -> Vec<ToolDefinition> {
        self.registry.definitions(role, &self.disabled)
    }

    fn limits(&self) -> ToolLimits {
        self.limits.clone()
    }
}
