//! The four layers, from the file on disk to a typed value, as the other rooms use them.

use agent_smith_core::config::{Config, Layer, Layers, load, load_user_file};
use agent_smith_core::error::AgentError;
use serde_json::{Value, json};

#[test]
fn each_layer_beats_the_one_below_and_is_named() {
    let layers = Layers {
        user_file: None,
        user: json!({"llm_config": {"timeout": 1, "connect_timeout": 1, "send_timeout": 1}}),
        patch: json!({"llm_config": {"connect_timeout": 2, "send_timeout": 2}, "tool_step_budget": 7.0}),
        ephemeral: json!({"llm_config": {"send_timeout": 3}}),
    };
    let config = Config::from_layers(&layers).unwrap();
    let table = [
        ("llm_config.timeout", 1.0, Layer::User),
        ("llm_config.connect_timeout", 2.0, Layer::Override),
        ("llm_config.send_timeout", 3.0, Layer::Ephemeral),
        ("llm_config.recv_timeout", 0.5, Layer::Default),
        ("llm_config.retry_max_retries", 2.0, Layer::Default),
        ("tool_step_budget", 7.0, Layer::Override),
    ];
    for (path, value, layer) in table {
        assert!((config.f64(path) - value).abs() < f64::EPSILON, "{path}");
        assert_eq!(config.layer_of(path), layer, "{path}");
    }
    assert_eq!(
        config.value("llm_config.recv_timeout"),
        None,
        "a default applied at use is in no layer"
    );
    assert_eq!(config.value("llm_config.retry_max_retries"), Some(&json!(2)));
    assert_eq!(config.layer_of("limits.max_cost_usd"), Layer::Unset);
    assert_eq!(config.opt_u64("tool_step_budget"), Some(7));
    assert_eq!(Config::defaults().opt_u64("tool_step_budget"), None, "unlimited");
}

#[test]
fn the_defaults_are_the_documents_tables() {
    let config = Config::defaults();
    for (key, default) in [
        ("timeout", 600.0),
        ("connect_timeout", 120.0),
        ("send_timeout", 30.0),
        ("recv_timeout", 0.5),
        ("stream_stall_timeout", 120.0),
    ] {
        assert!(
            (config.f64(&format!("llm_config.{key}")) - default).abs() < f64::EPSILON,
            "{key}"
        );
    }
    assert_eq!(config.u64("llm_config.retry_max_retries"), 2);
    assert_eq!(config.numbers("llm_config.retry_backoff_ms"), [2000, 8000]);
    assert!(!config.bool("llm_config.stream_retry_after_output"));
    assert_eq!(config.u64("empty_response_retry_max_retries"), 2);
    assert_eq!(config.numbers("empty_response_retry_backoff_ms"), [500, 1000]);
    assert_eq!(config.u64("llm_config.retry_after_max_ms"), 60_000);
    assert_eq!(config.u64("context_management.elide_step_rounds"), 4);
    assert_eq!(config.str("active_role"), "direct");
    assert_eq!(config.str("keys.cancel"), "ctrl-c");
    assert_eq!(config.str("keys.conversation"), "ALT+h");
    assert_eq!(config.str("keys.inspect"), "ALT+i");
    assert_eq!(config.opt_str("llm_config.api_url"), None);
    assert!(config.texts("tools.disabled").is_empty());
}

#[test]
fn the_error_names_the_layer_the_key_and_the_nearest() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("agent_smith.json");
    std::fs::write(&file, r#"{"llm_config": {"timout": 5}}"#).unwrap();
    let layers = Layers {
        user_file: Some(file.clone()),
        user: load_user_file(&file).unwrap(),
        patch: json!({"context_management": {"trim_threshold_pct": 0}}),
        ephemeral: json!({"active_role": "worker"}),
    };
    let error = AgentError::from(Config::from_layers(&layers).unwrap_err());
    let message = error.message.replace(&file.display().to_string(), "FILE");
    assert_eq!(
        message,
        "FILE: `llm_config.timout` is not a key; did you mean `llm_config.timeout`?; \
         the overrides kept by /config set: `context_management.trim_threshold_pct` must be a number above 0 and at most \
         100, but is 0; the settings of this session: `active_role` must be \"direct\" or \"orchestrator\", but is \"worker\""
    );
    assert_eq!((error.kind.as_str(), &*error.code), ("schema", "unknown_key"));
    let data = error.data.unwrap();
    assert_eq!(
        data["keys"],
        json!([
            "llm_config.timout",
            "context_management.trim_threshold_pct",
            "active_role"
        ])
    );
    assert_eq!(data["file"], json!(file.to_str().unwrap()));
}

#[test]
fn a_broken_file_is_told_with_its_place_and_the_defaults_hold() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("agent_smith.json");
    std::fs::write(&file, "{\n  \"default_model\": \"a\"\n  \"x\": 1\n}").unwrap();
    let loaded = load(&file, Value::Null, Value::Null, None);
    assert_eq!(loaded.config.snapshot(), Config::defaults().snapshot());
    let error = AgentError::from(&loaded.problems[0]);
    assert_eq!(
        (error.message.as_str(), &*error.code),
        (&*format!("{}:3:3: expected `,` or `}}`", file.display()), "config_json")
    );
    let data = error.data.unwrap();
    assert_eq!((&data["line"], &data["column"]), (&json!(3), &json!(3)));
}
