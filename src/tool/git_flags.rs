//! Which arguments of git are let through: a list a subcommand; what is not on it is refused.

/// One subcommand.
#[derive(Debug)]
pub(super) struct Subcommand {
    pub(super) name: &'static str,
    /// What is always given first.
    pub(super) always: &'static [&'static str],
    /// Flags without a value.
    flags: &'static [&'static str],
    /// Flags with a value: `--flag=value`, `--flag value`, and with one dash `-fvalue`.
    valued: &'static [&'static str],
    /// Whether revisions and paths may be given.
    names: bool,
}

/// What every kind of diff may be given.
const DIFF: &[&str] = &[
    "--stat",
    "--numstat",
    "--shortstat",
    "--name-only",
    "--name-status",
    "--summary",
    "-p",
    "-u",
    "--patch",
    "--no-patch",
    "-s",
    "-w",
    "-b",
    "--ignore-all-space",
    "--ignore-space-change",
    "--ignore-blank-lines",
    "-M",
    "-C",
    "--find-renames",
    "--no-renames",
    "--word-diff",
    "--minimal",
    "--patience",
    "--histogram",
    "--function-context",
    "-W",
    "--text",
    "-a",
    "--raw",
    "--check",
    "-R",
];
const DIFF_VALUED: &[&str] = &[
    "-U",
    "--unified",
    "--diff-filter",
    "-S",
    "-G",
    "--stat-width",
    "--diff-algorithm",
];
const LOG: &[&str] = &[
    "--oneline",
    "--graph",
    "--all",
    "--branches",
    "--tags",
    "--remotes",
    "--decorate",
    "--no-decorate",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--follow",
    "--reverse",
    "--date-order",
    "--topo-order",
    "--abbrev-commit",
    "--full-history",
    "-i",
    "--left-right",
    "--cherry-pick",
    "--boundary",
];
const LOG_VALUED: &[&str] = &[
    "-n",
    "--max-count",
    "--skip",
    "--since",
    "--after",
    "--until",
    "--before",
    "--author",
    "--committer",
    "--grep",
    "--format",
    "--pretty",
    "--date",
    "-L",
];
const DIFF_ALWAYS: &[&str] = &[
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=all",
];
const LOG_ALWAYS: &[&str] = &["--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature"];

/// All of them.
pub(super) static SUBCOMMANDS: [Subcommand; 6] = [
    Subcommand {
        name: "status",
        always: &["--ignore-submodules=all"],
        flags: &[
            "-s",
            "--short",
            "-b",
            "--branch",
            "--porcelain",
            "--long",
            "--ignored",
            "-u",
            "-uno",
            "-uall",
        ],
        valued: &["--untracked-files"],
        names: true,
    },
    Subcommand {
        name: "log",
        always: LOG_ALWAYS,
        flags: LOG,
        valued: LOG_VALUED,
        names: true,
    },
    Subcommand {
        name: "diff",
        always: DIFF_ALWAYS,
        flags: &["--cached", "--staged", "--merge-base"],
        valued: &[],
        names: true,
    },
    Subcommand {
        name: "show",
        always: LOG_ALWAYS,
        flags: &["--oneline", "--no-notes", "--abbrev-commit"],
        valued: &["--format", "--pretty", "--date"],
        names: true,
    },
    Subcommand {
        name: "blame",
        always: &["--no-textconv"],
        flags: &[
            "-w",
            "-M",
            "-C",
            "-l",
            "-s",
            "-e",
            "--show-email",
            "--date-order",
            "--porcelain",
        ],
        valued: &["-L", "--since", "--date"],
        names: true,
    },
    Subcommand {
        name: "branch",
        always: &["--list", "--no-color"],
        flags: &[
            "-a",
            "--all",
            "-r",
            "--remotes",
            "-v",
            "-vv",
            "--verbose",
            "--show-current",
        ],
        valued: &["--contains", "--no-contains", "--merged", "--no-merged", "--sort"],
        names: true,
    },
];

impl Subcommand {
    fn takes_diff_flags(&self) -> bool {
        matches!(self.name, "diff" | "log" | "show")
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.flags.contains(&flag) || (self.takes_diff_flags() && DIFF.contains(&flag))
    }

    fn has_valued(&self, flag: &str) -> bool {
        self.valued.contains(&flag) || (self.takes_diff_flags() && DIFF_VALUED.contains(&flag))
    }

    /// The flag of a `-fvalue`, if it is one that takes a value.
    fn short_of(&self, arg: &str) -> Option<&'static str> {
        self.valued
            .iter()
            .chain(if self.takes_diff_flags() { DIFF_VALUED } else { &[] })
            .find(|flag| flag.len() == 2 && arg.starts_with(**flag))
            .copied()
    }
}

/// The arguments as git gets them, or why not.
pub(super) fn check(subcommand: &Subcommand, given: &[String]) -> Result<Vec<String>, String> {
    let mut checked = Vec::new();
    let mut args = given.iter();
    let mut paths = false;
    while let Some(arg) = args.next() {
        if paths || !arg.starts_with('-') || arg == "-" {
            if !subcommand.names {
                return Err(format!("`git {}` takes no names here.", subcommand.name));
            }
            checked.push(arg.clone());
            continue;
        }
        if arg == "--" {
            paths = true;
            checked.push(arg.clone());
            continue;
        }
        let denied = || format!("`{arg}` of `git {}` is not available here.", subcommand.name);
        // `-5` is `-n 5`.
        let count = subcommand.has_valued("-n") && arg.len() > 1 && arg[1..].bytes().all(|byte| byte.is_ascii_digit());
        if count || subcommand.has_flag(arg) {
            checked.push(arg.clone());
        } else if let Some((flag, value)) = arg.split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
            let whole = subcommand.has_valued(flag) || subcommand.has_flag(flag);
            if !whole || !is_harmless(flag, value) {
                return Err(denied());
            }
            checked.push(arg.clone());
        } else if subcommand.has_valued(arg) {
            let value = args.next().ok_or_else(|| format!("`{arg}` needs a value."))?;
            if !is_harmless(arg, value) {
                return Err(denied());
            }
            // In one piece: a value that begins with a dash is a value all the same.
            let equals = if arg.starts_with("--") { "=" } else { "" };
            checked.push(format!("{arg}{equals}{value}"));
        } else if let Some(flag) = subcommand.short_of(arg) {
            if !is_harmless(flag, &arg[flag.len()..]) {
                return Err(denied());
            }
            checked.push(arg.clone());
        } else {
            return Err(denied());
        }
    }
    Ok(checked)
}

/// Whether a value makes nothing run: `%G` in a format asks gpg, and a format's name may be one of the configuration.
fn is_harmless(flag: &str, value: &str) -> bool {
    let named = ["oneline", "short", "medium", "full", "fuller", "reference", "raw"];
    match flag {
        "--format" | "--pretty" => {
            let own = value.starts_with("format:") || value.starts_with("tformat:") || value.contains('%');
            (named.contains(&value) || own) && !value.contains("%G")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: &str) -> Result<String, String> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let name = words.next().unwrap();
        let subcommand = SUBCOMMANDS.iter().find(|known| known.name == name).unwrap();
        check(subcommand, &words.collect::<Vec<_>>()).map(|args| args.join(" "))
    }

    #[test]
    fn what_only_looks_goes_through() {
        for (line, expected) in [
            (
                "log --oneline -5 HEAD~3..HEAD -- src",
                "--oneline -5 HEAD~3..HEAD -- src",
            ),
            ("log -n 3 --since 2.weeks", "-n3 --since=2.weeks"),
            ("log --format=%h%x09%s", "--format=%h%x09%s"),
            ("diff --cached --stat -U1", "--cached --stat -U1"),
            ("show HEAD:src/a.rs", "HEAD:src/a.rs"),
            ("blame -L 1,5 a.rs", "-L1,5 a.rs"),
            ("status -- --output=x", "-- --output=x"),
        ] {
            assert_eq!(checked(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_runs_or_writes_does_not() {
        for line in [
            "diff --output=x",
            "diff --ext-diff",
            "diff --textconv",
            "diff --no-index /etc/passwd /dev/null",
            "log --format=%G?",
            "log --format=mine",
            "log --show-signature",
            "log --exec=x",
            "blame --contents=x a",
            "branch -D main",
            "branch -m a b",
            "log -n",
            "show -O/tmp/x",
        ] {
            assert!(checked(line).is_err(), "{line}");
        }
    }
}
