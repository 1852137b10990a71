//! Which process wrote a marker, and whether it still lives: a pid alone may be somebody else's by now.

use serde::{Deserialize, Serialize};

/// How long a marker of a process we cannot see (another pid namespace: a container that shares the home) counts as
/// alive, in milliseconds. A turn does not last a day.
const UNSEEN_ALIVE_MS: u64 = 24 * 60 * 60 * 1000;

/// A process, told apart from any later one with the same pid.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessStamp {
    /// The process id.
    pub pid: u32,
    /// When it started, in the kernel's clock ticks since boot; 0 where the system does not tell.
    pub start: u64,
    /// The boot it started in; empty where the system does not tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// The pid namespace that the pid belongs to; empty where the system does not tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

impl ProcessStamp {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start: start_of(pid).unwrap_or(0),
            boot: boot_id(),
            namespace: pid_namespace(),
        }
    }

    /// Whether the process lives. `written` is when its marker was written and `now` the time, both in milliseconds
    /// since the epoch: they decide where the process cannot be seen from here.
    #[must_use]
    pub fn is_alive(&self, written: u64, now: u64) -> bool {
        let here = Self {
            pid: self.pid,
            start: self.start,
            boot: boot_id(),
            namespace: pid_namespace(),
        };
        if self.boot != here.boot {
            return false;
        }
        if self.namespace != here.namespace {
            return now.saturating_sub(written) < UNSEEN_ALIVE_MS;
        }
        match start_of(self.pid) {
            Some(start) => start == self.start,
            None => !cfg!(target_os = "linux") && signal_reaches(self.pid),
        }
    }
}

/// The time a process started; `None` where it does not exist, is a zombie, or the system does not tell.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything, brackets included: fields are counted from the last one.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    // Field 3 is the state, field 22 the start (proc_pid_stat(5)).
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

fn pid_namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .ok()
        .and_then(|link| link.into_os_string().into_string().ok())
        .unwrap_or_default()
}

fn signal_reaches(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| match rustix::process::test_kill_process(pid) {
            Ok(()) => true,
            Err(error) => error == rustix::io::Errno::PERM,
        })
}

/// Milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_likes_do_not() {
        let me = ProcessStamp::current();
        assert!(me.is_alive(0, u64::MAX));
        let reused = ProcessStamp {
            start: me.start + 1,
            ..me.clone()
        };
        assert!(!reused.is_alive(0, 0));
        let before_reboot = ProcessStamp {
            boot: "other".to_owned(),
            ..me.clone()
        };
        assert!(!before_reboot.is_alive(0, 0));
        let container = ProcessStamp {
            namespace: "pid:[1]".to_owned(),
            ..me
        };
        assert!(container.is_alive(1000, 1000 + UNSEEN_ALIVE_MS - 1));
        assert!(!container.is_alive(1000, 1000 + UNSEEN_ALIVE_MS));
    }

    #[test]
    fn a_process_that_ended_is_dead_even_before_it_is_waited_for() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let stamp = ProcessStamp {
            pid: child.id(),
            start: start_of(child.id()).unwrap(),
            ..ProcessStamp::current()
        };
        assert!(stamp.is_alive(0, 0));
        child.kill().unwrap();
        while start_of(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(!stamp.is_alive(0, 0));
        child.wait().unwrap();
        assert!(!stamp.is_alive(0, 0));
    }
}
