//! What changes come to, file by file: how many lines came and went, and the difference as text.

use std::path::Path;

use similar::{ChangeTag, TextDiff};

use super::change::unified;
use super::context::ToolContext;
use super::state::{NetChange, net_changes};
use crate::protocol::ChangedFile;

/// Longest content that is compared line by line, in bytes; of a longer one only the name is told.
const COMPARED_BYTES: u64 = 4 << 20;
/// How long one comparison may take before it becomes a rougher one.
const COMPARED_TIME: std::time::Duration = std::time::Duration::from_millis(100);

/// A changed file, compared with what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedFile {
    /// What is told of it.
    pub file: ChangedFile,
    /// What it held and what it holds, where both are known and not too long.
    contents: Option<(Vec<u8>, Vec<u8>)>,
}

impl ComparedFile {
    /// The difference as a unified diff; empty where it cannot be shown or would be too long.
    #[must_use]
    pub fn diff(&self) -> String {
        let diff = |(before, now): &(Vec<u8>, Vec<u8>)| unified(&self.file.path, before, now);
        self.contents.as_ref().map(diff).unwrap_or_default()
    }
}

/// The files that the turn of `ctx` changed, with how much; empty where none did. Reads each of them.
pub async fn summarize(ctx: &ToolContext) -> Vec<ChangedFile> {
    let net = net_changes(&ctx.state.changes(Some(&ctx.turn_id)));
    if net.is_empty() {
        return Vec::new();
    }
    let (keeper, cwd) = (ctx.keeper.clone(), ctx.cwd.clone());
    let compared = tokio::task::spawn_blocking(move || {
        let kept = |key: &str| keeper.as_ref()?.fetch(key).ok().flatten();
        let compared = net.iter().filter_map(|net| compare(net, kept, &cwd));
        compared.map(|compared| compared.file).collect()
    });
    // A comparison that panics costs the summary, not the turn.
    compared.await.unwrap_or_default()
}

/// Compares a file with what it was before `net`, naming it relative to `cwd`; `None` where it is as it was. Reads it, and
/// has what it was from `kept`, by its key.
#[must_use]
pub fn compare(net: &NetChange, kept: impl Fn(&str) -> Option<Vec<u8>>, cwd: &Path) -> Option<ComparedFile> {
    let name = net.path.strip_prefix(cwd).unwrap_or(&net.path).display().to_string();
    let mut compared = ComparedFile {
        file: ChangedFile {
            path: name,
            new: net.before.is_none(),
            ..ChangedFile::default()
        },
        contents: None,
    };
    let before = match (&net.before, &net.preimage) {
        (None, _) => Some(Vec::new()),
        (Some(_), Some(key)) => kept(key),
        (Some(_), None) => None,
    };
    let small = std::fs::metadata(&net.path).map_or(true, |file| file.is_file() && file.len() <= COMPARED_BYTES);
    let (Some(before), true) = (before, small) else {
        return Some(compared);
    };
    let exists = net.path.exists();
    let now = std::fs::read(&net.path).unwrap_or_default();
    if now == before && exists != compared.file.new {
        return None;
    }
    let diff = TextDiff::configure().timeout(COMPARED_TIME).diff_lines(&*before, &*now);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    compared.file.added = Some(count(ChangeTag::Insert));
    compared.file.removed = Some(count(ChangeTag::Delete));
    compared.contents = Some((before, now));
    Some(compared)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn lines_are_counted_against_what_was_kept_and_a_file_that_is_as_it_was_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let kept = HashMap::from([("k", b"one\ntwo\nthree\n".to_vec())]);
        let net = |name: &str, before: Option<&str>, key: Option<&str>| NetChange {
            path: home.path().join(name),
            before: before.map(str::to_owned),
            after: "after".to_owned(),
            preimage: key.map(str::to_owned),
            changes: 1,
        };
        let told =
            |net: &NetChange| compare(net, |key| kept.get(key).cloned(), home.path()).map(|compared| compared.file);
        let write = |name: &str, text: &[u8]| std::fs::write(home.path().join(name), text).unwrap();
        let file = |path: &str, new: bool, lines: Option<(usize, usize)>| {
            Some(ChangedFile {
                path: path.to_owned(),
                new,
                added: lines.map(|(added, _)| added),
                removed: lines.map(|(_, removed)| removed),
            })
        };

        write("a", b"one\n2\n2b\nthree\n");
        assert_eq!(told(&net("a", Some("h"), Some("k"))), file("a", false, Some((2, 1))));
        write("a", b"one\ntwo\nthree\n");
        assert_eq!(told(&net("a", Some("h"), Some("k"))), None);
        // Bytes that are no text are compared as well, a file whose past is gone is only named.
        write("b", b"\xff\xfe\n");
        assert_eq!(told(&net("b", None, None)), file("b", true, Some((1, 0))));
        assert_eq!(told(&net("b", Some("h"), Some("gone"))), file("b", false, None));
        // Made and removed again, or removed: the one is as it was, the other is not.
        assert_eq!(told(&net("never", None, None)), None);
        assert_eq!(
            told(&net("never", Some("h"), Some("k"))),
            file("never", false, Some((0, 3)))
        );
        // An empty file is a change where there was none.
        write("empty", b"");
        assert_eq!(told(&net("empty", None, None)), file("empty", true, Some((0, 0))));
    }
}
