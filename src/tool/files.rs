//! Reading a file whole and replacing it whole: compare and swap, atomically, keeping what it is beside its bytes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
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
    stat: Stat,
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
        stat,
    }))
}

/// How a replacement came about.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// Why the file was overwritten in place rather than replaced atomically.
    pub(super) in_place: Option<&'static str>,
}

/// Makes `bytes` the content of `place`, which must still be as `before` was read (`None`: must still not be there).
///
/// A new file beside it takes its place in one step, with the same mode and owner and its bytes on the disk. Where that
/// would lose something (other names of the same file, an owner this user cannot give) it is overwritten in place.
pub(super) fn replace(
    place: &Place,
    before: Option<&Loaded>,
    bytes: &[u8],
    shown: &str,
) -> Result<Replaced, ToolError> {
    let failed = |error: io::Error| io_error(shown, error);
    if let Some(before) = before {
        if before.stat.st_nlink > 1 {
            write_in_place(place, before, bytes, shown)?;
            return Ok(Replaced {
                in_place: Some("it has other names (hard links)"),
            });
        }
        // A file that may not be written is not to be replaced either, though its directory would allow it.
        rustix::fs::accessat(
            &place.directory,
            &place.name,
            rustix::fs::Access::WRITE_OK,
            AtFlags::empty(),
        )
        .map_err(|errno| io_error(shown, errno))?;
    }
    let temporary = match Temporary::new(place, before) {
        Ok(temporary) => temporary,
        Err(error) if before.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            if let Some(before) = before {
                write_in_place(place, before, bytes, shown)?;
            }
            return Ok(Replaced {
                in_place: Some("its directory or owner does not allow a new file"),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    temporary.write(bytes).map_err(failed)?;
    check_unchanged(place, before, shown)?;
    temporary.take_place(before.is_none()).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            stale(shown)
        } else {
            failed(error)
        }
    })?;
    Ok(Replaced::default())
}

fn stale(shown: &str) -> ToolError {
    ToolError::to_model(
        "changed_meanwhile",
        format!("{shown} was changed by something else at this moment; nothing was written. Read it again."),
    )
}

/// Whether the file is still the one that was read.
fn check_unchanged(place: &Place, before: Option<&Loaded>, shown: &str) -> Result<(), ToolError> {
    let now = match rustix::fs::statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(io_error(shown, errno)),
    };
    let same = match (before, now) {
        (None, None) => true,
        (Some(before), Some(now)) => {
            let mark = |stat: &Stat| {
                (
                    stat.st_ino,
                    stat.st_size,
                    stat.st_mtime,
                    stat.st_mtime_nsec,
                    stat.st_ctime,
                    stat.st_ctime_nsec,
                )
            };
            mark(&before.stat) == mark(&now)
        }
        _ => false,
    };
    if same { Ok(()) } else { Err(stale(shown)) }
}

fn write_in_place(place: &Place, before: &Loaded, bytes: &[u8], shown: &str) -> Result<(), ToolError> {
    check_unchanged(place, Some(before), shown)?;
    let mut file = place.open(OFlags::WRONLY).map_err(path_error)?;
    let write = |file: &mut File| {
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_data()
    };
    write(&mut file).map_err(|error| io_error(shown, error))
}

/// A file that is to take the place of another; removed if it does not.
struct Temporary<'a> {
    place: &'a Place,
    name: String,
    file: File,
    done: bool,
}

impl<'a> Temporary<'a> {
    fn new(place: &'a Place, before: Option<&Loaded>) -> io::Result<Self> {
        let name = format!(".{}.tmp", crate::process::Nonce::new().as_str());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody else reads it before it has the mode of what it replaces.
        let mode = if before.is_some() { 0o600 } else { 0o666 };
        let file = rustix::fs::openat(&place.directory, &name, flags, Mode::from_raw_mode(mode))?;
        let temporary = Self {
            place,
            name,
            file: file.into(),
            done: false,
        };
        if let Some(before) = before {
            let metadata = temporary.file.metadata()?;
            let (uid, gid) = (before.stat.st_uid, before.stat.st_gid);
            if (metadata.uid(), metadata.gid()) != (uid, gid) {
                rustix::fs::fchown(&temporary.file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
            }
            rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(before.stat.st_mode & 0o7777))?;
        }
        Ok(temporary)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.file.sync_data()
    }

    fn take_place(mut self, new: bool) -> io::Result<()> {
        let directory = &self.place.directory;
        #[cfg(target_os = "linux")]
        if new {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(directory, &self.name, directory, &self.place.name, flags) {
                // A file system that cannot do this: the check a moment ago has to do.
                Err(Errno::INVAL | Errno::NOSYS) => {}
                result => {
                    self.done = result.is_ok();
                    return result.map_err(Into::into);
                }
            }
        }
        let _ = new;
        rustix::fs::renameat(directory, &self.name, directory, &self.place.name)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.done {
            // It may be gone with its directory.
            let _ = rustix::fs::unlinkat(&self.place.directory, &self.name, AtFlags::empty());
        }
    }
}
