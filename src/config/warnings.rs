//! What the schema allows and what still cannot be meant: told once when a configuration is loaded, never an error.

use serde_json::Value;

use super::layers::Config;
use super::path::join;
use super::profile;
use super::schema::{self, Kind};
use crate::nearest::nearest;

/// Names that exist elsewhere in the program and that a configuration may refer to.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownNames<'a> {
    /// What may stand as `<role>` in `models.<role>`: the roles and their default keys.
    pub roles: &'a [&'a str],
    /// The tools there are; empty where that is not known yet.
    pub tools: &'a [&'a str],
}

impl Config {
    /// Settings that have no effect or cannot be meant, a sentence each.
    #[must_use]
    pub fn warnings(&self, known: KnownNames<'_>) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut models = vec![vec!["models"]];
        let profiles = profile::names(self);
        models.extend(profiles.iter().map(|&name| vec!["profiles", name, "models"]));
        for path in models {
            let names = self.value_at(&path).and_then(Value::as_object);
            for name in names.into_iter().flat_map(|map| map.keys()) {
                let key = join(&[&path[..], &[name]].concat());
                warnings.extend(unknown(&key, "a role", name, known.roles));
            }
        }
        for name in self.texts("fallback_profiles") {
            warnings.extend(unknown("fallback_profiles", "a profile", name, &profiles));
        }
        if !known.tools.is_empty() {
            for name in self.texts("tools.disabled") {
                warnings.extend(unknown("tools.disabled", "a tool", name, known.tools));
            }
        }
        if self.f64("tools.bash.timeout") > self.f64("tools.bash.max_timeout") {
            warnings.push(
                "`tools.bash.timeout` is above `tools.bash.max_timeout`, which therefore holds for every command"
                    .to_owned(),
            );
        }
        for row in schema::rows().filter(|row| row.kind == Kind::Variable && !row.is_pattern()) {
            if self
                .opt_str(row.path)
                .is_some_and(|name| !super::validate::is_variable_name(name))
            {
                warnings.push(format!(
                    "`{}` takes the name of an environment variable, and what is set cannot be one; if it is the key itself, \
                     put it into a variable and take it out of the configuration",
                    row.path
                ));
            }
        }
        warnings
    }
}

/// A warning, if `name` is none of `known`.
fn unknown(key: &str, what: &str, name: &str, known: &[&str]) -> Option<String> {
    if known.contains(&name) {
        return None;
    }
    let mut text = format!("`{key}`: \"{name}\" is not {what} and has no effect");
    if let Some(near) = nearest(name, known.iter().copied()) {
        text.push_str(&format!("; did you mean \"{near}\"?"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::layers::Layers;
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_no_effect_is_told() {
        let config = Config::from_layers(&Layers {
            user: json!({
                "models": {"wroker": "m", "default": "m", "direct": "m"},
                "profiles": {"local": {"models": {"explorre": "m"}}},
                "fallback_profiles": ["local", "lcal"],
                "tools": {"disabled": ["bash", "web-fetch"], "bash": {"timeout": 900}},
                "llm_config": {"api_key_env": "sk-123"},
            }),
            ..Layers::default()
        })
        .unwrap();
        let known = KnownNames {
            roles: &["direct", "worker", "explorer", "default"],
            tools: &["bash", "web_fetch"],
        };
        let warnings = config.warnings(known);
        assert_eq!(
            warnings[..5],
            [
                "`models.wroker`: \"wroker\" is not a role and has no effect; did you mean \"worker\"?",
                "`profiles.local.models.explorre`: \"explorre\" is not a role and has no effect; did you mean \"explorer\"?",
                "`fallback_profiles`: \"lcal\" is not a profile and has no effect; did you mean \"local\"?",
                "`tools.disabled`: \"web-fetch\" is not a tool and has no effect; did you mean \"web_fetch\"?",
                "`tools.bash.timeout` is above `tools.bash.max_timeout`, which therefore holds for every command",
            ]
        );
        assert!(warnings[5].starts_with("`llm_config.api_key_env` takes the name") && !warnings[5].contains("sk-123"));
        assert_eq!(warnings.len(), 6);
        assert_eq!(Config::defaults().warnings(known), Vec::<String>::new());
    }
}
