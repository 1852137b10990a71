//! Large content, kept once by its SHA-256 and bounded.
//!
//! A value is one line of JSON, which says how long the content was and how much of it is kept, and then the bytes.

use super::error::StoreError;
use super::keys;

/// The default of `persistence.max_blob_bytes`: 16 MiB, more than any tool shows and little enough to keep.
pub const DEFAULT_MAX_BLOB_BYTES: u64 = 16 * 1024 * 1024;

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
}

/// The stored value of `content`, of which `max_bytes` are kept at most.
pub(crate) fn pack(content: &[u8], max_bytes: u64) -> Vec<u8> {
    let kept = content.len().min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    let mut value = format!("{{\"_type\":\"blob\",\"bytes\":{},\"kept\":{kept}}}\n", content.len()).into_bytes();
    value.extend_from_slice(&content[..kept]);
    value
}

/// The blob in a stored value.
pub(crate) fn unpack(key: &str, value: &[u8]) -> Result<Blob, StoreError> {
    let invalid = |detail: &str| StoreError::Record {
        keyspace: keys::BLOB,
        key: key.to_owned(),
        detail: detail.to_owned(),
    };
    let end = value
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or_else(|| invalid("it has no header"))?;
    let (header, content) = (&value[..end], &value[end + 1..]);
    let header: serde_json::Value = serde_json::from_slice(header).map_err(|_| invalid("its header is not JSON"))?;
    let full_bytes = header["bytes"]
        .as_u64()
        .ok_or_else(|| invalid("its header has no length"))?;
    if header["kept"].as_u64() != Some(content.len() as u64) {
        return Err(invalid("its length is not the one in its header"));
    }
    Ok(Blob {
        content: content.to_vec(),
        full_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_back_whole_or_says_that_it_was_cut() {
        let whole = unpack("k", &pack(b"ab\ncd", 10)).unwrap();
        assert_eq!((whole.content.as_slice(), whole.is_cut()), (&b"ab\ncd"[..], false));
        let cut = unpack("k", &pack(b"ab\ncd", 4)).unwrap();
        assert_eq!(
            (cut.content.as_slice(), cut.full_bytes, cut.is_cut()),
            (&b"ab\nc"[..], 5, true)
        );
        assert!(unpack("k", b"junk").is_err());
        assert!(unpack("k", &pack(b"abc", 3)[..10]).is_err());
    }
}
