//! Moves a damaged file out of the way: under a name of its own, never over another, never deleted.

use std::io;
use std::path::{Path, PathBuf};

use super::lock::beside;
use super::process::now_ms;

/// What the name of a damaged database has after the database's own.
pub(crate) const DAMAGED: &str = ".damaged-";
/// What it has at its end once everything readable in it was saved.
pub(crate) const SAVED: &str = ".saved";

/// Renames `path` to `target`, or to `target` with a number where that exists.
pub(crate) fn rename_aside(path: &Path, target: &Path) -> io::Result<PathBuf> {
    for count in 0..10_000_u32 {
        let target = match count {
            0 => target.to_owned(),
            count => beside(target, &format!("-{count}")),
        };
        // A hard link fails where the name exists, on every system; the old name goes only when the new one is there.
        match std::fs::hard_link(path, &target) {
            Ok(()) => {
                std::fs::remove_file(path)?;
                return Ok(target);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // File systems without hard links.
            Err(_) if !target.exists() => return std::fs::rename(path, &target).map(|()| target),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "every name for it is taken",
    ))
}

/// Moves a damaged database aside, beside itself; the name says when.
pub(crate) fn move_database_aside(database: &Path) -> io::Result<PathBuf> {
    let moved = rename_aside(
        database,
        &beside(database, &format!("{DAMAGED}{}", timestamp(now_ms()))),
    )?;
    if let Some(parent) = database.parent() {
        // Not durable yet is not lost: after a power cut the damaged file is found again under its old name.
        let _ = super::spool::sync_directory(parent);
    }
    Ok(moved)
}

/// `20260131T235959Z` for milliseconds since the epoch.
fn timestamp(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date by Howard Hinnant's `civil_from_days`, for days since the epoch only.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_dates() {
        assert_eq!(timestamp(0), "19700101T000000Z");
        assert_eq!(timestamp(951_782_399_000), "20000228T235959Z");
        assert_eq!(timestamp(951_782_400_000), "20000229T000000Z");
        assert_eq!(timestamp(1_735_689_599_999), "20241231T235959Z");
    }

    #[test]
    fn nothing_is_ever_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("a"), home.path().join("b"));
        std::fs::write(&to, "old").unwrap();
        let mut seen = vec!["old".to_owned()];
        for text in ["one", "two", "three"] {
            std::fs::write(&from, text).unwrap();
            rename_aside(&from, &to).unwrap();
            seen.push(text.to_owned());
            assert!(!from.exists());
        }
        let mut kept: Vec<String> = std::fs::read_dir(home.path())
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        kept.sort();
        seen.sort();
        assert_eq!(kept, seen);
    }
}
