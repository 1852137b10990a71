//! The model of a request: which one, and who answers for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cancel::CancelToken;
use crate::config::Config;
use crate::error::{AgentError, ErrorKind};
use crate::llm::usage::Price;
use crate::llm::{
    BoxFuture, Catalogue, Client, ClientConfig, DEMO_MODEL, DemoProvider, Provider, ProxySettings, RequestParams,
    Secret, Timeouts,
};
use crate::process::Environment;
use crate::role::{ModelLimits, ModelOptions, ModelRequest, Role, SelectedModel, select_model};
use crate::runtime::model_lists::ModelLists;

/// Chooses models and finds who answers for them.
pub trait ModelService: Send + Sync {
    /// The model of `role`'s requests, by the eight steps.
    fn select(&self, role: Role, model_override: Option<&str>) -> SelectedModel;
    /// Who answers for a model.
    ///
    /// # Errors
    /// `schema` where no server is configured; `transport` or `schema` where the configured one cannot be used.
    fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, AgentError>;
    /// The parameters of a request to a model.
    fn params(&self, model: &str) -> RequestParams;
    /// Who goes on, in this order, when the server in use is down.
    fn fallbacks(&self, role: Role, model_override: Option<&str>) -> Vec<Fallback> {
        let _ = (role, model_override);
        Vec::new()
    }
    /// The server's models as last asked for; asks nobody.
    fn known_models(&self) -> Option<Arc<Catalogue>> {
        None
    }
    /// Asks the server for its models and keeps them.
    fn fetch_models<'a>(&'a self, cancel: &'a CancelToken) -> BoxFuture<'a, Result<Arc<Catalogue>, AgentError>> {
        let _ = cancel;
        let message = "the models of this session are not those of a server";
        let error = AgentError::new(ErrorKind::Policy, "no_catalogue", message).from_origin("llm");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Another server to go on with.
#[derive(Clone)]
pub struct Fallback {
    /// The profile it stands in.
    pub profile: String,
    /// Its model.
    pub model: String,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// The parameters of its requests.
    pub params: RequestParams,
    /// How many tokens it can see.
    pub context_window: u64,
    /// What its tokens cost, where its list tells.
    pub price: Option<Price>,
}

/// The models of the configuration. The HTTP client is made at the first request that needs it.
pub struct ConfiguredModels {
    config: Config,
    env: Environment,
    clients: Mutex<HashMap<String, Arc<dyn Provider>>>,
    lists: ModelLists,
}

impl ConfiguredModels {
    /// The models of `config`; keys and proxies come from `env`.
    #[must_use]
    pub fn new(config: &Config, env: &Environment) -> Self {
        Self {
            config: config.clone(),
            env: env.clone(),
            clients: Mutex::default(),
            lists: ModelLists::default(),
        }
    }

    /// The same, with the lists that servers gave kept in `dir`.
    #[must_use]
    pub fn keeping_lists_in(mut self, dir: PathBuf) -> Self {
        self.lists = ModelLists::in_dir(dir);
        self
    }

    /// What the user's configuration, and then the server's list, says of a model's limits.
    fn limits(&self, model: &str) -> ModelLimits {
        let settings = self.config.request_settings(model);
        let list = self.known_models();
        let listed = list.as_ref().and_then(|list| list.find(model));
        ModelLimits {
            context_window: settings
                .context_window
                .or_else(|| listed.and_then(|listed| listed.context_length)),
            max_output_tokens: settings
                .max_tokens
                .or_else(|| listed.and_then(|listed| listed.max_output_tokens)),
        }
    }

    fn fallback(&self, profile: &str, role: Role, model_override: Option<&str>) -> Result<Fallback, AgentError> {
        let config = self.config.with_profile(Some(profile)).map_err(AgentError::from)?;
        let names_models = ["default_model", "models"]
            .iter()
            .any(|key| config.value_at(&["profiles", profile, key]).is_some());
        let there = Self::new(&config, &self.env);
        // A model named for this conversation is one of the server that is down, unless the profile has none of its own.
        let selected = there.select(role, model_override.filter(|_| !names_models));
        let model = selected.model;
        let list = config
            .opt_str("llm_config.api_url")
            .and_then(|api_url| self.lists.get(api_url));
        let listed = list.as_ref().and_then(|list| list.find(&model));
        Ok(Fallback {
            profile: profile.to_owned(),
            provider: there.provider(&model)?,
            params: there.params(&model),
            price: listed.and_then(|listed| listed.price),
            context_window: config
                .request_settings(&model)
                .context_window
                .or_else(|| listed.and_then(|listed| listed.context_length))
                .unwrap_or(selected.context_window),
            model,
        })
    }

    /// How a model's server is asked.
    ///
    /// # Errors
    /// `schema` where no server is configured.
    pub fn client_config(&self, model: &str) -> Result<ClientConfig, AgentError> {
        let config = &self.config;
        let api_url = config.opt_str("llm_config.api_url").ok_or_else(no_server)?;
        let var = |name: &str| self.env.get(name).and_then(|value| value.to_str()).map(str::to_owned);
        let mut client = ClientConfig::new(api_url);
        if let Some(name) = config.opt_str("llm_config.api_key_env") {
            client.api_key = var(name).filter(|key| !key.trim().is_empty()).map(Secret::from);
            client.api_key_name = Some(name.to_owned());
        }
        let seconds = |path: &str| Duration::try_from_secs_f64(config.f64(path)).unwrap_or(Duration::MAX);
        client.timeouts = Timeouts {
            timeout: seconds("llm_config.timeout"),
            connect: seconds("llm_config.connect_timeout"),
            send: seconds("llm_config.send_timeout"),
            recv: seconds("llm_config.recv_timeout"),
            stream_stall: seconds("llm_config.stream_stall_timeout"),
        };
        let settings = config.request_settings(model);
        client.extra_headers = settings.extra_headers.into_iter().collect();
        client.set_quirks(model, settings.quirks)?;
        client.ca_file = config.opt_str("llm_config.ca_file").map(Into::into);
        client.proxies = ProxySettings::from_vars(var);
        Ok(client)
    }
}

fn no_server() -> AgentError {
    AgentError::new(ErrorKind::Schema, "no_api_url", "no model server is configured")
        .from_origin("llm")
        .with_hint(
            "set \"llm_config\": {\"api_url\": \"http://127.0.0.1:8080/v1\"} in ~/.config/lilush/agent_smith.json, \
             or try the embedded model with --model demo",
        )
}

impl ModelService for ConfiguredModels {
    fn select(&self, role: Role, model_override: Option<&str>) -> SelectedModel {
        let options = self.config.value_at(&["services", "model"]);
        let request = ModelRequest {
            model_override: model_override.map(str::to_owned),
            options: options.map(ModelOptions::from_value).unwrap_or_default(),
        };
        let runtime = ModelOptions::from_value(self.config.snapshot());
        select_model(&request, role.spec(), &runtime, |model| self.limits(model))
    }

    fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, AgentError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(model) {
            return Ok(Arc::clone(client));
        }
        let client: Arc<dyn Provider> = if model == DEMO_MODEL {
            Arc::new(DemoProvider)
        } else {
            Arc::new(Client::new(self.client_config(model)?)?)
        };
        clients.insert(model.to_owned(), Arc::clone(&client));
        Ok(client)
    }

    fn params(&self, model: &str) -> RequestParams {
        let settings = self.config.request_settings(model);
        RequestParams {
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            reasoning_effort: settings.reasoning_effort,
            extra_body: settings.extra_body,
            ..RequestParams::default()
        }
    }

    fn fallbacks(&self, role: Role, model_override: Option<&str>) -> Vec<Fallback> {
        let in_use = self.config.profile_name();
        let names = self.config.texts("fallback_profiles");
        names
            .into_iter()
            .filter(|name| Some(*name) != in_use)
            .filter_map(|name| match self.fallback(name, role, model_override) {
                Ok(fallback) => Some(fallback),
                Err(error) => {
                    tracing::warn!(profile = name, %error, "a fallback profile cannot be used");
                    None
                }
            })
            .collect()
    }

    fn known_models(&self) -> Option<Arc<Catalogue>> {
        self.lists.get(self.config.opt_str("llm_config.api_url")?)
    }

    fn fetch_models<'a>(&'a self, cancel: &'a CancelToken) -> BoxFuture<'a, Result<Arc<Catalogue>, AgentError>> {
        Box::pin(async move {
            let config = self.client_config("")?;
            let api_url = config.api_url.clone();
            let client = Client::new(config)?;
            let list = client.models(cancel).await.map_err(|failure| failure.error)?;
            let list = Arc::new(list);
            self.lists.put(&api_url, Arc::clone(&list));
            Ok(list)
        })
    }
}
