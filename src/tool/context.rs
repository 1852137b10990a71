//! What a tool is given for one call.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::state::{PreimageKeeper, ToolState};
use crate::cancel::CancelToken;
use crate::process::{Environment, confine::Resolver};
use crate::role::Role;

/// What a tool tells while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolProgress {
    /// More output.
    Output {
        /// The text.
        text: String,
        /// Bytes left out before it because they came too fast to be watched.
        skipped: u64,
    },
}

/// Who is told. It must not block.
pub type Progress = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// The limits of all tools.
#[derive(Clone, Debug)]
pub struct ToolLimits {
    /// Bytes of a result's text; of a command's output half from its head and half from its tail.
    pub output_chars: usize,
    /// Bytes of a file shown by one `read`.
    pub read_chars: usize,
    /// Lines of a file shown by one `read`.
    pub read_lines: usize,
    /// Bytes of one line shown.
    pub line_chars: usize,
    /// How long a command may take when the model does not say.
    pub bash_timeout: Duration,
    /// How long a command may take when the model asks for more.
    pub bash_timeout_max: Duration,
    /// From TERM to KILL.
    pub kill_grace: Duration,
    /// How long a cancelled tool may take to stop by itself, beyond `kill_grace`, before it is dropped.
    pub cancel_grace: Duration,
    /// Where long outputs go; without one, a directory of this user's in the temporary directory.
    pub output_dir: Option<PathBuf>,
    /// Bytes of one output kept on the disk.
    pub output_file_bytes: u64,
    /// Whether file tools stay below the git root (or the working directory outside a repository).
    pub confine_to_root: bool,
    /// Variables that commands do not see; a name that ends in `*` stands for all that begin so.
    pub scrub_env: Vec<String>,
}

impl Default for ToolLimits {
    /// Sized so that one result is a small part of a 128,000-token window: 16,000 bytes of a command's output, 40,000
    /// of a file.
    fn default() -> Self {
        Self {
            output_chars: 16_000,
            read_chars: 40_000,
            read_lines: 2_000,
            line_chars: 2_000,
            bash_timeout: Duration::from_secs(120),
            bash_timeout_max: Duration::from_secs(3600),
            kill_grace: Duration::from_secs(2),
            cancel_grace: Duration::from_secs(5),
            output_dir: None,
            output_file_bytes: 64 << 20,
            confine_to_root: false,
            scrub_env: Vec::new(),
        }
    }
}

/// What a tool is given for one call. Clones are cheap enough for a call.
#[derive(Clone)]
pub struct ToolContext {
    /// Who calls.
    pub role: Role,
    /// The turn.
    pub turn_id: String,
    /// The call.
    pub call_id: String,
    /// Asked to stop.
    pub cancel: CancelToken,
    /// The working directory of the turn.
    pub cwd: PathBuf,
    /// The repository's root, if the turn is in one.
    pub git_root: Option<PathBuf>,
    /// The variables of the turn.
    pub env: Environment,
    /// Who is told what happens meanwhile.
    pub progress: Progress,
    /// The limits.
    pub limits: ToolLimits,
    /// What lives as long as the session.
    pub state: Arc<ToolState>,
    /// Who keeps what files were before this turn's changes.
    pub keeper: Option<Arc<dyn PreimageKeeper>>,
}

impl ToolContext {
    /// A context in `cwd` with everything else at its default: for tests and probes, and to be changed.
    #[must_use]
    pub fn new(role: Role, cwd: PathBuf, env: Environment) -> Self {
        Self {
            role,
            turn_id: String::new(),
            call_id: String::new(),
            cancel: CancelToken::new_root(),
            cwd,
            git_root: None,
            env,
            progress: Arc::new(|_| {}),
            limits: ToolLimits::default(),
            state: Arc::new(ToolState::default()),
            keeper: None,
        }
    }

    /// How paths are read in this call.
    #[must_use]
    pub fn resolver(&self) -> Resolver {
        let resolver = Resolver::new(self.cwd.clone(), self.env.get("HOME").map(PathBuf::from));
        if !self.limits.confine_to_root {
            return resolver;
        }
        let root = self.git_root.clone().unwrap_or_else(|| self.cwd.clone());
        resolver.confined_to([root])
    }

    /// The same for reading, where the outputs of commands are within reach as well.
    #[must_use]
    pub fn reading_resolver(&self) -> Resolver {
        let resolver = self.resolver();
        if !self.limits.confine_to_root {
            return resolver;
        }
        let root = self.git_root.clone().unwrap_or_else(|| self.cwd.clone());
        resolver.confined_to([root, self.output_dir()])
    }

    /// Where long outputs go.
    #[must_use]
    pub fn output_dir(&self) -> PathBuf {
        self.limits.output_dir.clone().unwrap_or_else(|| {
            let temporary = self.env.text("TMPDIR").unwrap_or("/tmp");
            PathBuf::from(temporary).join(format!("agent_smith-{}", rustix::process::geteuid().as_raw()))
        })
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("role", &self.role)
            .field("turn_id", &self.turn_id)
            .field("call_id", &self.call_id)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}
