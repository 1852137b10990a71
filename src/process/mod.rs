//! Child processes: how one is started in its own session, how its output is kept, how it and everything it left
//! behind is ended, and how a path is opened without leaving a root.
//!
//! This is the only room that starts processes. It installs no signal handler and forks no memory: children are
//! started by `posix_spawn` (see [`spawn`](mod@spawn)) and waited for through their pidfd.
//!
//! | file | idea |
//! |---|---|
//! | `environment` | the immutable snapshot of variables a child is given |
//! | `spawn` | one child in its own session, with one pipe for both outputs |
//! | `child` | waiting for it, and never leaving it behind |
//! | `nonce` | the mark by which descendants are found again in `/proc` |
//! | `tree` | ending a child with all of its descendants |
//! | `output` | head and tail in memory, the whole in a file when it is long |
//! | `pump` | from the pipe into the log, and to whoever watches |
//! | `run` | one command from start to end, with timeout and cancellation |
//! | `job` | commands in the background, and what commands left behind |
//! | `confine` | opening paths, below a root where that is asked for |

mod child;
pub mod confine;
mod environment;
mod job;
mod nonce;
mod output;
mod pump;
mod run;
mod spawn;
mod tree;

pub use child::{Child, ExitStatus};
pub use environment::Environment;
pub use job::{Job, JobError, JobInfo, JobState, Jobs};
pub use nonce::{NONCE_VARIABLE, Nonce, Survivor};
pub use output::{Captured, Mark, OutputLimits, OutputLog};
pub use pump::{OutputDelta, SharedLog};
pub use run::{CommandSpec, Ending, Finished, LeftBehind, RunLimits, RunSpec, run};
pub use spawn::{SpawnError, Spawned, find_program, spawn};
pub use tree::{Family, kill_tree};
