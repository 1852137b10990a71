//! What changed after a conversation's system prompt was frozen, told inside the next user message.
//!
//! A changed system prompt would cost the server's cache of the whole conversation; a few lines in a new message cost
//! nothing. [`PromptState`] is what the model was told last; it is kept with the conversation and moves on whenever a
//! note was told.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::frame::frame;
use super::index_file::IndexFile;
use super::memory::{MemoryEntry, memory_line};
use super::project::{ProjectContext, one_line, one_line_path, project_lines};
use crate::role::Role;

const OPEN: &str = "<context_note>";
const CLOSE: &str = "</context_note>";

/// What the model knows of the place and the role a conversation is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptState {
    role: Role,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    project_id: String,
    /// The index file's path and a digest of its text.
    #[serde(default)]
    index: Option<(String, String)>,
    /// Id and label of each memory.
    #[serde(default)]
    memories: Vec<(String, String)>,
}

impl PromptState {
    /// The state that these arguments of [`super::build_system_prompt`] tell.
    #[must_use]
    pub fn new(
        role: Role,
        project: Option<&ProjectContext>,
        index: Option<&IndexFile>,
        memories: &[MemoryEntry],
    ) -> Self {
        Self {
            role,
            cwd: project.map(|project| one_line_path(&project.cwd)).unwrap_or_default(),
            project_id: project.map(|project| project.project_id.clone()).unwrap_or_default(),
            index: project
                .and(index)
                .map(|index| (index.path.clone(), digest(&index.text))),
            memories: memories
                .iter()
                .map(|memory| (memory.id.clone(), memory.label.clone()))
                .collect(),
        }
    }

    /// What changed since `told`, in words for the model; `None` where nothing did. `project` is the place now.
    #[must_use]
    pub fn note_since(&self, told: &Self, project: Option<&ProjectContext>) -> Option<String> {
        let mut note = String::new();
        if self.role != told.role {
            let spec = self.role.spec();
            let _ = write!(
                note,
                "\n- Your role is now {} ({}). What was said of your role before no longer holds; this does:\n\n{}\n",
                spec.name,
                spec.label,
                frame(spec.prompt_profile)
            );
        }
        let moved = self.project_id != told.project_id;
        if moved {
            let _ = write!(note, "\n- The user is now in another project:");
            for line in project.map(project_lines).unwrap_or_default() {
                let _ = write!(note, "\n  - {line}");
            }
        } else if self.cwd != told.cwd && !self.cwd.is_empty() {
            let _ = write!(note, "\n- The working directory is now {}", self.cwd);
        }
        note.push_str(&self.index_change(told, moved));
        note.push_str(&self.memory_change(told, moved));
        (!note.is_empty())
            .then(|| format!("{OPEN}\nChanged since you were last told (the user did not type this):{note}\n{CLOSE}"))
    }

    fn index_change(&self, told: &Self, moved: bool) -> String {
        match (&told.index, &self.index) {
            (_, Some((path, _))) if moved => {
                format!(
                    "\n- {} at its root describes it: read it before you work there",
                    one_line(path)
                )
            }
            (Some((path, old)), Some((now, new))) if path == now && old != new => {
                format!(
                    "\n- {} has changed: read it again before you rely on it",
                    one_line(path)
                )
            }
            (Some((path, _)), Some((now, _))) if path != now => {
                format!(
                    "\n- {} now describes the repository instead of {}: read it",
                    one_line(now),
                    one_line(path)
                )
            }
            (None, Some((now, _))) => format!("\n- {} now describes the repository: read it", one_line(now)),
            (Some((path, _)), None) if !moved => format!("\n- {} is gone", one_line(path)),
            _ => String::new(),
        }
    }

    fn memory_change(&self, told: &Self, moved: bool) -> String {
        let entry = |(id, label): &(String, String)| MemoryEntry {
            id: id.clone(),
            label: label.clone(),
        };
        // Another project's memories have nothing to do with the ones told before, even under the same ids.
        let before: &[(String, String)] = if moved { &[] } else { &told.memories };
        let new: String = self
            .memories
            .iter()
            .filter(|memory| !before.contains(memory))
            .map(|memory| memory_line(&entry(memory)).replace("\n", "\n  "))
            .collect();
        let gone: Vec<String> = before
            .iter()
            .filter(|(id, _)| self.memories.iter().all(|(other, _)| other != id))
            .map(|(id, _)| one_line(id))
            .collect();
        let mut text = String::new();
        if !new.is_empty() {
            let _ = write!(text, "\n- Project memories, new or changed:{new}");
        }
        if !gone.is_empty() {
            let _ = write!(text, "\n- Project memories that are gone: {}", gone.join(", "));
        }
        text
    }
}

/// A user's text with a note before it.
#[must_use]
pub fn with_note(note: Option<&str>, text: &str) -> String {
    match note {
        Some(note) => format!("{note}\n\n{text}"),
        None => text.to_owned(),
    }
}

/// Enough of a hash to see that a text is another one.
fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cwd: &str, id: &str) -> ProjectContext {
        ProjectContext {
            cwd: cwd.into(),
            git_root: Some("/r".into()),
            project_id: id.to_owned(),
            ..ProjectContext::default()
        }
    }

    fn index(path: &str, text: &str) -> IndexFile {
        IndexFile {
            path: path.to_owned(),
            text: text.to_owned(),
            truncated: false,
        }
    }

    fn memory(id: &str, label: &str) -> MemoryEntry {
        MemoryEntry {
            id: id.to_owned(),
            label: label.to_owned(),
        }
    }

    fn body(note: Option<String>) -> String {
        let note = note.unwrap();
        let start = format!("{OPEN}\nChanged since you were last told (the user did not type this):\n");
        note.strip_prefix(&start)
            .unwrap()
            .strip_suffix(&format!("\n{CLOSE}"))
            .unwrap()
            .to_owned()
    }

    #[test]
    fn nothing_changed_is_not_told() {
        let project = place("/r", "p");
        let state = || {
            PromptState::new(
                Role::Direct,
                Some(&project),
                Some(&index("INDEX.md", "x")),
                &[memory("a", "b")],
            )
        };
        assert_eq!(state().note_since(&state(), Some(&project)), None);
        assert_eq!(with_note(None, "hi"), "hi");
        assert_eq!(with_note(Some("n"), "hi"), "n\n\nhi");
    }

    #[test]
    fn each_change_is_one_line() {
        let (before, after) = (place("/r", "p"), place("/r/sub\n", "p"));
        let told = PromptState::new(
            Role::Direct,
            Some(&before),
            Some(&index("INDEX.md", "x")),
            &[memory("a", "one"), memory("b", "two"), memory("c", "three")],
        );
        let now = PromptState::new(
            Role::Direct,
            Some(&after),
            Some(&index("INDEX.md", "y")),
            &[memory("a", "one"), memory("b", "2"), memory("d", "four")],
        );
        assert_eq!(
            body(now.note_since(&told, Some(&after))),
            "- The working directory is now /r/sub\\n\n\
             - INDEX.md has changed: read it again before you rely on it\n\
             - Project memories, new or changed:\n  - b: 2\n  - d: four\n\
             - Project memories that are gone: c"
        );
    }

    #[test]
    fn another_project_is_told_as_a_whole() {
        let (before, after) = (place("/r", "p"), place("/q", "q"));
        let told = PromptState::new(
            Role::Direct,
            Some(&before),
            Some(&index("INDEX.md", "x")),
            &[memory("a", "one")],
        );
        let now = PromptState::new(
            Role::Direct,
            Some(&after),
            Some(&index("AGENTS.md", "x")),
            &[memory("a", "one")],
        );
        assert_eq!(
            body(now.note_since(&told, Some(&after))),
            "- The user is now in another project:\n  - CWD: /q\n  - Repository root: /r\n  - Project ID: q\n\
             - AGENTS.md at its root describes it: read it before you work there\n\
             - Project memories, new or changed:\n  - a: one"
        );
    }

    #[test]
    fn another_role_brings_its_frame() {
        let state = |role| PromptState::new(role, None, None, &[]);
        let note = body(state(Role::Orchestrator).note_since(&state(Role::Direct), None));
        assert!(note.starts_with("- Your role is now orchestrator (Tank)."), "{note}");
        assert!(note.contains(frame("orchestrator")));
    }

    #[test]
    fn the_state_is_kept_as_json() {
        let state = PromptState::new(
            Role::Direct,
            Some(&place("/r", "p")),
            Some(&index("I", "x")),
            &[memory("a", "b")],
        );
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<PromptState>(&text).unwrap(), state);
    }
}
