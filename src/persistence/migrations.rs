//! The schema version of a database: forward steps to ours, and the refusal of newer ones.

use redb::{ReadTransaction, WriteTransaction};

use super::keys;
use super::problem::Problem;
use super::tables::{ReadKeyspace, WriteKeyspace};

/// A step from one schema version to the next, inside the transaction that also writes the new version.
type Step = fn(&WriteTransaction) -> Result<(), Problem>;

/// The steps, by the version they start from. Version 2 is the first that was ever written to a database.
const STEPS: [(u64, Step); 0] = [];

/// The version of a snapshot; `None` where nothing was ever written.
pub(crate) fn version(txn: &ReadTransaction) -> Result<Option<u64>, Problem> {
    parse(ReadKeyspace::open(Some(txn), keys::META)?.get(keys::META_SCHEMA_VERSION)?)
}

/// Refuses a version this program does not know.
pub(crate) fn check(version: Option<u64>) -> Result<(), Problem> {
    match version {
        Some(found) if found > keys::SCHEMA_VERSION => Err(Problem::Newer(found)),
        _ => Ok(()),
    }
}

/// Refuses a newer version, and takes every step from an older one. Says whether anything was written.
pub(crate) fn bring_up_to_date(txn: &WriteTransaction) -> Result<bool, Problem> {
    migrate(txn, &STEPS, keys::SCHEMA_VERSION)
}

fn migrate(txn: &WriteTransaction, steps: &[(u64, Step)], target: u64) -> Result<bool, Problem> {
    let mut meta = WriteKeyspace::open(txn, keys::META)?;
    let found = parse(meta.get(keys::META_SCHEMA_VERSION)?)?;
    match found {
        Some(found) if found == target => return Ok(false),
        Some(found) if found > target => return Err(Problem::Newer(found)),
        None => {}
        Some(found) => {
            // A step opens the tables it needs, this one included.
            drop(meta);
            for from in found..target {
                let step = steps
                    .iter()
                    .find_map(|(version, step)| (*version == from).then_some(step))
                    .ok_or_else(|| {
                        Problem::Corrupt(format!("schema version {from} was never written by any release"))
                    })?;
                step(txn)?;
            }
            meta = WriteKeyspace::open(txn, keys::META)?;
        }
    }
    meta.insert(keys::META_SCHEMA_VERSION, target.to_string().as_bytes())?;
    Ok(true)
}

fn parse(value: Option<Vec<u8>>) -> Result<Option<u64>, Problem> {
    let Some(bytes) = value else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    match text.parse() {
        Ok(version) => Ok(Some(version)),
        Err(_) => Err(Problem::Corrupt(format!("its schema version reads {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::ReadableDatabase;

    fn database(version: &str) -> redb::Database {
        let database = redb::Builder::new()
            .create_with_backend(redb::backends::InMemoryBackend::new())
            .unwrap();
        let txn = database.begin_write().unwrap();
        WriteKeyspace::open(&txn, keys::META)
            .unwrap()
            .insert(keys::META_SCHEMA_VERSION, version.as_bytes())
            .unwrap();
        WriteKeyspace::open(&txn, keys::CONFIG)
            .unwrap()
            .insert("old", b"1")
            .unwrap();
        txn.commit().unwrap();
        database
    }

    fn to_three(txn: &WriteTransaction) -> Result<(), Problem> {
        let mut config = WriteKeyspace::open(txn, keys::CONFIG)?;
        let value = config.get("old")?.unwrap_or_default();
        config.remove("old")?;
        config.insert("new", &value)
    }

    fn to_four(txn: &WriteTransaction) -> Result<(), Problem> {
        WriteKeyspace::open(txn, keys::CONFIG)?.insert("four", b"4")
    }

    #[test]
    fn every_step_is_taken_once_in_order_and_the_version_is_written_with_them() {
        let database = database("2");
        for _ in 0..2 {
            let txn = database.begin_write().unwrap();
            migrate(&txn, &[(3, to_four), (2, to_three)], 4).unwrap();
            txn.commit().unwrap();
            let txn = database.begin_read().unwrap();
            assert_eq!(version(&txn).unwrap(), Some(4));
            let config = ReadKeyspace::open(Some(&txn), keys::CONFIG).unwrap();
            assert_eq!(config.get("new").unwrap().as_deref(), Some(&b"1"[..]));
            assert_eq!(config.get("four").unwrap().as_deref(), Some(&b"4"[..]));
            assert_eq!(config.get("old").unwrap(), None);
        }
    }

    #[test]
    fn a_gap_a_newer_version_and_nonsense_are_refused_and_change_nothing() {
        for (found, corrupt) in [("2", true), ("9", false), ("two", true)] {
            let database = database(found);
            let txn = database.begin_write().unwrap();
            let problem = migrate(&txn, &[(3, to_four)], 4).unwrap_err();
            assert_eq!(matches!(problem, Problem::Corrupt(_)), corrupt, "{problem:?}");
            assert_eq!(matches!(problem, Problem::Newer(9)), !corrupt, "{problem:?}");
            txn.abort().unwrap();
            let txn = database.begin_read().unwrap();
            let meta = ReadKeyspace::open(Some(&txn), keys::META).unwrap();
            assert_eq!(meta.get(keys::META_SCHEMA_VERSION).unwrap().unwrap(), found.as_bytes());
        }
    }
}
