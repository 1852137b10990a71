//! What the store has to tell, once each.

use std::collections::HashSet;
use std::path::Path;

use super::error::StoreError;
use super::report::{NoticeKind, StoreNotice};

/// Notices that wait for the next report, and what was told before.
#[derive(Default)]
pub(crate) struct Notices {
    told: HashSet<(NoticeKind, String)>,
    waiting: Vec<StoreNotice>,
}

impl Notices {
    /// Puts a notice on the next report, unless one of the same kind about the same thing was.
    pub(crate) fn tell(&mut self, about: &str, notice: StoreNotice) {
        if self.told.insert((notice.kind, about.to_owned())) {
            self.waiting.push(notice);
        }
    }

    /// Everything that waits.
    pub(crate) fn take(&mut self) -> Vec<StoreNotice> {
        std::mem::take(&mut self.waiting)
    }

    /// What was kept meanwhile is in the database: from here on, failing again is news.
    pub(crate) fn saved_again(&mut self, database: &Path) {
        self.told.retain(|(kind, _)| {
            !matches!(
                kind,
                NoticeKind::NotSaved | NoticeKind::Spooled | NoticeKind::SavedAgain
            )
        });
        self.tell(
            "",
            StoreNotice::new(
                NoticeKind::SavedAgain,
                format!(
                    "Everything that was kept meanwhile is saved now, in {}.",
                    database.display()
                ),
            )
            .at(database),
        );
    }

    /// Records that were left out because they are not valid.
    pub(crate) fn refused(&mut self, refused: Vec<StoreError>) {
        for error in refused {
            let message = format!("A record was not saved: {error}.");
            self.tell(&message.clone(), StoreNotice::new(NoticeKind::Refused, message));
        }
    }

    /// Stored records that could not be read.
    pub(crate) fn unreadable(&mut self, database: &Path, unreadable: Vec<StoreError>) {
        for error in unreadable {
            let message = format!("A stored record was left out: {error}.");
            self.tell(
                &message.clone(),
                StoreNotice::new(NoticeKind::Unreadable, message).at(database),
            );
        }
    }

    /// Turns of dead processes.
    pub(crate) fn aborted(&mut self, aborted: usize) {
        if aborted > 0 {
            self.tell(
                "",
                StoreNotice::new(
                    NoticeKind::AbortedTurns,
                    format!(
                        "{aborted} turn(s) of a process that ended were closed as aborted; everything of their finished \
                         rounds is kept."
                    ),
                ),
            );
        }
    }

    /// A file of the spool that could not be used.
    pub(crate) fn spool(&mut self, path: &Path, message: String, hint: Option<&str>) {
        let mut notice = StoreNotice::new(NoticeKind::Spool, message).at(path);
        notice.hint = hint.map(str::to_owned);
        self.tell(&path.to_string_lossy(), notice);
    }
}
