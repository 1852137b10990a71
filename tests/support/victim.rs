//! Programs that write to a store, are killed, and what they were told is checked afterwards.
//!
//! A victim is any program that prints `ack <conversation> <message id> <how safe>` on a line of its own after each commit
//! it was told of. The harness kills it at a random time, or lets it end itself at a named step
//! (`AGENT_SMITH_FAILPOINT`), and looks up every acknowledged message with another process's eyes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agent_smith_core::persistence::{Store, StoreOptions};

use crate::support::power::Random;
use crate::support::store::is_valid_history;

/// The test of this binary that stands for a program: `cargo test` leaves it out, a harness runs it by its name.
pub fn own_program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("suite::{test}");
    command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads", "1"]);
    // What the harness's own run is told is not for the victim.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AGENT_SMITH_FAILPOINT") {
            command.env_remove(name);
        }
    }
    command
}

/// How a victim ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// By the harness, this long after its n-th acknowledgement.
    Killed { after: u64, wait: Duration },
    /// By itself, at the n-th passing of a step.
    AtStep { step: &'static str, passing: u64 },
}

/// What became of many victims.
#[derive(Debug, Default)]
pub struct Toll {
    pub kills: u64,
    pub acknowledged: u64,
    /// How many died after passing a step and before the next one.
    pub steps: BTreeMap<String, u64>,
    pub lost: Vec<String>,
    pub invalid: Vec<String>,
}

/// Kills programs that write to one database.
pub struct Harness {
    pub database: PathBuf,
    trace: PathBuf,
    acknowledged: Vec<(String, String)>,
    pub toll: Toll,
}

impl Harness {
    pub fn new(home: &Path) -> Self {
        Self {
            database: home.join("agent_smith.redb"),
            trace: home.join("trace"),
            acknowledged: Vec::new(),
            toll: Toll::default(),
        }
    }

    /// Runs `program` until its end, and keeps what it was told.
    pub fn run(&mut self, mut program: Command, end: End) {
        program
            .env("AGENT_SMITH_FAILPOINT_TRACE", &self.trace)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        std::fs::write(&self.trace, "").unwrap();
        if let End::AtStep { step, passing } = end {
            program.env("AGENT_SMITH_FAILPOINT", format!("{step}@{passing}=kill"));
        }
        let mut child = program.spawn().unwrap();
        let mut acknowledged = 0;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut killed = false;
        while let Some(Ok(line)) = lines.next() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let ["ack", conversation, id, _] = words.as_slice() {
                acknowledged += 1;
                self.acknowledged.push(((*conversation).to_owned(), (*id).to_owned()));
            }
            if let End::Killed { after, wait } = end
                && acknowledged >= after
                && !killed
            {
                std::thread::sleep(wait);
                child.kill().unwrap();
                killed = true;
            }
        }
        let status = child.wait().unwrap();
        assert!(!status.success(), "{end:?}: the program came to its end");
        self.toll.kills += 1;
        self.toll.acknowledged += acknowledged;
        let last = std::fs::read_to_string(&self.trace).unwrap();
        if let End::AtStep { step, .. } = end {
            assert_eq!(last.trim(), step, "the program did not end where it was told to");
        }
        *self.toll.steps.entry(last.trim().to_owned()).or_default() += 1;
    }

    /// Looks for everything that was acknowledged, as the next process does.
    pub fn check(&mut self) {
        let store = Store::new(StoreOptions::at(&self.database));
        let mut conversations: Vec<&String> = self.acknowledged.iter().map(|(conversation, _)| conversation).collect();
        conversations.sort();
        conversations.dedup();
        for conversation in conversations {
            let messages = match store.read_blocking(|reader| reader.messages(conversation)) {
                Ok(messages) => messages,
                Err(error) => {
                    self.toll.invalid.push(error.to_string());
                    continue;
                }
            };
            if let Err(detail) = is_valid_history(&messages) {
                self.toll.invalid.push(detail);
            }
            for (_, id) in self.acknowledged.iter().filter(|(of, _)| of == conversation) {
                let times = messages.iter().filter(|message| message.id == *id).count();
                if times != 1 {
                    self.toll.lost.push(format!("{id} is there {times} times"));
                }
            }
        }
        let notices = store.take_notices();
        if !notices.is_empty() {
            self.toll.invalid.push(format!("{notices:?}"));
        }
    }
}

/// A random end: within the commit after one of the first acknowledgements.
pub fn random_end(random: &mut Random) -> End {
    End::Killed {
        after: 1 + random.below(6),
        wait: Duration::from_micros(random.below(4_000)),
    }
}
