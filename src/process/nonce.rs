//! The mark by which the descendants of a child are found again.
//!
//! Every child carries [`NONCE_VARIABLE`] with a random value in its environment, and so does all it starts: also what
//! left its process group and session (`setsid`), was adopted by init, and closed its outputs. `/proc/<pid>/environ`
//! shows it. A child that runs this agent again keeps the outer marks before its own (`outer:inner`), so that ending
//! the outer one finds the inner one's children too.
//!
//! A process that clears its environment is still found while it stays in the child's session.

use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use rustix::process::Pid;

use super::environment::Environment;

/// The variable that carries the mark.
pub const NONCE_VARIABLE: &str = "AGENT_SMITH_NONCE";

/// Longest inherited mark that is carried on: 8 nested agents.
const MAX_INHERITED: usize = 8 * 33;

/// Up to this many process ids after the child's own are looked at one by one; with more, `/proc` is listed instead.
const MAX_PROBED_IDS: i64 = 256;

/// A child's mark: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

/// A process that outlived the child it descends from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its process id.
    pub pid: i32,
    /// Its command line, its arguments joined by blanks, at most 80 characters of it.
    pub command: String,
}

impl Nonce {
    /// A fresh random mark.
    #[must_use]
    pub fn new() -> Self {
        // Two independently seeded SipHash states give 128 bits; it has to be unique, not secret.
        let half = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    /// The mark as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The variable's value for a child started with `env`: the marks it inherits, then this one.
    #[must_use]
    pub fn value_in(&self, env: &Environment) -> OsString {
        match env.text(NONCE_VARIABLE) {
            Some(outer) if outer.len() <= MAX_INHERITED => format!("{outer}:{}", self.0).into(),
            _ => self.0.clone().into(),
        }
    }

    /// Whether the process `pid` descends from the child `leader` that carries this mark: by its environment, or by
    /// still being in the leader's session.
    fn marks(&self, pid: i32, leader: i32) -> bool {
        self.is_in_environment_of(pid) || Stat::read(pid).is_some_and(|stat| stat.session == leader && !stat.dead())
    }

    /// Whether the environment that `pid` was started with carries this mark.
    pub(super) fn is_in_environment_of(&self, pid: i32) -> bool {
        // Unreadable means another user's process, or one that is gone; a zombie's is empty.
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else {
            return false;
        };
        environ.split(|byte| *byte == 0).any(|entry| {
            entry
                .strip_prefix(NONCE_VARIABLE.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(|value| value.split(|byte| *byte == b':').any(|mark| mark == self.0.as_bytes()))
        })
    }

    /// The living descendants of the child `leader` that ran for `age`, the child itself left out.
    ///
    /// A process id is given out in rising order, so nothing that is not after the child's own can descend from it
    /// unless the counter went round: after a short run only the ids since then are looked at, often none. A `/proc`
    /// that is not there finds nothing.
    #[must_use]
    pub fn survivors(&self, leader: i32, age: Duration) -> Vec<Survivor> {
        let recent = (age < Duration::from_secs(2)).then(last_pid).flatten();
        let mut found = Vec::new();
        let mut look = |pid: i32| {
            if pid != leader && self.marks(pid, leader) && is_process(pid) {
                found.push(Survivor {
                    pid,
                    command: command_line(pid),
                });
            }
        };
        match recent {
            Some(last) if (0..=MAX_PROBED_IDS).contains(&(i64::from(last) - i64::from(leader))) => {
                (leader + 1..=last).for_each(look);
            }
            _ => all_pids().for_each(&mut look),
        }
        found
    }
}

impl Default for Nonce {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether `pid` is a process and not another one's thread, which `/proc` shows just the same when asked by number.
fn is_process(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| {
        status
            .lines()
            .find_map(|line| line.strip_prefix("Tgid:"))
            .is_some_and(|id| id.trim().parse() == Ok(pid))
    })
}

/// The id the kernel gave out last in our pid namespace: the last word of `/proc/loadavg`.
fn last_pid() -> Option<i32> {
    fs::read_to_string("/proc/loadavg")
        .ok()?
        .split_whitespace()
        .last()?
        .parse()
        .ok()
}

/// Every process id in `/proc`.
pub(super) fn all_pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The fields of `/proc/<pid>/stat` this room needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    /// `R`, `S`, `Z` and so on.
    pub state: char,
    /// The parent's id.
    pub parent: i32,
    /// The process group's id.
    pub group: i32,
    /// The session's id.
    pub session: i32,
    /// When it started, in clock ticks since the boot: with the id, who it is.
    pub start: u64,
}

impl Stat {
    /// Reads them; `None` where there is no such process.
    pub(super) fn read(pid: i32) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // The second field is the name in parentheses and may hold anything, parentheses and blanks too.
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            start: fields.nth(15)?.parse().ok()?,
        })
    }

    /// Whether it has ended and only waits to be collected.
    pub(super) fn dead(self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Its arguments joined by blanks, at most 80 characters of it; its name where it has none.
pub(super) fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ");
    match text.trim() {
        "" => fs::read_to_string(format!("/proc/{pid}/comm"))
            .unwrap_or_default()
            .trim()
            .to_owned(),
        text => text.chars().take(80).collect(),
    }
}

/// The id as the system-call layer wants it; `None` for what is no process id.
pub(super) fn pid_of(raw: i32) -> Option<Pid> {
    if raw > 0 { Pid::from_raw(raw) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_unique_and_nest() {
        let (outer, inner) = (Nonce::new(), Nonce::new());
        assert_ne!(outer, inner);
        let env: Environment = [(NONCE_VARIABLE, outer.as_str())].into_iter().collect();
        assert_eq!(
            inner.value_in(&env).into_string().unwrap(),
            format!("{}:{}", outer.as_str(), inner.as_str())
        );
        let long: Environment = [(NONCE_VARIABLE, "x".repeat(MAX_INHERITED + 1))].into_iter().collect();
        assert_eq!(inner.value_in(&long).into_string().unwrap(), inner.as_str());
    }

    #[test]
    fn stat_reads_our_own_process() {
        let stat = Stat::read(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(!stat.dead() && stat.parent > 0);
        assert!(Stat::read(-1).is_none());
    }

    #[test]
    fn threads_are_not_processes() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(is_process(own));
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get())
            .join()
            .unwrap();
        assert!(!is_process(thread));
    }
}
