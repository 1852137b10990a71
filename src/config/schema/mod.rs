//! The schema: one table of keys, and the questions everything else asks of it.

mod kind;
mod row;
mod rows;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub use kind::{Kind, Range, whole};
pub(super) use kind::{is_header_name, is_header_value};
pub use row::{Fallback, Literal, Row, is_wildcard};
pub use rows::{SECTIONS, Section};

/// What the schema has at a path.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// A key.
    Key(&'static Row),
    /// A place inside the free table of this key.
    Inside(&'static Row),
    /// A table that holds keys; the path may be the root.
    Table,
    /// Nothing.
    Unknown,
}

/// Every row of the table, in the order of the document.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|section| section.rows)
}

/// What the schema has at the path of these segments.
#[must_use]
pub fn at<S: AsRef<str>>(path: &[S]) -> At {
    if path.is_empty() {
        return At::Table;
    }
    let mut found = At::Unknown;
    for row in rows() {
        let mut pattern = row.segments();
        let mut path = path.iter().map(AsRef::as_ref);
        let at = loop {
            match (pattern.next(), path.next()) {
                (None, None) => return At::Key(row),
                (None, Some(_)) if row.kind.is_map() => break At::Inside(row),
                (Some(_), None) => break At::Table,
                (Some(expected), Some(name)) if matches(expected, name) => {}
                _ => break At::Unknown,
            }
        };
        if matches!(found, At::Unknown) {
            found = at;
        }
    }
    found
}

/// The row of the key at `path`, or of the free table it lies in.
#[must_use]
pub fn row_at<S: AsRef<str>>(path: &[S]) -> Option<&'static Row> {
    match at(path) {
        At::Key(row) | At::Inside(row) => Some(row),
        At::Table | At::Unknown => None,
    }
}

/// Whether a segment of a row's path fits a name.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    if is_wildcard(pattern) {
        !name.is_empty()
    } else {
        pattern == name
    }
}

/// The segments that may follow `path`: names of keys and tables, wildcards in angle brackets, each once.
#[must_use]
pub fn children<S: AsRef<str>>(path: &[S]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for row in rows() {
        let mut pattern = row.segments();
        let leads = path
            .iter()
            .all(|name| pattern.next().is_some_and(|expected| matches(expected, name.as_ref())));
        if let Some(next) = pattern.next().filter(|_| leads)
            && !names.contains(&next)
        {
            names.push(next);
        }
    }
    names
}

/// The built-in configuration, the lowest layer.
#[must_use]
pub fn built_in() -> &'static Value {
    static BUILT_IN: LazyLock<Value> = LazyLock::new(|| {
        let mut root = Value::Object(Map::new());
        for row in rows() {
            if let Fallback::BuiltIn(literal) = row.fallback {
                super::value::insert(&mut root, &row.segments().collect::<Vec<_>>(), literal.to_value());
            }
        }
        root
    });
    &BUILT_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_configuration_is_the_documents() {
        let document = serde_json::json!({
            "index_file": "INDEX.md",
            "llm_config": {
                "api_key_env": "LLM_API_KEY",
                "retry_max_retries": 2,
                "retry_backoff_ms": [2000, 8000],
                "stream_retry_after_output": false,
            },
            "empty_response_retry_max_retries": 2,
            "empty_response_retry_backoff_ms": [500, 1000],
            "context_management": {
                "enabled": true,
                "tool_output_keep_rounds": 7,
                "tool_output_elide_over_chars": 1024,
                "trim_threshold_pct": 80,
            },
        });
        assert_eq!(built_in().to_string(), document.to_string());
    }

    #[test]
    fn every_row_is_whole() {
        let mut seen = std::collections::BTreeSet::new();
        for row in rows() {
            assert!(seen.insert(row.path), "{} is listed twice", row.path);
            assert!(row.doc.ends_with('.'), "{}: the doc line is no sentence", row.path);
            let example: Value = serde_json::from_str(row.example).unwrap_or_else(|e| panic!("{}: {e}", row.path));
            assert!(row.kind.accepts(&example), "{}: the example is refused", row.path);
            if let Some(literal) = row.fallback.literal() {
                assert!(
                    row.kind.accepts(&literal.to_value()),
                    "{}: the default is refused",
                    row.path
                );
                assert!(!row.is_pattern(), "{}: a pattern has no default", row.path);
            }
            for other in rows() {
                assert!(
                    !other.path.starts_with(&format!("{}.", row.path)),
                    "{} is a key and cannot hold {}",
                    row.path,
                    other.path
                );
            }
        }
    }

    #[test]
    fn paths_are_found_by_shape() {
        let at = |path: &str| at(&path.split('.').collect::<Vec<_>>());
        assert!(matches!(at("llm_config"), At::Table));
        assert!(matches!(at("llm_config.models.x"), At::Table));
        assert!(matches!(at("llm_config.timeout"), At::Key(row) if row.path == "llm_config.timeout"));
        assert!(matches!(at("models.worker"), At::Key(row) if row.path == "models.<role>"));
        assert!(matches!(at("services.tool.x"), At::Inside(row) if row.path == "services"));
        assert!(matches!(at("llm_config.extra_body.top_p"), At::Inside(_)));
        assert!(matches!(at("llm_config.timeout.x"), At::Unknown));
        assert!(matches!(at("llm_config.timeou"), At::Unknown));
        assert_eq!(
            children(&["tools"]),
            ["disabled", "confine_to_root", "output_chars", "bash"]
        );
        assert_eq!(children(&["profiles"]), ["<name>"]);
    }
}
