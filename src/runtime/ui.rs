//! The rendering of a session, for clients that asked for it.

use crate::error::AgentError;
use crate::process::Environment;
use crate::protocol::{TermInfo, Theme};
use crate::ui::render::Renderer;

/// Makes renderers.
pub trait UiService: Send + Sync {
    /// A renderer for one client's terminal and colours.
    ///
    /// # Errors
    /// `internal` where there is no theme to render with.
    fn renderer(&self, term: &TermInfo, env: &Environment, theme: &Theme) -> Result<Renderer, AgentError>;
}

/// The built-in rendering.
#[derive(Debug, Default)]
pub struct TerminalUi;

impl UiService for TerminalUi {
    fn renderer(&self, term: &TermInfo, env: &Environment, theme: &Theme) -> Result<Renderer, AgentError> {
        let var = |name: &str| env.text(name).map(str::to_owned);
        Renderer::for_client(term, &var, theme).map_err(|problem| AgentError::internal("ui", problem.to_string()))
    }
}
