//! What the agent costs besides its model: `cargo bench --bench exec [-- REPEATS]`.
//!
//! A mock server answers at once, so that everything measured is the client's own work. Each figure is taken for
//! `agent-smith exec` and for `exec/null_client.py`, the least an agent can do, in turn and in one run; what counts is the
//! ratio or the difference, never a time by itself. Needs `python3` and `bash`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench fails as a test does, and prints"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

#[path = "exec/mock.rs"]
mod mock;

use mock::{Mock, Scenario};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench"
)]
unsafe extern "C" {}

/// One run of one client.
#[derive(Clone, Debug)]
struct Run {
    start_ms: f64,
    gap_ms: f64,
    trend: f64,
    wall_ms: f64,
    cpu_ms: f64,
    exit_ms: f64,
    peak_mb: f64,
    first_bytes: usize,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        f64::NAN
    } else {
        values[values.len() / 2]
    }
}

fn children_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = |t: nix::sys::time::TimeVal| {
        Duration::new(
            u64::try_from(t.tv_sec()).unwrap(),
            u32::try_from(t.tv_usec()).unwrap() * 1000,
        )
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// The high-water mark of a process's resident memory, in megabytes.
fn peak_mb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn run(mock: &Mock, command: &mut Command, scenario: Scenario) -> Run {
    mock.play(scenario);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let cpu = children_cpu();
    let started = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut peak: f64 = 0.0;
    let mut sampled = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if sampled.elapsed() > Duration::from_millis(10) {
            peak = peak_mb(child.id()).unwrap_or(0.0).max(peak);
            sampled = Instant::now();
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    let ended = Instant::now();
    assert!(status.success(), "{command:?} ended with {status}");
    let stamps = mock.stamps();
    assert_eq!(stamps.len(), scenario.rounds + 1, "{command:?}");
    let gaps: Vec<_> = stamps
        .windows(2)
        .map(|pair| ms(pair[1].arrived - pair[0].answered))
        .collect();
    let tenth = (gaps.len() / 10).max(1).min(gaps.len());
    Run {
        start_ms: ms(stamps[0].arrived - started),
        trend: median(gaps[gaps.len() - tenth..].to_vec()) / median(gaps[..tenth].to_vec()),
        gap_ms: median(gaps),
        wall_ms: ms(ended - started),
        cpu_ms: ms(children_cpu() - cpu),
        exit_ms: ms(ended - stamps.last().unwrap().answered),
        peak_mb: peak,
        first_bytes: stamps[0].bytes,
    }
}

fn row(name: &str, runs: &[Run], pick: fn(&Run) -> f64) -> f64 {
    let value = median(runs.iter().map(pick).collect());
    print!(" {name} {value:9.2} |");
    value
}

/// The system's Python, not a version manager's wrapper, which would be slow to start and make us look good.
fn python_program() -> &'static str {
    if Path::new("/usr/bin/python3").exists() {
        "/usr/bin/python3"
    } else {
        "python3"
    }
}

fn compare(title: &str, scenario: Scenario, repeats: usize, mock: &Mock, home: &Path) {
    let url = format!("http://{}/v1", mock.address);
    let null_script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/exec/null_client.py");
    let (mut ours, mut null) = (Vec::new(), Vec::new());
    for _ in 0..=repeats {
        let mut smith = Command::new(env!("CARGO_BIN_EXE_agent-smith"));
        smith
            .args(["exec", "--new", "Please do the rounds."])
            .env("HOME", home)
            .current_dir(home);
        smith
            .env("LLM_API_KEY", "dummy")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME");
        ours.push(run(mock, &mut smith, scenario));
        let mut python = Command::new(python_program());
        python.args(["-S", "-E"]);
        python
            .arg(&null_script)
            .args([&url, "Please do the rounds."])
            .current_dir(home);
        null.push(run(mock, &mut python, scenario));
    }
    // The first pair warms the caches.
    let (ours, null) = (&ours[1..], &null[1..]);
    println!("{title} ({repeats} runs each, medians)");
    type Pick = fn(&Run) -> f64;
    let figures: [(&str, Pick); 8] = [
        ("start to first request, ms", |run| run.start_ms),
        ("gap, ms", |run| run.gap_ms),
        ("trend of the gap", |run| run.trend),
        ("wall, ms", |run| run.wall_ms),
        ("CPU with children, ms", |run| run.cpu_ms),
        ("exit, ms", |run| run.exit_ms),
        ("peak RSS, MB", |run| run.peak_mb),
        ("first request, bytes", |run| run.first_bytes as f64),
    ];
    for (name, pick) in figures.into_iter().filter(|(_, pick)| !pick(&ours[0]).is_nan()) {
        print!("  {name:28}|");
        let our = row("agent-smith", ours, pick);
        let their = row("null client", null, pick);
        println!(" ratio {:6.2} | difference {:8.2}", our / their, our - their);
    }
}

fn main() {
    let repeats = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next()
        .unwrap_or(5);
    let home = tempfile::tempdir().unwrap();
    let mock = Mock::start();
    let config = home.path().join(".config/lilush");
    std::fs::create_dir_all(&config).unwrap();
    let settings = serde_json::json!({"default_model": "mock-model",
        "llm_config": {"api_url": format!("http://{}/v1", mock.address)}});
    std::fs::write(config.join("agent_smith.json"), settings.to_string()).unwrap();
    compare(
        "1 round, 8 chunks",
        Scenario { rounds: 1, chunks: 8 },
        repeats * 2,
        &mock,
        home.path(),
    );
    compare(
        "20 rounds",
        Scenario { rounds: 20, chunks: 8 },
        repeats,
        &mock,
        home.path(),
    );
    compare(
        "100 rounds",
        Scenario { rounds: 100, chunks: 8 },
        repeats,
        &mock,
        home.path(),
    );
    compare(
        "300 rounds",
        Scenario { rounds: 300, chunks: 8 },
        repeats.min(3),
        &mock,
        home.path(),
    );
    compare(
        "20,000 chunks",
        Scenario {
            rounds: 0,
            chunks: 20_000,
        },
        repeats,
        &mock,
        home.path(),
    );
}
