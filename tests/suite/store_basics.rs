//! The store on an ordinary disk: what is committed comes back, in order, once.

use std::future::Future;

use agent_smith_core::message::{Message, Usage};
use agent_smith_core::persistence::{
    Batch, Durability, LiveTerminal, NoticeKind, OpenTurn, ProcessStamp, ProjectMemory, Store, StoreError,
    StoreOptions, UsageRecord,
};
use serde_json::json;

use crate::support::store::{conversation, ids, is_valid_history, message, one, round, store, user};

#[test]
fn a_turn_comes_back_in_another_process_as_it_was_written() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data/lilush/agent_smith.redb");
    let first = store(&path);
    assert!(!path.exists(), "a new handle does no input or output");

    let mut batch = Batch::new();
    batch
        .put_conversation(conversation("c1", 10))
        .open_turn(OpenTurn::new("c1", "t1", 10))
        .append_message(user("c1", "m1"));
    let report = first.commit_blocking(batch);
    assert_eq!(
        (report.durability, report.notices.as_slice()),
        (Durability::Durable, &[][..])
    );
    assert_eq!(first.commit_blocking(round("c1", "r1")).durability, Durability::Durable);
    let mut end = Batch::new();
    end.append_message(message("c1", "m2", Message::assistant("done")))
        .put_usage(UsageRecord {
            conversation_id: "c1".to_owned(),
            turn_id: "t1".to_owned(),
            usage: Usage {
                prompt_tokens: 5,
                cost: Some(0.1 + 0.2),
                ..Usage::default()
            },
            ..UsageRecord::default()
        })
        .put_note("c1", "turn_record-t1", json!({"stop_reason": "completed"}))
        .set_active_conversation("c1")
        .close_turn("c1", "t1");
    assert_eq!(first.commit_blocking(end).durability, Durability::Durable);
    drop(first);

    let second = store(&path);
    second
        .read_blocking(|reader| {
            let messages = reader.messages("c1")?;
            is_valid_history(&messages).unwrap();
            let seen: Vec<_> = messages.iter().map(|m| (m.seq, m.id.as_str())).collect();
            assert_eq!(seen, [(1, "m1"), (2, "r1-a"), (3, "r1-r"), (4, "m2")]);
            assert_eq!(messages[3].message, Message::assistant("done"));
            assert_eq!(reader.last_messages("c1", 2)?, messages[2..]);
            assert_eq!(reader.message("c1", "r1-r")?.as_ref(), Some(&messages[2]));
            assert_eq!(reader.conversation("c1")?, Some(conversation("c1", 10)));
            assert_eq!(reader.active_conversation_id()?.as_deref(), Some("c1"));
            assert_eq!(reader.usage("c1")?[0].usage.cost, Some(0.1 + 0.2));
            assert_eq!(
                reader.note("c1", "turn_record-t1")?,
                Some(json!({"stop_reason": "completed"}))
            );
            assert_eq!(reader.open_turns()?, []);
            Ok(())
        })
        .unwrap();
}

#[test]
fn each_kind_of_record_can_be_written_changed_and_removed() {
    let home = tempfile::tempdir().unwrap();
    for store in [
        store(&home.path().join("a.redb")),
        Store::new(StoreOptions::ephemeral()),
    ] {
        let mut batch = Batch::new();
        for (id, updated) in [("a", 3), ("b", 9), ("c", 5)] {
            batch.put_conversation(conversation(id, updated));
            batch.append_message(user(id, "m1")).append_message(user(id, "m2"));
        }
        let mut child = conversation("b.child.j1", 99);
        child.parent = Some("b".to_owned());
        let memory = |id: &str, content: &str| ProjectMemory {
            project_id: "p1".to_owned(),
            id: id.to_owned(),
            content: content.to_owned(),
            ..ProjectMemory::default()
        };
        batch
            .put_conversation(child)
            .put_note("a", "scratchpad:x/1", json!(1))
            .put_note("a", "scratchpad:x/2", json!([2]))
            .put_note("a", "other", json!(null))
            .put_memory(memory("m1", "one"))
            .put_memory(memory("m2", "two"))
            .put_config_patch(json!({"default_model": "m"}))
            .set_active_conversation("b");
        let name = batch.put_blob(b"bytes".to_vec());
        let expected = if store.path().is_some() {
            Durability::Durable
        } else {
            Durability::MemoryOnly
        };
        let report = store.commit_blocking(batch);
        assert_eq!((report.durability, report.notices.len()), (expected, 0));

        store
            .read_blocking(|reader| {
                let all: Vec<_> = reader.conversations(10)?.into_iter().map(|c| c.id).collect();
                assert_eq!(all, ["b.child.j1", "b", "c", "a"]);
                assert_eq!(reader.conversations(2)?.len(), 2);
                assert_eq!(reader.latest_conversation("p1")?.unwrap().id, "b");
                let of_project = reader.find_conversations(Some("p1"), 10, |record| record.id != "c")?;
                assert_eq!(of_project.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
                assert_eq!(reader.latest_conversation("p2")?, None);
                let notes = reader.notes("a", "scratchpad:x/")?;
                assert_eq!(
                    notes,
                    [
                        ("scratchpad:x/1".to_owned(), json!(1)),
                        ("scratchpad:x/2".to_owned(), json!([2]))
                    ]
                );
                assert_eq!(reader.memories("p1")?.len(), 2);
                assert_eq!(reader.config_patch()?, Some(json!({"default_model": "m"})));
                assert_eq!(reader.blob(&name)?.unwrap().content, b"bytes");
                Ok(())
            })
            .unwrap();

        let mut changes = Batch::new();
        changes
            .replace_message("a", "m1", Message::user("changed"))
            .delete_message("a", "m2")
            .delete_conversation("b")
            .clear_messages("c")
            .delete_note("a", "other")
            .delete_memory("p1", "m1")
            .put_conversation(conversation("a", 7))
            .clear_config_patch();
        store.commit_blocking(changes);
        store
            .read_blocking(|reader| {
                let messages = reader.messages("a")?;
                assert_eq!(messages.len(), 1);
                assert_eq!((messages[0].seq, &messages[0].message), (1, &Message::user("changed")));
                assert_eq!(reader.conversation("b")?, None);
                // Its child's stays; what was written to last comes first.
                let all: Vec<_> = reader.conversations(10)?.into_iter().map(|c| c.id).collect();
                assert_eq!(all, ["b.child.j1", "a", "c"]);
                assert_eq!(reader.messages("b")?, []);
                assert_eq!(reader.active_conversation_id()?, None);
                assert_eq!(reader.messages("c")?, []);
                assert!(reader.conversation("c")?.is_some());
                assert_eq!(reader.notes("a", "")?.len(), 2);
                assert_eq!(reader.memories("p1")?.len(), 1);
                assert_eq!(reader.config_patch()?, None);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_commit_of_nothing_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let store = store(&path);
    store.commit_blocking(one("c", "m"));
    let before = std::fs::read(&path).unwrap();
    let report = store.commit_blocking(Batch::new());
    assert_eq!((report.durability, report.notices), (Durability::Durable, Vec::new()));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(ids(&store, "c").unwrap(), ["m"]);
}

#[test]
fn the_same_message_is_appended_once_and_a_batch_is_one_transaction() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("a.redb"));
    for _ in 0..3 {
        store.commit_blocking(one("c", "same"));
    }
    store.commit_blocking(one("c", "other"));
    assert_eq!(ids(&store, "c").unwrap(), ["same", "other"]);
}

#[tokio::test(flavor = "current_thread")]
async fn commits_that_are_ready_together_keep_their_order_and_reads_come_after_them() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("a.redb"));
    let commits: Vec<_> = (0..50).map(|n| store.commit(one("c", &format!("m{n:02}")))).collect();
    // The first one is polled last: what counts is the order in which they are handed over.
    for report in futures_util::future::join_all(commits).await {
        assert_eq!(report.durability, Durability::Durable);
    }
    let seen = store
        .read(|reader| Ok(reader.messages("c")?.into_iter().map(|m| m.id).collect::<Vec<_>>()))
        .await
        .unwrap();
    let expected: Vec<String> = (0..50).map(|n| format!("m{n:02}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "current_thread")]
async fn a_commit_whose_future_is_dropped_is_finished() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("a.redb"));
    let mut commit = Box::pin(store.commit(one("c", "m")));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _handed_over = commit.as_mut().poll(&mut context);
    drop(commit);
    let seen = store.read(|reader| Ok(reader.messages("c")?.len())).await.unwrap();
    assert_eq!(seen, 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_question_that_panics_is_an_error_and_takes_nobody_with_it() {
    let home = tempfile::tempdir().unwrap();
    for store in [
        store(&home.path().join("a.redb")),
        Store::new(StoreOptions::ephemeral()),
    ] {
        store.commit(one("c", "m1")).await;
        let question = store.read(|reader| {
            reader.messages("c")?;
            panic!("a defect of the caller")
        });
        let (answer, report) = futures_util::future::join(question, store.commit(one("c", "m2"))).await;
        let answer: Result<(), StoreError> = answer;
        assert!(answer.is_err());
        assert_eq!(report.notices, []);
        assert_eq!(ids(&store, "c").unwrap(), ["m1", "m2"]);
    }
}

#[test]
fn a_record_that_is_not_valid_is_left_out_and_told_once() {
    let home = tempfile::tempdir().unwrap();
    let store = store(&home.path().join("a.redb"));
    for expected in [1, 0] {
        let mut batch = one("a:b", "m");
        batch.append_message(user("c", "m"));
        let report = store.commit_blocking(batch);
        assert_eq!(report.durability, Durability::Durable);
        assert_eq!(report.notices.len(), expected);
        for notice in report.notices {
            assert_eq!(notice.kind, NoticeKind::Refused);
            assert!(notice.message.contains("a:b"), "{}", notice.message);
        }
    }
    assert_eq!(ids(&store, "c").unwrap(), ["m"]);
    assert!(matches!(ids(&store, "a:b"), Err(StoreError::KeySegment { .. })));
}

#[test]
fn a_turn_of_a_dead_process_is_aborted_and_a_live_one_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.redb");
    let dead = ProcessStamp {
        start: 1,
        ..ProcessStamp::current()
    };
    let mut batch = round("c", "r1");
    batch
        .open_turn(OpenTurn::new("c", "alive", 10))
        .open_turn(OpenTurn {
            process: dead.clone(),
            ..OpenTurn::new("c", "dead", 10)
        })
        .put_conversation(conversation("c", 7))
        .put_conversation(conversation("d", 9))
        .put_conversation(conversation("e", 5))
        .put_terminal(LiveTerminal::new("d", "p1", 10))
        .put_terminal(LiveTerminal {
            process: dead,
            ..LiveTerminal::new("e", "p1", 10)
        });
    store(&path).commit_blocking(batch);

    let next = store(&path);
    let check = |store: &Store| {
        store
            .read_blocking(|reader| {
                let open: Vec<_> = reader.open_turns()?.into_iter().map(|turn| turn.turn_id).collect();
                assert_eq!(open, ["alive"]);
                let note = reader.note("c", "turn_record-dead")?.unwrap();
                assert_eq!(note["stop_reason"], "aborted");
                assert_eq!(reader.messages("c")?.len(), 2);
                let live: Vec<_> = reader
                    .terminals()?
                    .into_iter()
                    .map(|live| live.conversation_id)
                    .collect();
                assert_eq!(live, ["d"]);
                assert_eq!(reader.latest_free_conversation("p1")?.unwrap().id, "e");
                assert_eq!(reader.latest_conversation("p1")?.unwrap().id, "d");
                Ok(())
            })
            .unwrap();
    };
    // Seen at once, and written with the first commit.
    check(&next);
    let report = next.commit_blocking(one("x", "m"));
    assert_eq!(report.notices.len(), 1, "{:?}", report.notices);
    assert_eq!(report.notices[0].kind, NoticeKind::AbortedTurns);
    check(&next);
    check(&store(&path));
}

#[test]
fn content_is_kept_once_and_what_is_too_long_is_cut_and_told() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::new(StoreOptions {
        max_blob_bytes: 10,
        ..StoreOptions::at(home.path().join("a.redb"))
    });
    let mut names = Vec::new();
    for expected in [1, 0] {
        let mut batch = Batch::new();
        names.push(batch.put_blob(b"0123456789abc".to_vec()));
        let report = store.commit_blocking(batch);
        assert_eq!(report.notices.len(), expected);
    }
    assert_eq!(names[0], names[1]);
    let blob = store.read_blocking(|reader| reader.blob(&names[0])).unwrap().unwrap();
    assert_eq!(
        (blob.content.as_slice(), blob.full_bytes, blob.is_cut()),
        (&b"0123456789"[..], 13, true)
    );
    assert_eq!(store.read_blocking(|reader| reader.blob("none")).unwrap(), None);
}
