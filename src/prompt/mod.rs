//! The prompt: what opens a conversation, and what is told later.
//!
//! The system message is three blocks in a fixed order: the role's frame, where the conversation takes place, and the
//! index of the project's memories. It is built at a conversation's first turn and frozen for it, so that the server's
//! cache of the prefix lives; `context_note` words what changes afterwards for the next user message, `attachment` what
//! the user attached to it. Nothing in here
//! depends on the time or on the process's environment: the same input gives the same bytes.

mod attachment;
mod confined;
mod context_note;
mod error;
mod frame;
mod index_file;
mod memory;
mod project;

pub use attachment::{Attached, Mention, attach, mentions};
pub use confined::{Head, read_head};
pub use context_note::{PromptState, with_note};
pub use error::PromptError;
pub use frame::frame;
pub use index_file::{ALTERNATIVES, IndexFile, load_index_file};
pub use memory::{MemoryEntry, memory_block};
pub use project::{ProjectContext, index_block, project_block};

use crate::role::Role;

/// The system message of a conversation in `role`.
#[must_use]
pub fn build_system_prompt(
    role: Role,
    project: Option<&ProjectContext>,
    index: Option<&IndexFile>,
    memories: &[MemoryEntry],
) -> String {
    let project_id = project.map(|project| project.project_id.as_str());
    assemble(&[
        frame(role.spec().prompt_profile).to_owned(),
        project.map(project_block).unwrap_or_default(),
        project.and(index).map(index_block).unwrap_or_default(),
        memory_block(project_id, memories),
    ])
}

/// Joins what is not empty by a blank line.
fn assemble(blocks: &[String]) -> String {
    let blocks: Vec<&str> = blocks
        .iter()
        .map(|block| block.trim_end())
        .filter(|block| !block.is_empty())
        .collect();
    blocks.join("\n\n")
}
