//! Several processes on one file, forked children, and disks that are full.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_smith_core::message::Message;
use agent_smith_core::persistence::{Durability, NoticeKind, OpenTurn, Store, StoreOptions};
use serde_json::json;

use crate::support::store::{conversation, ids, is_valid_history, message, one, round, store, user};
use crate::support::victim::own_program;

const PROCESSES: usize = 4;
const TURNS: usize = 40;

#[test]
#[ignore = "not a test: one of the processes of the others"]
fn a_program_that_leads_turns() {
    let Some(database) = std::env::var_os("STORE_TURNS").map(PathBuf::from) else {
        return;
    };
    let me = std::process::id();
    let store = Store::new(StoreOptions::at(database));
    let mut out = std::io::stdout();
    // The test runner's own line has no end yet.
    writeln!(out).unwrap();
    // All begin at once: when the harness closes their input.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    for turn in 0..TURNS {
        // A conversation of its own, and one that all write to.
        for (place, conversation_id) in [format!("own-{me}"), "shared".to_owned()].into_iter().enumerate() {
            let turn_id = format!("{me}-{turn}-{place}");
            let mut begin = round(&conversation_id, &format!("{turn_id}-1"));
            begin.open_turn(OpenTurn::new(conversation_id.as_str(), turn_id.as_str(), 1));
            let mut end = round(&conversation_id, &format!("{turn_id}-2"));
            end.append_message(message(
                &conversation_id,
                &format!("{turn_id}-end"),
                Message::assistant("done"),
            ))
            .put_conversation(conversation(&conversation_id, turn as u64))
            .put_note(
                conversation_id.as_str(),
                format!("turn_record-{turn_id}"),
                json!({"turn": turn}),
            )
            .close_turn(conversation_id.as_str(), turn_id.as_str());
            for batch in [begin, end] {
                let report = store.commit_blocking(batch);
                writeln!(
                    out,
                    "wait {} {:?} {}",
                    report.lock_wait.as_micros(),
                    report.durability,
                    report.notices.len()
                )
                .unwrap();
            }
        }
    }
}

/// The median time of a commit that nobody else is in the way of, in milliseconds.
fn alone(home: &Path) -> f64 {
    let store = store(&home.join("alone.redb"));
    let mut times: Vec<Duration> = (0..15)
        .map(|n| {
            let start = Instant::now();
            store.commit_blocking(round("c", &n.to_string()));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

#[test]
fn four_processes_write_forty_turns_each_to_one_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent_smith.redb");
    let alone = alone(home.path());
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|_| {
            own_program("store_processes::a_program_that_leads_turns")
                .env("STORE_TURNS", &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        drop(child.stdin.take());
    }
    let mut waits = Vec::new();
    let mut troubles = Vec::new();
    let pids: Vec<u32> = children.iter().map(Child::id).collect();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let out = child.stdout.take().unwrap();
            std::thread::spawn(move || BufReader::new(out).lines().map(Result::unwrap).collect::<Vec<String>>())
        })
        .collect();
    for reader in readers {
        for line in reader.join().unwrap() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["wait", micros, "Durable", "0"] => waits.push(micros.parse::<u64>().unwrap()),
                ["wait", ..] => troubles.push(line),
                _ => {}
            }
        }
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(troubles, [""; 0]);
    assert_eq!(waits.len(), PROCESSES * TURNS * 4);
    waits.sort_unstable();
    let at = |percent: usize| waits[waits.len() * percent / 100] as f64 / 1000.0;
    println!(
        "{PROCESSES} processes, {TURNS} turns each in two conversations: wait for the lock p50 {:.2} ms, p99 {:.2} ms, \
         worst {:.2} ms (a commit alone takes {alone:.2} ms)",
        at(50),
        at(99),
        waits[waits.len() - 1] as f64 / 1000.0
    );
    // Where a single commit takes long, because the machine does something else, so does everything.
    assert!(at(99) < 250.0 * (alone / 5.0).max(1.0));
    store(&path)
        .read_blocking(|reader| {
            let shared = reader.messages("shared")?;
            is_valid_history(&shared).unwrap();
            let unique: BTreeSet<&str> = shared.iter().map(|message| message.id.as_str()).collect();
            assert_eq!(
                (shared.len(), unique.len()),
                (PROCESSES * TURNS * 5, PROCESSES * TURNS * 5)
            );
            assert_eq!(reader.notes("shared", "turn_record-")?.len(), PROCESSES * TURNS);
            for pid in &pids {
                let own = reader.messages(&format!("own-{pid}"))?;
                is_valid_history(&own).unwrap();
                assert_eq!(own.len(), TURNS * 5);
            }
            assert_eq!(reader.open_turns()?, []);
            assert_eq!(reader.conversations(10)?.len(), PROCESSES + 1);
            Ok(())
        })
        .unwrap();
}

/// A child that was forked and does not exec until this is dropped.
struct Forked {
    release: PathBuf,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Forked {
    /// Forks now: the child has everything that is open now. `in_child` runs in it.
    fn now(home: &Path, in_child: impl Fn() + Send + Sync + 'static) -> Self {
        let release = home.join(format!("release-{:?}", Instant::now()));
        let started = release.with_extension("started");
        let mut command = Command::new("true");
        let (wait_for, say) = (release.clone(), started.clone());
        let until_released = move || {
            in_child();
            File::create(&say)?;
            // Not for ever: the test may have failed, and its directory be gone.
            let start = Instant::now();
            while !wait_for.exists() && start.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        #[expect(
            unsafe_code,
            reason = "the only way to have a child that was forked and did not exec"
        )]
        // SAFETY: the child only makes and looks for files and allocates, which glibc allows after a fork; the locks of
        // this process's other threads are not taken in it.
        unsafe {
            command.pre_exec(until_released);
        }
        // It comes back when the child execs.
        let thread = std::thread::spawn(move || {
            assert!(command.status().unwrap().success());
        });
        while !started.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self {
            release,
            thread: Some(thread),
        }
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        File::create(&self.release).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn impatient(path: &Path) -> Store {
    Store::new(StoreOptions {
        lock_deadline: Duration::from_millis(50),
        ..StoreOptions::at(path)
    })
}

#[test]
fn a_child_forked_in_the_middle_of_a_commit_does_not_keep_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent_smith.redb");
    let forked: Arc<Mutex<Option<Forked>>> = Arc::default();
    let (slot, directory) = (Arc::clone(&forked), home.path().to_owned());
    // The disk is opened while the lock is held, so this is the middle of a commit.
    let store = Store::new(StoreOptions {
        disk: Some(Arc::new(move |path, write| {
            let file = File::options()
                .read(true)
                .write(true)
                .create(write)
                .truncate(false)
                .open(path)?;
            let backend = redb::backends::FileBackend::new(file).map_err(std::io::Error::other)?;
            let mut slot = slot.lock().unwrap();
            if write && slot.is_none() {
                *slot = Some(Forked::now(&directory, || ()));
            }
            Ok(Some(Box::new(backend)))
        })),
        ..StoreOptions::at(&path)
    });
    impatient(&path).commit_blocking(one("c", "m0"));
    assert_eq!(store.commit_blocking(one("c", "m1")).durability, Durability::Durable);
    assert!(forked.lock().unwrap().is_some(), "nothing was forked");
    assert_eq!(
        impatient(&path).commit_blocking(one("c", "m2")).durability,
        Durability::Durable
    );
    assert_eq!(store.commit_blocking(one("c", "m3")).durability, Durability::Durable);
    assert_eq!(ids(&impatient(&path), "c").unwrap(), ["m0", "m1", "m2", "m3"]);
    drop(forked.lock().unwrap().take());
}

#[test]
fn a_child_forked_in_the_middle_of_a_question_keeps_nothing_and_may_not_use_the_store() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("agent_smith.redb");
    let store = impatient(&path);
    store.commit_blocking(one("c", "m1"));
    let (in_child, refused) = (store.clone(), home.path().join("refused"));
    let says = refused.clone();
    let forked = store
        .read_blocking(|_| {
            Ok(Forked::now(home.path(), move || {
                let report = in_child.commit_blocking(one("c", "from the child"));
                let question = in_child.read_blocking(|reader| reader.messages("c"));
                if report.durability == Durability::MemoryOnly
                    && report.notices[0].message.contains("forked")
                    && question.is_err()
                {
                    File::create(&says).unwrap();
                }
            }))
        })
        .unwrap();
    assert!(refused.exists(), "the child was not refused");
    assert_eq!(
        impatient(&path).commit_blocking(one("c", "m2")).durability,
        Durability::Durable
    );
    assert_eq!(store.commit_blocking(one("c", "m3")).durability, Durability::Durable);
    drop(forked);
    assert_eq!(ids(&store, "c").unwrap(), ["m1", "m2", "m3"]);
}

#[test]
fn a_lock_that_is_only_closed_stays_with_a_forked_child() {
    // What the two tests above would find if the lock was not released explicitly.
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    let open = || {
        File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .unwrap()
    };
    let file = open();
    file.lock().unwrap();
    let forked = Forked::now(home.path(), || ());
    drop(file);
    assert!(open().try_lock().is_err());
    drop(forked);
    open().try_lock().unwrap();
}

#[test]
#[ignore = "not a test: a process whose files may not grow"]
fn a_program_on_a_full_disk() {
    let Some(database) = std::env::var_os("STORE_FULL").map(PathBuf::from) else {
        return;
    };
    let large = std::env::var("STORE_FULL_LARGE").is_ok();
    let store = store(&database);
    let mut out = std::io::stdout();
    let mut expected = Vec::new();
    // The test runner's own line has no end yet.
    writeln!(out).unwrap();
    for n in 0..120 {
        let id = format!("m{n:03}");
        let bytes = if large && n == 100 { 400_000 } else { 3_000 };
        let mut batch = agent_smith_core::persistence::Batch::new();
        batch.append_message(message("c", &id, Message::user("x".repeat(bytes))));
        let report = store.commit_blocking(batch);
        let told: Vec<NoticeKind> = report.notices.iter().map(|notice| notice.kind).collect();
        writeln!(out, "commit {id} {:?} {told:?}", report.durability).unwrap();
        expected.push(id);
    }
    writeln!(out, "seen {}", ids(&store, "c").unwrap() == expected).unwrap();
}

/// The lines of a process that may not write files longer than `kilobytes`.
fn on_a_full_disk(database: &Path, kilobytes: u64, large: bool) -> Vec<Vec<String>> {
    let program = own_program("store_processes::a_program_on_a_full_disk");
    let mut shell = Command::new("sh");
    // The signal that comes with the error is ignored, as in a thread that has signals blocked.
    shell
        .args([
            "-c",
            &format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kilobytes * 2),
            "sh",
        ])
        .arg(program.get_program())
        .args(program.get_args())
        .env("STORE_FULL", database);
    if large {
        shell.env("STORE_FULL_LARGE", "1");
    }
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.splitn(4, ' ').map(str::to_owned).collect::<Vec<_>>())
        .filter(|words: &Vec<String>| matches!(words[0].as_str(), "commit" | "seen"))
        .collect()
}

#[test]
fn on_a_full_disk_the_session_goes_on_and_the_user_is_told_once() {
    for (large, worst) in [(false, "Spooled"), (true, "MemoryOnly")] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("agent_smith.redb");
        let lines = on_a_full_disk(&path, 300, large);
        assert_eq!(lines.last().unwrap(), &["seen", "true"]);
        let commits = &lines[..lines.len() - 1];
        assert_eq!(commits.len(), 120);
        let safe: Vec<String> = commits
            .iter()
            .filter(|words| words[2] != "MemoryOnly")
            .map(|words| words[1].clone())
            .collect();
        let count = |durability: &str| commits.iter().filter(|words| words[2] == durability).count();
        println!(
            "a disk of 300 KB: {} durable, {} spooled, {} in memory",
            count("Durable"),
            count("Spooled"),
            count("MemoryOnly")
        );
        assert!(count("Durable") > 5 && count("Spooled") > 5, "{commits:?}");
        assert_eq!(commits.last().unwrap()[2], worst);
        let told: Vec<&str> = commits
            .iter()
            .map(|words| words[3].as_str())
            .filter(|told| *told != "[]")
            .collect();
        let expected = if large {
            vec!["[Spooled]", "[NotSaved]"]
        } else {
            vec!["[Spooled]"]
        };
        assert_eq!(told, expected);
        // With space again, everything that was said to be safe is there.
        let next = store(&path);
        let report = next.commit_blocking(agent_smith_core::persistence::Batch::new());
        assert_eq!((report.durability, report.notices), (Durability::Durable, Vec::new()));
        assert_eq!(ids(&next, "c").unwrap(), safe);
        assert_eq!(
            next.commit_blocking({
                let mut batch = agent_smith_core::persistence::Batch::new();
                batch.append_message(user("c", "after"));
                batch
            })
            .durability,
            Durability::Durable
        );
    }
}
