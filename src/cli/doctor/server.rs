//! What is configured, layer by layer, and whether the model server answers with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Check;
use crate::cancel::CancelToken;
use crate::config::{self, Config, DottedPath, KnownNames, Layer, Paths};
use crate::error::{AgentError, ErrorKind};
use crate::llm::{Catalogue, DEMO_MODEL, LocalServer, local_servers};
use crate::nearest::nearest;
use crate::persistence::{Store, StoreOptions};
use crate::process::Environment;
use crate::role::ROLES;
use crate::runtime::{ConfiguredModels, ModelService, runtime};
use crate::tool::Registry;

const CONFIGURATION: &str = "configuration";
const SERVER: &str = "model server";
const MODEL: &str = "model";
/// How long the server may take to be reached and to list its models.
const WAIT: Duration = Duration::from_secs(3);

pub(super) fn configuration_and_server(paths: &Paths, options: &StoreOptions) -> Vec<Check> {
    let file = paths.user_file();
    // A store that cannot be read has a check of its own.
    let kept = Store::new(options.clone()).read_blocking(|reader| reader.config_patch());
    let patch = kept.ok().flatten().unwrap_or(Value::Null);
    let loaded = config::load(&file, patch, Value::Null, None);
    let config = loaded.config;
    let mut checks: Vec<_> = loaded
        .problems
        .iter()
        .map(|problem| Check::failed(CONFIGURATION, &AgentError::from(problem)))
        .collect();
    if checks.is_empty() {
        checks.push(Check::ok(CONFIGURATION, layers(&config, paths)));
    }
    checks.extend(warnings(&config));
    let env = Environment::capture();
    let models = ConfiguredModels::new(&config, &env);
    checks.extend(server(&config, &models));
    if config.opt_str("llm_config.api_url").is_some()
        && let Some(name) = config.opt_str("llm_config.api_key_env")
    {
        checks.push(key(&config, &env, name));
    }
    checks
}

/// How much each layer says.
fn layers(config: &Config, paths: &Paths) -> String {
    let entries = config::entries(config);
    let from = |layer: Layer| entries.iter().filter(|entry| entry.layer == layer).count();
    let file = paths.user_file();
    let user = match (file.exists(), from(Layer::User)) {
        (false, _) => format!("{} is not there", paths.shorten(&file)),
        (true, count) => format!("{} sets {}", paths.shorten(&file), keys(count)),
    };
    let profile = config
        .profile_name()
        .map(|name| format!("; the profile {name} sets {}", keys(from(Layer::Profile))))
        .unwrap_or_default();
    format!(
        "{user}; /config set keeps {}; the defaults hold for the rest{profile}",
        keys(from(Layer::Override))
    )
}

fn keys(count: usize) -> String {
    match count {
        0 => "no key".to_owned(),
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    }
}

fn warnings(config: &Config) -> Vec<Check> {
    let roles: Vec<&str> = ROLES
        .iter()
        .flat_map(|spec| [spec.name, spec.default_model_key])
        .collect();
    let registry = Registry::builtin();
    let tools: Vec<String> = registry
        .list()
        .map(|tool| tool.spec().name.clone().into_owned())
        .collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let known = KnownNames {
        roles: &roles,
        tools: &tools,
    };
    let step = "agent-smith config edit, or /config unset for what /config set keeps";
    let warnings = config.warnings(known).into_iter();
    warnings
        .map(|text| Check::warn(CONFIGURATION, text).next(step))
        .collect()
}

fn server(config: &Config, models: &ConfiguredModels) -> Vec<Check> {
    if config.opt_str("llm_config.api_url").is_none() {
        return vec![none_configured()];
    }
    let url = address(config);
    let begun = Instant::now();
    let model = models.select(crate::role::Role::Direct, None).model;
    let asked = ask(models, &url);
    let took = begun.elapsed().as_millis();
    match asked {
        Ok(catalogue) => {
            let count = catalogue.models.len();
            vec![
                Check::ok(SERVER, format!("{url} answers in {took} ms and has {count} models")),
                chosen(&model, &catalogue),
            ]
        }
        // It is there; only its list is not.
        Err(error) if matches!(error.code.as_ref(), "not_found" | "unreadable" | "bad_request") => vec![
            Check::warn(
                SERVER,
                format!("{url} answers, but gives no list of its models: {}", error.message),
            )
            .next("if turns fail, look at llm_config.api_url: it mostly ends in /v1"),
            Check::ok(MODEL, format!("{model}; whether the server has it is not known")),
        ],
        Err(error) => {
            let mut check = Check::failed(SERVER, &error);
            if matches!(error.code.as_ref(), "connection" | "timeout") || check.next.is_none() {
                check = check.next("start the server, or correct llm_config.api_url (agent-smith config edit)");
            }
            vec![
                check,
                Check::ok(MODEL, format!("{model}; whether the server has it is not known")),
            ]
        }
    }
}

/// The server's address, without a password that may be in it.
fn address(config: &Config) -> String {
    let path = DottedPath::from_segments(["llm_config", "api_url"].map(str::to_owned).to_vec());
    let shown = path.and_then(|path| config::entry(config, &path)?.value);
    shown.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn none_configured() -> Check {
    let found = runtime()
        .map(|runtime| runtime.block_on(local_servers(&CancelToken::default())))
        .unwrap_or_default();
    let check = Check::warn(SERVER, "none is configured, so the embedded demo answers");
    match found.first() {
        Some(LocalServer { name, api_url, .. }) => {
            check.next(format!("{name} answers at {api_url}: /setup in the shell offers it"))
        }
        None => check.next("/setup in the shell, or llm_config.api_url in the user's file (agent-smith config edit)"),
    }
}

fn ask(models: &ConfiguredModels, address: &str) -> Result<Arc<Catalogue>, AgentError> {
    let cancel = CancelToken::default();
    let asked = runtime()?.block_on(async { tokio::time::timeout(WAIT, models.fetch_models(&cancel)).await });
    asked.unwrap_or_else(|_| {
        let message = format!("{address} does not answer within {} s", WAIT.as_secs());
        Err(AgentError::new(ErrorKind::Transport, "timeout", message))
    })
}

/// Whether the server has the model that a new conversation would ask.
fn chosen(model: &str, catalogue: &Catalogue) -> Check {
    if model == DEMO_MODEL || catalogue.models.is_empty() || catalogue.find(model).is_some() {
        return Check::ok(MODEL, format!("{model}, for new conversations"));
    }
    let ids: Vec<&str> = catalogue.models.iter().map(|model| model.id.as_str()).collect();
    let meant = nearest(model, ids.iter().copied()).or_else(|| (ids.len() == 1).then(|| ids[0]));
    let next = match meant {
        Some(id) => {
            format!("did you mean {id}? Set default_model (agent-smith config edit, or /config set default_model {id})")
        }
        None => "set default_model to one of the server's (/models in the shell lists them)".to_owned(),
    };
    Check::warn(MODEL, format!("{model} is not among the server's models")).next(next)
}

/// Whether the key is there; never what it is.
fn key(config: &Config, env: &Environment, name: &str) -> Check {
    let url = config.opt_str("llm_config.api_url").unwrap_or_default();
    let on_this_machine = ["://127.", "://localhost", "://[::1]"]
        .iter()
        .any(|place| url.contains(place));
    if env.text(name).is_some_and(|key| !key.trim().is_empty()) {
        Check::ok("key", format!("the variable {name} is set"))
    } else if on_this_machine {
        let text = format!("the variable {name} is not set; a server on this machine mostly needs none");
        Check::ok("key", text)
    } else {
        Check::warn("key", format!("the variable {name} is not set"))
            .next(format!("export {name}=… before the shell starts"))
    }
}
