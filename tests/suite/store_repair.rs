//! Damaged databases: nothing ends the process, nothing is thrown away, and what is readable can be brought back; and what
//! keeps a sound one small.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use agent_smith_core::message::Message;
use agent_smith_core::persistence::{
    Batch, Durability, ProjectMemory, Store, StoreOptions, compact, export, repair, stats,
};
use serde_json::{Value, json};

use crate::support::power::Random;
use crate::support::store::{conversation, ids, message, one, round, store};

const MESSAGES: usize = 300;

/// A database with something of every kind in it.
fn filled(path: &Path) -> Vec<String> {
    let store = store(path);
    let mut expected = Vec::new();
    for n in 0..MESSAGES {
        let id = format!("m{n:04}");
        let text = format!("{id} {}", "text ".repeat(n * 7 % 900));
        let mut batch = Batch::new();
        batch.append_message(message("c", &id, Message::user(text)));
        batch.put_note("c", format!("turn_record-{n}"), json!({"n": n}));
        if n % 50 == 0 {
            batch.append_message(message("long", &id, Message::user(long_text(n))));
            batch.put_conversation(conversation("c", n as u64));
            batch.put_memory(ProjectMemory {
                project_id: "p1".to_owned(),
                id: id.clone(),
                content: "remember".to_owned(),
                ..ProjectMemory::default()
            });
        }
        assert_eq!(store.commit_blocking(batch).durability, Durability::Durable);
        expected.push(id);
    }
    let mut last = Batch::new();
    last.put_config_patch(json!({"a": 1})).set_active_conversation("c");
    store.commit_blocking(last);
    expected
}

fn long_text(n: usize) -> String {
    format!("{n} ").repeat(20_000)
}

fn options(path: &Path) -> StoreOptions {
    StoreOptions::at(path)
}

fn aside(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains(".damaged-"))
        .collect();
    found.sort();
    found
}

#[test]
fn a_database_without_its_first_page_is_brought_back_record_by_record() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let expected = filled(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..4096].fill(0xAA);
    fs::write(&path, &bytes).unwrap();

    let report = repair(&options(&path)).unwrap();
    assert!(!report.sound && report.damage.is_some());
    let [salvaged] = report.salvaged.as_slice() else {
        panic!("{report:?}")
    };
    assert!(salvaged.reached.is_empty() && !salvaged.is_whole(), "{salvaged:?}");
    assert_eq!(salvaged.loose["message"], (MESSAGES + MESSAGES / 50) as u64);
    assert_eq!(
        fs::read(&salvaged.source).unwrap(),
        bytes,
        "the damaged file is kept as it was"
    );
    assert!(salvaged.source.to_str().unwrap().ends_with(".saved"));

    let store = store(&path);
    assert_eq!(ids(&store, "c").unwrap(), expected);
    store
        .read_blocking(|reader| {
            assert_eq!(reader.conversation("c")?.unwrap().updated, (MESSAGES - 50) as u64);
            assert_eq!(reader.notes("c", "turn_record-")?.len(), MESSAGES);
            assert_eq!(reader.memories("p1")?.len(), MESSAGES / 50);
            assert_eq!(reader.config_patch()?, Some(json!({"a": 1})));
            let long = reader.messages("long")?;
            let texts: Vec<String> = long.into_iter().map(|message| message.message.content).collect();
            assert_eq!(texts, (0..MESSAGES).step_by(50).map(long_text).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
    assert!(
        repair(&options(&path)).unwrap().salvaged.is_empty(),
        "what was saved is not saved again"
    );
}

#[test]
fn random_damage_never_ends_the_process_and_costs_only_what_it_hit() {
    let home = tempfile::tempdir().unwrap();
    let whole = home.path().join("whole.redb");
    let expected: BTreeSet<String> = filled(&whole).into_iter().collect();
    let original = fs::read(&whole).unwrap();
    let mut random = Random::new(7);
    let mut saved = Vec::new();
    for case in 0..30 {
        let directory = home.path().join(case.to_string());
        fs::create_dir(&directory).unwrap();
        let path = directory.join("a.redb");
        let mut bytes = original.clone();
        match case % 3 {
            // Pages of noise.
            0 => {
                for _ in 0..1 + random.below(20) {
                    let page = usize::try_from(1 + random.below(bytes.len() as u64 / 4096 - 1)).unwrap() * 4096;
                    for byte in &mut bytes[page..page + 4096] {
                        *byte = random.next() as u8;
                    }
                }
            }
            // Single bytes.
            1 => {
                for _ in 0..1 + random.below(60) {
                    let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
                    bytes[at] = random.next() as u8;
                }
            }
            // The end is missing.
            _ => bytes.truncate(usize::try_from(random.below(bytes.len() as u64)).unwrap()),
        }
        fs::write(&path, &bytes).unwrap();
        // An ordinary process comes first: whatever it makes of the file, it goes on.
        let process = store(&path);
        let _ = ids(&process, "c");
        let report = process.commit_blocking(one("c", "later"));
        assert_ne!(report.durability, Durability::MemoryOnly, "case {case}: {report:?}");
        drop(process);
        let report = repair(&options(&path)).unwrap_or_else(|error| panic!("case {case}: {error}"));
        let after = store(&path);
        after.commit_blocking(Batch::new());
        let seen = ids(&after, "c").unwrap();
        assert_eq!(seen.last().map(String::as_str), Some("later"), "case {case}");
        let unique: BTreeSet<String> = seen.iter().cloned().collect();
        assert_eq!(unique.len(), seen.len(), "case {case}: a message is there twice");
        let kept = expected.intersection(&unique).count();
        assert!(
            kept == expected.len() || !report.sound || !report.salvaged.is_empty() || case % 3 == 1,
            "case {case}: only {kept} messages and not a word: {report:?}"
        );
        if case % 3 == 0 {
            saved.push(kept);
        }
        assert!(repair(&options(&path)).unwrap().sound);
    }
    println!("messages saved of {MESSAGES} with up to 20 pages of noise: {saved:?}");
    // A page of 4 KB holds about two messages here; twenty hold no more than sixty.
    assert!(saved.iter().all(|kept| *kept >= MESSAGES - 60), "{saved:?}");
}

#[test]
fn a_conversation_that_went_on_in_a_new_database_gets_its_past_back_in_front() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let past = filled(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..512].fill(1);
    fs::write(&path, &bytes).unwrap();
    let process = store(&path);
    process.commit_blocking(round("c", "new"));
    let mut batch = Batch::new();
    batch
        .put_conversation(conversation("c", 9_999))
        .put_config_patch(json!({"a": 2}));
    process.commit_blocking(batch);
    assert_eq!(aside(home.path()).len(), 1);
    assert_eq!(stats(&options(&path)).unwrap().damaged, aside(home.path()));

    let report = repair(&options(&path)).unwrap();
    assert!(report.sound && report.moved_to.is_none());
    assert_eq!(report.salvaged.len(), 1);
    let mut expected = past;
    expected.extend(["new-a".to_owned(), "new-r".to_owned()]);
    assert_eq!(ids(&process, "c").unwrap(), expected);
    process
        .read_blocking(|reader| {
            assert_eq!(reader.conversation("c")?.unwrap().updated, 9_999);
            assert_eq!(reader.config_patch()?, Some(json!({"a": 2})));
            Ok(())
        })
        .unwrap();
    // It goes on from there.
    process.commit_blocking(one("c", "next"));
    expected.push("next".to_owned());
    assert_eq!(ids(&process, "c").unwrap(), expected);
    assert!(stats(&options(&path)).unwrap().damaged.is_empty());
}

#[test]
fn a_sound_database_and_none_at_all_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let report = repair(&options(&path)).unwrap();
    assert!(report.sound && report.salvaged.is_empty());
    filled(&path);
    let before = fs::read(&path).unwrap();
    let report = repair(&options(&path)).unwrap();
    assert!(report.sound && report.salvaged.is_empty());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(repair(&StoreOptions::ephemeral()).is_err());
}

#[test]
fn sizes_are_told_by_keyspace_and_compacting_gives_space_back() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let expected = filled(&path);
    let store = store(&path);
    let mut keep = Batch::new();
    let kept = keep.put_blob(b"named by a note".to_vec());
    keep.put_note("c", "file", json!({"blob": kept}));
    let gone = keep.put_blob(vec![7; 2_000_000]);
    store.commit_blocking(keep);
    let before = stats(&options(&path)).unwrap();
    let records = |name: &str| {
        before
            .keyspaces
            .iter()
            .find(|keyspace| keyspace.name == name)
            .unwrap()
            .records
    };
    assert_eq!(records("message"), (MESSAGES + MESSAGES / 50) as u64);
    assert_eq!(records("message_id"), records("message"));
    assert_eq!(records("conversation_note"), MESSAGES as u64 + 1);
    assert_eq!(records("blob"), (MESSAGES / 50) as u64 + 2);
    assert_eq!((before.schema_version, before.spooled), (Some(2), 0));
    assert_eq!(before.file_bytes, fs::metadata(&path).unwrap().len());
    assert!(
        before
            .keyspaces
            .iter()
            .all(|keyspace| (keyspace.records > 0) == (keyspace.stored_bytes > 0))
    );

    let report = compact(&options(&path)).unwrap();
    assert_eq!(report.removed_blobs, 1);
    assert_eq!(report.before_bytes, before.file_bytes);
    assert_eq!(report.after_bytes, fs::metadata(&path).unwrap().len());
    assert!(report.after_bytes + 1_000_000 < report.before_bytes, "{report:?}");
    assert_eq!(ids(&store, "c").unwrap(), expected);
    store
        .read_blocking(|reader| {
            assert!(reader.blob(&kept)?.is_some() && reader.blob(&gone)?.is_none());
            assert_eq!(reader.messages("long")?[1].message.content, long_text(50));
            Ok(())
        })
        .unwrap();
    assert_eq!(store.commit_blocking(one("c", "after")).durability, Durability::Durable);
    assert!(repair(&options(&path)).unwrap().sound);
}

#[test]
fn an_export_holds_every_record_once_as_a_line_of_json() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    filled(&path);
    let store = store(&path);
    let mut batch = Batch::new();
    let name = batch.put_blob(vec![0xFF, 0x00]);
    store.commit_blocking(batch);
    let mut out = Vec::new();
    let lines = export(&store, &mut out).unwrap();
    let records: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let total: u64 = stats(&options(&path))
        .unwrap()
        .keyspaces
        .iter()
        .map(|keyspace| keyspace.records)
        .sum();
    assert_eq!((lines, records.len() as u64), (total, total));
    let keys: BTreeSet<(String, String)> = records
        .iter()
        .map(|record| (record["keyspace"].to_string(), record["key"].to_string()))
        .collect();
    assert_eq!(keys.len() as u64, total);
    let find = |keyspace: &str, key: &str| {
        records
            .iter()
            .find(|record| record["keyspace"] == keyspace && record["key"] == key)
            .map(|record| record["record"].clone())
            .unwrap()
    };
    assert_eq!(find("blob", &name), json!({"bytes": 2, "hex": "ff00"}));
    assert_eq!(find("meta", "schema_version"), json!("2"));
    assert_eq!(find("message", "c:00000000000000000001")["id"], "m0000");
    // What another process could not put into the database yet is exported, too.
    let other = Store::new(StoreOptions::at(&path));
    assert_eq!(export(&other, &mut Vec::new()).unwrap(), total);
}
