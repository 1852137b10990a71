//! The walk itself: one component at a time, through open directories.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, mkdirat, open, openat, readlinkat, statat};
use rustix::io::Errno;

use super::{MAX_LINKS, PathError, Place};

/// A walk that is on its way.
pub(super) struct Walk<'a> {
    /// What the caller asked for, for messages.
    asked: &'a Path,
    root: PathBuf,
    /// The roots to stay below; none where there is nothing to stay below.
    roots: &'a [PathBuf],
    /// The root, then each directory entered, with its name.
    stack: Vec<(OwnedFd, OsString)>,
    ahead: VecDeque<OsString>,
    links: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn from(root: PathBuf, asked: &'a Path, roots: &'a [PathBuf]) -> Result<Self, PathError> {
        Ok(Self {
            asked,
            stack: vec![(open_root(&root)?, OsString::new())],
            root,
            roots,
            ahead: VecDeque::new(),
            links: 0,
        })
    }

    pub(super) fn push_front(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front(OsString::from("..")),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
    }

    fn here(&self) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(self.stack.iter().skip(1).map(|(_, name)| name));
        path
    }

    fn directory(&self) -> std::os::fd::BorrowedFd<'_> {
        // The root is never popped.
        self.stack.last().map_or(CWD, |(directory, _)| directory.as_fd())
    }

    fn outside(&self) -> PathError {
        PathError::Outside {
            path: self.asked.to_owned(),
            root: self.root.clone(),
        }
    }

    pub(super) fn finish(mut self, make_directories: bool) -> Result<Place, PathError> {
        loop {
            let Some(name) = self.ahead.pop_front() else {
                return self.place_of_directory();
            };
            if name == ".." {
                if self.stack.len() > 1 {
                    self.stack.pop();
                } else if !self.roots.is_empty() {
                    return Err(self.outside());
                }
                continue;
            }
            match statat(self.directory(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => self.follow(&name)?,
                Ok(stat) if self.ahead.is_empty() => return self.place(name, Some(stat)),
                Ok(_) => self.enter(name)?,
                Err(Errno::NOENT) if self.ahead.is_empty() => return self.place(name, None),
                Err(Errno::NOENT) if make_directories => {
                    let made = mkdirat(self.directory(), &name, Mode::from_raw_mode(0o777));
                    if let Err(errno) = made.or_else(|errno| if errno == Errno::EXIST { Ok(()) } else { Err(errno) }) {
                        return Err(PathError::system(&self.here().join(&name), errno));
                    }
                    self.enter(name)?;
                }
                Err(Errno::NOENT) => {
                    return Err(PathError::Missing {
                        path: self.asked.to_owned(),
                        directory: self.here(),
                        name,
                    });
                }
                Err(errno) => return Err(PathError::system(&self.here().join(&name), errno)),
            }
        }
    }

    fn enter(&mut self, name: OsString) -> Result<(), PathError> {
        match openat(
            self.directory(),
            &name,
            directory_flags() | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Ok(directory) => {
                self.stack.push((directory, name));
                Ok(())
            }
            Err(Errno::NOTDIR) => Err(PathError::NotADirectory {
                path: self.asked.to_owned(),
                file: self.here().join(name),
            }),
            // It became a link between the look and the opening: look again.
            Err(Errno::LOOP) => {
                self.count_link()?;
                self.ahead.push_front(name);
                Ok(())
            }
            Err(errno) => Err(PathError::system(&self.here().join(name), errno)),
        }
    }

    fn count_link(&mut self) -> Result<(), PathError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathError::Links {
                path: self.asked.to_owned(),
            });
        }
        Ok(())
    }

    fn follow(&mut self, name: &OsStr) -> Result<(), PathError> {
        self.count_link()?;
        let target = match readlinkat(self.directory(), name, Vec::new()) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            // No link any more: look again.
            Err(Errno::INVAL) => PathBuf::from(name),
            Err(errno) => return Err(PathError::system(&self.here().join(name), errno)),
        };
        if target.as_os_str().as_bytes().starts_with(b"/") {
            self.start_again(&target)?;
        } else {
            self.push_front(&target);
        }
        Ok(())
    }

    /// Goes on with an absolute `target`, which must be below one of the roots as it is written.
    fn start_again(&mut self, target: &Path) -> Result<(), PathError> {
        let root = match self.roots {
            [] => Path::new("/"),
            roots => roots
                .iter()
                .find(|root| target.starts_with(root))
                .ok_or_else(|| self.outside())?,
        };
        if root != self.root {
            self.stack = vec![(open_root(root)?, OsString::new())];
            root.clone_into(&mut self.root);
        }
        self.stack.truncate(1);
        self.push_front(target.strip_prefix(root).unwrap_or(target));
        Ok(())
    }

    fn place(mut self, name: OsString, stat: Option<Stat>) -> Result<Place, PathError> {
        let path = self.here().join(&name);
        let through_link = self.links > 0;
        match self.stack.pop() {
            Some((directory, _)) => Ok(Place {
                directory,
                name,
                path,
                stat,
                through_link,
            }),
            None => Err(self.outside()),
        }
    }

    /// The path ended in a directory that was entered (`a/..`, the root, a link to `.`).
    fn place_of_directory(mut self) -> Result<Place, PathError> {
        let path = self.here();
        let through_link = self.links > 0;
        let Some((directory, _)) = self.stack.pop() else {
            return Err(self.outside());
        };
        let stat = statat(&directory, ".", AtFlags::empty()).map_err(|errno| PathError::system(&path, errno))?;
        Ok(Place {
            directory,
            name: OsString::from("."),
            path,
            stat: Some(stat),
            through_link,
        })
    }
}

fn open_root(root: &Path) -> Result<OwnedFd, PathError> {
    open(root, directory_flags(), Mode::empty()).map_err(|errno| PathError::system(root, errno))
}

/// How directories on the way are opened: only to be passed through.
fn directory_flags() -> OFlags {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    access | OFlags::DIRECTORY | OFlags::CLOEXEC
}
