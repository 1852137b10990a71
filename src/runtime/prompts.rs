//! The prompts of a session: the frozen system message, and the notes on what changed since.

use crate::config::Config;
use crate::prompt::{self, MemoryEntry, ProjectContext, PromptState};
use crate::role::Role;

/// A built system prompt, what it tells, and what the user should know of it.
#[derive(Clone, Debug)]
pub struct BuiltPrompt {
    /// The text.
    pub text: String,
    /// What it tells the model of its place and role; later changes are told in notes.
    pub state: PromptState,
    /// Sentences on what was left out and why.
    pub notices: Vec<String>,
}

/// Builds prompts.
pub trait PromptService: Send + Sync {
    /// The system message as it would be built now; a conversation keeps that of its first turn.
    fn system_prompt(&self, role: Role, project: &ProjectContext, memories: &[MemoryEntry]) -> BuiltPrompt;
}

/// The built-in prompts.
pub struct BuiltinPrompts {
    index_file: String,
    index_chars: usize,
}

impl BuiltinPrompts {
    /// Prompts as `config` has them.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            index_file: config.str("index_file").to_owned(),
            index_chars: usize::try_from(config.u64("prompt.index_file_chars")).unwrap_or(usize::MAX),
        }
    }
}

impl PromptService for BuiltinPrompts {
    fn system_prompt(&self, role: Role, project: &ProjectContext, memories: &[MemoryEntry]) -> BuiltPrompt {
        let mut notices = Vec::new();
        let index = project.git_root.as_deref().and_then(|root| {
            match prompt::load_index_file(root, &self.index_file, self.index_chars) {
                Ok(index) => index,
                Err(error) => {
                    notices.push(error.to_string());
                    None
                }
            }
        });
        if let Some(index) = index.as_ref().filter(|index| index.truncated) {
            notices.push(format!(
                "{} is long; only its first {} characters are in the prompt",
                index.path, self.index_chars
            ));
        }
        BuiltPrompt {
            text: prompt::build_system_prompt(role, Some(project), index.as_ref(), memories),
            state: PromptState::new(role, Some(project), index.as_ref(), memories),
            notices,
        }
    }
}
