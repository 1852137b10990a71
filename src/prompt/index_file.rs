//! The file that describes a repository: the configured index file, or what other agents' users keep for the purpose.

use std::path::Path;

use super::confined::{Head, read_head};
use super::error::PromptError;

/// Looked for, in this order, where the configured index file is absent.
pub const ALTERNATIVES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A UTF-8 character has at most this many bytes.
const MAX_CHAR_BYTES: usize = 4;

/// What an index file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Its path, relative to the root of the repository.
    pub path: String,
    /// Its text, trimmed and cut, with a notice where something was left out or could not be read as text.
    pub text: String,
    /// Whether it was cut.
    pub truncated: bool,
}

/// Reads the index file at the root of a repository, `None` where there is none or it is blank.
///
/// Only the first `max_chars` characters are taken, at the end of a line if one is near. A blank index file is there:
/// the alternatives are not looked for, which is how a repository says that it wants none.
///
/// # Errors
/// When a file is there and leads out of the repository, is no regular file or cannot be read.
pub fn load_index_file(git_root: &Path, index_file: &str, max_chars: usize) -> Result<Option<IndexFile>, PromptError> {
    let max_bytes = max_chars.saturating_add(1).saturating_mul(MAX_CHAR_BYTES);
    for path in std::iter::once(index_file).chain(ALTERNATIVES) {
        if let Some(head) = read_head(git_root, Path::new(path), max_bytes as u64)? {
            return Ok(cut(path, &head, max_chars));
        }
    }
    Ok(None)
}

fn cut(path: &str, head: &Head, max_chars: usize) -> Option<IndexFile> {
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head.bytes);
    // A character cut in the middle by the end of what was read is no sign of another encoding.
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let decoded = String::from_utf8_lossy(&bytes[..end]);
    let broken = matches!(decoded, std::borrow::Cow::Owned(_));
    let whole = decoded.trim();
    if whole.is_empty() {
        return None;
    }
    let more_on_disk = head.len > head.bytes.len() as u64;
    let (kept, truncated) = match whole.char_indices().nth(max_chars) {
        Some((end, _)) => (at_line_end(&whole[..end]), true),
        None => (whole, more_on_disk),
    };
    let mut text = kept.to_owned();
    if truncated {
        text.push_str(&format!(
            "\n\n[{path} is cut here after {} characters; it has {} bytes. Read the file for the rest.]",
            kept.chars().count(),
            head.len
        ));
    }
    if broken && kept.contains(char::REPLACEMENT_CHARACTER) {
        text.push_str(&format!(
            "\n\n[{path} is not UTF-8; \u{fffd} stands for what could not be read.]"
        ));
    }
    Some(IndexFile {
        path: path.to_owned(),
        text,
        truncated,
    })
}

/// `text` without its last, unfinished line, unless that would lose more than a tenth of it.
fn at_line_end(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if end * 10 >= text.len() * 9 => text[..end].trim_end(),
        _ => text.trim_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(files: &[(&str, &[u8])], index_file: &str, max: usize) -> Option<IndexFile> {
        let root = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(root.path().join(name), bytes).unwrap();
        }
        load_index_file(root.path(), index_file, max).unwrap()
    }

    #[test]
    fn the_index_file_goes_before_the_alternatives() {
        let all: &[(&str, &[u8])] = &[("INDEX.md", b"i"), ("AGENTS.md", b"a"), ("CLAUDE.md", b"c")];
        let path = |files, index| load(files, index, 100).map(|file| file.path);
        assert_eq!(path(all, "INDEX.md").as_deref(), Some("INDEX.md"));
        assert_eq!(path(&all[1..], "INDEX.md").as_deref(), Some("AGENTS.md"));
        assert_eq!(path(&all[2..], "INDEX.md").as_deref(), Some("CLAUDE.md"));
        assert_eq!(path(all, "docs/OTHER.md").as_deref(), Some("AGENTS.md"));
        assert_eq!(path(&[], "INDEX.md"), None);
        assert_eq!(
            path(&[("INDEX.md", b" \n"), all[1]], "INDEX.md"),
            None,
            "blank means none is wanted"
        );
    }

    #[test]
    fn a_long_file_is_cut_at_a_line_with_a_notice() {
        let text = "äöü line\n".repeat(20);
        let file = load(&[("INDEX.md", text.as_bytes())], "INDEX.md", 100).unwrap();
        assert!(file.truncated);
        let kept = "äöü line\n".repeat(11);
        let notice = "[INDEX.md is cut here after 98 characters; it has 240 bytes. Read the file for the rest.]";
        assert_eq!(file.text, format!("{}\n\n{notice}", kept.trim_end()));
        let one_line = load(&[("INDEX.md", "ä".repeat(101).as_bytes())], "INDEX.md", 100).unwrap();
        assert!(one_line.text.starts_with(&format!("{}\n\n[", "ä".repeat(100))));
        assert!(!one_line.text.contains("not UTF-8"), "{}", one_line.text);
    }

    #[test]
    fn the_cap_itself_is_not_cut() {
        let exact = load(&[("INDEX.md", "é".repeat(100).as_bytes())], "INDEX.md", 100).unwrap();
        assert_eq!((exact.text, exact.truncated), ("é".repeat(100), false));
    }

    #[test]
    fn another_encoding_is_told() {
        let latin = load(&[("INDEX.md", b"\xef\xbb\xbfcaf\xe9 ok")], "INDEX.md", 100).unwrap();
        assert_eq!(
            latin.text,
            "caf\u{fffd} ok\n\n[INDEX.md is not UTF-8; \u{fffd} stands for what could not be read.]"
        );
    }
}
