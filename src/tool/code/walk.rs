//! Which files there are: as git sees the tree, or all of it, narrowed by globs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder, WalkParallel, WalkState};
use rustix::fs::{FileType, OFlags};

use super::excludes::global_excludes;
use crate::cancel::CancelToken;
use crate::process::confine::Resolver;
use crate::tool::context::ToolContext;
use crate::tool::files::{kind_of, not_found, path_error};
use crate::tool::result::ToolError;

/// Threads of one walk at most: more only wait for the disk and each other.
const MAX_THREADS: usize = 8;

/// The part of a tree that is looked at.
#[derive(Clone, Debug)]
pub(in crate::tool) struct Scope {
    /// Where it starts: a directory or a single file, without links.
    pub(in crate::tool) root: PathBuf,
    /// What paths are shown relative to.
    base: PathBuf,
    globs: Vec<String>,
    /// The user's own ignore file.
    excludes: Option<PathBuf>,
    /// Whether hidden and ignored files are looked at too.
    pub(in crate::tool) all: bool,
    /// How files are opened where access is confined.
    confined: Option<Resolver>,
    cancel: CancelToken,
    /// When to give up.
    pub(in crate::tool) deadline: Option<Instant>,
}

impl Scope {
    /// The tree at `path` (the working directory without one) of a call.
    pub(in crate::tool) fn new(
        ctx: &ToolContext,
        path: Option<&str>,
        globs: &[String],
        all: bool,
    ) -> Result<Self, ToolError> {
        let resolver = ctx.reading_resolver();
        let place = resolver.resolve(path.unwrap_or("."), false).map_err(path_error)?;
        match place.file_type() {
            Some(FileType::RegularFile | FileType::Directory) => {}
            None => return Err(not_found(&place, &resolver.shown(&place.path))),
            Some(_) => {
                let message = format!("{} is {}.", resolver.shown(&place.path), kind_of(&place));
                return Err(ToolError::to_model("not_a_file", message));
            }
        }
        let scope = Self {
            root: place.path,
            base: ctx.cwd.canonicalize().unwrap_or_else(|_| ctx.cwd.clone()),
            globs: globs.to_vec(),
            excludes: global_excludes(&ctx.env),
            all,
            confined: ctx.limits.confine_to_root.then_some(resolver),
            cancel: ctx.cancel.clone(),
            deadline: None,
        };
        // A glob that cannot be read is told before anything is walked.
        scope.builder()?;
        Ok(scope)
    }

    /// The same scope with what is hidden and ignored.
    pub(in crate::tool) fn with_all(&self) -> Self {
        Self {
            all: true,
            ..self.clone()
        }
    }

    /// A path as it is shown: relative to the working directory where it is below it.
    pub(in crate::tool) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.base)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Whether to give up: somebody asked to stop, or time is up.
    pub(in crate::tool) fn stopped(&self) -> bool {
        self.cancel.is_cancelled() || self.deadline.is_some_and(|deadline| Instant::now() > deadline)
    }

    /// Opens a file that the walk found.
    pub(in crate::tool) fn open(&self, path: &Path) -> io::Result<File> {
        match &self.confined {
            None => File::open(path),
            Some(resolver) => resolver
                .resolve(&path.to_string_lossy(), false)
                .and_then(|place| place.open(OFlags::RDONLY))
                .map_err(io::Error::other),
        }
    }

    fn builder(&self) -> Result<WalkBuilder, ToolError> {
        let mut builder = WalkBuilder::new(&self.root);
        builder
            .standard_filters(!self.all)
            // Found by us: the walker would ask the process for its variables and directory.
            .git_global(false)
            .current_dir(&self.base)
            .follow_links(false)
            .threads(threads())
            // Even "all" is about the tree, not about git's own files.
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
        if !self.all
            && let Some(path) = &self.excludes
        {
            // A rule in it that cannot be read is no rule, as for git.
            let _ = builder.add_ignore(path);
        }
        if !self.globs.is_empty() {
            let directory = if self.root.is_dir() {
                self.root.as_path()
            } else {
                self.root.parent().unwrap_or(&self.root)
            };
            let mut overrides = OverrideBuilder::new(directory);
            for glob in &self.globs {
                overrides.add(glob).map_err(|error| bad_glob(&error))?;
            }
            builder.overrides(overrides.build().map_err(|error| bad_glob(&error))?);
        }
        Ok(builder)
    }

    /// A walk by several threads.
    pub(in crate::tool) fn parallel(&self) -> Result<WalkParallel, ToolError> {
        Ok(self.builder()?.build_parallel())
    }

    /// Calls what `visitor` makes, one a thread, for each file; `false` stops the whole walk.
    pub(in crate::tool) fn each_file<'s, V>(&'s self, visitor: impl Fn() -> V) -> Result<(), ToolError>
    where
        V: FnMut(DirEntry) -> bool + Send + 's,
    {
        let stop = AtomicBool::new(false);
        self.parallel()?.run(|| {
            let mut visit = visitor();
            let stop = &stop;
            Box::new(move |entry| {
                if stop.load(Ordering::Relaxed) || self.stopped() {
                    return WalkState::Quit;
                }
                // What cannot be read (a directory of somebody else) is left out, as everywhere.
                let Ok(entry) = entry else {
                    return WalkState::Continue;
                };
                if entry.file_type().is_some_and(|kind| kind.is_file()) && !visit(entry) {
                    stop.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                WalkState::Continue
            })
        });
        Ok(())
    }

    /// The files, in no order.
    pub(in crate::tool) fn files(&self) -> Result<Vec<PathBuf>, ToolError> {
        let found = Mutex::new(Vec::new());
        self.each_file(|| {
            let mut mine = Batch {
                paths: Vec::new(),
                to: &found,
            };
            move |entry| {
                mine.paths.push(entry.into_path());
                true
            }
        })?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thread's paths, handed over when it is done.
struct Batch<'a> {
    paths: Vec<PathBuf>,
    to: &'a Mutex<Vec<PathBuf>>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.to
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut self.paths);
    }
}

fn bad_glob(error: &ignore::Error) -> ToolError {
    ToolError::to_model("bad_glob", format!("The glob cannot be read: {error}."))
}

pub(in crate::tool) fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, usize::from)
        .min(MAX_THREADS)
}

/// What was left out, by the first part of its path below `root` that is hidden or ignored: `dist/ 12, .env 2`.
pub(in crate::tool) fn by_top<'a>(root: &Path, paths: impl Iterator<Item = (&'a Path, u64)>) -> String {
    let mut tops: Vec<(String, u64)> = Vec::new();
    for (path, count) in paths {
        let rest = path.strip_prefix(root).unwrap_or(path);
        let mut components = rest.components();
        let Some(first) = components.next() else { continue };
        let slash = if components.next().is_some() { "/" } else { "" };
        let top = format!("{}{slash}", first.as_os_str().to_string_lossy());
        match tops.iter_mut().find(|(name, _)| *name == top) {
            Some((_, sum)) => *sum += count,
            None => tops.push((top, count)),
        }
    }
    tops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = tops.len().saturating_sub(5);
    let mut list: Vec<String> = tops
        .iter()
        .take(5)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if more > 0 {
        list.push(format!("{more} more places"));
    }
    list.join(", ")
}
