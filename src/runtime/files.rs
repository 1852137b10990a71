//! The files that a word being typed may mean: the entries of the directory it names so far.

use std::path::Path;

use crate::completion::{Item, mention_text};

/// The most entries of one directory that are looked at; more could not be shown in time.
const MAX_ENTRIES: usize = 10_000;

/// The candidates for a path typed as far as `typed`, relative to `cwd`. Hidden entries are offered once a dot is typed.
/// Directories end with a slash, so that the next word typed goes on below them.
pub(super) fn mentioned(cwd: &Path, typed: &str) -> Vec<Item> {
    let (below, name) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let Ok(entries) = std::fs::read_dir(cwd.join(below)) else {
        return Vec::new();
    };
    let mut items: Vec<Item> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let text = entry.file_name().into_string().ok()?;
            // A quote or a line break cannot be typed in a mention.
            if text.contains(['"', '\n', '\r']) || (text.starts_with('.') && !name.starts_with('.')) {
                return None;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let slash = if is_dir { "/" } else { "" };
            Some(Item::new("path", format!("{below}{text}{slash}")))
        })
        .collect();
    items.sort_unstable_by(|a, b| a.text.cmp(&b.text));
    items
}

/// What takes the place of a mention being typed.
pub(super) fn replacement(path: &str) -> String {
    match path.strip_suffix('/').filter(|_| path.contains(char::is_whitespace)) {
        // The quotes stay open: there is more to type.
        Some(_) => format!("@\"{path}"),
        None => mention_text(path),
    }
}
