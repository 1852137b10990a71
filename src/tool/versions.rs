//! What files were like when the model saw them: one number a line, enough to say what has changed since.

use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::files::{names_hash, short};
use super::text::Text;

/// Versions remembered; the oldest go first.
const MAX_VERSIONS: usize = 128;
/// Lines of a file that is remembered: 8 bytes each.
const MAX_LINES: usize = 20_000;
/// Changed places told.
const MAX_PLACES: usize = 6;

/// The lines of a file, each as the hash of its bytes.
pub(super) type Lines = Arc<[u64]>;

/// The versions of files seen lately.
#[derive(Debug, Default)]
pub(super) struct Versions {
    entries: VecDeque<(PathBuf, String, Lines)>,
}

/// The lines of `text`.
pub(super) fn lines_of(text: &Text) -> Lines {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    (1..=text.line_count())
        .map(|number| hasher.hash_one(&text.bytes[text.range(number, number)]))
        .collect()
}

impl Versions {
    /// Remembers that the file at `path` was `text`.
    pub(super) fn note(&mut self, path: &Path, hash: &str, text: &Text) {
        let known = |entry: &(PathBuf, String, Lines)| entry.0 == path && entry.1 == hash;
        if text.line_count() > MAX_LINES || self.entries.iter().any(known) {
            return;
        }
        if self.entries.len() >= MAX_VERSIONS {
            self.entries.pop_front();
        }
        self.entries
            .push_back((path.to_owned(), hash.to_owned(), lines_of(text)));
    }

    /// The version of the file at `path` that `hash` names as a model wrote it.
    pub(super) fn find(&self, path: &Path, hash: &str) -> Option<Lines> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.0 == path && names_hash(hash, &entry.1))?;
        Some(Arc::clone(&entry.2))
    }
}

/// What changed from `old` to `new`, in words, and what became of the lines `wanted` of `old`.
pub(super) fn explain(old: &Lines, new: &Lines, new_hash: &str, wanted: Option<RangeInclusive<usize>>) -> String {
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let places: Vec<String> = ops.iter().filter_map(place).collect();
    let mut said = match places.as_slice() {
        [] => "It has the same lines".to_owned(),
        places if places.len() > MAX_PLACES => {
            format!("Since you saw it, {}, and more", places[..MAX_PLACES].join("; "))
        }
        places => format!("Since you saw it, {}", places.join("; ")),
    };
    said.push('.');
    if let Some(wanted) = wanted {
        let (first, last) = wanted.into_inner();
        let same = ops.iter().find_map(|op| match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } if (old_index + 1..=old_index + len).contains(&first.max(1)) && last <= old_index + len => {
                Some(first + new_index - old_index)
            }
            _ => None,
        });
        match same {
            Some(now) => {
                let moved = numbers(now, last + 1 - first.min(last));
                said.push_str(&format!(
                    " Line {} as you saw it is {moved} now, unchanged: repeat with that and hash {}.",
                    numbers(first, last + 1 - first.min(last)),
                    short(new_hash)
                ));
            }
            None => said.push_str(" Your lines are among them: read them again."),
        }
    }
    said
}

fn place(op: &DiffOp) -> Option<String> {
    match *op {
        DiffOp::Equal { .. } => None,
        DiffOp::Delete { old_index, old_len, .. } => Some(format!("{} went", lines(old_index + 1, old_len))),
        DiffOp::Insert { new_index, new_len, .. } => Some(format!("{} came in", lines(new_index + 1, new_len))),
        DiffOp::Replace {
            old_index,
            old_len,
            new_index,
            new_len,
        } => Some(format!(
            "{} became {}",
            lines(old_index + 1, old_len),
            numbers(new_index + 1, new_len)
        )),
    }
}

fn lines(first: usize, count: usize) -> String {
    format!("line {}", numbers(first, count))
}

fn numbers(first: usize, count: usize) -> String {
    if count <= 1 {
        first.to_string()
    } else {
        format!("{first} to {}", first + count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Lines {
        lines_of(&Text::new(text.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_change_is_told_with_where_the_wanted_lines_are_now() {
        let (old, new) = (of("a\nb\nc\nd\ne\n"), of("a\nx\ny\nc\nd\n"));
        assert_eq!(
            explain(&old, &new, "0123456789abcdef", Some(3..=4)),
            "Since you saw it, line 2 became 2 to 3; line 5 went. Line 3 to 4 as you saw it is 4 to 5 now, unchanged: \
             repeat with that and hash 0123456789ab."
        );
        assert!(explain(&old, &new, "0", Some(2..=3)).ends_with("Your lines are among them: read them again."));
        assert_eq!(
            explain(&old, &of("n\na\nb\nc\nd\ne\n"), "0", None),
            "Since you saw it, line 1 came in."
        );
    }

    #[test]
    fn versions_are_found_by_the_shown_part_of_their_hash_and_forgotten_in_order() {
        let mut versions = Versions::default();
        for n in 0..=MAX_VERSIONS {
            let text = Text::new(format!("{n}\n").into_bytes()).unwrap();
            versions.note(Path::new("/f"), &format!("{n:064x}"), &text);
        }
        assert!(versions.find(Path::new("/f"), &format!("{:064x}", 0)).is_none());
        assert!(versions.find(Path::new("/f"), &format!("{:064x}", 1)).is_some());
        assert!(versions.find(Path::new("/g"), &format!("{:064x}", 1)).is_none());
    }
}
