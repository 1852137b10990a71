//! What a directory's Git repository is, read from the files below `.git` without starting git.

use std::path::{Path, PathBuf};

/// How much of a repository's configuration is read; real ones are a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// A working tree and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitRepo {
    /// The top of the working tree.
    pub root: PathBuf,
    /// The URL of the remote called `origin`.
    pub origin: Option<String>,
}

/// The repository `dir` is in. Unreadable or broken files count as absent: a broken repository must not stop a turn.
#[must_use]
pub fn find(dir: &Path) -> Option<GitRepo> {
    for root in dir.ancestors() {
        let dot_git = root.join(".git");
        let Some(git_dir) = git_dir(&dot_git) else { continue };
        let origin = read_small(&common_dir(&git_dir).join("config")).and_then(|config| origin_url(&config));
        return Some(GitRepo {
            root: root.to_path_buf(),
            origin,
        });
    }
    None
}

/// `.git` itself, or what it points to where it is a file (linked working trees, submodules).
fn git_dir(dot_git: &Path) -> Option<PathBuf> {
    let kind = std::fs::metadata(dot_git).ok()?;
    if kind.is_dir() {
        return dot_git.join("HEAD").exists().then(|| dot_git.to_path_buf());
    }
    let text = read_small(dot_git)?;
    let target = text.lines().find_map(|line| line.strip_prefix("gitdir:"))?.trim();
    let dir = dot_git.parent()?.join(target);
    dir.is_dir().then_some(dir)
}

/// Where the configuration shared by all working trees of the repository is.
fn common_dir(git_dir: &Path) -> PathBuf {
    match read_small(&git_dir.join("commondir")) {
        Some(text) => git_dir.join(text.trim()),
        None => git_dir.to_path_buf(),
    }
}

fn read_small(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .ok()?
        .take(MAX_CONFIG_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last `url` of `[remote "origin"]`, as git reads it: comments, quotes and escapes included.
fn origin_url(config: &str) -> Option<String> {
    let mut in_origin = false;
    let mut url = None;
    for line in config.lines() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default();
            let (section, subsection) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
            in_origin = section.eq_ignore_ascii_case("remote") && subsection.trim() == "\"origin\"";
        } else if in_origin
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("url")
        {
            url = Some(config_value(value.trim())).filter(|url| !url.is_empty());
        }
    }
    url
}

fn config_value(raw: &str) -> String {
    let (mut out, mut quoted, mut chars) = (String::new(), false, raw.chars());
    while let Some(char) = chars.next() {
        match char {
            '"' => quoted = !quoted,
            '\\' => out.extend(chars.next()),
            '#' | ';' if !quoted => break,
            _ => out.push(char),
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn finds_the_root_from_below_and_reads_the_origin() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        fs::create_dir_all(root.join("a/b")).unwrap();
        assert_eq!(find(&root), None);
        fs::create_dir_all(root.join(".git")).unwrap();
        assert_eq!(find(&root), None, "an empty .git is no repository");
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(
            find(&root.join("a/b")),
            Some(GitRepo {
                root: root.clone(),
                origin: None
            })
        );
        let config = "[core]\n\tbare = false\n[Remote \"origin\"]\n\turl = \"git@example.org:x/y#z.git\" ; home\n\
                      [remote \"other\"]\n\turl = https://example.org/other\n";
        fs::write(root.join(".git/config"), config).unwrap();
        assert_eq!(
            find(&root).unwrap().origin.as_deref(),
            Some("git@example.org:x/y#z.git")
        );
    }

    #[test]
    fn a_linked_working_tree_has_its_own_root_and_the_shared_origin() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main/.git");
        fs::create_dir_all(main.join("worktrees/w")).unwrap();
        fs::write(
            main.join("config"),
            "[remote \"origin\"]\nurl=https://example.org/r.git\n",
        )
        .unwrap();
        fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
        let tree = dir.path().join("w");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        let repo = find(&tree).unwrap();
        assert_eq!(
            (repo.root, repo.origin.as_deref()),
            (tree, Some("https://example.org/r.git"))
        );
    }

    #[test]
    fn broken_files_count_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".git"), [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(find(dir.path()), None);
    }
}
