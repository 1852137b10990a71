//! What the store costs, next to what the disk costs: `cargo bench --bench store [-- disk|first|commit|read|kill]`.
//!
//! `STORE_BENCH_DIR` says where the files are made (default: the system's temporary directory; it must not be a tmpfs, or
//! the figures say nothing about durability), `STORE_BENCH_MB` how large the file of `kill` is (default 1024).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on stops, and prints what it measured"
)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent_smith_core::message::Message;
use agent_smith_core::persistence::{Batch, ConversationRecord, Durability, MessageRecord, Store, StoreOptions};

#[link(name = "luajit", kind = "static", modifiers = "+whole-archive,-bundle")]
#[expect(
    unsafe_code,
    reason = "an empty extern block, only there to link LuaJIT into the bench binary"
)]
unsafe extern "C" {}

/// The mode in which this program is its own victim: it commits until it is killed.
const VICTIM: &str = "victim";

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let [mode, path] = arguments.as_slice()
        && mode == VICTIM
    {
        return victim(Path::new(path));
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    let home = match std::env::var_os("STORE_BENCH_DIR") {
        Some(directory) => tempfile::tempdir_in(directory).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    if wanted("disk") {
        disk(home.path());
    }
    if wanted("first") {
        first(home.path());
    }
    if wanted("commit") {
        commit(home.path());
    }
    if wanted("read") {
        read(home.path());
    }
    if wanted("kill") {
        kill(home.path());
    }
}

/// The times of one thing done many times.
struct Times(Vec<Duration>);

impl Times {
    fn of(count: usize, mut run: impl FnMut(usize)) -> Self {
        let mut times: Vec<Duration> = (0..count)
            .map(|n| {
                let start = Instant::now();
                run(n);
                start.elapsed()
            })
            .collect();
        times.sort();
        Self(times)
    }

    fn at(&self, percent: usize) -> f64 {
        let at = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[at].as_secs_f64() * 1000.0
    }

    fn print(&self, what: &str) {
        println!("{what:<58} p50 {:7.3} ms   p99 {:7.3} ms", self.at(50), self.at(99));
    }
}

/// What one durable write costs on this disk without any database.
fn disk(home: &Path) {
    let path = home.join("disk");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    file.write_all_at(&vec![0; 4 << 20], 0).unwrap();
    file.sync_all().unwrap();
    Times::of(500, |n| {
        file.write_all_at(&[1; 4096], (n % 1000 * 4096) as u64).unwrap();
        file.sync_data().unwrap();
    })
    .print("disk: write 4 KiB in place + fdatasync");
    Times::of(500, |n| {
        for page in 1..8 {
            file.write_all_at(&[n as u8; 4096], ((n * 37 + page * 101) % 1000 * 4096) as u64)
                .unwrap();
        }
        file.sync_data().unwrap();
        file.write_all_at(&[n as u8; 4096], 0).unwrap();
        file.sync_data().unwrap();
    })
    .print("disk: 7 pages + fdatasync + 1 page + fdatasync");
    let path = home.join("engine.redb");
    let table = redb::TableDefinition::<&str, &[u8]>::new("message");
    Times::of(300, |n| {
        let database = redb::Database::create(&path).unwrap();
        let mut txn = database.begin_write().unwrap();
        txn.set_quick_repair(true);
        txn.open_table(table)
            .unwrap()
            .insert(format!("{n:020}").as_str(), [7; 1000].as_slice())
            .unwrap();
        txn.commit().unwrap();
    })
    .print("engine by itself: open, commit 1 KB with quick repair, close");
}

fn message(conversation: &str, id: String, bytes: usize) -> MessageRecord {
    MessageRecord {
        id,
        conversation_id: conversation.to_owned(),
        turn_id: "t1".to_owned(),
        seq: 0,
        ts: 1,
        message: Message::user("x".repeat(bytes)),
    }
}

fn one(conversation: &str, id: String) -> Batch {
    let mut batch = Batch::new();
    batch.append_message(message(conversation, id, 1000));
    batch
}

fn fill(store: &Store, conversation: &str, messages: usize, bytes: usize) {
    let mut done = 0;
    while done < messages {
        let mut batch = Batch::new();
        for n in done..messages.min(done + 1000) {
            batch.append_message(message(conversation, format!("fill-{n}"), bytes));
        }
        done += 1000;
        assert_eq!(store.commit_blocking(batch).durability, Durability::Durable);
    }
}

/// What a process pays that has just begun.
fn first(home: &Path) {
    Times::of(30, |n| {
        let path = home.join(format!("first-{n}/new/agent_smith.redb"));
        let store = Store::new(StoreOptions::at(path));
        assert_eq!(
            store.commit_blocking(one("c", "m".to_owned())).durability,
            Durability::Durable
        );
    })
    .print("first commit, with the directory and the file to be made");
    let path = home.join("first.redb");
    let store = Store::new(StoreOptions::at(&path));
    let mut batch = Batch::new();
    for n in 0..2_000 {
        batch.put_conversation(ConversationRecord {
            id: format!("c{n}"),
            project_id: "p".to_owned(),
            updated: n,
            system_prompt: Some("x".repeat(8000)),
            ..ConversationRecord::default()
        });
    }
    store.commit_blocking(batch);
    fill(&store, "c1999", 100, 1000);
    Times::of(200, |_| {
        let store = Store::new(StoreOptions::at(&path));
        let last = store.read_blocking(|reader| match reader.latest_free_conversation("p")? {
            Some(last) => Ok(reader.messages(&last.id)?.len()),
            None => Ok(0),
        });
        assert_eq!(black_box(last).unwrap(), 100);
    })
    .print("first question: the last of 2,000 conversations, 100 messages");
    Times::of(200, |n| {
        let store = Store::new(StoreOptions::at(&path));
        store.commit_blocking(one("c1999", format!("m{n}")));
    })
    .print("first commit of a process to that");
}

fn commit(home: &Path) {
    const SIZES: [usize; 3] = [10, 1_000, 100_000];
    let stores: Vec<Store> = SIZES
        .iter()
        .map(|messages| {
            let store = Store::new(StoreOptions::at(home.join(format!("commit-{messages}.redb"))));
            fill(&store, "c", *messages, 1000);
            store.commit_blocking(one("c", "warm".to_owned()));
            store
        })
        .collect();
    // In turns, so that a disk that is slower for a while is so for all of them.
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); SIZES.len()];
    for n in 0..500 {
        for (store, times) in stores.iter().zip(&mut times) {
            let batch = one("c", format!("m{n}"));
            let start = Instant::now();
            let report = store.commit_blocking(batch);
            times.push(start.elapsed());
            assert_eq!(report.durability, Durability::Durable);
        }
    }
    let mut p50 = Vec::new();
    for ((messages, store), mut times) in SIZES.iter().zip(&stores).zip(times) {
        times.sort();
        let times = Times(times);
        let mb = store
            .path()
            .and_then(|path| fs::metadata(path).ok())
            .map_or(0, |file| file.len() >> 20);
        times.print(&format!("commit: one message of 1 KB to {messages} ({mb} MB)"));
        p50.push(times.at(50));
    }
    println!("commit: p50 at 100,000 messages / p50 at 10: {:.2}", p50[2] / p50[0]);
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let peak = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or_default();
        println!("commit: most memory this process used meanwhile, filling included: {peak}");
    }
}

fn read(home: &Path) {
    for messages in [10, 100_000] {
        let path = home.join(format!("read-{messages}.redb"));
        let store = Store::new(StoreOptions::at(&path));
        let mut batch = Batch::new();
        batch.put_conversation(ConversationRecord {
            id: "small".to_owned(),
            project_id: "p".to_owned(),
            ..ConversationRecord::default()
        });
        store.commit_blocking(batch);
        fill(&store, "large", messages, 1000);
        fill(&store, "small", 20, 1000);
        Times::of(300, |_| {
            let seen = store.read_blocking(|reader| reader.messages("small")).unwrap();
            assert_eq!(black_box(seen).len(), 20);
        })
        .print(&format!("read: 20 messages beside {messages}"));
    }
}

/// Opening a large file after its last writer was killed in the middle of a commit.
fn kill(home: &Path) {
    let megabytes: usize = std::env::var("STORE_BENCH_MB").map_or(1024, |text| text.parse().unwrap());
    let path = home.join("kill.redb");
    let store = Store::new(StoreOptions::at(&path));
    let start = Instant::now();
    // Half-full leaves make the file larger than what is in it.
    let mut messages = 0;
    while fs::metadata(&path).map_or(0, |file| file.len() >> 20) < megabytes as u64 {
        messages += 1000;
        fill(&store, &format!("c{}", messages / 1000), 1000, 8000);
    }
    drop(store);
    println!(
        "kill: {} MB with {messages} messages made in {:.1} s",
        fs::metadata(&path).unwrap().len() >> 20,
        start.elapsed().as_secs_f64()
    );
    let mut reads = Vec::new();
    let mut commits = Vec::new();
    for round in 0..20_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([VICTIM, path.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..3 {
            lines.next().unwrap().unwrap();
        }
        // Somewhere in the next commit.
        std::thread::sleep(Duration::from_micros(150 * (round % 10)));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::new(StoreOptions::at(&path));
        let start = Instant::now();
        let found = store.read_blocking(|reader| reader.conversation("none")).unwrap();
        reads.push(start.elapsed());
        assert!(found.is_none());
        let start = Instant::now();
        let report = store.commit_blocking(one("c", format!("after-{round}")));
        commits.push(start.elapsed());
        assert_eq!(report.durability, Durability::Durable);
    }
    for (what, mut times) in [("first question", reads), ("first commit", commits)] {
        times.sort();
        println!(
            "kill: {what} after SIGKILL{:<28} median {:6.2} ms   worst {:6.2} ms",
            "",
            times[times.len() / 2].as_secs_f64() * 1000.0,
            times[times.len() - 1].as_secs_f64() * 1000.0
        );
    }
}

fn victim(path: &Path) {
    let store = Store::new(StoreOptions::at(path));
    for n in 0.. {
        let id = format!("v{}-{n}", std::process::id());
        assert_eq!(store.commit_blocking(one("c", id)).durability, Durability::Durable);
        println!("ack {n}");
    }
}
