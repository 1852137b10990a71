//! What is generated from the table: the document, and the JSON Schema beside our own validation.

use agent_smith_core::config::schema::{Fallback, rows};
use agent_smith_core::config::{Origin, coerce, is_overridable, json_schema, markdown, set, validate};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn config_docs_are_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/CONFIG.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, markdown()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == markdown(),
        "docs/CONFIG.md is not what the table says; write it anew with UPDATE_DOCS=1 cargo test config_docs"
    );
}

#[test]
fn every_set_command_of_the_document_works() {
    let document = markdown();
    let mut count = 0;
    for line in document.lines().filter_map(|line| line.strip_prefix("/config set ")) {
        // A quoted name in the key may not hold a blank here, so the first blank ends the key.
        let (path, value) = line.split_once(' ').unwrap();
        set(&Value::Null, path, value).unwrap_or_else(|error| panic!("{line}: {error}"));
        count += 1;
    }
    assert_eq!(count, rows().filter(|row| row.overridable).count());
}

#[test]
fn the_allowlist_holds_what_the_document_lists_and_no_table() {
    let path = |text: &str| agent_smith_core::config::DottedPath::parse(text).unwrap();
    for key in [
        "default_model",
        "index_file",
        "active_role",
        "tool_step_budget",
        "models.direct",
        "models.anything",
        "llm_config.api_key_env",
        "llm_config.retry_max_retries",
        "llm_config.retry_backoff_ms",
        "llm_config.stream_retry_after_output",
        "llm_config.timeout",
        "llm_config.connect_timeout",
        "llm_config.send_timeout",
        "llm_config.recv_timeout",
        "llm_config.stream_stall_timeout",
        "context_management.enabled",
        "context_management.tool_output_keep_rounds",
        "context_management.tool_output_elide_over_chars",
        "context_management.trim_threshold_pct",
        "empty_response_retry_max_retries",
        "empty_response_retry_backoff_ms",
    ] {
        assert!(is_overridable(&path(key)), "{key}");
    }
    for key in [
        "services",
        "services.tool",
        "llm_config",
        "models",
        "llm_config.timout",
        "nothing",
        "$schema",
    ] {
        assert!(!is_overridable(&path(key)), "{key}");
    }
}

/// A JSON value of any shape, small.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..200).prop_map(Value::from),
        (-1.0_f64..200.0).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "x",
            "direct",
            "orchestrator",
            "http://h/v1",
            "https://",
            "ftp://h",
            "../x",
            "a/..b",
            "/x",
            "C:x",
            "ctrl-c",
            "ALT+h",
            "ALT+",
            "a b",
            "\u{e9}",
            "x\ty",
            "x\ny",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-zX -]{0,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A configuration with one to three keys of the table, or slips of them, each with its example or with any value.
fn any_config() -> impl Strategy<Value = Value> {
    let paths: Vec<(String, Value)> = rows()
        .map(|row| (row.path.to_owned(), serde_json::from_str::<Value>(row.example).unwrap()))
        .flat_map(|(path, example)| [(path.clone(), example.clone()), (format!("{path}x"), example)])
        .collect();
    let one = (
        prop::sample::select(paths),
        prop::option::of(any_value()),
        "[a-z:./]{0,3}",
    );
    prop::collection::vec(one, 1..4).prop_map(|entries| {
        let mut config = json!({});
        for ((path, example), value, name) in entries {
            let mut place = &mut config;
            for segment in path.split('.') {
                let segment = if segment.starts_with('<') {
                    name.clone()
                } else {
                    segment.to_owned()
                };
                if !place.is_object() {
                    *place = json!({});
                }
                place = place.as_object_mut().unwrap().entry(segment).or_insert(json!({}));
            }
            *place = value.unwrap_or(example);
        }
        config
    })
}

/// Our JSON Schema, compiled.
struct Checker {
    schemas: boon::Schemas,
    root: boon::SchemaIndex,
}

impl Checker {
    fn new() -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("config.json", json_schema()).unwrap();
        let root = compiler.compile("config.json", &mut schemas).unwrap();
        Self { schemas, root }
    }

    fn is_valid(&self, config: &Value) -> bool {
        self.schemas.validate(config, self.root).is_ok()
    }
}

#[test]
fn the_json_schema_takes_every_example_and_default() {
    let checker = Checker::new();
    for row in rows() {
        let example: Value = serde_json::from_str(row.example).unwrap();
        let default = match row.fallback {
            Fallback::BuiltIn(literal) | Fallback::AtUse(literal) => Some(literal.to_value()),
            Fallback::Unset(_) => None,
        };
        for value in std::iter::once(example).chain(default) {
            let config = row
                .segments()
                .rev()
                .fold(value, |value, segment| json!({segment: value}));
            assert!(checker.is_valid(&config), "{config}");
            assert!(validate(&config, &|_| Origin::Candidate).is_empty(), "{config}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn the_json_schema_and_the_validation_agree(config in any_config()) {
        thread_local!(static CHECKER: Checker = Checker::new());
        let ours = validate(&config, &|_| Origin::Candidate);
        let theirs = CHECKER.with(|checker| checker.is_valid(&config));
        prop_assert_eq!(ours.is_empty(), theirs, "{}: {:?}", config, ours);
    }

    #[test]
    fn any_typed_value_is_taken_or_refused_but_never_panics(text in "\\PC*", row in prop::sample::select(rows().collect::<Vec<_>>())) {
        let _ = coerce(&text);
        if let Ok(change) = set(&Value::Null, &row.path.replace(['<', '>'], ""), &text) {
            prop_assert!(validate(&change.patch, &|_| Origin::Candidate).is_empty());
        }
    }
}
