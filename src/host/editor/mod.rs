//! The line editor: `reedline` with a history on disk, several lines, a completion menu and hints.
//!
//! One editor a mode. Keys the mode or the shell wants come back as combinations with the line as it stands; the line
//! is then still in the editor.

mod assist;
mod external;
mod highlight;
mod prompt;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crossterm::event::{KeyCode, KeyModifiers};
use nu_ansi_term::{Color, Style};
use reedline::{
    ColumnarMenu, EditCommand, Emacs, FileBackedHistory, Keybindings, MenuBuilder, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, default_emacs_keybindings,
};

use crate::host::surroundings::Surroundings;
use crate::host::{keys, signals, terminal};

pub(super) use assist::{Assistant, Completion};
pub(super) use prompt::ModePrompt;

const MENU: &str = "completion";
/// Lines of history a mode keeps.
const HISTORY_LINES: usize = 5000;
/// The combination that opens the external editor.
const EDIT: &str = "CTRL+o";

/// What came of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A line to work on.
    Line(String),
    /// A key combination, with the line it was pressed in.
    Combo(String, String),
    /// The end of the input.
    End,
}

/// How an editor looks and what it reacts to.
pub(super) struct EditorSettings<'a> {
    /// Where the history is kept; not at all without one.
    pub history: Option<&'a Path>,
    /// Whether colours are shown.
    pub colors: bool,
    /// Combinations that are handed back.
    pub combos: &'a [String],
    /// Where and with which variables the external editor runs.
    pub surroundings: &'a Surroundings,
}

/// A line editor.
pub(super) struct Editor {
    inner: Reedline,
    combos: Vec<String>,
    surroundings: Surroundings,
}

impl Editor {
    /// An editor; the second value says why it has no history, where it should have one.
    pub(super) fn new(settings: &EditorSettings<'_>) -> (Self, Option<String>) {
        let mut inner = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(settings.colors)
            .with_highlighter(Box::new(highlight::Plain))
            .with_validator(Box::new(prompt::Continued))
            .with_completer(Box::new(assist::MenuCompleter))
            .with_hinter(Box::new(assist::LineHinter::new(Style::new().fg(Color::DarkGray))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(
                ColumnarMenu::default().with_name(MENU).with_marker(""),
            )))
            .with_quick_completions(true)
            .with_partial_completions(true);
        let enhanced = speaks_enhanced_keys(settings.surroundings);
        terminal::note_enhanced_keys(enhanced);
        inner = inner.use_kitty_keyboard_enhancement(enhanced);
        let mut problem = None;
        if let Some(path) = settings.history {
            match open_history(path) {
                Ok(history) => inner = inner.with_history(Box::new(history)),
                Err(error) => problem = Some(format!("the history cannot be kept in {}: {error}", path.display())),
            }
        }
        let surroundings = settings.surroundings.clone();
        let mut editor = Self {
            inner,
            combos: Vec::new(),
            surroundings,
        };
        editor.bind(settings.combos);
        (editor, problem)
    }

    /// Takes other combinations to hand back, where they are others.
    pub(super) fn bind(&mut self, combos: &[String]) {
        if self.combos == combos && !combos.is_empty() {
            return;
        }
        self.combos = combos.to_vec();
        let inner = std::mem::replace(&mut self.inner, Reedline::create());
        self.inner = inner.with_edit_mode(Box::new(Emacs::new(keybindings(combos))));
    }

    /// Puts `text` into the line, in place of what is there.
    pub(super) fn set_line(&mut self, text: &str) {
        self.inner
            .run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(text.to_owned())]);
    }

    /// Reads until there is something to do.
    ///
    /// # Errors
    /// Where the terminal does not answer.
    pub(super) fn read(&mut self, prompt: &ModePrompt, assistant: &Assistant) -> io::Result<Read> {
        loop {
            let signal = {
                let _waiting = signals::Waiting::new();
                let _assisted = assistant.lend();
                self.inner.read_line(prompt)?
            };
            match signal {
                Signal::Success(line) => {
                    // On disk at once: a history that waits for an orderly end is lost with any other.
                    let _ = self.inner.sync_history();
                    return Ok(Read::Line(prompt::joined(&line)));
                }
                Signal::HostCommand(combo) if combo == EDIT => self.edit_outside(),
                Signal::HostCommand(combo) => return Ok(Read::Combo(combo, self.line())),
                // The line was given up: a mode may have more to stop.
                Signal::CtrlC => return Ok(Read::Combo("CTRL+c".to_owned(), String::new())),
                Signal::CtrlD => return Ok(Read::End),
                Signal::ExternalBreak(line) => return Ok(Read::Combo(String::new(), line)),
                _ => {}
            }
        }
    }

    fn line(&self) -> String {
        self.inner.current_buffer_contents().to_owned()
    }

    fn edit_outside(&mut self) {
        match external::edit(&self.line(), &self.surroundings) {
            Ok(text) => self.set_line(&text),
            Err(problem) => terminal::write(format!("\n{problem}\n").as_bytes()),
        }
    }
}

fn open_history(path: &Path) -> Result<FileBackedHistory, String> {
    if let Some(directory) = path.parent() {
        // What somebody typed is nobody else's business.
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| error.to_string())?;
    }
    FileBackedHistory::with_file(HISTORY_LINES, path.to_owned()).map_err(|error| error.to_string())
}

/// Whether the terminal is one of those known to report keys in the enhanced way. Asking one that does not answer would
/// hold up the start.
fn speaks_enhanced_keys(surroundings: &Surroundings) -> bool {
    let kind = surroundings.text("TERM").unwrap_or_default();
    ["kitty", "ghostty", "foot"].iter().any(|known| kind.contains(known))
        || surroundings.text("KITTY_WINDOW_ID").is_some()
        || surroundings
            .text("TERM_PROGRAM")
            .is_some_and(|program| program == "WezTerm")
}

fn keybindings(combos: &[String]) -> Keybindings {
    let mut bindings = default_emacs_keybindings();
    let next = ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    bindings.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
    bindings.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let line_break = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    bindings.add_binding(KeyModifiers::SHIFT, KeyCode::Enter, line_break());
    bindings.add_binding(KeyModifiers::ALT, KeyCode::Enter, line_break());
    // What Ctrl-J sends in a terminal that reports keys in the plain way.
    bindings.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), line_break());
    for combo in combos.iter().map(String::as_str).chain([EDIT]) {
        // Ctrl-C and Ctrl-D have a meaning of their own in the editor, and come back as such.
        if let Some((modifiers, code)) = keys::parse(combo)
            && combo != "CTRL+c"
            && combo != "CTRL+d"
        {
            bindings.add_binding(modifiers, code, ReedlineEvent::ExecuteHostCommand(combo.to_owned()));
        }
    }
    bindings
}
