//! The store where the file, the disk or another process is in the way: the turn goes on, the user is told, and nothing
//! that was saved is lost.

use std::fs;
use std::path::Path;
use std::time::Duration;

use agent_smith_core::persistence::{Batch, Durability, NoticeKind, Store, StoreError, StoreOptions};

use crate::support::store::{ids, one, store};

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn quick(path: &Path) -> Store {
    Store::new(StoreOptions {
        lock_deadline: Duration::from_millis(20),
        ..StoreOptions::at(path)
    })
}

/// Somebody else holds the lock as long as this lives.
fn hold(path: &Path) -> fs::File {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(name)
        .unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_file_that_is_no_database_is_moved_aside_and_told_and_never_overwritten() {
    for (name, content) in [
        ("text", b"this is not a database at all".to_vec()),
        ("short", vec![b'r']),
        ("zeros", vec![0; 5_000_000]),
        (
            "noise",
            (0..200_000_u32)
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect(),
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.redb");
        for round in 1..=2 {
            fs::write(&path, &content).unwrap();
            // The first through a commit, the second through a question.
            let store = store(&path);
            if round == 2 {
                assert_eq!(ids(&store, "c").unwrap(), [""; 0], "{name}");
            }
            let report = store.commit_blocking(one("c", "m"));
            assert_eq!(report.durability, Durability::Durable, "{name}: {:?}", report.notices);
            assert_eq!(report.notices.len(), 1, "{name}");
            let notice = &report.notices[0];
            assert_eq!(notice.kind, NoticeKind::MovedAside);
            let moved = notice.path.as_ref().unwrap();
            assert!(notice.message.contains(moved.to_str().unwrap()));
            assert_eq!(fs::read(moved).unwrap(), content, "{name}");
            assert_eq!(ids(&store, "c").unwrap(), ["m"]);
            assert_eq!(store.commit_blocking(one("c", "m2")).notices, []);
        }
        let aside = files(home.path())
            .into_iter()
            .filter(|name| name.contains("damaged"))
            .count();
        assert_eq!(aside, 2, "{name}: {:?}", files(home.path()));
    }
}

#[test]
fn a_damaged_database_is_moved_aside_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let first = store(&path);
    for n in 0..200 {
        first.commit_blocking(one("c", &format!("m{n}")));
    }
    let mut bytes = fs::read(&path).unwrap();
    // Everything behind the header page is noise: the roots are gone.
    for (at, byte) in bytes.iter_mut().enumerate().skip(4096) {
        *byte = (at.wrapping_mul(31) >> 3) as u8;
    }
    fs::write(&path, &bytes).unwrap();
    let report = store(&path).commit_blocking(one("c", "new"));
    assert_eq!(report.durability, Durability::Durable, "{:?}", report.notices);
    let moved = report.notices[0].path.clone().unwrap();
    assert_eq!(fs::read(moved).unwrap(), bytes);
    assert_eq!(ids(&store(&path), "c").unwrap(), ["new"]);
}

#[test]
fn a_newer_schema_is_refused_unchanged_and_what_is_new_waits() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    {
        let database = redb::Database::create(&path).unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(redb::TableDefinition::<&str, &[u8]>::new("meta"))
            .unwrap()
            .insert("schema_version", b"3".as_slice())
            .unwrap();
        txn.commit().unwrap();
    }
    let before = fs::read(&path).unwrap();
    let store = store(&path);
    let error = ids(&store, "c").unwrap_err();
    assert!(
        matches!(error, StoreError::NewerSchema { found: 3, known: 2, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("update agent-smith"));
    for expected in [1, 0] {
        let report = store.commit_blocking(one("c", &format!("m{expected}")));
        assert_eq!(report.durability, Durability::Spooled);
        assert_eq!(report.notices.len(), expected);
    }
    assert_eq!(ids(&store, "c").unwrap(), ["m1", "m0"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(files(&home.path().join("a.spool")).len(), 2);
}

#[test]
fn what_could_not_wait_for_the_lock_is_spooled_and_merged_once_in_order() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let store = quick(&path);
    store.commit_blocking(one("c", "m1"));
    let held = hold(&path);
    for (id, notices) in [("m2", 1), ("m3", 0)] {
        let report = store.commit_blocking(one("c", id));
        assert_eq!(
            (report.durability, report.notices.len()),
            (Durability::Spooled, notices)
        );
    }
    assert!(matches!(ids(&store, "c"), Err(StoreError::Busy { .. })));
    // Everything a process was told was spooled outlives it.
    let saved: Vec<(String, Vec<u8>)> = files(&home.path().join("a.spool"))
        .into_iter()
        .map(|name| (name.clone(), fs::read(home.path().join("a.spool").join(name)).unwrap()))
        .collect();
    drop(held);

    let other = quick(&path);
    assert_eq!(ids(&other, "c").unwrap(), ["m1", "m2", "m3"]);
    let report = other.commit_blocking(one("c", "m4"));
    assert_eq!((report.durability, report.notices.len()), (Durability::Durable, 0));
    assert_eq!(files(&home.path().join("a.spool")), [""; 0]);
    let report = store.commit_blocking(one("c", "m5"));
    assert_eq!(
        report.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>(),
        [NoticeKind::SavedAgain]
    );
    // A crash between the merge and the removal of the files: merging again changes nothing.
    for (name, content) in saved {
        fs::write(home.path().join("a.spool").join(name), content).unwrap();
    }
    other.commit_blocking(Batch::new());
    assert_eq!(ids(&other, "c").unwrap(), ["m1", "m2", "m3", "m4", "m5"]);
    assert_eq!(files(&home.path().join("a.spool")), [""; 0]);
}

#[test]
fn a_damaged_spool_file_is_set_aside_and_a_newer_one_waits() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let store = quick(&path);
    let held = hold(&path);
    for id in ["m1", "m2", "m3"] {
        store.commit_blocking(one("c", id));
    }
    drop(held);
    let spool = home.path().join("a.spool");
    let names = files(&spool);
    let mut bytes = fs::read(spool.join(&names[0])).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    fs::write(spool.join(&names[0]), &bytes).unwrap();
    let text = br#"{"version":9,"what":"ever"}"#;
    let newer = format!(
        "{} {}\n",
        agent_smith_core::persistence::sha256_hex(text),
        String::from_utf8_lossy(text)
    );
    fs::write(spool.join(&names[1]), &newer).unwrap();

    let report = store.commit_blocking(one("c", "m4"));
    assert_eq!(report.durability, Durability::Durable);
    let kinds: Vec<_> = report.notices.iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, [NoticeKind::Spool, NoticeKind::Spool, NoticeKind::SavedAgain]);
    assert_eq!(ids(&store, "c").unwrap(), ["m3", "m4"]);
    assert_eq!(files(&spool), [format!("{}.damaged", names[0]), names[1].clone()]);
    assert_eq!(fs::read(spool.join(format!("{}.damaged", names[0]))).unwrap(), bytes);
    assert_eq!(fs::read_to_string(spool.join(&names[1])).unwrap(), newer);
}

#[test]
fn a_home_below_a_regular_file_keeps_the_session_in_memory_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    let path = file.join("share/agent_smith.redb");
    let store = store(&path);
    assert_eq!(ids(&store, "c").unwrap(), [""; 0]);
    for (id, notices) in [("m1", 1), ("m2", 0)] {
        let report = store.commit_blocking(one("c", id));
        assert_eq!(report.durability, Durability::MemoryOnly);
        assert_eq!(report.notices.len(), notices, "{:?}", report.notices);
        for notice in report.notices {
            assert_eq!(notice.kind, NoticeKind::NotSaved);
            assert!(notice.message.contains(path.to_str().unwrap()), "{}", notice.message);
        }
    }
    assert_eq!(ids(&store, "c").unwrap(), ["m1", "m2"]);
    // The hindrance goes away: everything is saved, in order, and told.
    fs::remove_file(&file).unwrap();
    let report = store.commit_blocking(one("c", "m3"));
    assert_eq!(report.durability, Durability::Durable);
    assert_eq!(
        report.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>(),
        [NoticeKind::SavedAgain]
    );
    assert_eq!(ids(&self::store(&path), "c").unwrap(), ["m1", "m2", "m3"]);
}

#[test]
fn a_file_that_was_only_half_begun_is_begun_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    store(&path).commit_blocking(one("c", "m"));
    // What the engine leaves when it is killed while it makes the file: everything but the first bytes.
    let mut unborn = fs::read(&path).unwrap();
    unborn.truncate(73_728);
    unborn[..9].fill(0);
    unborn[4096..].fill(0);
    for content in [unborn, vec![0; 73_728], Vec::new()] {
        fs::write(&path, content).unwrap();
        let store = store(&path);
        assert_eq!(ids(&store, "c").unwrap(), [""; 0]);
        let report = store.commit_blocking(one("c", "m"));
        assert_eq!(
            (report.durability, report.notices.len()),
            (Durability::Durable, 0),
            "{:?}",
            report.notices
        );
        assert_eq!(ids(&store, "c").unwrap(), ["m"]);
    }
}

#[test]
fn a_panic_that_the_store_catches_can_be_told_from_others() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("a.redb"));
    store.commit_blocking(one("c", "m"));
    assert!(!agent_smith_core::persistence::is_contained());
    let within = store.read_blocking(|_| Ok(agent_smith_core::persistence::is_contained()));
    assert!(within.unwrap());
    assert!(!agent_smith_core::persistence::is_contained());
}
