//! The index of the project's memories: what is kept, by id and label; the contents are fetched by a tool.

use std::fmt::Write as _;

use super::project::one_line;

/// The longest label, in characters.
const LABEL_CHARS: usize = 80;

/// One memory in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    /// Its id within the project.
    pub id: String,
    /// Its first line, shortened.
    pub label: String,
}

impl MemoryEntry {
    /// The entry of a memory with this content: the label is its first line that is not blank, at most 80 characters.
    #[must_use]
    pub fn new(id: impl Into<String>, content: &str) -> Self {
        let line = content
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        Self {
            id: id.into(),
            label: shorten(line),
        }
    }
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LABEL_CHARS) {
        None => line.to_owned(),
        Some(_) => {
            let end = line
                .char_indices()
                .nth(LABEL_CHARS - 1)
                .map_or(line.len(), |(at, _)| at);
            format!("{}…", line[..end].trim_end())
        }
    }
}

/// The index; empty where there is no memory.
#[must_use]
pub fn memory_block(project_id: Option<&str>, memories: &[MemoryEntry]) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let mut block = "## Project memory index".to_owned();
    if let Some(id) = project_id.filter(|id| !id.is_empty()) {
        let _ = write!(block, "\nproject_id: {}", one_line(id));
    }
    for memory in memories {
        block.push_str(&memory_line(memory));
    }
    block
}

/// One line of the index, with the line break before it.
pub(super) fn memory_line(memory: &MemoryEntry) -> String {
    let (id, label) = (one_line(&memory.id), one_line(&shorten(&memory.label)));
    if label.is_empty() {
        format!("\n- {id}")
    } else {
        format!("\n- {id}: {label}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_the_first_line_that_says_something() {
        assert_eq!(MemoryEntry::new("a", "\n  \n Use tabs. \nmore").label, "Use tabs.");
        assert_eq!(MemoryEntry::new("a", "").label, "");
        assert_eq!(MemoryEntry::new("a", &"ä".repeat(80)).label, "ä".repeat(80));
        let long = MemoryEntry::new("a", &"ä".repeat(81)).label;
        assert_eq!((long.chars().count(), long.chars().last()), (80, Some('…')));
    }

    #[test]
    fn without_memories_there_is_no_block() {
        assert_eq!(memory_block(Some("p"), &[]), "");
        let entry = MemoryEntry {
            id: "x".into(),
            label: "one\ntwo".into(),
        };
        assert_eq!(
            memory_block(Some("p"), &[entry]),
            "## Project memory index\nproject_id: p\n- x: one\\ntwo"
        );
    }
}
