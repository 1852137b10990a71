//! What a key costs while completing: 10,000 candidates, the typed text growing; and what loading the configuration
//! costs. The bound for a key is 1 ms.

use agent_smith_core::completion::{Ranker, place};
use agent_smith_core::config::{Config, load, settable};
use serde_json::Value;

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench"
)]
unsafe extern "C" {}

fn main() {
    divan::main();
}

/// Paths as a large repository has them.
fn paths() -> Vec<String> {
    let dirs = [
        "src/config",
        "src/conversation/window",
        "tests/suite/fixtures",
        "docs",
        "lua/agent_smith/views",
    ];
    let names = [
        "schema",
        "layers",
        "completion_menu",
        "turn_engine",
        "provider_quirks",
        "README",
        "history",
    ];
    let endings = ["rs", "lua", "md", "json"];
    (0..10_000)
        .map(|i| {
            let (dir, name) = (dirs[i % dirs.len()], names[i / 7 % names.len()]);
            format!(
                "{dir}/part_{:03}/{name}_{i}.{}",
                i % 211,
                endings[i / 3 % endings.len()]
            )
        })
        .collect()
}

#[divan::bench(args = ["s", "src/", "se", "compl", "turn_engine_4", "zzz", "srccontur99"])]
fn a_key_over_10_000_paths(bencher: divan::Bencher<'_, '_>, typed: &str) {
    let paths = paths();
    let mut ranker = Ranker::default();
    bencher.bench_local(|| ranker.rank(divan::black_box(typed), &paths, 50, |path| path).len());
}

/// A third of the names with letters outside ASCII, which take a slower way.
#[divan::bench(args = ["s", "se", "compl"])]
fn a_key_over_10_000_foreign_paths(bencher: divan::Bencher<'_, '_>, typed: &str) {
    let mut paths = paths();
    for path in paths.iter_mut().step_by(3) {
        path.push('é');
    }
    let mut ranker = Ranker::default();
    bencher.bench_local(|| ranker.rank(divan::black_box(typed), &paths, 50, |path| path).len());
}

#[divan::bench]
fn a_key_in_a_config_path(bencher: divan::Bencher<'_, '_>) {
    let config = Config::defaults();
    let mut ranker = Ranker::default();
    let line = "/config set llm_config.tim";
    bencher.bench_local(|| {
        let entries = settable(&config, &|_| vec!["direct".to_owned(), "worker".to_owned()]);
        let texts: Vec<String> = entries.iter().map(|entry| entry.path.to_string()).collect();
        let typed = match place(line, line.len()) {
            agent_smith_core::completion::Place::Argument { typed, .. } => typed,
            _ => "",
        };
        ranker.rank(typed, &texts, 50, |text| text).len()
    });
}

#[divan::bench]
fn loading_the_configuration(bencher: divan::Bencher<'_, '_>) {
    let file = std::env::temp_dir().join(format!("agent_smith_bench_{}.json", std::process::id()));
    let text = r#"{"default_model": "m", "models": {"worker": "w"}, "llm_config": {"api_url": "http://127.0.0.1:1/v1", "timeout": 60}}"#;
    if std::fs::write(&file, text).is_err() {
        return;
    }
    bencher.bench_local(|| load(&file, Value::Null, Value::Null, None).problems.len());
    let _ = std::fs::remove_file(&file);
}
