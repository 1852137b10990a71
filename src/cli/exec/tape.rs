//! `--record` and `--replay`: the wire of one run in a file.

use std::sync::Arc;

use crate::cli::args::ExecArgs;
use crate::cli::complain;
use crate::error::AgentError;
use crate::llm::{Recorder, Replay, Tape};

/// The tape that the arguments ask for. A recording begins its file at once: where that fails, nothing is asked.
pub(super) fn open(args: &ExecArgs) -> Result<Option<Tape>, AgentError> {
    Ok(match (&args.record, &args.replay) {
        (Some(path), _) => Some(Tape::Record(Arc::new(Recorder::create(path)?))),
        (None, Some(path)) => Some(Tape::Replay(Arc::new(Replay::open(path)?))),
        (None, None) => None,
    })
}

/// The model of a recording, for a replay that names none.
pub(super) fn model(tape: Option<&Tape>) -> Option<String> {
    match tape? {
        Tape::Replay(replay) => replay.model(),
        Tape::Record(_) => None,
    }
}

/// Tells on stderr what a recording could not write.
pub(super) fn tell_failure(tape: Option<&Tape>) {
    if let Some(Tape::Record(recorder)) = tape
        && let Some(error) = recorder.failure()
    {
        complain(&error);
    }
}
