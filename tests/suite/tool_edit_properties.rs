//! Whatever the bytes of a file, an edit touches those it means and no others.
#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::path::Path;

use agent_smith_core::process::Environment;
use agent_smith_core::role::Role;
use agent_smith_core::tool::{Registry, ToolContext, ToolResult, execute};
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(root: &Path, name: &str, args: &Value) -> ToolResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ctx = ToolContext::new(Role::Direct, root.to_owned(), Environment::default());
    let call = agent_smith_core::message::ToolCall {
        id: "c".to_owned(),
        name: name.to_owned(),
        arguments: args.to_string(),
        extra: serde_json::Map::new(),
    };
    runtime.block_on(execute(&Registry::builtin(), &call, &ctx))
}

/// Pieces of files in which editors lose bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\t".to_vec()),
        Just(b" ".to_vec()),
        Just("\u{a0}".as_bytes().to_vec()),
        Just("é“ß”—".as_bytes().to_vec()),
        Just("𝄞".as_bytes().to_vec()),
        Just(b"\xe9\xff".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        "[a-z(){};=]{1,8}".prop_map(String::into_bytes),
    ]
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    (any::<bool>(), prop::collection::vec(piece(), 0..40)).prop_map(|(wide, pieces)| {
        let bytes = pieces.concat();
        match String::from_utf8(bytes.clone()) {
            Ok(text) if wide => [0xff, 0xfe]
                .into_iter()
                .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
                .collect(),
            _ => bytes,
        }
    })
}

/// A part of a file in UTF-8.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        piece().prop_filter("text", |piece| std::str::from_utf8(piece).is_ok()),
        0..20,
    )
    .prop_map(|pieces| pieces.concat())
}

/// The lines of bytes as a byte-minded person would cut them.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let wide = bytes.starts_with(b"\xff\xfe");
    let unit = if wide { 2 } else { 1 };
    let (bom, body) = bytes.split_at(if wide {
        2
    } else if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    });
    let is = |chunk: &[u8], byte: u8| chunk[0] == byte && (chunk.len() == 1 || chunk[1] == 0);
    let end = if body.chunks(unit).any(|chunk| is(chunk, b'\n')) {
        b'\n'
    } else {
        b'\r'
    };
    let mut result = vec![bom.to_vec()];
    let mut line = Vec::new();
    for chunk in body.chunks(unit) {
        line.extend_from_slice(chunk);
        if is(chunk, end) {
            result.push(std::mem::take(&mut line));
        }
    }
    if !line.is_empty() {
        result.push(line);
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn deleting_lines_leaves_all_others_byte_for_byte(bytes in file(), at in any::<prop::sample::Index>(), more in 0_usize..3) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), &bytes).unwrap();
        let parts = lines(&bytes);
        let count = parts.len() - 1;
        prop_assume!(count > 0);
        let first = at.index(count) + 1;
        let last = (first + more).min(count);
        let read = call(home.path(), "read", &json!({"path": "f"}));
        prop_assert_eq!(&read.metadata["lines"], count);
        let args = json!({"path": "f", "op": "delete", "hash": read.metadata["hash"], "start_line": first, "end_line": last});
        let result = call(home.path(), "edit", &args);
        prop_assert!(result.ok, "{}", result.content);
        let mut left = parts;
        left.drain(first..=last);
        prop_assert_eq!(std::fs::read(home.path().join("f")).unwrap(), left.concat());
    }

    #[test]
    fn replacing_a_line_leaves_all_others_byte_for_byte(bytes in file(), at in any::<prop::sample::Index>(), text in "[a-z]{1,6}(\n[a-z]{0,4}){0,2}") {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), &bytes).unwrap();
        let parts = lines(&bytes);
        prop_assume!(parts.len() > 1);
        let line = at.index(parts.len() - 1) + 1;
        let read = call(home.path(), "read", &json!({"path": "f"}));
        let args = json!({"path": "f", "op": "replace", "hash": read.metadata["hash"], "start_line": line, "text": text});
        let result = call(home.path(), "edit", &args);
        let after = std::fs::read(home.path().join("f")).unwrap();
        if result.ok {
            prop_assert!(after.starts_with(&parts[..line].concat()));
            prop_assert!(after.ends_with(&parts[line + 1..].concat()));
        } else {
            // The line was that text already.
            prop_assert_eq!(&result.error.unwrap().code, "no_change");
            prop_assert_eq!(after, bytes);
        }
    }

    #[test]
    fn replacing_text_that_is_there_once_changes_only_it(before in text(), after in text()) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), [&before[..], b"<needle>", &after].concat()).unwrap();
        let args = json!({"path": "f", "op": "replace_text", "old": "<needle>", "new": "[thread]"});
        let result = call(home.path(), "edit", &args);
        prop_assert!(result.ok, "{}", result.content);
        prop_assert_eq!(std::fs::read(home.path().join("f")).unwrap(), [&before[..], b"[thread]", &after].concat());
    }

    #[test]
    fn what_is_found_loosely_keeps_its_surroundings(
        before in "[a-z \n]{0,20}\n",
        after in "\n[a-z \n]{0,20}",
        gap in prop_oneof![Just("\u{a0}"), Just("  "), Just("\t"), Just(" \t ")],
    ) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), format!("{before}LEFT{gap}MIDDLE{gap}RIGHT{after}")).unwrap();
        let args = json!({"path": "f", "op": "replace_text", "old": "LEFT MIDDLE RIGHT", "new": "LEFT CENTRE RIGHT"});
        let result = call(home.path(), "edit", &args);
        prop_assert!(result.ok && result.content.contains("differs from line"), "{}", result.content);
        prop_assert_eq!(
            std::fs::read_to_string(home.path().join("f")).unwrap(),
            format!("{before}LEFT{gap}CENTRE{gap}RIGHT{after}")
        );
    }
}

#[test]
fn a_line_of_ten_megabytes_is_edited_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    let long = format!("{}<needle>{}", "x".repeat(5 << 20), "y".repeat(5 << 20));
    std::fs::write(home.path().join("f"), format!("a\r\n{long}\r\nb")).unwrap();
    let args = json!({"path": "f", "op": "replace_text", "old": "<needle>", "new": "<thread>"});
    let result = call(home.path(), "edit", &args);
    assert!(result.ok && result.content.len() < 1_000, "{}", result.content.len());
    let read = call(home.path(), "read", &json!({"path": "f"}));
    assert!(read.content.len() < 3_000 && read.content.contains("more bytes in this line]"));
    let args = json!({"path": "f", "op": "delete", "hash": read.metadata["hash"], "start_line": 2});
    assert!(call(home.path(), "edit", &args).ok);
    assert_eq!(std::fs::read(home.path().join("f")).unwrap(), b"a\r\nb");
}
