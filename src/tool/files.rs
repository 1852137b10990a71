//! Reading a file whole, its hash, and what to say when that is not possible.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat};
use sha2::{Digest, Sha256};

use super::registry::nearest;
use super::result::ToolError;
use crate::process::confine::{PathError, Place};

/// Longest file that is edited, in bytes.
pub(super) const MAX_EDIT_BYTES: u64 = 100 << 20;
/// Digits of a hash that are shown and suffice to name it.
const SHOWN_DIGITS: usize = 12;

/// A file as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) bytes: Vec<u8>,
    pub(super) hash: String,
    /// The file itself and what it was when it was read, for replacing it.
    pub(super) file: File,
    pub(super) stat: Stat,
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The part of a hash that is shown.
pub(super) fn short(hash: &str) -> &str {
    hash.get(..SHOWN_DIGITS).unwrap_or(hash)
}

/// Whether `given`, as a model wrote it, names `hash`.
pub(super) fn names_hash(given: &str, hash: &str) -> bool {
    let given = given.trim().trim_start_matches("sha256:").to_ascii_lowercase();
    given.len() >= 8 && hash.starts_with(&given)
}

/// An error of resolving a path, for the model: with names that do exist.
pub(super) fn path_error(error: PathError) -> ToolError {
    let (code, hint) = match &error {
        PathError::Missing { directory, name, .. } => ("not_found", nearest_names(directory, name)),
        PathError::NotADirectory { .. } => ("not_found", String::new()),
        PathError::Outside { .. } => ("outside_root", String::new()),
        PathError::Empty | PathError::Links { .. } => ("bad_path", String::new()),
        PathError::System { .. } => ("io", String::new()),
    };
    ToolError::to_model(code, format!("{error}.{hint}"))
}

/// What to say when `place`, asked for as `shown`, does not exist.
pub(super) fn not_found(place: &Place, shown: &str) -> ToolError {
    let directory = place.path.parent().unwrap_or(Path::new("/"));
    let hint = nearest_names(directory, &place.name);
    ToolError::to_model("not_found", format!("There is no file {shown}.{hint}"))
}

/// ` Did you mean …?` with what is in `directory`, hidden and ignored files too; empty where nothing is alike.
fn nearest_names(directory: &Path, name: &OsStr) -> String {
    let wanted = name.to_string_lossy();
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .take(5_000)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let mut alike = Vec::new();
    while alike.len() < 3
        && let Some(name) = nearest(&wanted, names.iter().map(String::as_str)).map(str::to_owned)
    {
        names.retain(|other| *other != name);
        alike.push(name);
    }
    if alike.is_empty() {
        String::new()
    } else {
        format!(" {} holds {}.", directory.display(), alike.join(", "))
    }
}

/// What is at `place` where it is no plain file, in words.
pub(super) fn kind_of(place: &Place) -> &'static str {
    match place.file_type() {
        None => "nothing",
        Some(FileType::RegularFile) => "a file",
        Some(FileType::Directory) => "a directory",
        Some(FileType::Fifo) => "a named pipe",
        Some(FileType::Socket) => "a socket",
        Some(FileType::CharacterDevice | FileType::BlockDevice) => "a device",
        Some(_) => "no file",
    }
}

/// An I/O error at `shown`, for the model.
pub(super) fn io_error(shown: &str, error: impl Into<io::Error>) -> ToolError {
    let error = error.into();
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission_denied",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk_full",
        io::ErrorKind::ReadOnlyFilesystem => "read_only",
        _ => "io",
    };
    ToolError::to_model(code, format!("{shown}: {error}"))
}

/// The file at `place`, whole; `None` where there is nothing.
pub(super) fn load(place: &Place, shown: &str) -> Result<Option<Loaded>, ToolError> {
    match place.file_type() {
        None => return Ok(None),
        Some(FileType::RegularFile) => {}
        Some(_) => {
            return Err(ToolError::to_model(
                "not_a_file",
                format!("{shown} is {}, not a file.", kind_of(place)),
            ));
        }
    }
    let mut file = place.open(OFlags::RDONLY).map_err(path_error)?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| io_error(shown, errno))?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MAX_EDIT_BYTES {
        return Err(ToolError::to_model(
            "too_large",
            format!("{shown} has {size} bytes; files up to {MAX_EDIT_BYTES} can be edited. Use a command."),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(|error| io_error(shown, error))?;
    Ok(Some(Loaded {
        hash: hash_of(&bytes),
        bytes,
        file,
        stat,
    }))
}
