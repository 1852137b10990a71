//! Profiles: named sets of a server, its key and its models that lie over the layers.

use serde_json::{Map, Value};

use super::error::ConfigError;
use super::layers::Config;
use super::value;
use crate::nearest::nearest;

/// What belongs to one server and must not go to another: dropped from `llm_config` under a profile that names a
/// server of its own.
const OF_THE_SERVER: [&str; 5] = ["api_key_env", "ca_file", "extra_headers", "extra_body", "quirks"];

/// What stays at the top of the configuration; everything else of a profile goes into `llm_config`.
const TOP_LEVEL: [&str; 2] = ["default_model", "models"];

/// The names of the profiles there are.
#[must_use]
pub fn names(config: &Config) -> Vec<&str> {
    let profiles = config.value_at(&["profiles"]).and_then(Value::as_object);
    profiles
        .map(|map| map.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// The profile `name` in the shape of a layer.
pub(super) fn overlay(config: &Config, name: &str) -> Result<Value, ConfigError> {
    let Some(profile) = config.value_at(&["profiles", name]).and_then(Value::as_object) else {
        let names = names(config);
        let known = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if names.is_empty() => "none is defined under `profiles`".to_owned(),
            None => format!("there are {}", names.join(", ")),
        };
        return Err(ConfigError::NoSuchProfile {
            name: name.to_owned(),
            known,
        });
    };
    let mut layer = Value::Object(Map::new());
    for (key, value) in profile {
        if TOP_LEVEL.contains(&key.as_str()) {
            value::insert(&mut layer, &[key], value.clone());
        } else {
            value::insert(&mut layer, &["llm_config", key], value.clone());
        }
    }
    Ok(layer)
}

/// `base` with a profile over it.
///
/// A profile's `default_model` also stands over the roles' models below it: what it says of models must not be hidden
/// by ids that another server has.
pub(super) fn apply(base: &Value, overlay: &Value) -> Value {
    let mut effective = base.clone();
    if value::get(overlay, &["llm_config", "api_url"]).is_some() {
        for key in OF_THE_SERVER {
            value::remove(&mut effective, &["llm_config", key]);
        }
        // A model of the same name on the other server: what it is told to send may be just as secret.
        let models = effective
            .pointer_mut("/llm_config/models")
            .and_then(Value::as_object_mut);
        for model in models.into_iter().flat_map(Map::values_mut) {
            value::remove(model, &["extra_headers"]);
        }
    }
    if value::get(overlay, &["default_model"]).is_some() {
        value::remove(&mut effective, &["models"]);
    }
    value::merge(&mut effective, overlay);
    effective
}

#[cfg(test)]
mod tests {
    use super::super::layers::{Layer, Layers};
    use super::*;
    use serde_json::json;

    fn config() -> Config {
        let user = json!({
            "default_model": "big",
            "models": {"worker": "small"},
            "llm_config": {"api_url": "https://a/v1", "api_key_env": "A_KEY", "extra_headers": {"X": "a"}, "timeout": 5,
                "models": {"tiny": {"extra_headers": {"X": "a"}, "temperature": 1}}},
            "profiles": {
                "local": {"api_url": "http://b/v1", "default_model": "tiny"},
                "slow": {"models": {"worker": "w2"}},
            },
        });
        Config::from_layers(&Layers {
            user,
            ..Layers::default()
        })
        .unwrap()
    }

    #[test]
    fn a_profile_with_its_own_server_inherits_no_secret_and_no_model() {
        let local = config().with_profile(Some("local")).unwrap();
        assert_eq!(local.opt_str("llm_config.api_url"), Some("http://b/v1"));
        assert_eq!(local.layer_of("llm_config.api_url"), Layer::Profile);
        assert_eq!(
            local.opt_str("llm_config.api_key_env"),
            None,
            "the key of another server"
        );
        assert_eq!(local.table("llm_config.extra_headers"), None);
        let request = local.request_settings("tiny");
        assert_eq!((request.extra_headers, request.temperature), (Vec::new(), Some(1.0)));
        assert!((local.f64("llm_config.timeout") - 5.0).abs() < f64::EPSILON);
        assert_eq!(local.opt_str("default_model"), Some("tiny"));
        assert_eq!(local.opt_str("models.worker"), None);
        let slow = local.with_profile(Some("slow")).unwrap();
        assert_eq!(slow.opt_str("llm_config.api_url"), Some("https://a/v1"));
        assert_eq!(slow.opt_str("llm_config.api_key_env"), Some("A_KEY"));
        assert_eq!(slow.opt_str("models.worker"), Some("w2"));
        assert_eq!(slow.opt_str("default_model"), Some("big"));
        assert_eq!(slow.with_profile(None).unwrap().snapshot(), config().snapshot());
    }

    #[test]
    fn an_unknown_profile_names_the_nearest() {
        let message = |name| config().with_profile(Some(name)).unwrap_err().to_string();
        assert_eq!(
            message("lokal"),
            "there is no profile \"lokal\"; did you mean \"local\"?"
        );
        assert_eq!(
            message("zzzzzz"),
            "there is no profile \"zzzzzz\"; there are local, slow"
        );
    }
}
