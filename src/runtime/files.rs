//! The files that a word being typed may mean: the entries of the directory it names so far.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::completion::{Item, mention_text};

/// The most entries of one directory that are looked at; more could not be shown in time.
const MAX_ENTRIES: usize = 10_000;
/// How old a directory's last change has to be when it is read, for what was read to be kept: file systems write their
/// times in steps, and within one of them a second change could not be seen.
const SETTLED: Duration = Duration::from_secs(1);

/// The directory last read, kept for the next key of the same word.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<Option<Listing>>);

#[derive(Debug)]
struct Listing {
    dir: PathBuf,
    below: String,
    hidden: bool,
    changed: SystemTime,
    items: Arc<Vec<Item>>,
}

impl Listings {
    /// The candidates for a path typed as far as `typed`, relative to `cwd`. Hidden entries are offered once a dot is
    /// typed. Directories end with a slash, so that the next word typed goes on below them.
    pub(super) fn mentioned(&self, cwd: &Path, typed: &str) -> Arc<Vec<Item>> {
        let (below, name) = match typed.rfind('/') {
            Some(slash) => typed.split_at(slash + 1),
            None => ("", typed),
        };
        let (dir, hidden) = (cwd.join(below), name.starts_with('.'));
        // Asked before it is read: what comes in between is seen the next time.
        let now = SystemTime::now();
        let changed = std::fs::metadata(&dir).and_then(|meta| meta.modified()).ok();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref()
            && (&kept.dir, kept.below.as_str(), kept.hidden, Some(kept.changed)) == (&dir, below, hidden, changed)
        {
            return Arc::clone(&kept.items);
        }
        let items = Arc::new(entries(&dir, below, hidden));
        let settled = changed.filter(|changed| now.duration_since(*changed).is_ok_and(|age| age > SETTLED));
        *kept = settled.map(|changed| Listing {
            dir,
            below: below.to_owned(),
            hidden,
            changed,
            items: Arc::clone(&items),
        });
        items
    }
}

fn entries(dir: &Path, below: &str, hidden: bool) -> Vec<Item> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut items: Vec<Item> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let text = entry.file_name().into_string().ok()?;
            // A quote or a line break cannot be typed in a mention.
            if text.contains(['"', '\n', '\r']) || (text.starts_with('.') && !hidden) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_once_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let texts = |items: &[Item]| items.iter().map(|item| item.text.clone()).collect::<Vec<_>>();
        std::fs::write(dir.path().join("one"), "").unwrap();
        let listings = Listings::default();
        let changed_at = |time: SystemTime| std::fs::File::open(dir.path()).unwrap().set_modified(time).unwrap();
        // Changed just now, it may change again unseen.
        let now = SystemTime::now();
        changed_at(now);
        let first = listings.mentioned(dir.path(), "o");
        assert!(!Arc::ptr_eq(&first, &listings.mentioned(dir.path(), "on")));
        changed_at(now - Duration::from_secs(60));
        let first = listings.mentioned(dir.path(), "o");
        assert!(Arc::ptr_eq(&first, &listings.mentioned(dir.path(), "on")));
        std::fs::write(dir.path().join("only"), "").unwrap();
        std::fs::write(dir.path().join(".hidden"), "").unwrap();
        assert_eq!(texts(&listings.mentioned(dir.path(), "on")), ["one", "only"]);
        assert_eq!(texts(&listings.mentioned(dir.path(), ".")), [".hidden", "one", "only"]);
        assert!(listings.mentioned(dir.path(), "gone/").is_empty());
    }
}
