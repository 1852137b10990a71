//! Files that a prompt mentions as `@path`: found in the line, read below the project's root, put after the text.
//!
//! A mention counts only if a file or directory of that name is there: `@app.route` and `me@example.org` stay text.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::confined::read_head;
use super::error::PromptError;
use super::project::one_line;

/// The most entries of a mentioned directory that are listed.
const DIR_ENTRIES: usize = 200;

/// A mention in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Where it stands, the sign and any quotes included, in bytes.
    pub span: Range<usize>,
    /// The path, without sign and quotes.
    pub path: String,
    /// Whether the path is in quotes.
    pub quoted: bool,
}

/// What a prompt's mentions brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// The blocks to put after the user's text; empty where nothing was attached.
    pub text: String,
    /// The paths that were attached, relative to the root.
    pub paths: Vec<String>,
    /// What the user should know: what was cut, left out or refused.
    pub notices: Vec<String>,
}

/// The mentions in a line: `@path` at the start of a word, `@"a path"` with blanks.
#[must_use]
pub fn mentions(line: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at_word_start = true;
    let mut skip_to = 0;
    for (at, c) in line.char_indices() {
        if at < skip_to {
            continue;
        }
        let opens = at_word_start;
        at_word_start = c.is_whitespace() || matches!(c, '(' | '[' | '{' | ',' | ';');
        if c != '@' || !opens {
            continue;
        }
        let rest = &line[at + 1..];
        let (path, quoted, len) = match rest.strip_prefix('"') {
            Some(inside) => match inside.find('"') {
                Some(end) => (&inside[..end], true, end + 2),
                None => continue,
            },
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (&rest[..end], false, end)
            }
        };
        if !path.is_empty() {
            skip_to = at + 1 + len;
            found.push(Mention {
                span: at..skip_to,
                path: path.to_owned(),
                quoted,
            });
        }
    }
    found
}

/// Reads what `line` mentions, at most `max_chars` characters in all. Paths are relative to `cwd` and must stay inside
/// `root`, which is an ancestor of it. A file is attached once, however often it is mentioned.
#[must_use]
pub fn attach(line: &str, cwd: &Path, root: &Path, max_chars: usize) -> Attached {
    let mut attached = Attached::default();
    let mut left = max_chars;
    for mention in mentions(line) {
        // Punctuation after a path belongs to the sentence unless a file is called so.
        let bare = mention
            .path
            .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"']);
        let spellings: &[&str] = if mention.quoted || bare.len() == mention.path.len() {
            &[&mention.path]
        } else {
            &[&mention.path, bare]
        };
        for spelling in spellings {
            match attach_one(spelling, cwd, root, left) {
                Ok(None) => {}
                Ok(Some(block)) => {
                    if !attached.paths.contains(&block.path) {
                        left = left.saturating_sub(block.chars);
                        attached
                            .text
                            .push_str(if attached.text.is_empty() { "" } else { "\n\n" });
                        attached.text.push_str(&block.text);
                        attached.notices.extend(block.notice);
                        attached.paths.push(block.path);
                    }
                    break;
                }
                Err(error) => {
                    attached.notices.push(format!("@{}: {error}", one_line(spelling)));
                    break;
                }
            }
        }
    }
    attached
}

struct Block {
    path: String,
    text: String,
    chars: usize,
    notice: Option<String>,
}

fn attach_one(path: &str, cwd: &Path, root: &Path, max_chars: usize) -> Result<Option<Block>, PromptError> {
    let outside = || PromptError::Outside {
        path: path.into(),
        root: root.to_owned(),
    };
    let whole = normalize(&cwd.join(path));
    let Ok(relative) = whole.strip_prefix(root) else {
        // A name that leads out is refused only where something is there; else it is no mention at all.
        return if whole.exists() { Err(outside()) } else { Ok(None) };
    };
    let relative = if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    };
    let name = one_line(&relative.to_string_lossy());
    let max_bytes = (max_chars as u64).saturating_mul(4).saturating_add(4);
    let head = match read_head(root, relative, max_bytes) {
        Ok(Some(head)) => head,
        Ok(None) => return Ok(None),
        Err(PromptError::NotAFile { .. }) if whole.is_dir() => return Ok(Some(directory(name, &whole, max_chars))),
        Err(error) => return Err(error),
    };
    if head.bytes.contains(&0) {
        let notice = format!("{name} is not text ({} bytes) and was only named", head.len);
        return Ok(Some(Block {
            text: format!("<file path=\"{name}\" bytes=\"{}\" binary=\"true\" />", head.len),
            path: name,
            chars: 0,
            notice: Some(notice),
        }));
    }
    let text = String::from_utf8_lossy(&head.bytes);
    let (kept, cut) = match text.char_indices().nth(max_chars) {
        Some((end, _)) => (&text[..end], true),
        None => (&*text, head.len > head.bytes.len() as u64),
    };
    let chars = kept.chars().count();
    let mut block = format!("<file path=\"{name}\">\n{kept}");
    if !block.ends_with('\n') {
        block.push('\n');
    }
    let notice = cut.then(|| {
        let words = format!("{name} was cut after {chars} characters; it has {} bytes", head.len);
        let _ = writeln!(block, "[{words}. Read the file for the rest.]");
        words
    });
    block.push_str("</file>");
    Ok(Some(Block {
        path: name,
        text: block,
        chars,
        notice,
    }))
}

/// The names in a directory, sorted, directories with a slash.
fn directory(name: String, path: &Path, max_chars: usize) -> Block {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                "/"
            } else {
                ""
            };
            format!("{}{slash}", one_line(&entry.file_name().to_string_lossy()))
        })
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.truncate(DIR_ENTRIES);
    let mut chars = 0;
    names.retain(|entry| {
        chars += entry.chars().count() + 1;
        chars <= max_chars
    });
    let mut text = format!("<directory path=\"{name}\">\n");
    for entry in &names {
        let _ = writeln!(text, "{entry}");
    }
    let notice = (names.len() < all).then(|| {
        let words = format!("{} of {all} entries of {name} are listed", names.len());
        let _ = writeln!(text, "[{words}.]");
        words
    });
    text.push_str("</directory>");
    Block {
        path: name,
        text,
        chars: chars.min(max_chars),
        notice,
    }
}

/// `path` with `.` and `..` resolved by its spelling. What links make of it is the reader's business.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_stand_at_the_start_of_a_word() {
        let paths = |line| {
            mentions(line)
                .into_iter()
                .map(|mention| mention.path)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths("look at @src/a.rs and @\"b c.md\", (@d)"),
            ["src/a.rs", "b c.md", "d)"]
        );
        assert_eq!(paths("me@example.org @ x @\"open"), Vec::<String>::new());
        let line = "é @\"b c\" x";
        assert_eq!(&line[mentions(line)[0].span.clone()], "@\"b c\"");
    }

    fn tree() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("repo");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("a.md"), "alpha\n").unwrap();
        std::fs::write(root.join("sub/b c"), "beta").unwrap();
        std::fs::write(root.join("sub/bin"), b"\0\x01").unwrap();
        std::fs::write(home.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        home
    }

    #[test]
    fn files_are_attached_once_and_in_order() {
        let home = tree();
        let root = home.path().join("repo");
        let line = "compare @../a.md, @\"b c\" and @../a.md. Not @app.route";
        let attached = attach(line, &root.join("sub"), &root, 1000);
        assert_eq!(
            attached.text,
            "<file path=\"a.md\">\nalpha\n</file>\n\n<file path=\"sub/b c\">\nbeta\n</file>"
        );
        assert_eq!((attached.paths.len(), attached.notices.len()), (2, 0));
        let listed = attach("@.", &root.join("sub"), &root, 1000);
        assert_eq!(listed.text, "<directory path=\"sub\">\nb c\nbin\n</directory>");
    }

    #[test]
    fn what_leads_out_is_refused_and_binaries_are_only_named() {
        let home = tree();
        let root = home.path().join("repo");
        for line in ["@../secret", "@link"] {
            let attached = attach(line, &root, &root, 1000);
            assert_eq!(attached.text, "");
            assert!(attached.notices[0].contains("leads out of"), "{:?}", attached.notices);
        }
        let binary = attach("@sub/bin", &root, &root, 1000);
        assert_eq!(binary.text, "<file path=\"sub/bin\" bytes=\"2\" binary=\"true\" />");
        assert_eq!(binary.notices.len(), 1);
        assert_eq!(attach("@/nowhere/at/all", &root, &root, 1000), Attached::default());
    }

    #[test]
    fn the_budget_is_for_all_of_them() {
        let home = tree();
        let root = home.path().join("repo");
        let attached = attach("@a.md @\"sub/b c\"", &root, &root, 8);
        assert_eq!(attached.notices, ["sub/b c was cut after 2 characters; it has 4 bytes"]);
        assert!(attached.text.ends_with(
            "be\n[sub/b c was cut after 2 characters; it has 4 bytes. Read the file for the rest.]\n</file>"
        ));
    }
}
