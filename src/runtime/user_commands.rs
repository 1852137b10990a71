//! The commands of the user and of the repository one is in: read when they are called or listed, kept for completion.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::command::{self, Loaded, Registry};
use crate::config::Paths;
use crate::runtime::git_repo;

/// The commands, as last read.
pub(super) struct UserCommands {
    folder: PathBuf,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    root: Option<PathBuf>,
    changed: [Option<SystemTime>; 2],
    loaded: Arc<Loaded>,
}

impl UserCommands {
    /// Those in the user's own `folder` and in whatever repository is asked for.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            kept: Mutex::new(None),
        }
    }

    /// The commands that hold in `cwd`, read anew.
    pub(super) fn read(&self, registry: &Registry, cwd: &Path) -> Arc<Loaded> {
        let root = git_repo::find(cwd).map(|repo| repo.root);
        self.read_at(registry, root)
    }

    /// The commands that hold in `cwd`, read only where a folder has changed since: a file that was edited in place
    /// still has the old description.
    pub(super) fn kept(&self, registry: &Registry, cwd: &Path) -> Arc<Loaded> {
        let root = git_repo::find(cwd).map(|repo| repo.root);
        let changed = self.changed(root.as_deref());
        {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(kept) = kept
                .as_ref()
                .filter(|kept| kept.root == root && kept.changed == changed)
            {
                return Arc::clone(&kept.loaded);
            }
        }
        self.read_at(registry, root)
    }

    fn read_at(&self, registry: &Registry, root: Option<PathBuf>) -> Arc<Loaded> {
        // Asked before they are read: a change that comes in between is seen the next time.
        let changed = self.changed(root.as_deref());
        let below = root.as_deref().map(Paths::project_commands);
        let project = root.as_deref().zip(below.as_deref());
        let built_in = |name: &str| registry.find(name).is_some();
        let loaded = Arc::new(command::load(&self.folder, project, &built_in));
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept {
            root,
            changed,
            loaded: Arc::clone(&loaded),
        });
        loaded
    }

    fn changed(&self, root: Option<&Path>) -> [Option<SystemTime>; 2] {
        let time = |dir: &Path| std::fs::metadata(dir).and_then(|meta| meta.modified()).ok();
        [
            time(&self.folder),
            root.map(Paths::project_commands).and_then(|dir| time(&dir)),
        ]
    }
}
