//! The keys of the configuration and their values as candidates.

use super::rank::Item;
use crate::config::{Config, DottedPath, settable, values};

/// The longest value shown beside a key, in characters.
const HINT_CHARS: usize = 40;

/// The keys that `/config set` may change, each with what holds now and its layer. `names` gives the names to offer
/// for a wildcard of the table: `<role>`, `<model>`, `<name>` (a profile).
#[must_use]
pub fn config_keys(config: &Config, names: &dyn Fn(&str) -> Vec<String>) -> Vec<Item> {
    let item = |entry: crate::config::Entry| {
        let value = shorten(&entry.value_words());
        Item::new("config_path", entry.path.to_string()).with_hint(format!("{value} [{}]", entry.layer))
    };
    settable(config, names).into_iter().map(item).collect()
}

/// The values worth offering for a key; none where the key does not exist.
#[must_use]
pub fn config_values(config: &Config, key: &str, names: &dyn Fn(&str) -> Vec<String>) -> Vec<Item> {
    let Ok(path) = DottedPath::parse(key) else {
        return Vec::new();
    };
    values(config, &path, names)
        .into_iter()
        .map(|value| Item::new("value", value))
        .collect()
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(HINT_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(HINT_CHARS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ranker;
    use super::*;

    #[test]
    fn keys_come_with_what_holds_now() {
        let config = Config::defaults();
        let keys = config_keys(&config, &|_| vec!["worker".to_owned()]);
        let found = Ranker::default().rank("retry_max", &keys, 1, |item| &item.text)[0].clone();
        assert_eq!(found.text, "llm_config.retry_max_retries");
        assert_eq!(found.hint.as_deref(), Some("2 [default]"));
        let budget = keys.iter().find(|item| item.text == "tool_step_budget").unwrap();
        assert_eq!(budget.hint.as_deref(), Some("(unlimited) [unset]"));
        let values = config_values(&config, "context_management.enabled", &|_| Vec::new());
        assert_eq!(values, [Item::new("value", "true"), Item::new("value", "false")]);
        assert_eq!(config_values(&config, "a..b", &|_| Vec::new()), []);
    }
}
