//! Reads a file of a directory that must not lead out of it.
//!
//! On Linux the kernel resolves the path below the directory in one step (`openat2` with `RESOLVE_BENEATH`), so that
//! a link that is swapped in between cannot lead out; links inside the directory work. Where there is no such call,
//! the path is walked segment by segment and no link is followed.

use std::io::Read;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::error::PromptError;

/// The first bytes of a file, and how long it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// The whole length, as the file system says.
    pub len: u64,
}

/// Reads at most `max` bytes of the file `relative` below `root`; `None` where there is no such file.
///
/// # Errors
/// When the path leads out of `root`, is no regular file, or cannot be read.
pub fn read_head(root: &Path, relative: &Path, max: u64) -> Result<Option<Head>, PromptError> {
    let failed = |errno: Errno| match errno {
        Errno::XDEV | Errno::LOOP => PromptError::Outside {
            path: relative.to_owned(),
            root: root.to_owned(),
        },
        errno => PromptError::Read {
            path: relative.to_owned(),
            source: errno.into(),
        },
    };
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !relative.components().all(normal) {
        return Err(failed(Errno::XDEV));
    }
    let fd = match open_root(root).and_then(|root| open_below(&root, relative)) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    let stat = fstat(&fd).map_err(failed)?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(PromptError::NotAFile {
            path: relative.to_owned(),
        });
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(fd).take(max).read_to_end(&mut bytes);
    read.map_err(|source| PromptError::Read {
        path: relative.to_owned(),
        source,
    })?;
    Ok(Some(Head {
        bytes,
        len: u64::try_from(stat.st_size).unwrap_or_default(),
    }))
}

/// Not to wait for a writer of a named pipe, not to take a terminal, not to leak into children.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

fn open_root(root: &Path) -> rustix::io::Result<OwnedFd> {
    openat(
        CWD,
        root,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

#[cfg(target_os = "linux")]
fn open_below(root: &OwnedFd, relative: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // EAGAIN: something was renamed during the walk and the kernel could not be sure.
    for _ in 0..8 {
        match openat2(root, relative, FLAGS, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return walk_below(root, relative),
            other => return other,
        }
    }
    walk_below(root, relative)
}

#[cfg(not(target_os = "linux"))]
fn open_below(root: &OwnedFd, relative: &Path) -> rustix::io::Result<OwnedFd> {
    walk_below(root, relative)
}

/// Opens segment by segment, following no link.
fn walk_below(root: &OwnedFd, relative: &Path) -> rustix::io::Result<OwnedFd> {
    let mut place: Option<OwnedFd> = None;
    for part in relative.components() {
        if let Component::Normal(name) = part {
            let below = place.as_ref().unwrap_or(root);
            place = Some(openat(below, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?);
        }
    }
    match place {
        Some(fd) => Ok(fd),
        None => openat(root, ".", FLAGS, Mode::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("repo");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(home.path().join("secret"), "secret").unwrap();
        std::fs::write(root.join("docs/INDEX.md"), "index").unwrap();
        symlink("docs/INDEX.md", root.join("inside")).unwrap();
        symlink("../secret", root.join("up")).unwrap();
        symlink(home.path().join("secret"), root.join("absolute")).unwrap();
        symlink("..", root.join("docs/parent")).unwrap();
        symlink("../..", root.join("docs/out")).unwrap();
        symlink("self", root.join("self")).unwrap();
        home
    }

    fn read(home: &Path, path: &str) -> Result<Option<Vec<u8>>, PromptError> {
        Ok(read_head(&home.join("repo"), Path::new(path), 100)?.map(|head| head.bytes))
    }

    #[test]
    fn links_inside_work_and_links_out_do_not() {
        let home = tree();
        for path in ["docs/INDEX.md", "./docs/INDEX.md", "inside", "docs/parent/inside"] {
            assert_eq!(
                read(home.path(), path).unwrap().as_deref(),
                Some(&b"index"[..]),
                "{path}"
            );
        }
        for path in ["up", "absolute", "docs/out/secret", "self", "../secret", "/etc/passwd"] {
            let error = read(home.path(), path).unwrap_err();
            assert!(matches!(error, PromptError::Outside { .. }), "{path}: {error}");
        }
        for path in ["none", "none/INDEX.md", "docs/INDEX.md/x"] {
            assert_eq!(read(home.path(), path).unwrap(), None, "{path}");
        }
        assert!(matches!(
            read(home.path(), "docs").unwrap_err(),
            PromptError::NotAFile { .. }
        ));
    }

    #[test]
    fn the_walk_follows_no_link_at_all() {
        let home = tree();
        let root = open_root(&home.path().join("repo")).unwrap();
        assert!(walk_below(&root, Path::new("docs/INDEX.md")).is_ok());
        for path in ["inside", "up", "absolute", "docs/parent/inside"] {
            assert!(walk_below(&root, Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_named_pipe_does_not_hang_and_long_files_are_cut() {
        let home = tree();
        let repo = home.path().join("repo");
        rustix::fs::mkfifoat(CWD, repo.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        assert!(matches!(
            read(home.path(), "pipe").unwrap_err(),
            PromptError::NotAFile { .. }
        ));
        let head = read_head(&repo, Path::new("docs/INDEX.md"), 2).unwrap();
        assert_eq!(
            head,
            Some(Head {
                bytes: b"in".to_vec(),
                len: 5
            })
        );
    }
}
