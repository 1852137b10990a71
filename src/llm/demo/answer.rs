//! The demo's answer, put together from what the tools returned.

use super::Seen;

const MAX_NAMES: usize = 12;
const MAX_QUOTED_LINES: usize = 6;

/// The name in a listing that introduces the project best.
pub(super) fn introduction<'a>(listing: &'a str, names: &[&str]) -> Option<&'a str> {
    let find = |name: &&str| entries(listing).find(|entry| entry.eq_ignore_ascii_case(name));
    names.iter().find_map(find)
}

/// The names in a listing: of `ls`, a line each, or of an overview, the first word of each line.
fn entries(listing: &str) -> impl Iterator<Item = &str> {
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with(['[', '#']) && *line != ".git/";
    listing.lines().map(str::trim).filter(is_name)
}

pub(super) fn without_tools() -> String {
    "I am the embedded demo model, and none of the tools I know was offered to me.\n".to_owned()
}

/// The answer.
pub(super) fn compose(seen: &Seen<'_>) -> String {
    let mut out = String::from(
        "I am **demo**, the embedded model: a script, not a language model. What follows comes from the tools alone.\n\n",
    );
    let question = seen.question.lines().next_back().unwrap_or_default();
    let short: String = question.chars().take(120).collect();
    out.push_str(&format!("You said: *{}*\n", short.trim()));
    if let Some(listing) = seen.listing {
        let names: Vec<_> = entries(listing).collect();
        out.push_str(&format!("\n## What is here\n\n{} entries", names.len()));
        let shown: Vec<_> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
        let more = names.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        out.push_str(&format!(": {}{more}.\n", shown.join(", ")));
    }
    if let Some((path, text)) = &seen.introduction {
        out.push_str(&format!("\n## {path} says\n\n"));
        lines_of_file(text)
            .take(MAX_QUOTED_LINES)
            .for_each(|line| out.push_str(&format!("> {line}\n")));
    }
    if let Some(git) = seen.git {
        out.push_str("\n## What git says\n\n");
        out.push_str(&history(git));
    }
    out.push_str(
        "\nTo talk to a real model, type `/setup` in the shell, or set `llm_config.api_url` in \
         ~/.config/lilush/agent_smith.json.\n",
    );
    out
}

fn history(git: &str) -> String {
    let (log, status) = git.split_once("---").unwrap_or((git, ""));
    let is_commit = |line: &&str| {
        let hash = line.split_whitespace().next().unwrap_or_default();
        hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit())
    };
    let commits: Vec<_> = log.lines().map(str::trim).filter(is_commit).collect();
    if commits.is_empty() {
        return "No commits: this is no Git repository, or an empty one.\n".to_owned();
    }
    let mut out: String = commits.iter().map(|commit| format!("- {commit}\n")).collect();
    let is_change = |line: &&str| line.len() > 3 && line.is_char_boundary(3) && !line.starts_with('[');
    let changed: Vec<_> = status.lines().filter(is_change).map(|line| line[3..].trim()).collect();
    if !changed.is_empty() {
        let shown: Vec<_> = changed.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("\nNot committed: {}.\n", shown.join(", ")));
    }
    out
}

/// The lines of a file in a result of the read tool, which numbers them, without the blank ones.
fn lines_of_file(result: &str) -> impl Iterator<Item = &str> {
    let numbered = |line: &&str| {
        line.split_once('\t').is_some_and(|(number, _)| {
            let number = number.trim();
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    let content = |line: &'_ str| line.split_once('\t').map_or(0, |(number, _)| number.len() + 1);
    result
        .lines()
        .filter(numbered)
        .map(move |line| &line[content(line)..])
        .filter(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_introduction_is_found_whatever_its_case() {
        let names = ["INDEX.md", "README.md"];
        assert_eq!(introduction("a.rs\nreadme.md\n", &names), Some("readme.md"));
        assert_eq!(introduction("README.md\nINDEX.md\n", &names), Some("INDEX.md"));
        assert_eq!(introduction("README.md/\nsrc/\n", &names), None);
    }

    #[test]
    fn the_answer_changes_with_the_results() {
        let seen = |listing| Seen {
            question: "q",
            listing: Some(listing),
            introduction: None,
            git: Some("not a repo"),
        };
        let (one, two) = (compose(&seen("alpha.rs\n")), compose(&seen("beta.rs\n")));
        assert!(one.contains("`alpha.rs`") && !one.contains("beta"));
        assert!(two.contains("`beta.rs`") && one.contains("No commits"));
    }

    #[test]
    fn commits_and_changes_are_told_apart() {
        let text = history("abcdef1 first\n1234567 second\n---\n M src/x.rs\n?? new.txt\n");
        assert_eq!(
            text,
            "- abcdef1 first\n- 1234567 second\n\nNot committed: `src/x.rs`, `new.txt`.\n"
        );
    }
}
