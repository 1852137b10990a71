//! The configuration as a list: what `/config` shows, and what completion offers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::layers::{Config, Layer};
use super::path::{DottedPath, join};
use super::schema::{self, Kind, Row, is_wildcard};
use super::validate::shown;

/// One key with what holds for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub path: DottedPath,
    /// Its row of the table.
    pub row: &'static Row,
    /// What holds, secrets masked; `None` where nothing does.
    pub value: Option<Value>,
    /// The layer it comes from.
    pub layer: Layer,
}

impl Entry {
    /// What holds, in one line: JSON, or what an absent value means.
    #[must_use]
    pub fn value_words(&self) -> String {
        match (&self.value, self.row.fallback) {
            (Some(value), _) => value.to_string(),
            (None, schema::Fallback::Unset(words)) => format!("({words})"),
            (None, _) => "(unset)".to_owned(),
        }
    }
}

/// The entry of one key; `None` where the schema has no key there.
#[must_use]
pub fn entry(config: &Config, path: &DottedPath) -> Option<Entry> {
    let row = schema::row_at(path.segments())?;
    Some(Entry {
        value: config.effective(path).map(|value| shown(row, &value).into_owned()),
        layer: config.layer_at(path.segments()),
        row,
        path: path.clone(),
    })
}

/// Every key with a value or a meaning, in the order of the table. Keys with a name the user chooses appear once for
/// each name in use.
#[must_use]
pub fn entries(config: &Config) -> Vec<Entry> {
    let in_use = |_: &str, parent: &[String]| {
        let table = config.value_at(parent).and_then(Value::as_object);
        table.map(|map| map.keys().cloned().collect()).unwrap_or_default()
    };
    let all = schema::rows().flat_map(|row| expand(row, &in_use).into_iter().map(move |path| (row, path)));
    all.filter(|(row, path)| !row.is_pattern() || config.value_at(path.segments()).is_some())
        .filter_map(|(_, path)| entry(config, &path))
        .collect()
}

/// The keys that `/config set` may change, for completion. `names` gives what to offer for a wildcard (`<role>`,
/// `<model>`, `<name>`); names in use are offered besides.
#[must_use]
pub fn settable(config: &Config, names: &dyn Fn(&str) -> Vec<String>) -> Vec<Entry> {
    let offered = |wildcard: &str, parent: &[String]| {
        let used = config.value_at(parent).and_then(Value::as_object);
        let used = used
            .map(|map| map.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default();
        let all: BTreeSet<String> = names(wildcard)
            .into_iter()
            .chain(used)
            .filter(|name| !name.is_empty())
            .collect();
        all.into_iter().collect()
    };
    schema::rows()
        .filter(|row| row.overridable)
        .flat_map(|row| expand(row, &offered))
        .filter_map(|path| entry(config, &path))
        .collect()
}

/// What to offer for the value of a key: its choices, what holds now, and what would hold by default. `names` gives
/// the ids of models (`<model>`) and the names of profiles (`<name>`).
#[must_use]
pub fn values(config: &Config, path: &DottedPath, names: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let Some(entry) = entry(config, path) else {
        return Vec::new();
    };
    let mut values: Vec<String> = entry
        .row
        .kind
        .choices()
        .iter()
        .map(|&choice| choice.to_owned())
        .collect();
    match entry.row.kind {
        Kind::Model => values.extend(names("<model>")),
        Kind::Profile => values.extend(super::profile::names(config).into_iter().map(str::to_owned)),
        _ => {}
    }
    let default = entry.row.fallback.literal().map(schema::Literal::to_value);
    for value in entry.value.into_iter().chain(default) {
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        if !values.contains(&text) {
            values.push(text);
        }
    }
    values
}

/// The paths of a row: one, or one for each combination of names that `names` gives for its wildcards.
fn expand(row: &Row, names: &dyn Fn(&str, &[String]) -> Vec<String>) -> Vec<DottedPath> {
    let mut paths: Vec<Vec<String>> = vec![Vec::new()];
    for segment in row.segments() {
        paths = paths
            .into_iter()
            .flat_map(|path| {
                let next = if is_wildcard(segment) {
                    names(segment, &path)
                } else {
                    vec![segment.to_owned()]
                };
                next.into_iter().map(move |name| {
                    let mut path = path.clone();
                    path.push(name);
                    path
                })
            })
            .collect();
    }
    paths.into_iter().filter_map(DottedPath::from_segments).collect()
}

/// Entries whose key or doc line holds `text`, for `/config <text>`.
#[must_use]
pub fn find<'a>(entries: &'a [Entry], text: &str) -> Vec<&'a Entry> {
    let text = text.to_lowercase();
    let holds = |entry: &&Entry| join(entry.path.segments()).to_lowercase().contains(&text);
    let by_path: Vec<&Entry> = entries.iter().filter(holds).collect();
    if by_path.is_empty() {
        entries
            .iter()
            .filter(|entry| entry.row.doc.to_lowercase().contains(&text))
            .collect()
    } else {
        by_path
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::Layers;
    use super::*;
    use serde_json::json;

    fn config() -> Config {
        Config::from_layers(&Layers {
            user: json!({
                "llm_config": {
                    "extra_headers": {"Authorization": "Bearer secret"},
                    "models": {"a/b:c": {"temperature": 0.5}},
                },
                "profiles": {"local": {"api_url": "http://me:pw@h/v1"}},
            }),
            patch: json!({"models": {"worker": "w"}}),
            ..Layers::default()
        })
        .unwrap()
    }

    #[test]
    fn every_key_is_listed_with_its_layer_and_no_secret() {
        let entries = entries(&config());
        let line = |path: &str| {
            let entry = entries.iter().find(|entry| entry.path.to_string() == path).unwrap();
            format!("{} [{}]", entry.value_words(), entry.layer)
        };
        assert_eq!(line("index_file"), "\"INDEX.md\" [default]");
        assert_eq!(line("llm_config.timeout"), "600 [default]");
        assert_eq!(line("tool_step_budget"), "(unlimited) [unset]");
        assert_eq!(line("models.worker"), "\"w\" [/config set]");
        assert_eq!(line(r#"llm_config.models."a/b:c".temperature"#), "0.5 [user file]");
        assert_eq!(line("llm_config.extra_headers"), r#"{"Authorization":"…"} [user file]"#);
        assert_eq!(line("profiles.local.api_url"), r#""http://…@h/v1" [user file]"#);
        let plain = schema::rows().filter(|row| !row.is_pattern()).count();
        assert_eq!(entries.len(), plain + 3, "one a plain key, one a name in use");
        assert_eq!(find(&entries, "elide_step").len(), 1);
        assert!(!find(&entries, "certificate").is_empty(), "found by the doc line");
    }

    #[test]
    fn completion_offers_keys_for_names_known_and_in_use() {
        let names = |wildcard: &str| match wildcard {
            "<role>" => vec!["direct".to_owned(), "worker".to_owned()],
            "<model>" => vec!["m1".to_owned()],
            _ => Vec::new(),
        };
        let paths: Vec<String> = settable(&config(), &names)
            .iter()
            .map(|entry| entry.path.to_string())
            .collect();
        for path in [
            "models.direct",
            "models.worker",
            "llm_config.models.m1.temperature",
            r#"llm_config.models."a/b:c".max_tokens"#,
            "profiles.local.models.direct",
            "context_management.enabled",
        ] {
            assert!(paths.contains(&path.to_owned()), "{path}");
        }
        assert!(!paths.iter().any(|path| path.starts_with("services")));
        let values = |path: &str| values(&config(), &DottedPath::parse(path).unwrap(), &names);
        assert_eq!(values("active_role"), ["direct", "orchestrator"]);
        assert_eq!(values("context_management.enabled"), ["true", "false"]);
        assert_eq!(values("models.worker"), ["m1", "w"]);
        assert_eq!(values("profile"), ["local"]);
        assert_eq!(values("llm_config.timeout"), ["600"]);
        assert_eq!(values("nothing"), Vec::<String>::new());
    }
}
