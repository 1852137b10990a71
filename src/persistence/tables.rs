//! The keyspaces as tables of the database engine: text keys, plain bytes as values.
//!
//! The engine's typed values are not used: their encoding changes between its major versions, plain bytes do not.

use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};

use super::codec::{self, Record};
use super::contain::Contained;
use super::error::StoreError;
use super::keys;
use super::problem::{self, Problem};

/// A keyspace's table.
pub(crate) type Definition = TableDefinition<'static, &'static str, &'static [u8]>;
type ReadTable = redb::ReadOnlyTable<&'static str, &'static [u8]>;
type WriteTable<'txn> = redb::Table<'txn, &'static str, &'static [u8]>;

/// The table of a keyspace.
pub(crate) fn definition(keyspace: &'static str) -> Definition {
    TableDefinition::new(keyspace)
}

/// Raw access to one keyspace of a read snapshot; a keyspace nothing was written to yet is empty.
pub(crate) struct ReadKeyspace(Option<Contained<ReadTable>>);

impl ReadKeyspace {
    pub(crate) fn open(txn: Option<&ReadTransaction>, keyspace: &'static str) -> Result<Self, Problem> {
        let Some(txn) = txn else { return Ok(Self(None)) };
        match txn.open_table(definition(keyspace)) {
            Ok(table) => Ok(Self(Some(Contained::new(table)))),
            Err(TableError::TableDoesNotExist(_)) => Ok(Self(None)),
            Err(error) => Err(problem::table(error)),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        let Some(table) = &self.0 else { return Ok(None) };
        Ok(table
            .get(key)
            .map_err(problem::storage)?
            .map(|guard| guard.value().to_vec()))
    }

    /// Calls `visit` with each key and value that starts with `prefix`, in key order, or from the end where `reverse`;
    /// it ends where `visit` says `false`.
    pub(crate) fn scan(
        &self,
        prefix: &str,
        reverse: bool,
        mut visit: impl FnMut(&str, &[u8]) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        let Some(table) = &self.0 else { return Ok(()) };
        let mut range = Contained::new(range(&**table, prefix)?);
        loop {
            let next = if reverse { range.next_back() } else { range.next() };
            let Some(entry) = next else { return Ok(()) };
            let (key, value) = entry.map_err(problem::storage)?;
            if !visit(key.value(), value.value())? {
                return Ok(());
            }
        }
    }
}

impl ReadKeyspace {
    /// Calls `visit` with each key and value after `cursor`, in key order, until it says `false`.
    pub(crate) fn scan_from(
        &self,
        cursor: Option<&str>,
        mut visit: impl FnMut(&str, &[u8]) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        use std::ops::Bound;
        let Some(table) = &self.0 else { return Ok(()) };
        let low = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut range = Contained::new(table.range::<&str>((low, Bound::Unbounded)).map_err(problem::storage)?);
        for entry in range.by_ref() {
            let (key, value) = entry.map_err(problem::storage)?;
            if !visit(key.value(), value.value())? {
                break;
            }
        }
        Ok(())
    }
}

fn range<'a, T: ReadableTable<&'static str, &'static [u8]>>(
    table: &'a T,
    prefix: &str,
) -> Result<redb::Range<'a, &'static str, &'static [u8]>, Problem> {
    match keys::after_prefix(prefix) {
        Some(end) => table.range(prefix..end.as_str()),
        None => table.range(prefix..),
    }
    .map_err(problem::storage)
}

/// Typed access to one keyspace of a write transaction.
pub(crate) struct WriteKeyspace<'txn>(Contained<WriteTable<'txn>>);

impl<'txn> WriteKeyspace<'txn> {
    pub(crate) fn open(txn: &'txn WriteTransaction, keyspace: &'static str) -> Result<Self, Problem> {
        let table = txn.open_table(definition(keyspace)).map_err(problem::table)?;
        Ok(Self(Contained::new(table)))
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Problem> {
        Ok(self
            .0
            .get(key)
            .map_err(problem::storage)?
            .map(|guard| guard.value().to_vec()))
    }

    pub(crate) fn insert(&mut self, key: &str, value: &[u8]) -> Result<(), Problem> {
        self.0.insert(key, value).map_err(problem::storage)?;
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &str) -> Result<(), Problem> {
        self.0.remove(key).map_err(problem::storage)?;
        Ok(())
    }

    /// Encodes and writes a record.
    pub(crate) fn put<R: Record>(&mut self, record: &R) -> Result<(), Problem> {
        let key = record.key()?;
        let bytes = codec::encode(record)?;
        self.insert(&key, &bytes)
    }

    /// Reads a record; `None` where there is none or it cannot be read.
    pub(crate) fn read<R: Record>(&self, key: &str) -> Result<Option<R>, Problem> {
        Ok(self.get(key)?.and_then(|bytes| codec::decode(key, &bytes).ok()))
    }

    /// The last key that starts with `prefix`.
    pub(crate) fn last_key(&self, prefix: &str) -> Result<Option<String>, Problem> {
        match Contained::new(range(&*self.0, prefix)?).next_back() {
            Some(entry) => Ok(Some(entry.map_err(problem::storage)?.0.value().to_owned())),
            None => Ok(None),
        }
    }

    /// Every key that starts with `prefix`.
    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<String>, Problem> {
        let mut range = Contained::new(range(&*self.0, prefix)?);
        let mut keys = Vec::new();
        for entry in range.by_ref() {
            keys.push(entry.map_err(problem::storage)?.0.value().to_owned());
        }
        Ok(keys)
    }

    /// Removes everything that starts with `prefix`.
    pub(crate) fn remove_scope(&mut self, prefix: &str) -> Result<(), Problem> {
        for key in self.keys(prefix)? {
            self.remove(&key)?;
        }
        Ok(())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Problem::Record(error)
    }
}
