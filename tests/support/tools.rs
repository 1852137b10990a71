//! A yard for tools: a temporary directory, a context in it, and calls as a model makes them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that cannot go on fails its test"
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_smith_core::message::ToolCall;
use agent_smith_core::process::{Environment, NONCE_VARIABLE};
use agent_smith_core::role::Role;
use agent_smith_core::tool::{Registry, ToolContext, ToolProgress, ToolResult, execute};
use serde_json::Value;

pub struct Yard {
    pub home: tempfile::TempDir,
    pub root: PathBuf,
    pub registry: Registry,
    pub ctx: ToolContext,
    /// What was told while tools ran.
    pub progress: Arc<Mutex<String>>,
}

impl Yard {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let env = Environment::capture().with_changes([("HOME", Some(home.path()))]);
        let mut ctx = ToolContext::new(Role::Direct, root.clone(), env);
        ctx.turn_id = "turn".to_owned();
        ctx.call_id = "call".to_owned();
        ctx.limits.output_dir = Some(home.path().join("output"));
        let progress = Arc::new(Mutex::new(String::new()));
        let told = Arc::clone(&progress);
        ctx.progress = Arc::new(move |ToolProgress::Output { text, .. }| told.lock().unwrap().push_str(&text));
        Self {
            home,
            root,
            registry: Registry::builtin(),
            ctx,
            progress,
        }
    }

    pub async fn call(&self, name: &str, args: Value) -> ToolResult {
        self.call_text(name, &args.to_string()).await
    }

    pub async fn call_text(&self, name: &str, arguments: &str) -> ToolResult {
        let call = ToolCall {
            id: "call".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            extra: serde_json::Map::new(),
        };
        execute(&self.registry, &call, &self.ctx).await
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.join(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }
}

/// The living processes whose environment carries `nonce`, found without the code under test.
pub fn carriers(nonce: &str) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ)
                .split('\0')
                .any(|entry| entry.starts_with(NONCE_VARIABLE) && entry.contains(nonce))
        })
        .collect()
}

/// Waits until `path` has content, for tests whose command says so when it has come to a point.
pub async fn content_of(path: &Path) -> String {
    for _ in 0..500 {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("{} was not written within 5 s", path.display());
}
