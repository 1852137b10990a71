//! From a file and the kept overrides to a configuration that always holds, whatever is wrong with them.

use std::path::Path;

use serde_json::Value;

use super::error::ConfigError;
use super::file::load_user_file;
use super::layers::{Config, Layers};
use super::validate::valid_part;

/// A configuration to go on with, and what was wrong on the way to it.
#[derive(Debug)]
pub struct Loaded {
    /// What holds now.
    pub config: Config,
    /// What was not taken, and why; empty when all is well. A shell tells these and goes on, `exec` ends with the
    /// first.
    pub problems: Vec<ConfigError>,
}

/// Loads the layers. Reads one file and nothing else.
///
/// What is wrong never stops the caller. Where the user's file is bad, what it said when it was `last_good` holds;
/// before there was a good one, its valid part does. Kept overrides that a newer or older program does not know are
/// left out one by one. A profile that does not exist is left out.
#[must_use]
pub fn load(user_file: &Path, patch: Value, ephemeral: Value, last_good: Option<&Config>) -> Loaded {
    let mut problems = Vec::new();
    let mut layers = Layers {
        user_file: Some(user_file.to_owned()),
        user: Value::Null,
        patch,
        ephemeral,
    };
    let old_user = || last_good.map_or(Value::Null, |config| config.layers().user.clone());
    match load_user_file(user_file) {
        Ok(user) => layers.user = user,
        Err(error) => {
            problems.push(error);
            layers.user = old_user();
        }
    }
    let config = match Config::from_layers(&layers) {
        Ok(config) => config,
        Err(error) => {
            problems.push(error);
            mend(&mut layers, last_good, &old_user);
            Config::from_layers(&layers).unwrap_or_else(|error| {
                // Layers that are each valid and whose sum is not: none but the defaults can be trusted.
                problems.push(error);
                Config::defaults()
            })
        }
    };
    let profile = config.opt_str("profile").map(str::to_owned);
    let config = config.with_profile(profile.as_deref()).unwrap_or_else(|error| {
        problems.push(error);
        config
    });
    Loaded { config, problems }
}

/// Takes out of each layer what the schema does not allow.
fn mend(layers: &mut Layers, last_good: Option<&Config>, old_user: &dyn Fn() -> Value) {
    let valid = |layer: &Value| {
        if layer.is_null() {
            Value::Null
        } else {
            valid_part(layer)
        }
    };
    let user = valid(&layers.user);
    if user != layers.user {
        layers.user = if last_good.is_some() { old_user() } else { user };
    }
    layers.patch = valid(&layers.patch);
    layers.ephemeral = valid(&layers.ephemeral);
}

#[cfg(test)]
mod tests {
    use super::super::layers::Layer;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bad_file_leaves_the_last_good_layers() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("agent_smith.json");
        let good = r#"{"default_model": "a", "llm_config": {"timeout": 5}}"#;
        std::fs::write(&file, good).unwrap();
        let patch = json!({"models": {"worker": "w"}});
        let first = load(&file, patch.clone(), Value::Null, None);
        assert!(first.problems.is_empty(), "{:?}", first.problems);
        for bad in ["{", r#"{"default_model": 5}"#, r#"{"defualt_model": "b"}"#] {
            std::fs::write(&file, bad).unwrap();
            let again = load(&file, patch.clone(), Value::Null, Some(&first.config));
            assert_eq!(again.problems.len(), 1, "{bad}");
            assert_eq!(again.config.snapshot(), first.config.snapshot(), "{bad}");
        }
    }

    #[test]
    fn the_valid_part_of_a_bad_file_holds_at_the_first_start() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("agent_smith.json");
        let bad = r#"{"default_model": "a", "llm_config": {"api_url": "http://x/v1", "timeout": "no"}}"#;
        std::fs::write(&file, bad).unwrap();
        let loaded = load(&file, Value::Null, Value::Null, None);
        assert_eq!(loaded.problems.len(), 1);
        assert_eq!(loaded.config.opt_str("llm_config.api_url"), Some("http://x/v1"));
        assert!((loaded.config.f64("llm_config.timeout") - 600.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_kept_override_that_nobody_knows_is_left_out_alone() {
        let home = tempfile::tempdir().unwrap();
        let patch = json!({"default_model": "a", "from_the_future": 1});
        let loaded = load(&home.path().join("none.json"), patch, json!({"profile": "gone"}), None);
        let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "the overrides kept by /config set: `from_the_future` is not a key",
                "there is no profile \"gone\"; none is defined under `profiles`",
            ]
        );
        assert_eq!(loaded.config.layer_of("default_model"), Layer::Override);
    }
}
