//! Ending a child with everything that descends from it.
//!
//! A process group is not enough: `setsid` leaves it, `nohup … &` outlives its leader, and a wrapper that is killed
//! alone leaves its children with the port and the pipe. So the members are what is in the child's session, what
//! carries its nonce, and what is a child of one of those.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout_at};

use super::child::Child;
use super::nonce::{Nonce, Stat, Survivor, all_pids, pid_of};

/// How often new descendants of what is being killed are looked for before giving up on what cannot be killed.
const KILL_ROUNDS: usize = 8;

/// One process to be ended, told from a later owner of its id by when it started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pid: i32,
    group: i32,
    start: u64,
}

impl Member {
    /// Whether it still lives.
    fn lives(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.start == self.start && !stat.dead())
    }

    /// Sends it `signal`, and nobody else.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = pid_of(self.pid) else { return };
        #[cfg(target_os = "linux")]
        if let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            // The descriptor holds the process; only now is it certain whom the id means.
            if self.lives() {
                // Not permitted: another user's process (sudo). It is told among the survivors.
                let _ = rustix::process::pidfd_send_signal(fd, signal);
            }
            return;
        }
        if self.lives() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// The living descendants of the child `leader`, itself left out.
pub(super) fn members(leader: i32, nonce: &Nonce) -> Vec<Member> {
    let mut others: Vec<(i32, Stat)> = all_pids()
        .filter(|pid| *pid != leader)
        .filter_map(|pid| Some((pid, Stat::read(pid)?)))
        .collect();
    let mut family = HashSet::from([leader]);
    let mut found = Vec::new();
    // By session, then by mark what that did not explain, each with all children of what it found.
    take(&mut others, &mut family, &mut found, |_, stat| stat.session == leader);
    take(&mut others, &mut family, &mut found, |pid, _| {
        nonce.is_in_environment_of(pid)
    });
    found
}

/// Moves what `belongs` from `others` to `found`, then the children of `family`, theirs, and so on.
fn take(
    others: &mut Vec<(i32, Stat)>,
    family: &mut HashSet<i32>,
    found: &mut Vec<Member>,
    belongs: impl Fn(i32, &Stat) -> bool,
) {
    let mut first = true;
    loop {
        let before = others.len();
        others.retain(|(pid, stat)| {
            let ours = family.contains(&stat.parent) || (first && belongs(*pid, stat));
            if ours {
                family.insert(*pid);
                if !stat.dead() {
                    found.push(Member {
                        pid: *pid,
                        group: stat.group,
                        start: stat.start,
                    });
                }
            }
            !ours
        });
        first = false;
        if others.len() == before {
            return;
        }
    }
}

/// Ends `child` and all of its descendants: TERM, then up to `grace`, or until `urgent` completes, for them to go, then
/// KILL. Returns at once when all of them are gone. `child` has ended afterwards or is beyond killing (hanging in the kernel); it is not collected.
///
/// Returns what could not be killed.
pub async fn kill_tree(child: &mut Child, grace: Duration, urgent: impl Future<Output = ()>) -> Vec<Survivor> {
    let deadline = Instant::now() + grace;
    let mut family = members(child.pid(), child.nonce());
    // Once each: a second TERM makes some programs give up cleaning. What was stopped takes its TERM only when it
    // goes on.
    for signal in [Signal::TERM, Signal::CONT] {
        child.signal_group(signal);
        for member in family.iter().filter(|member| member.group != child.pid()) {
            member.signal(signal);
        }
    }
    let asked = timeout_at(deadline, async {
        child.exited().await;
        loop {
            wait_for_all(&family).await;
            family = members(child.pid(), child.nonce());
            if family.is_empty() {
                break;
            }
            // Started after the first look: it has not been asked yet.
            for member in &family {
                member.signal(Signal::TERM);
            }
        }
    });
    let ended_by_itself = tokio::select! {
        biased;
        ended = asked => ended.is_ok(),
        () = urgent => false,
    };
    if !ended_by_itself {
        kill_all(child).await;
    }
    child.survivors()
}

async fn kill_all(child: &mut Child) {
    for _ in 0..KILL_ROUNDS {
        let family = members(child.pid(), child.nonce());
        child.signal_group(Signal::KILL);
        for member in &family {
            member.signal(Signal::KILL);
        }
        if family.is_empty() && child.has_exited() {
            return;
        }
        let round = Instant::now() + Duration::from_millis(100);
        drop(
            timeout_at(round, async {
                child.exited().await;
                wait_for_all(&family).await;
            })
            .await,
        );
    }
}

/// Completes when none of `family` lives.
async fn wait_for_all(family: &[Member]) {
    let mut pause = Duration::from_millis(1);
    while family.iter().any(|member| member.lives()) {
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}
