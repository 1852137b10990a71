//! Commands that users and repositories write themselves: a Markdown file each, named after the command.
//!
//! A file is a prompt with places for arguments, and a head that says how it is shown and which role and model answer.
//! A broken file is told and skipped; it never keeps the others from loading.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::front_matter;
use super::line::{is_command_name, split_arguments};
use crate::prompt::{PromptError, read_head};
use crate::role::Role;

/// Far more than a prompt that somebody wrote has.
const MAX_BYTES: u64 = 256 * 1024;

/// The longest description made from the text of a command, in characters.
const DESCRIPTION_CHARS: usize = 80;

/// The keys a head may have.
const KEYS: [&str; 4] = ["description", "argument-hint", "role", "model"];

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The user's own folder.
    User,
    /// The repository's folder; of two commands of one name, this one holds.
    Project,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
        })
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// What to type after it, for help.
    pub argument_hint: Option<String>,
    /// The role that answers, where the file names one.
    pub role: Option<Role>,
    /// The model that answers, where the file names one.
    pub model: Option<String>,
    /// The prompt, with places for arguments.
    pub body: String,
    /// Which folder it is from.
    pub source: Source,
    /// Its file.
    pub path: PathBuf,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, as a sentence.
    pub message: String,
    /// Whether the command is missing because of it.
    pub skipped: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)?;
        if self.skipped {
            f.write_str("; the command is left out")?;
        }
        Ok(())
    }
}

/// The commands of both folders, sorted by name, and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The commands that hold.
    pub commands: Vec<UserCommand>,
    /// What to tell.
    pub problems: Vec<Problem>,
}

/// Loads the commands of the user's folder and of a repository's. `project` is the root of the repository and the
/// folder below it; its files are read only below that root, whatever links say. `is_built_in` names the commands that
/// cannot be replaced.
#[must_use]
pub fn load(user: &Path, project: Option<(&Path, &Path)>, is_built_in: &dyn Fn(&str) -> bool) -> Loaded {
    let mut loaded = Loaded::default();
    let mut folder = |dir: &Path, source: Source, read: &dyn Fn(&Path) -> Result<Vec<u8>, String>| {
        for path in markdown_files(dir, &mut loaded.problems) {
            let (command, problems) = load_one(&path, source, read, is_built_in);
            loaded.problems.extend(problems);
            if let Some(command) = command {
                loaded.commands.retain(|other| other.name != command.name);
                loaded.commands.push(command);
            }
        }
    };
    folder(user, Source::User, &read_file);
    if let Some((root, dir)) = project {
        folder(dir, Source::Project, &|path| read_below(root, path));
    }
    loaded.commands.sort_by(|a, b| a.name.cmp(&b.name));
    loaded
}

/// The Markdown files of a folder, sorted; hidden ones and subfolders are none. A folder that is absent has none.
fn markdown_files(dir: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                problems.push(Problem {
                    path: dir.to_owned(),
                    message: format!("the folder cannot be read: {error}"),
                    skipped: false,
                });
            }
            return Vec::new();
        }
    };
    let visible = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md") && visible(path))
        .filter(|path| !path.is_dir())
        .collect();
    files.sort();
    files
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    // Asked before it is opened: opening a named pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn read_below(root: &Path, path: &Path) -> Result<Vec<u8>, String> {
    let relative = path.strip_prefix(root).unwrap_or(path);
    match read_head(root, relative, MAX_BYTES + 1) {
        Ok(Some(head)) => Ok(head.bytes),
        Ok(None) => Err("it is gone".to_owned()),
        Err(PromptError::Outside { .. }) => Err("it leads out of the repository".to_owned()),
        Err(PromptError::NotAFile { .. }) => Err("it is no regular file".to_owned()),
        Err(PromptError::Read { source, .. }) => Err(source.to_string()),
    }
}

fn load_one(
    path: &Path,
    source: Source,
    read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    is_built_in: &dyn Fn(&str) -> bool,
) -> (Option<UserCommand>, Vec<Problem>) {
    let problem = |message: String, skipped| Problem {
        path: path.to_owned(),
        message,
        skipped,
    };
    let skip = |message: String| (None, vec![problem(message, true)]);
    let name = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some(name) if is_command_name(name) => name,
        _ => return skip("the name of a command has only letters, digits, `_` and `-`".to_owned()),
    };
    if is_built_in(name) {
        return skip(format!("/{name} is built in and cannot be replaced"));
    }
    let bytes = match read(path) {
        Ok(bytes) if bytes.len() as u64 > MAX_BYTES => {
            return skip(format!("it is larger than {} KB", MAX_BYTES / 1024));
        }
        Ok(bytes) => bytes,
        Err(message) => return skip(message),
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return skip("it is not UTF-8".to_owned());
    };
    match parse(name, &text, source, path) {
        Ok((command, notes)) => (
            Some(command),
            notes.into_iter().map(|note| problem(note, false)).collect(),
        ),
        Err(message) => skip(message),
    }
}

/// The command in a file's text, with notes on what was ignored.
fn parse(name: &str, text: &str, source: Source, path: &Path) -> Result<(UserCommand, Vec<String>), String> {
    let head =
        front_matter::parse(text).map_err(|malformed| format!("line {}: {}", malformed.line, malformed.problem))?;
    let body = head.body.trim();
    if body.is_empty() {
        return Err("there is no prompt in it".to_owned());
    }
    let mut command = UserCommand {
        name: name.to_owned(),
        description: String::new(),
        argument_hint: None,
        role: None,
        model: None,
        body: body.to_owned(),
        source,
        path: path.to_owned(),
    };
    let mut notes = Vec::new();
    for (key, value, line) in head.entries {
        if value.is_empty() {
            continue;
        }
        match key {
            "description" => command.description = value,
            "argument-hint" => command.argument_hint = Some(value),
            "model" => command.model = Some(value),
            "role" => match Role::from_name(&value) {
                Some(role) if role.spec().user_facing => command.role = Some(role),
                _ => {
                    return Err(format!(
                        "line {line}: `role` must be direct or orchestrator, but is `{value}`"
                    ));
                }
            },
            other => notes.push(match crate::nearest::nearest(other, KEYS) {
                Some(near) => format!("line {line}: `{other}` is not known and has no effect; did you mean `{near}`?"),
                None => format!("line {line}: `{other}` is not known and has no effect"),
            }),
        }
    }
    if command.description.is_empty() {
        command.description = summary(body);
    }
    Ok((command, notes))
}

/// The first line of a prompt, shortened.
fn summary(body: &str) -> String {
    let line = body.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    match line.char_indices().nth(DESCRIPTION_CHARS) {
        None => line.to_owned(),
        Some(_) => line.chars().take(DESCRIPTION_CHARS - 1).chain(['…']).collect(),
    }
}

impl UserCommand {
    /// The prompt for these arguments: `$1` to `$9` are its words, `$ARGUMENTS` is all of it, `$$` is a dollar sign.
    ///
    /// What an argument holds is not looked at again. Where the prompt has no place for arguments and some were typed,
    /// they follow after a blank line, so that nothing typed is lost.
    #[must_use]
    pub fn expand(&self, arguments: &str) -> String {
        const ALL: &str = "ARGUMENTS";
        let arguments = arguments.trim();
        let words = split_arguments(arguments);
        let mut text = String::with_capacity(self.body.len() + arguments.len());
        let mut used = false;
        let mut rest = self.body.as_str();
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let mut chars = after.chars();
            let (first, second) = (chars.next(), chars.next());
            let ends_word = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            rest = match first {
                Some('$') => {
                    text.push('$');
                    &after[1..]
                }
                Some(digit @ '1'..='9') if second.is_none_or(|c| !c.is_ascii_digit()) => {
                    let index = digit as usize - '1' as usize;
                    text.push_str(words.get(index).copied().unwrap_or_default());
                    used = true;
                    &after[1..]
                }
                _ if after.starts_with(ALL) && ends_word(after[ALL.len()..].chars().next()) => {
                    text.push_str(arguments);
                    used = true;
                    &after[ALL.len()..]
                }
                _ => {
                    text.push('$');
                    after
                }
            };
        }
        text.push_str(rest);
        if !used && !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(body: &str) -> UserCommand {
        parse("x", body, Source::User, Path::new("x.md")).unwrap().0
    }

    #[test]
    fn arguments_go_to_their_places_and_are_not_looked_at_again() {
        for (body, arguments, prompt) in [
            ("Fix $1 in $2.", "a 'b c'", "Fix a in b c."),
            ("Fix $1 and $3.", "a b", "Fix a and ."),
            ("All: $ARGUMENTS!", " a  'b' ", "All: a  'b'!"),
            ("$1$1", "$2 x", "$2$2"),
            (
                "cost $$1, $HOME, $10, $0, $ARGUMENTSX, $",
                "a",
                "cost $1, $HOME, $10, $0, $ARGUMENTSX, $\n\na",
            ),
            ("No place.", "", "No place."),
            ("No place.", "but words", "No place.\n\nbut words"),
        ] {
            assert_eq!(command(body).expand(arguments), prompt, "{body}");
        }
    }

    #[test]
    fn the_head_says_how_it_is_shown_and_who_answers() {
        let text = "---\ndescription: Review: it\nargument-hint: [path]\nrole: orchestrator\nmodel: a/b:c\nallowed-tools: x\nmodle: y\n---\n\nReview $1.\n";
        let (command, notes) = parse("review", text, Source::Project, Path::new("r.md")).unwrap();
        assert_eq!(command.description, "Review: it");
        assert_eq!(command.argument_hint.as_deref(), Some("[path]"));
        assert_eq!(
            (command.role, command.model.as_deref()),
            (Some(Role::Orchestrator), Some("a/b:c"))
        );
        assert_eq!(command.body, "Review $1.");
        assert_eq!(
            notes,
            [
                "line 6: `allowed-tools` is not known and has no effect",
                "line 7: `modle` is not known and has no effect; did you mean `model`?",
            ]
        );
    }

    #[test]
    fn without_a_description_the_first_line_is_it() {
        assert_eq!(command("# Do it\nnow").description, "Do it");
        let long = command(&"é".repeat(100)).description;
        assert_eq!((long.chars().count(), long.chars().last()), (80, Some('…')));
    }

    proptest! {
        #[test]
        fn no_body_and_no_arguments_panic(body in "[$1-9A ARGUMENTS\\né]{1,20}x", arguments in "\\PC*") {
            let _ = command(&body).expand(&arguments);
        }
    }
}
