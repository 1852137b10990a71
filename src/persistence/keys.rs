//! Keyspaces and key formats of schema version 2.
//!
//! A key lives inside a named keyspace and is only the id segments, joined by `:`. Structural segments hold no `:`; the
//! last one of a note is opaque and may. Numbers are zero-padded, so that the order of the bytes is theirs.

use super::error::StoreError;

/// The version of keys and records this program writes.
pub const SCHEMA_VERSION: u64 = 2;

/// Digits of a sequence number in a key: enough for every `u64`.
pub const SEQ_DIGITS: usize = 20;

/// `meta`: `schema_version`, `active_conversation_id`.
pub const META: &str = "meta";
/// `conversation`: `<conversation_id>`.
pub const CONVERSATION: &str = "conversation";
/// `conversation_recent`: `<project_id>:<updated>:<conversation_id>` for what a user began, `*:<updated>:<conversation_id>`
/// for every conversation; the values are empty. So the latest ones are found without reading all.
pub const RECENT: &str = "conversation_recent";
/// `message`: `<conversation_id>:<seq>`.
pub const MESSAGE: &str = "message";
/// `message_id`: `<conversation_id>:<message_id>`, the sequence number of a message, so that it is appended once.
pub const MESSAGE_ID: &str = "message_id";
/// `conversation_note`: `<conversation_id>:<note_id>`.
pub const NOTE: &str = "conversation_note";
/// `usage`: `<conversation_id>:<turn_id>:parent` or `<conversation_id>:<turn_id>:child:<job_id>`.
pub const USAGE: &str = "usage";
/// `project_memory`: `<project_id>:<memory_id>`.
pub const MEMORY: &str = "project_memory";
/// `config`: `runtime_overrides`.
pub const CONFIG: &str = "config";
/// `open_turn`: `<conversation_id>:<turn_id>`, the turns in progress.
pub const OPEN_TURN: &str = "open_turn";
/// `terminal`: `<pid>:<start>`, which process has which conversation open.
pub const TERMINAL: &str = "terminal";
/// `blob`: the SHA-256 of the content in hex.
pub const BLOB: &str = "blob";

/// Every keyspace, in the order of listings and exports.
pub const ALL: [&str; 12] = [
    META,
    CONVERSATION,
    RECENT,
    MESSAGE,
    MESSAGE_ID,
    NOTE,
    USAGE,
    MEMORY,
    CONFIG,
    OPEN_TURN,
    TERMINAL,
    BLOB,
];

/// The key of the schema version in `meta`.
pub const META_SCHEMA_VERSION: &str = "schema_version";
/// The key of the last used conversation in `meta`.
pub const META_ACTIVE_CONVERSATION: &str = "active_conversation_id";
/// The key of the configuration patch in `config`.
pub const CONFIG_OVERRIDES: &str = "runtime_overrides";

/// Longest segment in bytes; keys are small, and an id is not a place for content.
pub const MAX_SEGMENT_BYTES: usize = 512;

/// Checks a structural segment: not empty, no `:`, no control characters, bounded.
pub fn segment<'a>(name: &'static str, value: &'a str) -> Result<&'a str, StoreError> {
    if value.contains(':') {
        return Err(bad(name, value, "it holds a `:`"));
    }
    opaque(name, value)
}

/// Checks a trailing opaque segment, which may hold `:`.
pub fn opaque<'a>(name: &'static str, value: &'a str) -> Result<&'a str, StoreError> {
    if value.is_empty() {
        Err(bad(name, value, "it is empty"))
    } else if value.len() > MAX_SEGMENT_BYTES {
        Err(bad(name, value, "it is longer than 512 bytes"))
    } else if value.chars().any(char::is_control) {
        Err(bad(name, value, "it holds a control character"))
    } else {
        Ok(value)
    }
}

fn bad(name: &'static str, value: &str, reason: &'static str) -> StoreError {
    let mut shown: String = value.chars().take(80).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    StoreError::KeySegment {
        name,
        value: shown,
        reason,
    }
}

/// The key of a conversation.
pub fn conversation(id: &str) -> Result<String, StoreError> {
    segment("conversation_id", id).map(str::to_owned)
}

/// The shared prefix `<conversation_id>:` of everything that belongs to a conversation.
pub fn conversation_scope(id: &str) -> Result<String, StoreError> {
    Ok(format!("{}:", segment("conversation_id", id)?))
}

/// The place of every project in `conversation_recent`; no project's id is that.
pub const ANY_PROJECT: &str = "*";

/// The key of a conversation in the order of use.
pub fn recent(project_id: &str, updated: u64, conversation_id: &str) -> Result<String, StoreError> {
    Ok(format!(
        "{}:{updated:020}:{}",
        segment("project_id", project_id)?,
        segment("conversation_id", conversation_id)?
    ))
}

/// The conversation in a key of `conversation_recent`.
#[must_use]
pub fn recent_conversation(key: &str) -> Option<&str> {
    key.rsplit_once(':').map(|(_, conversation)| conversation)
}

/// The key of a message.
pub fn message(conversation_id: &str, seq: u64) -> Result<String, StoreError> {
    Ok(format!("{}:{seq:020}", segment("conversation_id", conversation_id)?))
}

/// The sequence number in a message's key.
#[must_use]
pub fn message_seq(key: &str) -> Option<u64> {
    let (_, digits) = key.rsplit_once(':')?;
    (digits.len() == SEQ_DIGITS).then(|| digits.parse().ok()).flatten()
}

/// The key of a message's id.
pub fn message_id(conversation_id: &str, id: &str) -> Result<String, StoreError> {
    Ok(format!(
        "{}:{}",
        segment("conversation_id", conversation_id)?,
        segment("message_id", id)?
    ))
}

/// The key of a note.
pub fn note(conversation_id: &str, note_id: &str) -> Result<String, StoreError> {
    Ok(format!(
        "{}:{}",
        segment("conversation_id", conversation_id)?,
        opaque("note_id", note_id)?
    ))
}

/// The key of a turn's use: its own, or that of a child's job in it.
pub fn usage(conversation_id: &str, turn_id: &str, child_job: Option<&str>) -> Result<String, StoreError> {
    let conversation_id = segment("conversation_id", conversation_id)?;
    let turn_id = segment("turn_id", turn_id)?;
    Ok(match child_job {
        None => format!("{conversation_id}:{turn_id}:parent"),
        Some(job) => format!("{conversation_id}:{turn_id}:child:{}", segment("job_id", job)?),
    })
}

/// The key of a project's memory.
pub fn memory(project_id: &str, memory_id: &str) -> Result<String, StoreError> {
    Ok(format!(
        "{}:{}",
        segment("project_id", project_id)?,
        segment("memory_id", memory_id)?
    ))
}

/// The shared prefix `<project_id>:` of a project's memories.
pub fn project_scope(project_id: &str) -> Result<String, StoreError> {
    Ok(format!("{}:", segment("project_id", project_id)?))
}

/// The key of a turn in progress.
pub fn open_turn(conversation_id: &str, turn_id: &str) -> Result<String, StoreError> {
    Ok(format!(
        "{}:{}",
        segment("conversation_id", conversation_id)?,
        segment("turn_id", turn_id)?
    ))
}

/// The key of a live terminal. `start` is zero-padded like every number.
#[must_use]
pub fn terminal(pid: u32, start: u64) -> String {
    format!("{pid:010}:{start:020}")
}

/// The note that holds a finished turn's record.
#[must_use]
pub fn turn_record_note(turn_id: &str) -> String {
    format!("turn_record-{turn_id}")
}

/// The first key after every key that starts with `prefix`; `None` where there is no upper bound.
#[must_use]
pub fn after_prefix(prefix: &str) -> Option<String> {
    // Scopes end in ':', and the next character is ';': staying in ASCII keeps the bound a valid `str`.
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let mut next = u32::from(last).checked_add(1)?;
        if (0xD800..0xE000).contains(&next) {
            next = 0xE000;
        }
        if let Some(next) = char::from_u32(next) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formats_are_those_of_the_schema() {
        assert_eq!(message("c1", 7).unwrap(), "c1:00000000000000000007");
        assert_eq!(usage("c1", "t1", None).unwrap(), "c1:t1:parent");
        assert_eq!(usage("c1", "t1", Some("j")).unwrap(), "c1:t1:child:j");
        assert_eq!(note("c1", "scratchpad:dispatch/j").unwrap(), "c1:scratchpad:dispatch/j");
        assert_eq!(memory("p", "m").unwrap(), "p:m");
        assert!(message("a:b", 1).is_err());
        assert!(conversation("").is_err());
        assert!(note("c", "").is_err());
        assert!(conversation("a\nb").is_err());
    }

    proptest! {
        #[test]
        fn byte_order_is_number_order(a: u64, b: u64) {
            let (ka, kb) = (message("c", a).unwrap(), message("c", b).unwrap());
            prop_assert_eq!(a.cmp(&b), ka.as_bytes().cmp(kb.as_bytes()));
            prop_assert_eq!(message_seq(&ka), Some(a));
        }

        #[test]
        fn a_scope_holds_its_conversation_and_no_other(a in "[^:\\pC]{1,12}", b in "[^:\\pC]{1,12}", seq: u64) {
            prop_assume!(a != b);
            let low = conversation_scope(&a).unwrap();
            let high = after_prefix(&low).unwrap();
            let own = message(&a, seq).unwrap();
            let other = message(&b, seq).unwrap();
            prop_assert!(own >= low && own < high);
            prop_assert!(!(other >= low && other < high));
        }

        #[test]
        fn the_bound_after_a_prefix_is_above_everything_with_it(prefix in "\\PC{1,6}", tail in "\\PC{0,6}") {
            let key = format!("{prefix}{tail}");
            if let Some(high) = after_prefix(&prefix) {
                prop_assert!(key < high);
                prop_assert!(high > prefix);
            }
        }

        #[test]
        fn any_text_is_a_segment_or_a_clear_error(text in any::<String>()) {
            match segment("conversation_id", &text) {
                Ok(same) => prop_assert_eq!(same, text.as_str()),
                Err(error) => prop_assert!(error.to_string().contains("cannot be part of a key")),
            }
        }
    }
}
