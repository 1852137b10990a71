//! `read`, `write` and `edit` through the executor, as a model calls them.
#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::os::unix::fs::symlink;

use agent_smith_core::error::ErrorKind;
use agent_smith_core::role::Role;
use agent_smith_core::tool::MutationState;
use serde_json::json;

use crate::support::tools::Yard;

async fn hash_of(yard: &Yard, name: &str) -> String {
    let result = yard.call("read", json!({"path": name})).await;
    result.metadata["hash"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn read_numbers_lines_and_pages() {
    let mut yard = Yard::new();
    yard.write("f.txt", "one\ntwo\nthree\nfour");
    let result = yard.call("read", json!({"path": "f.txt"})).await;
    let hash = &result.metadata["hash"].as_str().unwrap()[..12];
    assert_eq!(
        result.content,
        format!("f.txt: 4 lines, hash {hash}\n1\tone\n2\ttwo\n3\tthree\n4\tfour\n")
    );
    let result = yard
        .call("read", json!({"path": "f.txt", "offset": 2, "limit": 2}))
        .await;
    assert!(
        result
            .content
            .contains("lines 2 to 3 below, next offset 4\n2\ttwo\n3\tthree\n")
    );
    let result = yard.call("read", json!({"path": "f.txt", "offset": -1})).await;
    assert!(result.content.ends_with("\n4\tfour\n"), "{}", result.content);
    let result = yard.call("read", json!({"path": "f.txt", "offset": 9})).await;
    assert!(result.content.contains("no line there: offsets are 1 to 4"));
    yard.ctx.limits.read_chars = 25;
    let result = yard.call("read", json!({"path": "f.txt"})).await;
    assert!(result.content.contains("next offset 3"), "{}", result.content);
    yard.ctx.limits.line_chars = 2;
    let result = yard.call("read", json!({"path": "f.txt", "limit": 1})).await;
    assert!(
        result.content.contains("1\ton …[1 more bytes in this line]"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn a_file_too_long_for_memory_is_read_through_with_the_same_answer() {
    let yard = Yard::new();
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 17 << 20 {
        number += 1;
        text.push_str(&format!("line {number} {}\r\n", "x".repeat(100)));
    }
    text.push_str(&"y".repeat(5000));
    yard.write("long.log", &text);
    let result = yard
        .call("read", json!({"path": "long.log", "offset": 1000, "limit": 2}))
        .await;
    assert!(result.content.contains("\n1000\tline 1000 xxx"), "{}", result.content);
    assert_eq!(result.metadata["lines"], number + 1);
    assert_eq!(result.content.lines().count(), 3);
    let tail = yard.call("read", json!({"path": "long.log", "offset": -1})).await;
    assert!(tail.content.contains("…[3000 more bytes in this line]"));
    // The hash is the whole file's, by which a shorter copy of the way can be checked.
    let sum = yard.call("bash", json!({"command": "sha256sum long.log"})).await;
    assert!(sum.content.starts_with(result.metadata["hash"].as_str().unwrap()));
}

#[tokio::test]
async fn read_tells_what_is_no_plain_text_file() {
    let yard = Yard::new();
    yard.write("bin", b"\x7fELF\0\0\x01");
    let result = yard.call("read", json!({"path": "bin"})).await;
    assert!(
        result.ok && result.content.contains("binary file: 7 bytes"),
        "{}",
        result.content
    );
    yard.write("latin", b"caf\xe9\n");
    let result = yard.call("read", json!({"path": "latin"})).await;
    assert!(result.content.contains("Latin-1") && result.content.contains("1\tcafé"));
    yard.write("dir/.hidden", "");
    yard.write("dir/sub/x", "");
    let result = yard.call("read", json!({"path": "dir"})).await;
    assert!(result.content.ends_with(":\n.hidden\nsub/"), "{}", result.content);
    rustix::fs::mkfifoat(rustix::fs::CWD, yard.root.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let result = yard.call("read", json!({"path": "pipe"})).await;
    assert!(
        !result.ok && result.content.contains("named pipe"),
        "{}",
        result.content
    );
    let result = yard.call("read", json!({"path": ""})).await;
    assert!(result.content.contains("empty"), "{}", result.content);
    yard.write("empty", "");
    let result = yard.call("read", json!({"path": "empty"})).await;
    assert!(result.ok && result.content.contains("0 lines"), "{}", result.content);
}

#[tokio::test]
async fn a_missing_file_is_answered_with_names_that_exist() {
    let yard = Yard::new();
    yard.write("src/config.rs", "");
    yard.write(".gitignore", "secret.env\n");
    yard.write("secret.env", "x");
    let result = yard.call("read", json!({"path": "src/confg.rs"})).await;
    assert!(result.content.contains("holds config.rs"), "{}", result.content);
    let result = yard.call("read", json!({"path": "scr/config.rs"})).await;
    assert!(result.content.contains("holds src"), "{}", result.content);
    assert_eq!(result.error.unwrap().code, "not_found");
    // Ignored is not absent.
    assert!(yard.call("read", json!({"path": "secret.env"})).await.ok);
    let result = yard.call("read", json!({"path": "secret.en"})).await;
    assert!(result.content.contains("holds secret.env"), "{}", result.content);
}

#[tokio::test]
async fn write_makes_replaces_and_compares() {
    let yard = Yard::new();
    let result = yard
        .call("write", json!({"path": "a/b/new.txt", "content": "x\n"}))
        .await;
    assert!(
        result.ok && result.content.starts_with("Created a/b/new.txt: 1 lines"),
        "{}",
        result.content
    );
    assert_eq!(result.mutation_state, MutationState::Attempted);
    assert_eq!(yard.text("a/b/new.txt"), "x\n");
    let hash = result.metadata["hash"].as_str().unwrap();
    let args = json!({"path": "a/b/new.txt", "content": "y\n", "expected_hash": &hash[..12]});
    let result = yard.call("write", args.clone()).await;
    assert!(
        result.content.contains("Replaced a/b/new.txt (it had 1 lines"),
        "{}",
        result.content
    );
    let result = yard.call("write", args).await;
    assert!(!result.ok);
    assert_eq!(result.error.unwrap().code, "hash_mismatch");
    assert_eq!(result.mutation_state, MutationState::None);
    assert_eq!(yard.text("a/b/new.txt"), "y\n");
    let result = yard.call("write", json!({"path": "a", "content": ""})).await;
    assert!(result.content.contains("a is a directory"), "{}", result.content);
    let names: Vec<_> = std::fs::read_dir(yard.root.join("a/b")).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

#[tokio::test]
async fn edit_by_lines_wants_the_hash_and_shows_the_change() {
    let yard = Yard::new();
    yard.write("f", "a\nb\nc\nd\n");
    let hash = hash_of(&yard, "f").await;
    let result = yard
        .call(
            "edit",
            json!({"path": "f", "op": "replace", "start_line": 2, "end_line": 3, "text": "B"}),
        )
        .await;
    assert!(result.content.contains("need `hash`"), "{}", result.content);
    let result = yard
        .call(
            "edit",
            json!({"path": "f", "op": "replace", "hash": &hash[..12], "start_line": 2, "end_line": 3, "text": "B"}),
        )
        .await;
    assert!(result.ok, "{}", result.content);
    assert_eq!(yard.text("f"), "a\nB\nd\n");
    assert_eq!(result.metadata["line_delta"], -1);
    assert_eq!(
        result.metadata["diff"],
        "--- f\n+++ f\n@@ -1,4 +1,3 @@\n a\n-b\n-c\n+B\n d\n"
    );
    let new_hash = result.metadata["new_hash"].as_str().unwrap();
    assert_eq!(
        result.content,
        format!(
            "Changed f, lines 2 to 2 (-1 lines, now 3). New hash {}.\n1\ta\n2\tB\n3\td\n",
            &new_hash[..12]
        )
    );
    let stale = json!({"path": "f", "op": "delete", "hash": hash, "start_line": 1});
    let result = yard.call("edit", stale).await;
    assert_eq!(result.error.unwrap().code, "stale_hash");
    for (op, text, expected) in [("insert", "top", "top\na\nB\nd\n"), ("delete", "", "a\nB\nd\n")] {
        let hash = hash_of(&yard, "f").await;
        let start = if op == "insert" { 0 } else { 1 };
        let args = json!({"path": "f", "op": op, "hash": hash, "start_line": start, "text": text});
        let result = yard.call("edit", args).await;
        assert!(result.ok, "{}", result.content);
        assert_eq!(yard.text("f"), expected);
    }
    let hash = hash_of(&yard, "f").await;
    let result = yard
        .call(
            "edit",
            json!({"path": "f", "op": "delete", "hash": hash, "start_line": 3, "end_line": 4}),
        )
        .await;
    assert!(
        result.content.contains("no line 4: it has 3 lines"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn a_stale_hash_says_what_changed_and_where_the_lines_are() {
    let yard = Yard::new();
    yard.write("f", "a\nb\nc\nd\n");
    let hash = hash_of(&yard, "f").await;
    yard.write("f", "new\na\nb\nc\nd\n");
    let args = json!({"path": "f", "op": "replace", "hash": hash, "start_line": 3, "text": "C"});
    let result = yard.call("edit", args).await;
    assert!(
        result
            .content
            .contains("Since you saw it, line 1 came in. Line 3 as you saw it is 4 now, unchanged"),
        "{}",
        result.content
    );
    assert_eq!(yard.text("f"), "new\na\nb\nc\nd\n");
    // Two edits by lines that were thought out from the same hash: the second is not lost, and not done blindly.
    let hash = hash_of(&yard, "f").await;
    let edit =
        |line: u32, text: &str| json!({"path": "f", "op": "replace", "hash": hash, "start_line": line, "text": text});
    let (first, second) = tokio::join!(yard.call("edit", edit(1, "x\ny")), yard.call("edit", edit(5, "D")));
    assert_ne!(first.ok, second.ok);
    let (lost, line) = if first.ok {
        (second, "Line 5 as you saw it is 6")
    } else {
        (first, "Line 1 as you saw it is 1")
    };
    assert!(
        lost.content
            .contains(&format!("{line} now, unchanged: repeat with that and hash")),
        "{}",
        lost.content
    );
    let result = yard
        .call(
            "edit",
            json!({"path": "f", "op": "delete", "hash": "0123456789ab", "start_line": 1}),
        )
        .await;
    assert!(
        result.content.contains("No version with hash 0123456789ab was seen"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn text_that_is_written_otherwise_is_found_if_it_can_only_mean_one_place() {
    let yard = Yard::new();
    yard.write("f", "say(“hi”,\u{a0}a)  \r\nnext\r\n");
    let args = json!({"path": "f", "op": "replace_text", "old": "say(\"hi\", a)\nnext", "new": "say(\"hi\", b)\nnext"});
    let result = yard.call("edit", args).await;
    assert!(
        result.content.contains("differs from line 1 on in blanks, quotes"),
        "{}",
        result.content
    );
    assert_eq!(yard.text("f"), "say(“hi”,\u{a0}b)  \r\nnext\r\n");
    yard.write("g", "a  b\na\tb\n");
    let result = yard
        .call(
            "edit",
            json!({"path": "g", "op": "replace_text", "old": "a b", "new": "c"}),
        )
        .await;
    assert!(
        result
            .content
            .contains("Apart from blanks and quotes `old` occurs 2 times in g, at lines 1, 2"),
        "{}",
        result.content
    );
    yard.write("l", b"caf\xe9  cr\xe8me\n");
    let result = yard
        .call(
            "edit",
            json!({"path": "l", "op": "replace_text", "old": "café crème", "new": "café noir"}),
        )
        .await;
    assert!(result.ok, "{}", result.content);
    assert_eq!(yard.bytes("l"), b"caf\xe9  noir\n");
}

#[tokio::test]
async fn line_operations_keep_what_they_do_not_touch() {
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("é\r\nΩ\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let utf16_after: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("é\r\nnew ß\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let cases: [(&[u8], &[u8]); 6] = [
        (b"a\r\nb\r\nc\n", b"a\r\nnew \xc3\x9f\r\nc\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nnew \xc3\x9f\n"),
        (b"\xe9\nb\n\xa0 \x85", b"\xe9\nnew \xdf\n\xa0 \x85"),
        (b"a\nb", b"a\nnew \xc3\x9f"),
        (b"a\rb\rc", b"a\rnew \xc3\x9f\rc"),
        (&utf16, &utf16_after),
    ];
    for (before, after) in cases {
        let yard = Yard::new();
        yard.write("f", before);
        let hash = hash_of(&yard, "f").await;
        let args = json!({"path": "f", "op": "replace", "hash": hash, "start_line": 2, "text": "new ß\n"});
        let result = yard.call("edit", args).await;
        assert!(result.ok, "{before:?}: {}", result.content);
        assert_eq!(yard.bytes("f"), after, "{before:?}");
    }
}

#[tokio::test]
async fn appending_to_an_unfinished_last_line_finishes_it() {
    let yard = Yard::new();
    yard.write("f", "a\r\nb");
    let hash = hash_of(&yard, "f").await;
    let args = json!({"path": "f", "op": "insert", "hash": hash, "start_line": 2, "text": "c\n"});
    assert!(yard.call("edit", args).await.ok);
    assert_eq!(yard.text("f"), "a\r\nb\r\nc");
    yard.write("e", "");
    let hash = hash_of(&yard, "e").await;
    let args = json!({"path": "e", "op": "insert", "hash": hash, "start_line": 0, "text": "first"});
    assert!(yard.call("edit", args).await.ok);
    assert_eq!(yard.text("e"), "first\n");
}

#[tokio::test]
async fn replace_text_is_exact_and_unique_or_says_where() {
    let yard = Yard::new();
    yard.write("f.rs", "fn one() {}\nfn two() {}\nfn one_more() {}\n");
    let edit = |old: &str, new: &str, all: bool| json!({"path": "f.rs", "op": "replace_text", "old": old, "new": new, "all": all});
    let result = yard.call("edit", edit("fn one", "fn eins", false)).await;
    assert!(
        result.content.contains("occurs 2 times in f.rs, at lines 1, 3"),
        "{}",
        result.content
    );
    let result = yard.call("edit", edit("fn tow() {}", "", false)).await;
    assert!(result.content.contains("2\tfn two() {}"), "{}", result.content);
    assert_eq!(result.error.unwrap().code, "not_found");
    let result = yard.call("edit", edit("fn one", "fn eins", true)).await;
    assert!(
        result.ok && result.content.contains("in 2 places"),
        "{}",
        result.content
    );
    assert_eq!(yard.text("f.rs"), "fn eins() {}\nfn two() {}\nfn eins_more() {}\n");
    let result = yard.call("edit", edit("fn two", "fn two", false)).await;
    assert_eq!(result.error.unwrap().code, "no_change");
    // What other tools call these arguments is understood.
    let args = json!({"file_path": "f.rs", "old_string": "fn two", "new_string": "fn zwei"});
    assert!(yard.call("edit", args).await.ok);
}

#[tokio::test]
async fn replace_text_finds_lines_that_end_otherwise() {
    let yard = Yard::new();
    yard.write("dos", "a\r\nb\r\nc\r\n");
    let args = json!({"path": "dos", "op": "replace_text", "old": "a\nb", "new": "x\ny\nz"});
    let result = yard.call("edit", args).await;
    assert!(result.ok, "{}", result.content);
    assert_eq!(yard.text("dos"), "x\r\ny\r\nz\r\nc\r\n");
    yard.write("mixed", b"na\xc3\xafve\ncaf\xe9\n");
    let args = json!({"path": "mixed", "op": "replace_text", "old": "café", "new": "thé"});
    assert!(yard.call("edit", args).await.ok);
    assert_eq!(yard.bytes("mixed"), b"na\xc3\xafve\nth\xe9\n");
}

#[tokio::test]
async fn confined_tools_stay_below_the_root() {
    let mut yard = Yard::new();
    let outside = yard.home.path().join("secret");
    std::fs::write(&outside, "secret").unwrap();
    symlink(&outside, yard.root.join("window")).unwrap();
    yard.ctx.limits.confine_to_root = true;
    for (tool, path) in [
        ("read", "window"),
        ("read", "../secret"),
        ("write", outside.to_str().unwrap()),
        ("edit", "window"),
    ] {
        let args = match tool {
            "read" => json!({"path": path}),
            "write" => json!({"path": path, "content": "x"}),
            _ => json!({"path": path, "op": "replace_text", "old": "secret", "new": "x"}),
        };
        let result = yard.call(tool, args).await;
        assert_eq!(result.error.unwrap().code, "outside_root", "{tool} {path}");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    // The outputs of commands are outside and can be read all the same.
    let result = yard.call("bash", json!({"command": "seq 1 20000"})).await;
    let path = result.metadata["output_file"].as_str().unwrap();
    assert!(yard.call("read", json!({"path": path})).await.ok);
}

#[tokio::test]
async fn a_cancelled_edit_changes_nothing() {
    let yard = Yard::new();
    yard.write("f", "a");
    yard.ctx.cancel.cancel();
    let result = yard.call("write", json!({"path": "f", "content": "b"})).await;
    assert!(result.cancelled && !result.ok);
    assert_eq!(result.error.unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(yard.text("f"), "a");
}

#[tokio::test]
async fn roles_get_what_the_matrix_says() {
    let mut yard = Yard::new();
    yard.ctx.role = Role::Explorer;
    let result = yard.call("write", json!({"path": "f", "content": ""})).await;
    let error = result.error.unwrap();
    assert_eq!((error.kind, &*error.code), (ErrorKind::Policy, "tool_denied"));
    let result = yard.call("reed", json!({})).await;
    assert!(result.content.contains("Did you mean `read`?"), "{}", result.content);
    let offered: Vec<_> = yard
        .registry
        .definitions(Role::Explorer, &["bash".to_owned()])
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert!(offered.contains(&"read".to_owned()));
    assert!(!offered.contains(&"write".to_owned()) && !offered.contains(&"bash".to_owned()));
}

#[tokio::test]
async fn arguments_are_read_as_they_are_meant_and_explained_where_they_cannot_be() {
    let yard = Yard::new();
    yard.write("f", "a\nb\n");
    for text in [
        r#"{"path": "f", "offset": "2", "limit": null}"#,
        r#""{\"path\": \"f\", \"offset\": 2.0}""#,
    ] {
        let result = yard.call_text("read", text).await;
        assert!(result.content.ends_with("below\n2\tb\n"), "{text}: {}", result.content);
    }
    let cases = [
        (r#"{"path": "f"#, "they end in the middle"),
        (r#"["f"]"#, "must be a JSON object"),
        ("", "missing field `path`"),
        (r#"{"path": "f", "offst": 2}"#, "`offst` may mean `offset`"),
        (r#"{"path": "f", "offset": "two"}"#, "invalid type"),
    ];
    for (text, expected) in cases {
        let result = yard.call_text("read", text).await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.kind, &*error.code),
            (ErrorKind::Schema, "bad_arguments"),
            "{text}"
        );
        assert!(
            result.content.contains(expected) && result.content.contains("Arguments: path (string, required)"),
            "{text}: {}",
            result.content
        );
    }
}

#[test]
fn what_is_offered_is_small() {
    let yard = Yard::new();
    let size = |names: &[&str]| -> usize {
        yard.registry
            .definitions(Role::Direct, &[])
            .iter()
            .filter(|tool| names.contains(&tool.name.as_str()))
            .map(|tool| serde_json::to_string(tool).unwrap().len())
            .sum()
    };
    let basic = size(&["read", "write", "edit", "bash"]);
    let all = serde_json::to_string(&yard.registry.definitions(Role::Direct, &[])).unwrap();
    assert!(basic <= 1_800, "{basic}: {all}");
}
