//! Models whose wire is recorded or played.

use std::sync::Arc;

use crate::error::AgentError;
use crate::llm::{Provider, RequestParams, Tape};
use crate::role::{Role, SelectedModel};
use crate::runtime::models::ModelService;

/// A model service behind a tape: what answers is recorded, or stands on the tape.
struct Taped {
    inner: Arc<dyn ModelService>,
    tape: Tape,
}

/// `models` with their wire on the tape, if there is one.
pub(super) fn over(tape: Option<Tape>, models: Arc<dyn ModelService>) -> Arc<dyn ModelService> {
    match tape {
        Some(tape) => Arc::new(Taped { inner: models, tape }),
        None => models,
    }
}

impl ModelService for Taped {
    fn select(&self, role: Role, model_override: Option<&str>) -> SelectedModel {
        self.inner.select(role, model_override)
    }

    fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, AgentError> {
        match &self.tape {
            Tape::Replay(replay) => Ok(Arc::clone(replay) as Arc<dyn Provider>),
            Tape::Record(recorder) => {
                let provider = self.inner.provider(model)?;
                provider.record_to(recorder);
                Ok(provider)
            }
        }
    }

    fn params(&self, model: &str) -> RequestParams {
        self.inner.params(model)
    }
}
