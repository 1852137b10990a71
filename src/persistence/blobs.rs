//! Large content, kept once by its SHA-256 and bounded.
//!
//! A value is one line of JSON, which says what it is, how long it was and how much of it is kept, and then the bytes. The
//! content of a long message is kept here, too: the same file read ten times is stored once.

use serde_json::json;

use super::batch::sha256_hex;
use super::codec;
use super::error::StoreError;
use super::keys;

/// The default of `persistence.max_blob_bytes`: 16 MiB, more than any tool shows and little enough to keep.
pub const DEFAULT_MAX_BLOB_BYTES: u64 = 16 * 1024 * 1024;

/// A message's content longer than this is kept as a blob. Below it, looking the content up costs more than repeating it.
pub(crate) const INLINE_BYTES: usize = 32 * 1024;

/// Content that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// What is kept: all of it, or its beginning.
    pub content: Vec<u8>,
    /// How long it was.
    pub full_bytes: u64,
}

impl Blob {
    /// Whether its end was cut off.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.full_bytes > self.content.len() as u64
    }

    /// The content as text. What was cut off is named at its end, and a character that the cut went through is left out.
    #[must_use]
    pub fn into_text(mut self) -> String {
        if !self.is_cut() {
            return String::from_utf8(self.content)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        if let Err(error) = std::str::from_utf8(&self.content)
            && error.error_len().is_none()
        {
            self.content.truncate(error.valid_up_to());
        }
        let missing = self.full_bytes - self.content.len() as u64;
        let mut text = String::from_utf8_lossy(&self.content).into_owned();
        text.push_str(&format!(
            "\n[{missing} more bytes were not kept: persistence.max_blob_bytes]"
        ));
        text
    }
}

/// The stored value of `content`, whose SHA-256 is `name` and of which `max_bytes` are kept at most.
pub(crate) fn pack(name: &str, content: &[u8], max_bytes: u64) -> Vec<u8> {
    pack_cut(name, content, content.len() as u64, max_bytes)
}

/// The same for content of which only the beginning is known, of `full_bytes`.
pub(crate) fn pack_cut(name: &str, content: &[u8], full_bytes: u64, max_bytes: u64) -> Vec<u8> {
    let kept = content.len().min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    let mut value = codec::to_sorted_bytes(&json!({
        "_type": keys::BLOB,
        "bytes": full_bytes,
        "kept": kept,
        "sha256": name,
    }));
    value.push(b'\n');
    value.extend_from_slice(&content[..kept]);
    value
}

/// How much of `value` is its header.
pub(crate) fn header_end(value: &[u8]) -> Option<usize> {
    value.iter().take(512).position(|byte| *byte == b'\n').map(|at| at + 1)
}

/// The blob at the start of `value`, its name, and how many bytes it takes; the value may go on behind it.
pub(crate) fn unpack_prefix(value: &[u8]) -> Result<(String, Blob, usize), &'static str> {
    let start = header_end(value).ok_or("it has no header")?;
    let header = codec::from_bytes(&value[..start]).map_err(|_| "its header is not JSON")?;
    let number = |name: &str| header.get(name).and_then(serde_json::Value::as_u64);
    let (Some(full_bytes), Some(kept), Some(name)) = (
        number("bytes"),
        number("kept"),
        header.get("sha256").and_then(serde_json::Value::as_str),
    ) else {
        return Err("its header has no length or name");
    };
    let end = usize::try_from(kept)
        .ok()
        .and_then(|kept| start.checked_add(kept))
        .filter(|end| *end <= value.len() && kept <= full_bytes)
        .ok_or("it is shorter than its header says")?;
    let content = value[start..end].to_vec();
    if kept == full_bytes && sha256_hex(&content) != name {
        return Err("its content is not what it was stored as");
    }
    Ok((name.to_owned(), Blob { content, full_bytes }, end))
}

/// The blob in the value stored under `key`.
pub(crate) fn unpack(key: &str, value: &[u8]) -> Result<Blob, StoreError> {
    let invalid = |detail: &str| StoreError::Record {
        keyspace: keys::BLOB,
        key: key.to_owned(),
        detail: detail.to_owned(),
    };
    let (name, blob, end) = unpack_prefix(value).map_err(invalid)?;
    if name == key && end == value.len() {
        Ok(blob)
    } else {
        Err(invalid("it does not belong there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(content: &[u8], limit: u64) -> (String, Vec<u8>) {
        let name = sha256_hex(content);
        let value = pack(&name, content, limit);
        (name, value)
    }

    #[test]
    fn content_comes_back_whole_or_says_that_it_was_cut() {
        let (name, value) = packed(b"ab\ncd", 10);
        let whole = unpack(&name, &value).unwrap();
        assert_eq!((whole.content.as_slice(), whole.is_cut()), (&b"ab\ncd"[..], false));
        let (name, value) = packed("abcö".as_bytes(), 4);
        let cut = unpack(&name, &value).unwrap();
        assert_eq!((cut.content.len(), cut.full_bytes, cut.is_cut()), (4, 5, true));
        let text = cut.into_text();
        assert!(text.starts_with("abc\n[2 more bytes"), "{text}");
    }

    #[test]
    fn a_damaged_value_is_an_error() {
        let (name, value) = packed(b"abc", 3);
        assert!(unpack(&name, b"junk").is_err());
        assert!(unpack("other", &value).is_err());
        for end in 0..value.len() {
            assert!(unpack(&name, &value[..end]).is_err());
        }
        let mut changed = value.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(unpack(&name, &changed).is_err());
        let mut longer = value;
        longer.push(b'x');
        assert!(unpack(&name, &longer).is_err());
    }
}
