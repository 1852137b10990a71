//! Models whose wire is recorded or played.

use std::sync::Arc;

use crate::cancel::CancelToken;
use crate::error::AgentError;
use crate::llm::{BoxFuture, Catalogue, Provider, RequestParams, Tape};
use crate::role::{Role, SelectedModel};
use crate::runtime::models::{Fallback, ModelService};

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

    fn fallbacks(&self, role: Role, model_override: Option<&str>) -> Vec<Fallback> {
        match &self.tape {
            // What stands on the tape is all there is.
            Tape::Replay(_) => Vec::new(),
            Tape::Record(recorder) => {
                let fallbacks = self.inner.fallbacks(role, model_override);
                fallbacks
                    .iter()
                    .for_each(|fallback| fallback.provider.record_to(recorder));
                fallbacks
            }
        }
    }

    fn known_models(&self) -> Option<Arc<Catalogue>> {
        self.inner.known_models()
    }

    fn fetch_models<'a>(&'a self, cancel: &'a CancelToken) -> BoxFuture<'a, Result<Arc<Catalogue>, AgentError>> {
        self.inner.fetch_models(cancel)
    }
}
