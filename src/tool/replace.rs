//! Replacing a file whole: compare and swap, atomically, keeping what it is beside its bytes.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::files::{Loaded, io_error, path_error};
use super::result::ToolError;
use crate::process::confine::Place;

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

/// Copies what a file carries beside its content: access lists and what users attach. What the system attaches itself
/// (labels, capabilities) follows its own rules for a new content.
#[cfg(target_os = "linux")]
fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr};

    let size = match flistxattr_query(from) {
        // None, or a file system that has none.
        Ok(0) | Err(Errno::NOTSUP) => return Ok(()),
        Ok(size) => size,
        Err(errno) => return Err(errno.into()),
    };
    let mut names = vec![0_u8; size];
    let size = flistxattr(from, &mut names[..])?;
    for name in names[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if name.starts_with(b"security.") || name.starts_with(b"trusted.") {
            continue;
        }
        let mut value = vec![0_u8; fgetxattr_query(from, name)?];
        let size = fgetxattr(from, name, &mut value[..])?;
        // Whatever the refusal says, it means that a replacement would lose this.
        fsetxattr(to, name, &value[..size], XattrFlags::empty())
            .map_err(|_| io::Error::from(io::ErrorKind::PermissionDenied))?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn copy_attributes(_: &File, _: &File) -> io::Result<()> {
    Ok(())
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
            copy_attributes(&before.file, &temporary.file)?;
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
