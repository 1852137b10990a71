//! How the services of a session are made, and made anew when the configuration changes.

use serde_json::Value;

use crate::command::ProfileChoice;
use crate::config::{self, Config, ConfigError, Layers, Loaded, Paths, valid_part};
use crate::persistence::Store;
use crate::process::Environment;
use crate::runtime::services::{self, ServiceHandles, Services};

/// What stays the same while services come and go.
pub(super) struct Composition {
    pub paths: Paths,
    pub handles: ServiceHandles,
    /// The layer above all others.
    pub overrides: Value,
    pub profile: ProfileChoice,
    /// Whether changes of the configuration end with the session.
    pub ephemeral: bool,
}

impl Composition {
    /// The configuration of the user's file as it is now and a kept patch. What is wrong is told in it and left out.
    pub(super) fn load(&self, patch: Value, last_good: Option<&Config>) -> Loaded {
        let mut loaded = config::load(&self.paths.user_file(), patch, self.overrides.clone(), last_good);
        if self.profile != ProfileChoice::Configured {
            match self.under_profile(&loaded.config) {
                Ok(config) => loaded.config = config,
                Err(error) => loaded.problems.push(error),
            }
        }
        loaded
    }

    /// The configuration with another patch, everything else as it was.
    pub(super) fn with_patch(&self, current: &Config, patch: &Value) -> Result<Config, ConfigError> {
        let layers = Layers {
            // What a newer program kept is left alone in the store and has no effect here.
            patch: valid_part(patch),
            ..current.layers().clone()
        };
        self.under_profile(&Config::from_layers(&layers)?)
    }

    /// The configuration under the profile of this session.
    pub(super) fn under_profile(&self, config: &Config) -> Result<Config, ConfigError> {
        match &self.profile {
            ProfileChoice::Configured => {
                let base = config.with_profile(None)?;
                let name = base.opt_str("profile").map(str::to_owned);
                base.with_profile(name.as_deref())
            }
            ProfileChoice::Off => config.with_profile(None),
            ProfileChoice::Named(name) => config.with_profile(Some(name)),
        }
    }

    /// The services over a configuration.
    pub(super) fn compose(&self, config: Config, store: Store, env: &Environment) -> Services {
        services::compose(config, store, env, &self.paths, self.handles.clone())
    }
}
