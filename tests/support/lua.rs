//! Lua hosts of the tests: a process of Debian's `luajit` that plays a script of `tests/lua/bridge` through one carrier.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agent_smith_core::protocol::PROTOCOL_VERSION;
use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use super::gates::PATIENCE;
use super::home::Home;
use super::pty::{Answers, Pty};
use super::skip;

/// A way to the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The shared object, in the Lua process.
    Native,
    /// `agent-smith serve`, through the pure-Lua client.
    Sidecar,
}

pub const CARRIERS: [Carrier; 2] = [Carrier::Native, Carrier::Sidecar];

/// A script to be played.
pub struct Script<'a> {
    home: &'a Home,
    plan: Value,
    name: &'static str,
    command: Command,
}

impl<'a> Script<'a> {
    /// The script `name` through `carrier`, with these further members of its plan.
    #[track_caller]
    pub fn new(home: &'a Home, carrier: Carrier, name: &'static str, more: &Value) -> Option<Self> {
        let command = Command::new(skip::find("luajit")?);
        let mut plan = json!({
            "carrier": if carrier == Carrier::Native { "native" } else { "sidecar" },
            "library": skip::core_library(),
            "command": env!("CARGO_BIN_EXE_agent-smith"),
            "hello": {"protocol": PROTOCOL_VERSION, "client": "test", "cwd": home.project(), "pid": std::process::id()},
        });
        plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Some(Self {
            home,
            plan,
            name,
            command,
        })
    }

    /// Runs luajit under another program.
    pub fn under(mut self, program: &Path, arguments: &[&str]) -> Self {
        let luajit = self.command.get_program().to_owned();
        self.command = Command::new(program);
        self.command.args(arguments).arg(luajit);
        self
    }

    /// Runs it in another host, which has the core in it and loads nothing.
    pub fn hosted_by(mut self, host: &Path) -> Self {
        self.command = Command::new(host);
        self.plan["library"] = Value::Null;
        self
    }

    /// Sets a variable of the Lua process.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Writes the plan; the whole command with nothing but its own environment.
    fn prepare(&mut self) -> &mut Command {
        let plan = self.home.path().join("plan.json");
        std::fs::write(&plan, self.plan.to_string()).unwrap();
        let own: Vec<_> = self
            .command
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.unwrap().to_owned()))
            .collect();
        self.command
            .arg(format!("tests/lua/bridge/{}.lua", self.name))
            .arg(plan)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .envs(self.home.env())
            .envs(own)
    }

    /// Runs it on a terminal of its own, which has to be found as it was: nothing was written to it, and its modes are
    /// the same. What the script said.
    #[track_caller]
    pub fn run_on_terminal(mut self) -> Vec<Value> {
        let said = self.home.path().join("said");
        let modes = [self.home.path().join("before"), self.home.path().join("after")];
        let command = self.prepare();
        // The same shell asks for the modes and runs the script; what the script says goes to a file.
        let mut shell = CommandBuilder::new("/bin/sh");
        shell.env_clear();
        shell.args([
            "-c",
            r#"stty -g > "$1"; out=$2; after=$3; shift 3; "$@" > "$out"; code=$?; stty -g > "$after"; exit $code"#,
            "sh",
        ]);
        shell.args([&modes[0], &said, &modes[1]]);
        shell.arg(command.get_program());
        shell.args(command.get_args().map(OsString::from));
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap());
        }
        shell.cwd(env!("CARGO_MANIFEST_DIR"));
        let mut terminal = Pty::spawn(shell, (24, 80), Answers::All);
        let code = terminal.end();
        assert_eq!((code, String::from_utf8_lossy(&terminal.raw).as_ref()), (0, ""));
        let [before, after] = modes.map(|file| std::fs::read_to_string(file).unwrap());
        assert!(!before.is_empty() && before == after, "{before:?} became {after:?}");
        let said = std::fs::read_to_string(said).unwrap();
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Starts it.
    pub fn start(mut self) -> Lua {
        self.prepare()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Lua::of(self.command.spawn().unwrap())
    }

    /// Runs it to its end, which has to be a good one with nothing on stderr; what it said.
    #[track_caller]
    pub fn run(self) -> Vec<Value> {
        let mut lua = self.start();
        let said: Vec<_> = std::iter::from_fn(|| lua.next()).collect();
        let (code, stderr) = lua.end();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "after {said:#?}");
        said
    }
}

/// A Lua process.
pub struct Lua {
    child: Child,
    lines: Receiver<Value>,
    stderr: Option<JoinHandle<String>>,
    /// How long it may say nothing before it is taken for hung.
    pub silence: Duration,
}

impl Lua {
    fn of(mut child: Child) -> Self {
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not_json": line }));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self {
            child,
            lines,
            stderr: Some(stderr),
            silence: PATIENCE * 3,
        }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// The next line it says; `None` at the end.
    #[track_caller]
    pub fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(self.silence) {
            Ok(value) => Some(value),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                let (_, stderr) = self.end();
                panic!("the Lua process says nothing; on stderr: {stderr}")
            }
        }
    }

    /// Its exit code and what it wrote to stderr.
    #[track_caller]
    pub fn end(&mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > self.silence {
                let _ = self.child.kill();
                panic!("the Lua process does not end");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        (
            status.code(),
            self.stderr
                .take()
                .map(|thread| thread.join().unwrap())
                .unwrap_or_default(),
        )
    }
}

impl Drop for Lua {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
