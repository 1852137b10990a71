//! The power fails at a random operation of a random commit, and a random part of what was not synced is on the disk.
//!
//! Nothing that was acknowledged may be lost, no batch may be there in part, and the file must open. `STORE_POWERCUTS` is
//! the number of cuts (500 without it; docs/STORE.md says how a run of 5,000 ended).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_smith_core::message::Message;
use agent_smith_core::persistence::{Batch, Durability, Store, StoreOptions, compact};
use serde_json::json;

use crate::support::power::{Disk, Random};
use crate::support::store::message;

/// After this many cuts a run begins with an empty disk again: both a young file and a grown one are cut.
const CUTS_PER_DISK: u64 = 20;

fn options(path: &Path, disk: &Disk) -> StoreOptions {
    let disk = disk.clone();
    StoreOptions {
        disk: Some(Arc::new(move |_, _| Ok(Some(Box::new(disk.clone()))))),
        ..StoreOptions::at(path)
    }
}

fn open(path: &Path, disk: &Disk) -> Store {
    Store::new(options(path, disk))
}

/// What a run found wrong.
#[derive(Debug, Default)]
struct Findings {
    cuts: u64,
    lost: u64,
    failed_opens: u64,
    torn: u64,
    wrong: Vec<String>,
    in_commit: u64,
}

struct Run {
    path: PathBuf,
    spool: PathBuf,
    disk: Disk,
    random: Random,
    /// The batches that were acknowledged as durable, by number; each holds the messages `<number>-0..count`.
    acknowledged: BTreeSet<u64>,
    counts: Vec<u64>,
    /// The last acknowledged value of a note that each batch overwrites.
    last: u64,
}

impl Run {
    fn batch(&mut self) -> (u64, Batch) {
        let number = self.counts.len() as u64;
        let count = 1 + self.random.below(4);
        let mut batch = Batch::new();
        for n in 0..count {
            // Mostly small; some longer than a page, a few longer than what is kept in the record itself.
            let bytes = match self.random.below(40) {
                0..=32 => self.random.below(800),
                33..=38 => self.random.below(12_000),
                _ => 30_000 + self.random.below(60_000),
            };
            let text = "x".repeat(usize::try_from(bytes).unwrap());
            batch.append_message(message("c", &format!("{number}-{n}"), Message::user(text)));
        }
        batch.put_note("c", "last", json!(number));
        if number % 7 == 6 {
            // Pages become free, and are used again.
            batch.put_note("d", "x", json!("y".repeat(20_000)));
        } else if number % 7 == 2 {
            batch.delete_note("d", "x");
        }
        self.counts.push(count);
        (number, batch)
    }

    /// Runs a process until it is stopped, and returns whether it was.
    fn process(&mut self, findings: &mut Findings) -> bool {
        // About twelve operations a commit; a process makes up to a dozen commits.
        let operations = 1 + self.random.below(140);
        self.disk.run_for(Some(operations));
        let store = open(&self.path, &self.disk);
        for _ in 0..40 {
            if self.random.below(40) == 0 {
                // The other thing that moves pages; what it fails with does not matter, only what is left.
                let _ = compact(&options(&self.path, &self.disk));
                if self.disk.is_stopped() {
                    return true;
                }
            }
            let (number, batch) = self.batch();
            let report = store.commit_blocking(batch);
            if self.disk.is_stopped() {
                // What a dead process does next does not happen.
                let _ = std::fs::remove_dir_all(&self.spool);
                return true;
            }
            if report.durability != Durability::Durable || !report.notices.is_empty() {
                findings.failed_opens += 1;
                findings.wrong.push(format!("batch {number}: {report:?}"));
                return false;
            }
            self.acknowledged.insert(number);
            self.last = number;
        }
        false
    }

    fn check(&mut self, findings: &mut Findings) {
        self.disk.run_for(None);
        let store = open(&self.path, &self.disk);
        let read = store.read_blocking(|reader| Ok((reader.messages("c")?, reader.note("c", "last")?)));
        let (messages, last) = match read {
            Ok(read) => read,
            Err(error) => {
                findings.failed_opens += 1;
                findings.wrong.push(error.to_string());
                return;
            }
        };
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while at < messages.len() {
            let number: u64 = messages[at].id.split('-').next().unwrap().parse().unwrap();
            let count = usize::try_from(self.counts[usize::try_from(number).unwrap()]).unwrap();
            let whole = (0..count).all(|n| {
                messages
                    .get(at + n)
                    .is_some_and(|message| message.id == format!("{number}-{n}"))
            });
            if !whole || seen.last().is_some_and(|last| *last >= number) {
                findings.torn += 1;
                findings
                    .wrong
                    .push(format!("batch {number} is there in part or out of order"));
                return;
            }
            seen.insert(number);
            at += count;
        }
        let lost = self.acknowledged.difference(&seen).count() as u64;
        let last = last.and_then(|last| last.as_u64()).unwrap_or(0);
        if lost > 0 || last < self.last {
            findings.lost += lost.max(1);
            findings.wrong.push(format!(
                "{lost} acknowledged batches lost, the last is {last} of {}",
                self.last
            ));
        }
        // What was not acknowledged may be there: from here on it must stay, since it was seen.
        self.last = last;
        self.acknowledged = seen;
    }
}

fn run(cuts: u64, seed: u64, new_disk: fn() -> Disk) -> Findings {
    let home = tempfile::tempdir().unwrap();
    let mut findings = Findings::default();
    let mut random = Random::new(seed);
    while findings.cuts < cuts {
        let path = home.path().join(format!("{}.redb", findings.cuts));
        let mut run = Run {
            spool: path.with_extension("spool"),
            path,
            disk: new_disk(),
            random: Random::new(random.next()),
            acknowledged: BTreeSet::new(),
            counts: Vec::new(),
            last: 0,
        };
        for _ in 0..CUTS_PER_DISK {
            let before = findings.wrong.len();
            // Now and then a process is killed and the next one goes on with what is in the machine's memory.
            while run.random.below(4) == 0 && findings.wrong.len() == before {
                run.process(&mut findings);
            }
            findings.in_commit += u64::from(run.process(&mut findings));
            run.disk.cut_power(&mut run.random);
            findings.cuts += 1;
            // The lock file is another file: what it says after a cut is what it said at some time.
            if run.random.below(2) == 0 {
                let mut lock = run.path.clone().into_os_string();
                lock.push(".lock");
                std::fs::write(lock, if run.random.below(2) == 0 { b"s" } else { b"w" }).unwrap();
            }
            run.check(&mut findings);
            if findings.wrong.len() > before {
                break;
            }
        }
    }
    findings
}

fn wanted() -> u64 {
    std::env::var("STORE_POWERCUTS").map_or(500, |text| text.parse().unwrap())
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let findings = run(wanted(), 1, Disk::default);
    println!(
        "{} power cuts, {} in the middle of a commit: {} acknowledged batches lost, {} failed opens, {} torn batches",
        findings.cuts, findings.in_commit, findings.lost, findings.failed_opens, findings.torn
    );
    assert!(findings.wrong.is_empty(), "{:#?}", findings.wrong);
    assert!(findings.in_commit * 2 > findings.cuts);
}

#[test]
fn the_simulator_finds_a_disk_that_ignores_syncs() {
    let findings = run(100, 2, Disk::that_ignores_syncs);
    println!(
        "control: {} power cuts without syncs: {} acknowledged batches lost, {} failed opens, {} torn batches",
        findings.cuts, findings.lost, findings.failed_opens, findings.torn
    );
    assert!(findings.lost + findings.failed_opens > 0);
}
