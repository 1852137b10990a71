//! Which model answers: eight steps in a fixed order, the first that names one wins.
//!
//! Pure: what the request, its options and the configuration say comes in, the choice and the step that made it go
//! out, so that it can be shown.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalog::RoleSpec;

/// The context window of a model that nobody says more of, in tokens.
pub const FALLBACK_CONTEXT_WINDOW: u64 = 128_000;

/// What one source says of models: the request's own service options, or the effective configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// The model of each role, and of any role under its default key.
    pub models: BTreeMap<String, String>,
    /// The model of every role that has none of its own.
    pub default_model: Option<String>,
}

impl ModelOptions {
    /// Reads `models` and `default_model` out of a table. What is not a non-empty text counts as not there: the
    /// configuration's schema refuses it, and options of a request are checked where they come in.
    #[must_use]
    pub fn from_value(table: &Value) -> Self {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let models = table.get("models").and_then(Value::as_object).map(|models| {
            models
                .iter()
                .filter_map(|(key, model)| Some((key.clone(), text(model)?)))
                .collect()
        });
        Self {
            models: models.unwrap_or_default(),
            default_model: table.get("default_model").and_then(text),
        }
    }
}

/// What a request says of its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// A model named for this request or this conversation, above everything else.
    pub model_override: Option<String>,
    /// What the request's own service options carry.
    pub options: ModelOptions,
}

/// Which kind of source named the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    /// The request itself.
    Override,
    /// A role's entry in `models`.
    Role,
    /// `default_model`.
    Default,
    /// The role's own last resort.
    Fallback,
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Override => "override",
            Self::Role => "role",
            Self::Default => "default",
            Self::Fallback => "fallback",
        })
    }
}

/// What a catalogue knows of a model; anything may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// How many tokens it can see.
    pub context_window: Option<u64>,
    /// How many tokens it can write at once.
    pub max_output_tokens: Option<u64>,
}

/// The model of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedModel {
    /// Its id.
    pub model: String,
    /// Which kind of source named it.
    pub source: ModelSource,
    /// Which of the eight steps it was.
    pub step: u8,
    /// The key it stands under: `model_override`, the key in `models`, `default_model`, or the fallback's own.
    pub key: String,
    /// How many tokens it can see; [`FALLBACK_CONTEXT_WINDOW`] where nobody says.
    pub context_window: u64,
    /// How many tokens it can write at once, where that is known.
    pub max_output_tokens: Option<u64>,
}

impl SelectedModel {
    /// What the step is, for a person.
    #[must_use]
    pub fn step_words(&self) -> String {
        let key = &self.key;
        match self.step {
            1 => "named for this conversation or request".to_owned(),
            2 | 3 => format!("the request's options, models.{key}"),
            4 | 5 => format!("the configuration, models.{key}"),
            6 => "the request's options, default_model".to_owned(),
            7 => "the configuration, default_model".to_owned(),
            _ => format!("the role's last resort, \"{key}\""),
        }
    }
}

/// The model for `request` in the role of `spec`, with `runtime` the effective configuration's word on models.
/// `limits` looks a model up in the catalogue; it is asked once, for the model that won.
#[must_use]
pub fn select_model(
    request: &ModelRequest,
    spec: &RoleSpec,
    runtime: &ModelOptions,
    limits: impl FnOnce(&str) -> ModelLimits,
) -> SelectedModel {
    let (options, role, shared) = (&request.options, spec.name, spec.default_model_key);
    let of = |source: &ModelOptions, key: &str| source.models.get(key).cloned();
    let chosen = |step, source, key: &str, model: String| (step, source, key.to_owned(), model);
    let named = |step, source, key, model: Option<String>| model.map(|model| chosen(step, source, key, model));
    let override_ = request.model_override.clone().filter(|model| !model.is_empty());
    let (step, source, key, model) = named(1, ModelSource::Override, "model_override", override_)
        .or_else(|| named(2, ModelSource::Role, role, of(options, role)))
        .or_else(|| named(3, ModelSource::Role, shared, of(options, shared)))
        .or_else(|| named(4, ModelSource::Role, role, of(runtime, role)))
        .or_else(|| named(5, ModelSource::Role, shared, of(runtime, shared)))
        .or_else(|| named(6, ModelSource::Default, "default_model", options.default_model.clone()))
        .or_else(|| named(7, ModelSource::Default, "default_model", runtime.default_model.clone()))
        .unwrap_or_else(|| chosen(8, ModelSource::Fallback, shared, shared.to_owned()));
    let limits = limits(&model);
    SelectedModel {
        context_window: limits.context_window.unwrap_or(FALLBACK_CONTEXT_WINDOW),
        max_output_tokens: limits.max_output_tokens,
        model,
        source,
        step,
        key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::{ROLES, Role};
    use serde_json::json;

    /// Sets exactly the steps of `mask` (bit 0 is step 1), each with a model named after it.
    fn set(mask: u32, role: &str, shared: &str) -> (ModelRequest, ModelOptions) {
        let has = |step: u32| (mask & (1 << (step - 1)) != 0).then(|| format!("m{step}"));
        let models = |own: u32, common: u32| {
            let entries = [(role.to_owned(), has(own)), (shared.to_owned(), has(common))];
            entries
                .into_iter()
                .filter_map(|(key, model)| Some((key, model?)))
                .collect()
        };
        let request = ModelRequest {
            model_override: has(1),
            options: ModelOptions {
                models: models(2, 3),
                default_model: has(6),
            },
        };
        let runtime = ModelOptions {
            models: models(4, 5),
            default_model: has(7),
        };
        (request, runtime)
    }

    #[test]
    fn the_first_step_that_names_a_model_wins_whatever_later_ones_say() {
        let table = [
            (1, ModelSource::Override, "model_override"),
            (2, ModelSource::Role, "ROLE"),
            (3, ModelSource::Role, "default"),
            (4, ModelSource::Role, "ROLE"),
            (5, ModelSource::Role, "default"),
            (6, ModelSource::Default, "default_model"),
            (7, ModelSource::Default, "default_model"),
        ];
        for spec in &ROLES {
            for mask in 0..128_u32 {
                let (request, runtime) = set(mask, spec.name, spec.default_model_key);
                let found = select_model(&request, spec, &runtime, |_| ModelLimits::default());
                match table.iter().find(|(step, ..)| mask & (1 << (step - 1)) != 0) {
                    Some((step, source, key)) => {
                        let key = if *key == "ROLE" { spec.name } else { key };
                        assert_eq!((u32::from(found.step), found.source), (*step, *source), "{mask:b}");
                        assert_eq!((found.key.as_str(), found.model), (key, format!("m{step}")), "{mask:b}");
                    }
                    None => {
                        assert_eq!((found.step, found.source), (8, ModelSource::Fallback));
                        assert_eq!((found.model.as_str(), found.key.as_str()), ("default", "default"));
                    }
                }
            }
        }
    }

    #[test]
    fn the_catalogue_is_asked_for_the_winner() {
        let (request, runtime) = set(0b100_0000, "direct", "default");
        let spec = Role::Direct.spec();
        let found = select_model(&request, spec, &runtime, |model| ModelLimits {
            context_window: (model == "m7").then_some(32_768),
            max_output_tokens: Some(4096),
        });
        assert_eq!((found.context_window, found.max_output_tokens), (32_768, Some(4096)));
        let unknown = select_model(&request, spec, &runtime, |_| ModelLimits::default());
        assert_eq!((unknown.context_window, unknown.max_output_tokens), (128_000, None));
    }

    #[test]
    fn options_are_read_leniently() {
        let options = ModelOptions::from_value(&json!({
            "models": {"worker": "w", "explorer": 5, "direct": ""}, "default_model": null, "other": 1,
        }));
        assert_eq!(
            options.models.into_iter().collect::<Vec<_>>(),
            [("worker".into(), "w".into())]
        );
        assert_eq!(options.default_model, None);
        assert_eq!(ModelOptions::from_value(&Value::Null), ModelOptions::default());
    }
}
