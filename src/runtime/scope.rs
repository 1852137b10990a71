//! Where a turn happens: the directory, the project it belongs to, and the environment, as they are at that moment.

use std::path::Path;

use crate::persistence::project_identity::ProjectIdentity;
use crate::process::Environment;
use crate::prompt::ProjectContext;
use crate::runtime::git_repo;

/// The scope of one turn.
#[derive(Clone, Debug)]
pub struct TurnScope {
    /// The directory and the project.
    pub project: ProjectContext,
    /// The environment of tools.
    pub env: Environment,
}

impl TurnScope {
    /// Looks at `cwd` anew.
    #[must_use]
    pub fn at(cwd: &Path, env: Environment) -> Self {
        Self {
            project: project(cwd),
            env,
        }
    }
}

/// The project `cwd` belongs to. Without an origin it is known by its root, outside a repository by the directory.
#[must_use]
pub fn project(cwd: &Path) -> ProjectContext {
    let repo = git_repo::find(cwd);
    let origin = repo.as_ref().and_then(|repo| repo.origin.clone());
    let git_root = repo.map(|repo| repo.root);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let identity = ProjectIdentity::resolve(origin.as_deref(), git_root.as_deref().map(text).as_deref(), &text(cwd));
    ProjectContext {
        cwd: cwd.to_path_buf(),
        git_root,
        normalized_origin: origin.as_ref().map(|_| identity.canonical).filter(|_| !identity.local),
        origin,
        project_id: identity.project_id,
        local: identity.local,
    }
}
