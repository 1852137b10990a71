//! From a path as somebody wrote it to the directory and name it means, safe against symlinks and races.
//!
//! A path is walked one component at a time through open directories, never following a link by the kernel: each link
//! is read and its target walked the same way. So a directory that is swapped for a link meanwhile changes nothing,
//! and leaving a root is noticed whichever way it is tried (`..`, an absolute path, a link). Without a root to stay
//! below, the walk starts at `/` and is the same.
//!
//! What comes out is a [`Place`]: an open directory and a name in it that is no symbolic link, which is also what an
//! atomic replacement of a file needs.

mod walk;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, Stat, openat};
use rustix::io::Errno;

use walk::Walk;

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;

/// Why a path could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// There is nothing in it.
    #[error("the path is empty")]
    Empty,
    /// A directory on the way is not there.
    #[error("{} does not exist: there is no {} in {}", path.display(), name.display(), directory.display())]
    Missing {
        /// The whole path.
        path: PathBuf,
        /// The directory that exists.
        directory: PathBuf,
        /// What it does not hold.
        name: OsString,
    },
    /// Something on the way is not a directory.
    #[error("{} cannot be reached: {} is not a directory", path.display(), file.display())]
    NotADirectory {
        /// The whole path.
        path: PathBuf,
        /// What is no directory.
        file: PathBuf,
    },
    /// It leads out of the root.
    #[error("{} is outside of {}, to which file access is confined", path.display(), root.display())]
    Outside {
        /// The path.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// Links that lead in a circle.
    #[error("{} goes through more than {MAX_LINKS} symbolic links", path.display())]
    Links {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    System {
        /// How far it got.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PathError {
    fn system(path: &Path, errno: Errno) -> Self {
        Self::System {
            path: path.to_owned(),
            source: errno.into(),
        }
    }
}

/// How paths are read: relative to what, below what.
#[derive(Clone, Debug)]
pub struct Resolver {
    cwd: PathBuf,
    home: Option<PathBuf>,
    roots: Arc<[PathBuf]>,
}

/// An open directory and a name in it that is no symbolic link.
#[derive(Debug)]
pub struct Place {
    /// The directory.
    pub directory: OwnedFd,
    /// The name; `.` for the root itself.
    pub name: OsString,
    /// The same as a path without links.
    pub path: PathBuf,
    /// What is there, if anything.
    pub stat: Option<Stat>,
    /// Whether a link led here.
    pub through_link: bool,
}

impl Resolver {
    /// Paths relative to `cwd`, `~` being `home`.
    #[must_use]
    pub fn new(cwd: PathBuf, home: Option<PathBuf>) -> Self {
        Self {
            cwd,
            home,
            roots: Arc::new([]),
        }
    }

    /// The same, confined to what is below one of `roots`. Roots that do not exist confine to nothing.
    #[must_use]
    pub fn confined_to(self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        // The roots themselves may be given through links; that is the user's word, not the model's.
        let roots = roots
            .into_iter()
            .map(|root| root.canonicalize().unwrap_or(root))
            .collect();
        Self { roots, ..self }
    }

    /// The directory relative paths start from.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// `text` as an absolute path, links and `..` unresolved.
    pub fn absolute(&self, text: &str) -> Result<PathBuf, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        let from_home = match (text.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                Some(home.join(rest.trim_start_matches('/')))
            }
            _ => None,
        };
        Ok(from_home.unwrap_or_else(|| self.cwd.join(text)))
    }

    /// A path as it is best shown: relative to the working directory where it is below it.
    #[must_use]
    pub fn shown<'a>(&self, path: &'a Path) -> std::borrow::Cow<'a, str> {
        match path.strip_prefix(&self.cwd) {
            Ok(rest) if !rest.as_os_str().is_empty() => rest.to_string_lossy(),
            _ => path.to_string_lossy(),
        }
    }

    /// Where `text` leads. Its last component need not exist; with `make_directories` neither do those before it.
    pub fn resolve(&self, text: &str, make_directories: bool) -> Result<Place, PathError> {
        let path = self.absolute(text)?;
        let (root, rest) = self.below_root(&path)?;
        let mut walk = Walk::from(root, &path, &self.roots)?;
        walk.push_front(&rest);
        walk.finish(make_directories)
    }

    /// The root that `path` is below and the rest of the path from there.
    fn below_root(&self, path: &Path) -> Result<(PathBuf, PathBuf), PathError> {
        if self.roots.is_empty() {
            return Ok((PathBuf::from("/"), path.to_owned()));
        }
        // As it is written, else with the links of the directory it starts from resolved. What this finds is only a
        // starting point: the walk below the root decides.
        let cleaned = lexically_clean(path);
        let real = path
            .ancestors()
            .find_map(|ancestor| {
                let real = ancestor.canonicalize().ok()?;
                Some(real.join(path.strip_prefix(ancestor).ok()?))
            })
            .unwrap_or_else(|| cleaned.clone());
        for candidate in [&cleaned, &real] {
            for root in self.roots.iter() {
                if let Ok(rest) = candidate.strip_prefix(root) {
                    return Ok((root.clone(), rest.to_owned()));
                }
            }
        }
        Err(PathError::Outside {
            path: path.to_owned(),
            root: self.roots[0].clone(),
        })
    }
}

/// `path` without `.` and with `..` taken off by name, as far as there are names.
fn lexically_clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

impl Place {
    /// Opens what is there. Never waits (a pipe without a writer) and never takes a terminal.
    pub fn open(&self, flags: OFlags) -> Result<File, PathError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        openat(&self.directory, &self.name, flags, Mode::empty())
            .map(File::from)
            .map_err(|errno| PathError::system(&self.path, errno))
    }

    /// What kind of thing is there, if anything.
    #[must_use]
    pub fn file_type(&self) -> Option<FileType> {
        self.stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    struct Yard {
        _home: tempfile::TempDir,
        root: PathBuf,
        outside: PathBuf,
    }

    fn yard() -> Yard {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(root.join("a/file"), "in").unwrap();
        fs::write(outside.join("secret"), "out").unwrap();
        Yard {
            _home: home,
            root,
            outside,
        }
    }

    #[test]
    fn links_inside_are_followed_to_the_file_itself() {
        let yard = yard();
        symlink("../a/file", yard.root.join("a/relative")).unwrap();
        symlink(yard.root.join("a/file"), yard.root.join("absolute")).unwrap();
        symlink(".", yard.root.join("dot")).unwrap();
        for resolver in [
            Resolver::new(yard.root.clone(), None),
            Resolver::new(yard.root.clone(), None).confined_to([yard.root.clone()]),
        ] {
            for path in ["a/relative", "absolute", "a/b/../file", "dot/dot/a/file", "./a//file"] {
                let place = resolver.resolve(path, false).unwrap();
                assert_eq!(place.path, yard.root.join("a/file"), "{path}");
                assert_eq!(io::read_to_string(place.open(OFlags::RDONLY).unwrap()).unwrap(), "in");
            }
            assert_eq!(resolver.resolve("a/..", false).unwrap().path, yard.root);
            assert!(resolver.resolve("new", false).unwrap().stat.is_none());
        }
    }

    #[test]
    fn no_way_leads_out_of_a_root() {
        let yard = yard();
        symlink(&yard.outside, yard.root.join("door")).unwrap();
        symlink("../../outside/secret", yard.root.join("a/window")).unwrap();
        symlink("loop", yard.root.join("loop")).unwrap();
        let confined = Resolver::new(yard.root.clone(), None).confined_to([yard.root.clone()]);
        let secret = yard.outside.join("secret");
        for path in [
            "../outside/secret",
            "door/secret",
            "a/window",
            "a/../../outside/secret",
            secret.to_str().unwrap(),
        ] {
            let error = confined.resolve(path, true).unwrap_err();
            assert!(matches!(error, PathError::Outside { .. }), "{path}: {error}");
        }
        assert!(matches!(confined.resolve("loop", false), Err(PathError::Links { .. })));
        // And without a root the same paths lead where they say.
        let free = Resolver::new(yard.root.clone(), None);
        assert_eq!(free.resolve("door/secret", false).unwrap().path, secret);
    }

    #[test]
    fn a_second_root_and_a_root_given_through_a_link_count() {
        let yard = yard();
        let alias = yard.outside.join("alias");
        symlink(&yard.root, &alias).unwrap();
        let confined = Resolver::new(alias.clone(), None).confined_to([alias.clone(), yard.outside.clone()]);
        assert_eq!(
            confined.resolve("a/file", false).unwrap().path,
            yard.root.join("a/file")
        );
        let secret = yard.outside.join("secret");
        assert_eq!(confined.resolve(secret.to_str().unwrap(), false).unwrap().path, secret);
    }

    #[test]
    fn what_is_missing_is_named_with_where() {
        let yard = yard();
        let resolver = Resolver::new(yard.root.clone(), Some(yard.outside.clone()));
        match resolver.resolve("a/nope/deeper/file", false).unwrap_err() {
            PathError::Missing { directory, name, .. } => {
                assert_eq!((directory, name), (yard.root.join("a"), OsString::from("nope")));
            }
            other => panic!("{other}"),
        }
        assert!(matches!(
            resolver.resolve("a/file/x", false),
            Err(PathError::NotADirectory { .. })
        ));
        assert!(matches!(resolver.resolve("", false), Err(PathError::Empty)));
        let made = resolver.resolve("n/e/w", true).unwrap();
        assert!(made.stat.is_none() && yard.root.join("n/e").is_dir());
        assert_eq!(
            resolver.resolve("~/secret", false).unwrap().path,
            yard.outside.join("secret")
        );
    }

    #[test]
    fn a_directory_swapped_for_a_link_while_we_work_never_leads_out() {
        let yard = yard();
        let (real, door) = (yard.root.join("swap"), yard.root.join("door"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("secret"), "in").unwrap();
        symlink(&yard.outside, &door).unwrap();
        let confined = Resolver::new(yard.root.clone(), None).confined_to([yard.root.clone()]);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Exchanging is atomic: at each moment `swap` is the directory or the link.
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let flags = rustix::fs::RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(CWD, &real, CWD, &door, flags).unwrap();
                }
            });
            let mut inside = 0;
            for _ in 0..3000 {
                if let Ok(place) = confined.resolve("swap/secret", false)
                    && let Ok(file) = place.open(OFlags::RDONLY)
                {
                    assert_eq!(io::read_to_string(file).unwrap(), "in");
                    inside += 1;
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(inside > 0);
        });
    }
}
