//! What taking the place of a file keeps: its mode, owner, names and attributes, other changes, and the bytes before.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::{Arc, Mutex};

use agent_smith_core::tool::{FileChange, KeeperError, PreimageKeeper};
use serde_json::json;

use crate::support::skip::missing;
use crate::support::tools::Yard;

#[tokio::test]
async fn a_replacement_keeps_mode_links_and_other_names() {
    let yard = Yard::new();
    let script = yard.write("run.sh", "old\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("run.sh", yard.root.join("link")).unwrap();
    let result = yard.call("write", json!({"path": "link", "content": "new\n"})).await;
    assert!(result.content.contains("A symbolic link led to"), "{}", result.content);
    assert_eq!(yard.text("run.sh"), "new\n");
    assert!(std::fs::symlink_metadata(yard.root.join("link")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&script).unwrap().mode() & 0o7777, 0o751);
    std::fs::hard_link(&script, yard.root.join("twin")).unwrap();
    let result = yard.call("write", json!({"path": "twin", "content": "both\n"})).await;
    assert!(result.content.contains("in place"), "{}", result.content);
    assert_eq!(yard.text("run.sh"), "both\n");
}

#[tokio::test]
async fn a_replacement_keeps_what_is_attached_to_the_file() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    let yard = Yard::new();
    let path = yard.write("f", "old");
    match setxattr(&path, "user.origin", b"mail", XattrFlags::empty()) {
        // A file system without attributes has nothing to lose.
        Err(rustix::io::Errno::NOTSUP) => return,
        result => result.unwrap(),
    }
    assert!(yard.call("write", json!({"path": "f", "content": "new"})).await.ok);
    let mut value = [0; 16];
    let size = getxattr(&path, "user.origin", &mut value[..]).unwrap();
    assert_eq!((&value[..size], yard.text("f").as_str()), (&b"mail"[..], "new"));
}

/// Does something as another user: a thread of its own takes that user's rights, and so do those it starts.
fn as_user(uid: u32, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let uid = rustix::process::Uid::from_raw(uid);
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            work();
        });
        thread.join().unwrap();
    });
}

#[tokio::test]
async fn a_replacement_keeps_the_owner_and_where_it_cannot_the_file_is_overwritten() {
    if !rustix::process::geteuid().is_root() {
        missing("root's right to give files away");
        return;
    }
    let yard = Yard::new();
    let path = yard.write("f", "old");
    std::os::unix::fs::chown(&path, Some(1234), Some(1234)).unwrap();
    let result = yard.call("write", json!({"path": "f", "content": "new"})).await;
    assert!(result.ok && !result.content.contains("in place"), "{}", result.content);
    let owner = |path: &std::path::Path| std::fs::metadata(path).unwrap().uid();
    assert_eq!((owner(&path), yard.text("f").as_str()), (1234, "new"));
    // A user who may write the file and its directory, but cannot give a new file to its owner.
    for open in [yard.home.path(), &yard.root, &path] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    as_user(4321, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let result = runtime.block_on(yard.call("write", json!({"path": "f", "content": "newer"})));
        assert!(result.ok && result.content.contains("in place"), "{}", result.content);
    });
    assert_eq!((owner(&path), yard.text("f").as_str()), (1234, "newer"));
}

#[tokio::test]
async fn edits_of_one_file_at_the_same_time_all_survive() {
    let yard = Yard::new();
    let lines: String = (0..20).map(|n| format!("<{n}>\n")).collect();
    yard.write("f", &lines);
    let calls = (0..20).map(|n| {
        let args = json!({"path": "f", "op": "replace_text", "old": format!("<{n}>"), "new": format!("done {n}")});
        yard.call("edit", args)
    });
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(|result| result.ok));
    let expected: String = (0..20).map(|n| format!("done {n}\n")).collect();
    assert_eq!(yard.text("f"), expected);
    assert_eq!(yard.ctx.state.changes(Some("turn")).len(), 20);
    assert_eq!(yard.ctx.state.changes(Some("another")), []);
}

#[derive(Default)]
struct Shelf(Mutex<Vec<Option<Vec<u8>>>>);

impl PreimageKeeper for Shelf {
    fn keep(&self, change: &FileChange, bytes: Option<&[u8]>) -> Result<Option<String>, KeeperError> {
        if change.path.ends_with("refused") {
            return Err("the store is full".into());
        }
        // It is kept before the change is made.
        assert_eq!(std::fs::read(&change.path).ok().as_deref(), bytes);
        let mut kept = self.0.lock().unwrap();
        kept.push(bytes.map(<[u8]>::to_vec));
        Ok(bytes.map(|_| format!("key{}", kept.len())))
    }

    fn fetch(&self, _key: &str) -> Result<Option<Vec<u8>>, KeeperError> {
        Ok(None)
    }
}

#[tokio::test]
async fn what_was_there_before_is_kept() {
    let mut yard = Yard::new();
    let shelf = Arc::new(Shelf::default());
    yard.ctx.keeper = Some(shelf.clone());
    yard.call("write", json!({"path": "f", "content": "one"})).await;
    yard.call(
        "edit",
        json!({"path": "f", "op": "replace_text", "old": "one", "new": "two"}),
    )
    .await;
    assert_eq!(*shelf.0.lock().unwrap(), [None, Some(b"one".to_vec())]);
    let changes = yard.ctx.state.changes(None);
    assert_eq!(changes[1].preimage.as_deref(), Some("key2"));
    assert_eq!(changes[1].before.as_ref(), Some(&changes[0].after));
    let result = yard.call("write", json!({"path": "refused", "content": "x"})).await;
    assert!(
        result.ok && result.content.contains("the store is full"),
        "{}",
        result.content
    );
}
