//! The project block: where the conversation takes place.

use std::path::{Path, PathBuf};

use super::index_file::IndexFile;

/// Where a conversation takes place, as found out when its turn began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectContext {
    /// The working directory.
    pub cwd: PathBuf,
    /// The root of the Git repository around it.
    pub git_root: Option<PathBuf>,
    /// The address of the repository's `origin`, as Git has it.
    pub origin: Option<String>,
    /// The same in its canonical form.
    pub normalized_origin: Option<String>,
    /// What memories and conversations of the project are kept under.
    pub project_id: String,
    /// Whether the id stands for a place on this machine, not for an origin.
    pub local: bool,
}

/// The lines that say where the conversation takes place.
#[must_use]
pub fn project_block(project: &ProjectContext) -> String {
    let mut block = "## Project information".to_owned();
    for line in project_lines(project) {
        block.push_str("\n- ");
        block.push_str(&line);
    }
    block
}

/// What is known of the place, a line each.
pub(super) fn project_lines(project: &ProjectContext) -> Vec<String> {
    let origin = |address: &Option<String>| address.as_deref().map(without_credentials);
    let facts = [
        ("CWD", Some(project.cwd.to_string_lossy().into_owned())),
        (
            "Repository root",
            project
                .git_root
                .as_ref()
                .map(|root| root.to_string_lossy().into_owned()),
        ),
        ("Git origin", origin(&project.origin)),
        ("Normalized origin", origin(&project.normalized_origin)),
        ("Project ID", Some(project.project_id.clone())),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| {
            value
                .filter(|value| !value.is_empty())
                .map(|value| format!("{name}: {}", one_line(&value)))
        })
        .collect()
}

/// The section with the repository's own description.
#[must_use]
pub fn index_block(index: &IndexFile) -> String {
    let text = index.text.trim();
    if text.is_empty() {
        return String::new();
    }
    format!(
        "## Project context\nFrom {} at the repository root:\n\n{text}",
        one_line(&index.path)
    )
}

/// A path as one line of text.
pub(super) fn one_line_path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// `text` with its control characters escaped: what a directory or a remote is called must not look like a line of
/// the prompt.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// An address without the user and password that some remotes carry: the prompt goes to a server, and is kept.
fn without_credentials(address: &str) -> String {
    let Some(start) = address.find("://").map(|at| at + 3) else {
        return address.to_owned();
    };
    let authority = address[start..].split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        // `ssh://git@host` names an account, not a secret.
        Some((user, _)) if address.starts_with("ssh://") && !user.contains(':') => address.to_owned(),
        Some((user, _)) => format!("{}{}", &address[..start], &address[start + user.len() + 1..]),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_only_for_what_is_known() {
        let bare = ProjectContext {
            cwd: "/tmp/a\nb".into(),
            ..ProjectContext::default()
        };
        assert_eq!(project_block(&bare), "## Project information\n- CWD: /tmp/a\\nb");
    }

    #[test]
    fn credentials_of_a_remote_stay_out_of_the_prompt() {
        for (address, shown) in [
            ("https://me:token@github.com/a/b.git", "https://github.com/a/b.git"),
            ("https://token@github.com/a/b", "https://github.com/a/b"),
            ("ssh://git@host/a", "ssh://git@host/a"),
            ("ssh://git:pw@host/a", "ssh://host/a"),
            ("git@github.com:a/b.git", "git@github.com:a/b.git"),
            ("https://github.com/a@b", "https://github.com/a@b"),
            ("/srv/git/x", "/srv/git/x"),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }
}
