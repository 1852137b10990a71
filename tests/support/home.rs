//! A home of its own for a test: a user's configuration, a data directory, a project to work in; and the two ways to run
//! the product in it, the executable and a session in this process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use agent_smith_core::persistence::{MessageRecord, Store, StoreOptions};
use agent_smith_core::protocol::order::OrderCheck;
use agent_smith_core::protocol::{
    Event, EventKind, HELLO_TERM_DEFAULT, Hello, HostInfo, PROTOCOL_VERSION, Submit, TermInfo,
};
use agent_smith_core::runtime::{Session, SessionOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::gates::PATIENCE;
use super::mock_server::MockServer;

/// The home.
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// An empty home with an empty project directory.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project")).unwrap();
        Self { dir }
    }

    /// A home whose configuration names this server.
    pub fn with_server(url: &str) -> Self {
        let home = Self::new();
        home.configure(&json!({"default_model": "mock", "llm_config": {"api_url": url, "retry_backoff_ms": [1]}}));
        home
    }

    /// A model server, and a home whose configuration names it.
    pub fn and_server() -> (MockServer, Self) {
        let server = MockServer::start();
        let home = Self::with_server(&server.url());
        (server, home)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join(".config/lilush/agent_smith.json")
    }

    pub fn database(&self) -> PathBuf {
        self.dir.path().join(".local/share/lilush/agent_smith.redb")
    }

    /// Writes the user's configuration.
    pub fn configure(&self, config: &Value) {
        self.configure_text(config.to_string());
    }

    pub fn configure_text(&self, text: impl AsRef<[u8]>) {
        let file = self.config_file();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// The environment of everything that runs here.
    pub fn env(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("HOME".to_owned(), self.path().to_str().unwrap().to_owned()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ])
    }

    /// The executable with these arguments, in the project, with nothing but this home's environment.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-smith"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .envs(self.env())
            .stdin(Stdio::null());
        command
    }

    /// Runs the executable to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// A session in this process.
    pub fn session(&self, options: SessionOptions) -> TestSession {
        self.open(options, false, false)
    }

    /// A session in this process whose events are drawn, too.
    pub fn rendered_session(&self, options: SessionOptions) -> TestSession {
        self.open(options, true, false)
    }

    /// The same for a client that is a terminal.
    pub fn terminal_session(&self, options: SessionOptions) -> TestSession {
        self.open(options, true, true)
    }

    fn open(&self, options: SessionOptions, render: bool, is_tty: bool) -> TestSession {
        let hello = Hello {
            protocol: PROTOCOL_VERSION,
            client: "test".to_owned(),
            host: HostInfo::default(),
            term: TermInfo {
                is_tty,
                ..HELLO_TERM_DEFAULT
            },
            palette: None,
            cwd: self.project().to_str().unwrap().to_owned(),
            env: Some(self.env()),
            pid: std::process::id(),
            render,
        };
        let (session, _) = Session::open(hello, options).unwrap();
        TestSession {
            session,
            events: Vec::new(),
            order: OrderCheck::default(),
        }
    }

    /// The messages kept of all conversations, in order, oldest conversation first.
    pub fn messages(&self) -> Vec<MessageRecord> {
        let store = Store::new(StoreOptions::at(self.database()));
        store
            .read_blocking(|reader| {
                let mut all = Vec::new();
                let mut conversations = reader.conversations(usize::MAX)?;
                conversations.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
                for conversation in conversations {
                    all.extend(reader.messages(&conversation.id)?);
                }
                Ok(all)
            })
            .unwrap()
    }
}

/// What a run of the executable gave.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The events of a run with `--json`, checked for their order; the last line, the result, apart.
    pub fn events(&self) -> (Vec<Event>, Value) {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        let result: Value = serde_json::from_str(lines.pop().unwrap()).unwrap();
        assert_eq!(result["type"], "turn_result");
        let events: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut order = OrderCheck::default();
        events.iter().for_each(|event| order.next(event).unwrap());
        (events, result["data"].clone())
    }
}

/// A session whose events are collected and checked for their order.
pub struct TestSession {
    pub session: Session,
    pub events: Vec<Event>,
    order: OrderCheck,
}

impl TestSession {
    pub fn submit(&self, line: &str) {
        self.session
            .submit(Submit {
                line: line.to_owned(),
                ..Submit::default()
            })
            .unwrap();
    }

    /// Waits for an event that fits; everything before it is collected.
    #[track_caller]
    pub fn wait(&mut self, what: &str, fits: impl Fn(&EventKind) -> bool) -> EventKind {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = 0;
        loop {
            while seen < self.events.len() {
                seen += 1;
                if fits(&self.events[seen - 1].kind) {
                    return self.events[seen - 1].kind.clone();
                }
            }
            assert!(
                Instant::now() < deadline,
                "no event for: {what}; got {:#?}",
                self.events
            );
            for event in self.session.poll(Duration::from_millis(200)) {
                self.order.next(&event).unwrap();
                self.events.push(event);
            }
        }
    }

    /// Runs a command and gives its answer: whether it did what was asked, and the text.
    #[track_caller]
    pub fn command(&mut self, line: &str) -> (bool, String) {
        self.forget();
        self.submit(line);
        let output = self.wait(line, |kind| matches!(kind, EventKind::CommandOutput { .. }));
        let EventKind::CommandOutput { ok, text, .. } = output else {
            unreachable!()
        };
        self.settled();
        (ok, text)
    }

    /// Waits until everything handed over so far was worked off.
    #[track_caller]
    pub fn settled(&mut self) {
        self.wait("settled", |kind| matches!(kind, EventKind::InputSettled { .. }));
    }

    /// Says something and gives the model's answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.forget();
        self.submit(line);
        let end = self.wait_end();
        let (EventKind::TurnCompleted(end) | EventKind::TurnFailed(end)) = end else {
            unreachable!()
        };
        self.settled();
        end.text
    }

    /// Forgets what was collected, so that the next wait is for something new.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    /// Waits for the end of a turn and for it to be kept.
    #[track_caller]
    pub fn wait_end(&mut self) -> EventKind {
        self.wait("turn_persisted", |kind| matches!(kind, EventKind::TurnPersisted { .. }));
        self.wait("the end of the turn", EventKind::is_terminal)
    }
}

/// The names of the event types, in order, neighbours of the same type joined.
pub fn types(events: &[Event]) -> Vec<String> {
    let mut names: Vec<String> = events
        .iter()
        .map(|event| {
            serde_json::to_value(event).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.dedup();
    names
}

/// Records as lines a person can read: who, the text with line ends shown, calls and what they answer.
pub fn transcript(records: &[MessageRecord]) -> String {
    let mut out = String::new();
    for record in records {
        let message = &record.message;
        let role = serde_json::to_value(message.role).unwrap();
        out.push_str(role.as_str().unwrap());
        if let Some(id) = &message.tool_call_id {
            out.push_str(&format!(" {} of {id}", message.name.as_deref().unwrap_or("?")));
        }
        if message.incomplete {
            out.push_str(" (incomplete)");
        }
        out.push_str(&format!(": {}\n", message.content.trim_end().replace('\n', "\n    ")));
        for call in &message.tool_calls {
            out.push_str(&format!(
                "    calls {} as {} with {}\n",
                call.name, call.id, call.arguments
            ));
        }
    }
    out
}
