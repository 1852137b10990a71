//! Batches that could not go into the database yet: one file each, in a directory beside it.
//!
//! A file holds one line, the SHA-256 of a JSON text and that text. It is written under another name, synced and renamed,
//! so that a file with a proper name is whole; whoever next holds the database's lock merges the files in the order of
//! their names and removes them. Merging the same file twice changes nothing, since records have ids.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::{Batch, sha256_hex};
use super::codec;
use super::failpoint;
use super::keys;
use super::lock;
use super::process::now_ms;

/// The form of the lines this program writes and reads.
const VERSION: u64 = 1;
/// The end of a proper name, of one being written, and of one that is set aside.
const EXTENSION: &str = "batch";
const UNFINISHED: &str = "part";
const DAMAGED: &str = "damaged";
/// How old an unfinished file must be to count as left behind by a process that died: nobody was told it was saved.
const UNFINISHED_MS: u64 = 60 * 60 * 1000;

#[derive(Serialize, Deserialize)]
struct Line {
    version: u64,
    schema: u64,
    written: u64,
    batch: Batch,
}

/// The spool of a database, as one process writes it.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
    /// Sorts this process's files: when it began, its pid, and a counter that the clock does not touch.
    session: String,
    count: u64,
}

/// What is to be done with one file of the spool.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// To be merged.
    Batch(PathBuf, Batch),
    /// Written by a newer version, which will merge it.
    Newer(PathBuf),
    /// Not what was written.
    Damaged(PathBuf, String),
}

impl Spool {
    pub(crate) fn new(database: &Path) -> Self {
        Self {
            directory: directory(database),
            session: format!("{:013}-{:010}", now_ms(), std::process::id()),
            count: 0,
        }
    }

    /// Writes a batch durably and returns the name of its file.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<PathBuf, (PathBuf, io::Error)> {
        self.try_write(batch).map_err(|error| (self.directory.clone(), error))
    }

    fn try_write(&mut self, batch: &Batch) -> io::Result<PathBuf> {
        let line = Line {
            version: VERSION,
            schema: keys::SCHEMA_VERSION,
            written: now_ms(),
            batch: batch.clone(),
        };
        let text = codec::to_sorted_bytes(&serde_json::to_value(&line).map_err(io::Error::other)?);
        let mut content = sha256_hex(&text).into_bytes();
        content.push(b' ');
        content.extend_from_slice(&text);
        content.push(b'\n');
        create_directory(&self.directory)?;
        loop {
            self.count += 1;
            let path = self
                .directory
                .join(format!("{}-{:06}.{EXTENSION}", self.session, self.count));
            let part = path.with_extension(UNFINISHED);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
            let mut file = match file {
                Ok(file) => file,
                // A process of another pid namespace that began in the same millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let written = file
                .write_all(&content)
                .and_then(|()| file.sync_data())
                .and_then(|()| failpoint::hit("spool.written"))
                .and_then(|()| fs::rename(&part, &path))
                .and_then(|()| sync_directory(&self.directory))
                .and_then(|()| failpoint::hit("spool.renamed"));
            if let Err(error) = written {
                // Half a file is of no use, and where the disk is full it is in the way.
                let _ = fs::remove_file(&part);
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            return Ok(path);
        }
    }
}

/// The directory of a database's spool: its own, since the directory around it may be shared.
pub(crate) fn directory(database: &Path) -> PathBuf {
    lock::beside(&database.with_extension(""), ".spool")
}

/// What waits, in the order it has to be merged in. The caller holds the lock.
pub(crate) fn waiting(database: &Path) -> io::Result<Vec<Waiting>> {
    let directory = directory(database);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(EXTENSION) => paths.push(path),
            Some(UNFINISHED) => remove_left_behind(&path),
            _ => {}
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let content = fs::read(&path)?;
            Ok(parse(path, &content))
        })
        .collect()
}

fn parse(path: PathBuf, content: &[u8]) -> Waiting {
    let damaged = |path, detail: &str| Waiting::Damaged(path, detail.to_owned());
    let Some((sum, text)) = content.split_at_checked(64) else {
        return damaged(path, "it is too short");
    };
    let Some(text) = text.strip_prefix(b" ").and_then(|text| text.strip_suffix(b"\n")) else {
        return damaged(path, "its end is missing");
    };
    if sha256_hex(text).as_bytes() != sum {
        return damaged(path, "its checksum is not the one it was written with");
    }
    // Whole, so what cannot be understood was written by a version that knows more.
    let value: Result<Value, String> = codec::from_bytes(text);
    match value.ok().and_then(|value| serde_json::from_value::<Line>(value).ok()) {
        Some(line) if line.version == VERSION && line.schema <= keys::SCHEMA_VERSION => {
            Waiting::Batch(path, line.batch)
        }
        _ => Waiting::Newer(path),
    }
}

/// Sets a damaged file aside, never overwriting another.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    super::aside::rename_aside(path, &lock::beside(path, &format!(".{DAMAGED}")))
}

fn remove_left_behind(path: &Path) {
    let age = fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|modified| modified.elapsed().ok());
    if age.is_some_and(|age| age.as_millis() > u128::from(UNFINISHED_MS)) {
        let _ = fs::remove_file(path);
    }
}

/// Creates a directory that only its owner can read, with what is missing above it, and makes its name durable.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_directory(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => parent.map_or(Ok(()), sync_directory),
        // Somebody else made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is not a directory", path.display()),
        )),
        Err(error) => Err(error),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
