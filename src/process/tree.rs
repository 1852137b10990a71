//! A child with everything that descends from it, and how all of it is ended.
//!
//! A process group is not enough: `setsid` leaves it, `nohup … &` outlives its leader, and a wrapper that is killed
//! alone leaves its children with the port and the pipe. So a family is what is in the child's session, what carries
//! its nonce, what is known to belong to it, and what is a child of one of those.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout_at};

use super::child::Child;
use super::nonce::{Nonce, Stat, Survivor, all_pids, command_line, pid_of};

/// How often new descendants of what is being killed are looked for before giving up on what cannot be killed.
const KILL_ROUNDS: usize = 8;

/// One process, told from a later owner of its id by when it started.
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

    fn told(self) -> Survivor {
        Survivor {
            pid: self.pid,
            command: command_line(self.pid),
        }
    }
}

/// What a child started, whether the child itself still is there or not.
#[derive(Clone, Debug)]
pub struct Family {
    /// The child, while it is not collected and its id means it: then its session counts.
    leader: Option<i32>,
    nonce: Nonce,
    known: Vec<Member>,
}

impl Family {
    /// The family of a child that is not collected yet.
    pub(super) fn of(leader: i32, nonce: &Nonce) -> Self {
        Self {
            leader: Some(leader),
            nonce: nonce.clone(),
            known: Vec::new(),
        }
    }

    /// The same once the child is collected: those that are there now, and what carries the nonce or descends from
    /// them later.
    #[must_use]
    pub(super) fn orphaned(&self) -> Self {
        Self {
            leader: None,
            nonce: self.nonce.clone(),
            known: self.members(),
        }
    }

    /// What lives of it, the child itself left out.
    pub(super) fn members(&self) -> Vec<Member> {
        let mut others: Vec<(i32, Stat)> = all_pids()
            .filter(|pid| Some(*pid) != self.leader)
            .filter_map(|pid| Some((pid, Stat::read(pid)?)))
            .collect();
        let mut family: HashSet<i32> = self.leader.into_iter().collect();
        let mut found = Vec::new();
        // By what is known, then by mark what that did not explain, each with all children of what it found.
        take(&mut others, &mut family, &mut found, |pid, stat| {
            Some(stat.session) == self.leader
                || self
                    .known
                    .iter()
                    .any(|member| member.pid == pid && member.start == stat.start)
        });
        take(&mut others, &mut family, &mut found, |pid, _| {
            self.nonce.is_in_environment_of(pid)
        });
        found
    }

    /// What lives of it, for people.
    #[must_use]
    pub fn survivors(&self) -> Vec<Survivor> {
        self.members().into_iter().map(Member::told).collect()
    }

    /// Ends all of it: TERM, up to `grace` for them to go, then KILL. Returns as soon as none is left, with what could
    /// not be killed.
    pub async fn kill(&self, grace: Duration) -> Vec<Survivor> {
        kill(self, None, sleep(grace)).await
    }
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

/// Ends `child` and its family as [`Family::kill`] does; `grace` completes when they have had their time. `child` has
/// ended afterwards or is beyond killing (hanging in the kernel); it is not collected.
pub async fn kill_tree(child: &mut Child, grace: impl Future<Output = ()>) -> Vec<Survivor> {
    let family = child.family();
    kill(&family, Some(child), grace).await
}

async fn kill(family: &Family, mut child: Option<&mut Child>, grace: impl Future<Output = ()>) -> Vec<Survivor> {
    let mut members = family.members();
    // Once each: a second TERM makes some programs give up cleaning. What was stopped takes its TERM only when it
    // goes on.
    for signal in [Signal::TERM, Signal::CONT] {
        if let Some(child) = &child {
            child.signal_group(signal);
        }
        for member in members.iter().filter(|member| Some(member.group) != family.leader) {
            member.signal(signal);
        }
    }
    let asked = async {
        exited(&mut child).await;
        loop {
            wait_for_all(&members).await;
            members = family.members();
            if members.is_empty() {
                break;
            }
            // Started after the first look: it has not been asked yet.
            for member in &members {
                member.signal(Signal::TERM);
            }
        }
    };
    tokio::select! {
        biased;
        () = asked => return Vec::new(),
        () = grace => {}
    }
    for _ in 0..KILL_ROUNDS {
        let members = family.members();
        if let Some(child) = &child {
            child.signal_group(Signal::KILL);
        }
        for member in &members {
            member.signal(Signal::KILL);
        }
        if members.is_empty() && child.as_ref().is_none_or(|child| child.has_exited()) {
            return Vec::new();
        }
        let round = Instant::now() + Duration::from_millis(100);
        let _ = timeout_at(round, async {
            exited(&mut child).await;
            wait_for_all(&members).await;
        })
        .await;
    }
    family.survivors()
}

async fn exited(child: &mut Option<&mut Child>) {
    if let Some(child) = child {
        child.exited().await;
    }
}

/// Completes when none of `members` lives.
async fn wait_for_all(members: &[Member]) {
    let mut pause = Duration::from_millis(1);
    while members.iter().any(|member| member.lives()) {
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}
