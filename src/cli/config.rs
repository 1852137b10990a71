//! `agent-smith config`: what holds and where it comes from, where the file is, its schema, and the file in the user's
//! own editor.

use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::cli::{Exit, complain, paths, write_stderr};
use crate::config::{self, Config, DottedPath, Entry, Layer, Layers, Paths};
use crate::error::{AgentError, ErrorKind};
use crate::persistence::{Store, StoreOptions};

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Show each key, what holds for it, and which layer that comes from
    Show {
        /// Only the keys below this one, or whose name or description holds this word
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Only what differs from the defaults
        #[arg(long)]
        set: bool,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print where the user's file is
    Path,
    /// Print the JSON Schema of the user's file
    Schema,
    /// Open the user's file in $VISUAL or $EDITOR, and check it after that
    Edit,
}

/// What a file that is not there begins with.
const EMPTY: &str = "{\n}\n";
/// What edits where no variable names an editor.
const FALLBACK_EDITOR: &str = "vi";

/// Runs the subcommand. Ends with 2 where the configuration is bad.
pub(super) fn run(command: ConfigCommand) -> Exit {
    let done = paths().and_then(|paths| match command {
        ConfigCommand::Show { key, set, json } => show(&paths, key.as_deref(), set, json),
        ConfigCommand::Path => print(&format!("{}\n", paths.user_file().display())).map(|()| Exit::Completed),
        ConfigCommand::Schema => print(&pretty(&config::json_schema())).map(|()| Exit::Completed),
        ConfigCommand::Edit => edit(&paths),
    });
    done.unwrap_or_else(|error| {
        complain(&error);
        match error.kind {
            ErrorKind::Schema => Exit::Usage,
            _ => Exit::Error,
        }
    })
}

fn failed(code: &'static str, message: impl Into<String>) -> AgentError {
    AgentError::new(ErrorKind::Internal, code, message).from_origin("cli")
}

/// A reader that goes away early is no failure.
fn print(text: &str) -> Result<(), AgentError> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(failed("output", format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn show(paths: &Paths, key: Option<&str>, set: bool, json: bool) -> Result<Exit, AgentError> {
    let store = Store::new(StoreOptions::at(paths.database()));
    let patch = match store.read_blocking(|reader| reader.config_patch()) {
        Ok(patch) => patch.unwrap_or(Value::Null),
        Err(error) => {
            complain(&AgentError::from(error));
            write_stderr("agent-smith: what /config set keeps is not shown\n");
            Value::Null
        }
    };
    let loaded = config::load(&paths.user_file(), patch, Value::Null, None);
    let all = config::entries(&loaded.config);
    let chosen: Vec<&Entry> = match key {
        Some(key) => below(&all, key).ok_or_else(|| no_such_key(key))?,
        None => all.iter().collect(),
    };
    let chosen: Vec<&Entry> = chosen.into_iter().filter(|entry| !set || is_set(entry.layer)).collect();
    print(&if json { as_json(&chosen) } else { as_text(&chosen) })?;
    for problem in &loaded.problems {
        complain(&AgentError::from(problem));
    }
    if loaded.problems.is_empty() {
        Ok(Exit::Completed)
    } else {
        write_stderr("agent-smith: what is shown holds all the same; agent-smith config edit opens the file\n");
        Ok(Exit::Usage)
    }
}

fn is_set(layer: Layer) -> bool {
    !matches!(layer, Layer::Unset | Layer::Default)
}

/// The entries at or below a key; else those that a word finds; `None` where there are none.
fn below<'a>(all: &'a [Entry], key: &str) -> Option<Vec<&'a Entry>> {
    let by_path: Vec<&Entry> = match DottedPath::parse(key) {
        Ok(path) => all
            .iter()
            .filter(|entry| entry.path.segments().starts_with(path.segments()))
            .collect(),
        Err(_) => Vec::new(),
    };
    let found = if by_path.is_empty() {
        config::find_entries(all, key)
    } else {
        by_path
    };
    (!found.is_empty()).then_some(found)
}

fn no_such_key(key: &str) -> AgentError {
    let error =
        AgentError::new(ErrorKind::Schema, "unknown_key", format!("there is no key `{key}`")).from_origin("cli");
    let nearest = DottedPath::parse(key)
        .ok()
        .and_then(|path| config::nearest_key(path.segments()));
    match nearest {
        Some(nearest) => error.with_hint(format!("did you mean {nearest}?")),
        None => error.with_hint("agent-smith config show lists them"),
    }
}

fn as_text(entries: &[&Entry]) -> String {
    let width = |words: &dyn Fn(&Entry) -> String| {
        let widths = entries.iter().map(|entry| words(entry).chars().count());
        widths.max().unwrap_or(0).min(44)
    };
    let (keys, values) = (width(&|entry| entry.path.to_string()), width(&Entry::value_words));
    let lines = entries.iter().map(|entry| {
        let line = format!(
            "{:<keys$}  {:<values$}  {}",
            entry.path.to_string(),
            entry.value_words(),
            entry.layer
        );
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

fn as_json(entries: &[&Entry]) -> String {
    let keys = entries.iter().map(|entry| {
        let value = json!({"value": entry.value, "layer": entry.layer.as_str()});
        (entry.path.to_string(), value)
    });
    pretty(&Value::Object(keys.collect::<Map<_, _>>()))
}

fn edit(paths: &Paths) -> Result<Exit, AgentError> {
    let file = paths.user_file();
    let made = make_if_missing(&file)?;
    loop {
        run_editor(&file)?;
        let checked = check(&file);
        if made && checked.is_ok() && std::fs::read_to_string(&file).is_ok_and(|text| text == EMPTY) {
            let _ = std::fs::remove_file(&file);
            write_stderr("agent-smith: nothing was written, so there is no file\n");
            return Ok(Exit::Completed);
        }
        match checked {
            Ok(()) => {
                write_stderr(&format!(
                    "agent-smith: {} reads well; a shell that runs takes it at /reload\n",
                    paths.shorten(&file)
                ));
                return Ok(Exit::Completed);
            }
            Err(error) => complain(&error),
        }
        if !again()? {
            write_stderr(
                "agent-smith: the file stays as it is; until it is mended, what is right in it holds, and exec ends with 2\n",
            );
            return Ok(Exit::Usage);
        }
    }
}

/// Makes an empty file where there is none, so that the editor has something to open; whether it did.
fn make_if_missing(file: &Path) -> Result<bool, AgentError> {
    let cannot = |error: io::Error| failed("config_write", format!("{} cannot be made: {error}", file.display()));
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(cannot)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut new) => new.write_all(EMPTY.as_bytes()).map(|()| true).map_err(cannot),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(cannot(error)),
    }
}

/// Runs the editor on the terminal until it ends. What the variable says may have arguments, and quotes, as for a shell.
fn run_editor(file: &Path) -> Result<(), AgentError> {
    let named = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(std::env::var_os)
        .find(|editor| !editor.is_empty())
        .unwrap_or_else(|| FALLBACK_EDITOR.into());
    let words = named.to_string_lossy().into_owned();
    let status = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{words} \"$1\""))
        .arg("sh")
        .arg(file)
        .status()
        .map_err(|error| failed("editor", format!("the editor `{words}` cannot be run: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(failed("editor", format!("the editor `{words}` ended with {status}"))
        .with_hint("set VISUAL or EDITOR to the editor you want"))
}

/// The user's file by itself: what other layers say does not make it better or worse.
fn check(file: &Path) -> Result<(), AgentError> {
    let user = config::load_user_file(file)?;
    let layers = Layers {
        user_file: Some(file.to_owned()),
        user,
        ..Layers::default()
    };
    let config = Config::from_layers(&layers)?;
    let profile = config.opt_str("profile").map(str::to_owned);
    config.with_profile(profile.as_deref())?;
    Ok(())
}

/// Asks whether to go back to the editor; without a person to ask, no.
fn again() -> Result<bool, AgentError> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(false);
    }
    write_stderr("Edit it again? [Y/n] ");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| failed("stdin", format!("the answer cannot be read: {error}")))?;
    let answer = answer.trim().to_lowercase();
    Ok(!answer.starts_with('n') && !answer.starts_with('q'))
}
