//! Questions to the store: a snapshot of the file, and what waits beside it or in memory on top. Nothing here writes to the
//! disk, except that a damaged file is moved aside.

use std::path::Path;

use redb::ReadableDatabase;

use super::apply::{self, Origin};
use super::engine::Engine;
use super::error::StoreError;
use super::lock::Lock;
use super::migrations;
use super::open::{self, Opened};
use super::problem::{self, Problem};
use super::process::now_ms;
use super::reader::Reader;

impl Engine {
    /// Answers a question with everything this process wrote in view. Never writes to the disk.
    pub(crate) fn read<T>(
        &mut self,
        question: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(database) = self.database() else {
            let memory = self
                .memory()
                .map_err(|problem| problem.into_error(Path::new("(memory)")))?;
            let txn = memory
                .begin_read()
                .map_err(|error| problem::transaction(error).into_error(Path::new("(memory)")))?;
            return question(&Reader::new(Some(&txn), Path::new("(memory)")));
        };
        let view = self
            .guarded_view(&database)
            .map_err(|problem| problem.into_error(&database))?;
        let (answer, unreadable) = match &view {
            None => (question(&Reader::new(None, &database)), Vec::new()),
            Some((view, _lock)) => {
                let txn = view.begin_read().map_err(|problem| problem.into_error(&database))?;
                let reader = Reader::new(Some(&txn), &database);
                let answer = open::guarded(|| Ok(question(&reader)))
                    .unwrap_or_else(|problem| Err(problem.into_error(&database)));
                (answer, reader.into_unreadable())
            }
        };
        if let Some((view, lock)) = view {
            view.close();
            drop(lock);
        }
        self.notices.unreadable(&database, unreadable);
        answer
    }

    fn guarded_view(&mut self, database: &Path) -> Result<Option<(Opened, Lock)>, Problem> {
        match open::guarded(|| self.view(database)) {
            Err(Problem::Corrupt(detail)) => {
                self.move_aside(database, &detail)?;
                open::guarded(|| self.view(database))
            }
            other => other,
        }
    }

    /// A snapshot of the database with what waits on top; `None` where there is nothing at all. The lock has to be held as
    /// long as the snapshot: the next commit of another process may write over pages that are no longer its own.
    fn view(&mut self, database: &Path) -> Result<Option<(Opened, Lock)>, Problem> {
        let lock = match Lock::acquire(database, self.deadline()) {
            Ok(lock) => lock,
            // Nobody can write where the lock file cannot be made, or there is nothing there.
            Err(Problem::Io(..)) => Lock::none(),
            Err(problem) => return Err(problem),
        };
        let exists = open::exists(&self.options, database)?;
        let waiting = self.waiting(database);
        if !exists && waiting.is_empty() && self.kept.is_empty() {
            return Ok(None);
        }
        let opened = match self.checked_view(database) {
            Ok(opened) => opened,
            // A damaged file is dealt with by the caller.
            Err(problem @ Problem::Corrupt(_)) => return Err(problem),
            Err(problem) if waiting.is_empty() && self.kept.is_empty() => return Err(problem),
            // What this process wrote can still be seen, by itself.
            Err(_) => open::empty_view()?,
        };
        if !self.recovered || !waiting.is_empty() || !self.kept.is_empty() {
            let txn = opened.begin_write()?;
            migrations::bring_up_to_date(&txn)?;
            let limit = self.max_blob_bytes();
            for batch in waiting.iter().map(|(_, batch)| batch).chain(&self.kept) {
                apply::apply(&txn, batch, Origin::Spool, limit)?;
            }
            if !self.recovered || !waiting.is_empty() {
                apply::close_dead(&txn, now_ms())?;
            }
            opened.commit_in_memory(txn)?;
        }
        Ok(Some((opened, lock)))
    }

    /// A snapshot of the file alone, if it is of a version this program knows.
    pub(super) fn checked_view(&self, database: &Path) -> Result<Opened, Problem> {
        let opened = open::view(&self.options, database)?;
        match opened.check_schema() {
            Ok(()) => Ok(opened),
            Err(problem) => {
                opened.close();
                Err(problem)
            }
        }
    }
}
