//! What goes into a request to one model: the general settings with those of the model over them.

use serde_json::{Map, Value};

use super::layers::Config;
use super::value::merge;

/// The settings of requests to one model, as plain values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestSettings {
    /// How much chance is in the choice of words.
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u64>,
    /// How much the model may think, in the server's words.
    pub reasoning_effort: Option<String>,
    /// Members for the body of the request, over what is there.
    pub extra_body: Map<String, Value>,
    /// Headers of the request, in the order they were written. May be secret.
    pub extra_headers: Vec<(String, String)>,
    /// How the server deviates: the name of a row and single members.
    pub quirks: Map<String, Value>,
    /// How many tokens the model can see, where the user says so.
    pub context_window: Option<u64>,
}

impl Config {
    /// The settings of requests to `model`.
    #[must_use]
    pub fn request_settings(&self, model: &str) -> RequestSettings {
        let own = |key: &str| self.value_at(&["llm_config", "models", model, key]);
        let general = |key: &str| self.value_at(&["llm_config", key]);
        let either = |key: &str| own(key).or_else(|| general(key));
        // The model's table is merged into the general one, so that each can add to the other.
        let merged = |key: &str| {
            let mut table = Value::Object(Map::new());
            for layer in [general(key), own(key)].into_iter().flatten() {
                merge(&mut table, layer);
            }
            match table {
                Value::Object(map) => map,
                _ => Map::new(),
            }
        };
        RequestSettings {
            temperature: either("temperature").and_then(Value::as_f64),
            max_tokens: either("max_tokens").and_then(super::schema::whole),
            reasoning_effort: either("reasoning_effort").and_then(Value::as_str).map(str::to_owned),
            extra_body: merged("extra_body"),
            quirks: merged("quirks"),
            extra_headers: merged("extra_headers")
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
                .collect(),
            context_window: own("context_window").and_then(super::schema::whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::Layers;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_models_own_settings_lie_over_the_general_ones() {
        let config = Config::from_layers(&Layers {
            user: json!({"llm_config": {
                "temperature": 0.1, "max_tokens": 100.0, "extra_body": {"a": {"x": 1}, "b": 1}, "extra_headers": {"X-A": "1"},
                "models": {"q/m:free": {
                    "temperature": 0.9, "reasoning_effort": "low", "extra_body": {"a": {"y": 2}}, "extra_headers": {"X-B": "2"},
                    "context_window": 4096,
                }},
            }}),
            ..Layers::default()
        })
        .unwrap();
        let own = config.request_settings("q/m:free");
        assert_eq!(
            (own.temperature, own.max_tokens, own.context_window),
            (Some(0.9), Some(100), Some(4096))
        );
        assert_eq!(own.reasoning_effort.as_deref(), Some("low"));
        assert_eq!(Value::Object(own.extra_body), json!({"a": {"x": 1, "y": 2}, "b": 1}));
        assert_eq!(
            own.extra_headers,
            [("X-A".into(), "1".into()), ("X-B".into(), "2".into())]
        );
        let other = config.request_settings("other");
        assert_eq!(
            (other.temperature, other.reasoning_effort, other.context_window),
            (Some(0.1), None, None)
        );
    }
}
