//! Joining members that come in pieces and must go back as one.

use serde_json::{Map, Value};

/// Members of a block whose pieces are texts to be appended.
const GROWING: [&str; 4] = ["text", "summary", "thinking", "data"];

/// Puts `value` under `key`: objects are merged, lists of blocks joined, anything else replaced.
pub(crate) fn member(map: &mut Map<String, Value>, key: &str, value: Value) {
    match (map.get_mut(key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (name, value) in new {
                member(old, &name, value);
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => blocks(old, new),
        (_, Value::Null) => {}
        (_, value) => {
            map.insert(key.to_owned(), value);
        }
    }
}

/// Adds pieces of blocks (thoughts with their signatures) to the blocks so far.
///
/// A piece belongs to the block with its index and type. Without an index it goes on with the last block, if that has
/// the same type, no other id, and is not sealed by a signature yet.
pub(crate) fn blocks(blocks: &mut Vec<Value>, pieces: Vec<Value>) {
    for piece in pieces {
        let Value::Object(piece) = piece else {
            if !piece.is_null() {
                blocks.push(piece);
            }
            continue;
        };
        let home = blocks.iter_mut().rev().find_map(|block| match block {
            Value::Object(block) if same_block(block, &piece) => Some(block),
            _ => None,
        });
        match home {
            Some(block) if piece.get("index").is_some_and(|index| !index.is_null()) || is_open(block, &piece) => {
                grow(block, piece);
            }
            _ => blocks.push(Value::Object(piece)),
        }
    }
}

fn same_block(block: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let agree = |key: &str| match (block.get(key), piece.get(key)) {
        (None | Some(Value::Null), _) | (_, None | Some(Value::Null)) => key != "index",
        (a, b) => a == b,
    };
    let both_lack_index = [block, piece]
        .iter()
        .all(|object| object.get("index").is_none_or(Value::is_null));
    agree("type") && agree("id") && (both_lack_index || agree("index"))
}

/// Whether a piece without an index can still go on with this block.
fn is_open(block: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let sealed = block
        .get("signature")
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    let adds_text = GROWING.iter().any(|key| {
        piece
            .get(*key)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    });
    let opaque = piece.contains_key("data");
    !(opaque || sealed && adds_text)
}

fn grow(block: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (block.get_mut(&key), value) {
            (Some(Value::String(old)), Value::String(new)) if GROWING.contains(&key.as_str()) => {
                if key != "data" || *old != new {
                    old.push_str(&new);
                }
            }
            (Some(old), Value::Null) if !old.is_null() => {}
            (Some(Value::String(old)), Value::String(new)) if new.is_empty() && !old.is_empty() => {}
            (_, value) => {
                block.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn join(pieces: Value) -> Value {
        let mut out = Vec::new();
        for piece in pieces.as_array().unwrap() {
            blocks(&mut out, vec![piece.clone()]);
        }
        Value::Array(out)
    }

    #[test]
    fn pieces_of_a_block_become_one_and_the_signature_comes_last() {
        assert_eq!(
            join(json!([
                {"type": "reasoning.text", "index": 0, "text": "Count "},
                {"type": "reasoning.text", "index": 1, "text": "Other."},
                {"type": "reasoning.text", "index": 0, "text": "first.", "signature": null},
                {"type": "reasoning.text", "index": 0, "signature": "s"},
                {"type": "reasoning.encrypted", "index": 0, "data": "x"}
            ])),
            json!([
                {"type": "reasoning.text", "index": 0, "text": "Count first.", "signature": "s"},
                {"type": "reasoning.text", "index": 1, "text": "Other."},
                {"type": "reasoning.encrypted", "index": 0, "data": "x"}
            ])
        );
    }

    #[test]
    fn without_an_index_a_signature_ends_a_block() {
        assert_eq!(
            join(json!([
                {"type": "thinking", "thinking": "a"},
                {"type": "thinking", "thinking": "b"},
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "thinking", "thinking": "c"}
            ])),
            json!([
                {"type": "thinking", "thinking": "ab", "signature": "s"},
                {"type": "thinking", "thinking": "c"}
            ])
        );
    }

    #[test]
    fn members_merge_deeply() {
        let mut map = Map::new();
        member(&mut map, "x", json!({"google": {"a": 1}}));
        member(&mut map, "x", json!({"google": {"sig": "s"}, "b": null}));
        assert_eq!(Value::Object(map), json!({"x": {"google": {"a": 1, "sig": "s"}}}));
    }
}
