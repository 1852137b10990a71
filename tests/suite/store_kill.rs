//! SIGKILL at random points and at every named step of a commit: nothing that another process saw acknowledged is lost, and
//! the history that the next one reads is valid.
//!
//! `STORE_KILLS` is the number of random kills (20 without it; docs/STORE.md says how a run of 1,000 ended).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agent_smith_core::persistence::{OpenTurn, Store, StoreOptions, failpoint};

use crate::support::power::Random;
use crate::support::store::round;
use crate::support::victim::{End, Harness, own_program, random_end};

/// Steps that not every commit passes: the file grows now and then, and the spool is for when the lock is taken.
const SOMETIMES: [&str; 3] = ["commit.grow", "spool.written", "spool.renamed"];

fn victim(database: &Path, deadline_ms: u64) -> Command {
    let mut program = own_program("store_kill::a_program_that_writes_until_it_is_killed");
    program
        .env("STORE_VICTIM", database)
        .env("STORE_VICTIM_DEADLINE", deadline_ms.to_string());
    program
}

#[test]
#[ignore = "not a test: the program that the others run and kill"]
fn a_program_that_writes_until_it_is_killed() {
    let Some(database) = std::env::var_os("STORE_VICTIM").map(PathBuf::from) else {
        return;
    };
    let deadline = std::env::var("STORE_VICTIM_DEADLINE").unwrap().parse().unwrap();
    let store = Store::new(StoreOptions {
        lock_deadline: Duration::from_millis(deadline),
        ..StoreOptions::at(database)
    });
    let mut out = std::io::stdout();
    // The test runner's own line has no end yet.
    writeln!(out).unwrap();
    for n in 0..500 {
        let id = format!("{}-{n}", std::process::id());
        let mut batch = round("c", &id);
        batch.open_turn(OpenTurn::new("c", id.as_str(), 1));
        let report = store.commit_blocking(batch);
        // In one write: a pipe takes a short line whole, so that a kill cannot leave half an acknowledgement.
        let line = format!("ack c {id}-r {:?}\n", report.durability);
        out.write_all(line.as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn nothing_acknowledged_is_lost_wherever_a_process_is_killed() {
    let kills: u64 = std::env::var("STORE_KILLS").map_or(20, |text| text.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let mut harness = Harness::new(home.path());
    let mut random = Random::new(3);
    for step in failpoint::STEPS {
        let in_spool = step.starts_with("spool.");
        // Somebody else has the lock, so that the victim's commits go to the spool.
        let held = in_spool.then(|| {
            let lock = harness.database.with_extension("redb.lock");
            let file = std::fs::File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(lock)
                .unwrap();
            file.lock().unwrap();
            file
        });
        let passing = match step {
            "commit.grow" => 1,
            _ => 1 + random.below(3),
        };
        let program = victim(&harness.database, if in_spool { 5 } else { 5_000 });
        harness.run(program, End::AtStep { step, passing });
        drop(held);
        harness.check();
    }
    for n in 0..kills {
        let program = victim(&harness.database, 5_000);
        harness.run(program, random_end(&mut random));
        if n % 10 == 9 || kills <= 50 {
            harness.check();
        }
    }
    harness.check();
    let toll = &harness.toll;
    println!(
        "{} kills, {} rounds acknowledged, {} lost",
        toll.kills,
        toll.acknowledged,
        toll.lost.len()
    );
    for step in failpoint::STEPS {
        println!(
            "  died after {step:<24} {:>5}",
            toll.steps.get(step).copied().unwrap_or(0)
        );
    }
    assert!(toll.lost.is_empty() && toll.invalid.is_empty(), "{toll:#?}");
    assert!(
        failpoint::STEPS.iter().all(|step| toll.steps.contains_key(*step)),
        "{toll:#?}"
    );
    assert!(SOMETIMES.iter().all(|step| failpoint::STEPS.contains(step)));
}

#[test]
fn the_harness_finds_a_program_that_acknowledges_too_early() {
    let home = tempfile::tempdir().unwrap();
    let mut harness = Harness::new(home.path());
    let mut program = own_program("store_kill::a_program_that_acknowledges_too_early");
    program.env("STORE_VICTIM", &harness.database);
    harness.run(
        program,
        End::AtStep {
            step: "commit.pages_synced",
            passing: 3,
        },
    );
    harness.check();
    assert_eq!(harness.toll.lost.len(), 1, "{:?}", harness.toll);
}

#[test]
#[ignore = "not a test: a program that is wrong on purpose"]
fn a_program_that_acknowledges_too_early() {
    let Some(database) = std::env::var_os("STORE_VICTIM").map(PathBuf::from) else {
        return;
    };
    let store = Store::new(StoreOptions::at(database));
    let mut out = std::io::stdout();
    // The test runner's own line has no end yet.
    writeln!(out).unwrap();
    for n in 0..20 {
        writeln!(out, "ack c {n}-r Durable").unwrap();
        out.flush().unwrap();
        store.commit_blocking(round("c", &n.to_string()));
    }
}
