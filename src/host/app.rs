//! The loop of the shell: a prompt, a line, the mode's work; and the keys that are the shell's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mlua::Lua;

use crate::host::editor::{Assistant, Editor, EditorSettings, ModePrompt, Read};
use crate::host::mode::LuaMode;
use crate::host::shell_line::{self, Outcome};
use crate::host::surroundings::Surroundings;
use crate::host::typed::Typed;
use crate::host::{HostError, HostOptions, Manifest, mode, plain, signals, terminal};

/// The mode the shell opens in.
const FIRST: &str = "agent_smith";
/// The plain shell line, and its key.
const SHELL: (&str, &str) = ("shell", "F1");

/// What a mode is made of.
enum Kind {
    Lua(LuaMode),
    Shell { status: i32 },
}

struct Mode {
    name: String,
    kind: Kind,
    editor: Option<Editor>,
    /// What the next line begins with.
    prefill: Option<String>,
}

/// The running shell.
pub(super) struct App {
    surroundings: Surroundings,
    modes: Vec<Mode>,
    /// Keys that switch, and to which mode.
    keys: BTreeMap<String, usize>,
    current: usize,
    input: Typed,
    history: Option<PathBuf>,
    colors: bool,
    /// Whether lines are edited on a screen.
    edits: bool,
    failed: bool,
    // Last, so that it goes last: the modes above hold parts of it.
    _lua: Lua,
}

impl App {
    pub(super) fn new(options: HostOptions) -> Result<Self, HostError> {
        let manifest = Manifest::ours()?;
        let surroundings = Surroundings::new(options.cwd, options.env);
        let input = Typed::new();
        let lua = mode::state(&surroundings, &input, options.lua.as_deref())?;
        let mut modes = Vec::new();
        let mut keys = BTreeMap::new();
        for (name, description) in &manifest.modes {
            if let Some(key) = &description.shortcut {
                keys.insert(key.clone(), modes.len());
            }
            let kind = Kind::Lua(LuaMode::new(&lua, description, &options.mode)?);
            modes.push(Mode {
                name: name.clone(),
                kind,
                editor: None,
                prefill: None,
            });
        }
        keys.insert(SHELL.1.to_owned(), modes.len());
        modes.push(Mode {
            name: SHELL.0.to_owned(),
            kind: Kind::Shell { status: 0 },
            editor: None,
            prefill: None,
        });
        let current = modes.iter().position(|mode| mode.name == FIRST).unwrap_or_default();
        let dumb = matches!(surroundings.text("TERM").as_deref(), None | Some("dumb"));
        // The editor draws on standard error.
        let edits = !dumb && terminal::is_interactive() && std::io::IsTerminal::is_terminal(&std::io::stderr());
        if !edits {
            input.stay_ended();
        }
        Ok(Self {
            colors: !dumb && terminal::is_tty() && surroundings.text("NO_COLOR").is_none(),
            edits,
            surroundings,
            modes,
            keys,
            current,
            input,
            history: options.history,
            failed: false,
            _lua: lua,
        })
    }

    /// Works until the user leaves, the input ends, or a signal ends it.
    pub(super) fn run(&mut self) -> u8 {
        if self.edits {
            // What is typed meanwhile waits for the editor as it was typed: no echo, and Enter stays Enter.
            terminal::set_raw();
        }
        self.activate(self.current);
        self.greet();
        while signals::ending().is_none() && !terminal::output_gone() {
            let goes_on = match self.read() {
                Read::Line(line) if line.trim().is_empty() => true,
                Read::Line(line) => self.work(&line),
                Read::Combo(combo, line) => self.combo(&combo, &line),
                Read::End => false,
            };
            if !goes_on {
                break;
            }
        }
        // Without a person at it, a failure is told by the exit code too.
        u8::from(self.failed && !terminal::is_interactive())
    }

    /// Says what this is and where to go from here; without a person at it, nothing but what the mode has to tell.
    fn greet(&mut self) {
        if terminal::is_interactive() {
            let short = concat!("agent_smith ", env!("CARGO_PKG_VERSION"), ": /help lists commands");
            let long = format!("{short}, F1 is a plain shell, Ctrl-D leaves.");
            let fits = long.len() < usize::from(terminal::size().1);
            let text = if fits { long } else { format!("{short}.") };
            if self.colors {
                self.say(&format!("\x1b[2m{text}\x1b[0m"));
            } else {
                self.say(&text);
            }
        }
        let mode = &mut self.modes[self.current];
        if let Kind::Lua(lua) = &mode.kind {
            mode.prefill = lua.greet();
        }
    }

    fn say(&self, text: &str) {
        let line_end = if terminal::is_raw() { "\r\n" } else { "\n" };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        terminal::write((lines.join(line_end) + line_end).as_bytes());
    }

    fn prompt(&self) -> String {
        match &self.modes[self.current].kind {
            Kind::Lua(mode) => mode.prompt(),
            Kind::Shell { status } => shell_line::prompt(&self.surroundings, *status, self.colors),
        }
    }

    fn read(&mut self) -> Read {
        let prompt = self.prompt();
        if !self.edits {
            let mode = &mut self.modes[self.current];
            if let Some(prefill) = mode.prefill.take() {
                self.say(&format!("(not sent: {prefill})"));
            }
            return plain::read(&self.input, &prompt).map_or(Read::End, Read::Line);
        }
        let assistant = self.assistant();
        let combos = self.combos();
        let fresh = self.modes[self.current]
            .editor
            .is_none()
            .then(|| self.new_editor(&combos));
        let mode = &mut self.modes[self.current];
        let mut problem = None;
        if let Some((editor, trouble)) = fresh {
            mode.editor = Some(editor);
            problem = trouble;
        }
        let Some(editor) = &mut mode.editor else {
            return Read::End;
        };
        editor.bind(&combos);
        if let Some(prefill) = mode.prefill.take() {
            editor.set_line(&prefill);
        }
        if terminal::is_raw() {
            terminal::set_sane();
        }
        if let Some(problem) = problem {
            terminal::write(format!("{problem}\n").as_bytes());
        }
        match editor.read(&ModePrompt(prompt), &assistant) {
            Ok(read) => read,
            Err(error) => {
                // A terminal that does not answer can still show lines.
                terminal::set_sane();
                self.edits = false;
                self.input.stay_ended();
                self.say(&format!(
                    "Lines cannot be edited on this terminal ({error}); they are read as they are."
                ));
                Read::Line(String::new())
            }
        }
    }

    fn new_editor(&self, combos: &[String]) -> (Editor, Option<String>) {
        let name = &self.modes[self.current].name;
        let history = self
            .history
            .as_ref()
            .map(|directory| directory.join(format!("{name}.txt")));
        Editor::new(&EditorSettings {
            history: history.as_deref(),
            colors: self.colors,
            combos,
            surroundings: &self.surroundings,
        })
    }

    fn assistant(&self) -> Assistant {
        match &self.modes[self.current].kind {
            Kind::Lua(mode) => {
                let mode = mode.clone();
                Assistant::new(move |line| mode.complete(line))
            }
            Kind::Shell { .. } => Assistant::new(|_| Vec::new()),
        }
    }

    /// The combinations that are not the editor's: the shell's own, and what the mode wants.
    fn combos(&self) -> Vec<String> {
        let mut combos: Vec<String> = self.keys.keys().cloned().collect();
        if let Kind::Lua(mode) = &self.modes[self.current].kind {
            combos.extend(candidates().filter(|combo| !self.keys.contains_key(combo) && mode.takes(combo)));
        }
        combos
    }

    fn activate(&mut self, index: usize) {
        if let Kind::Lua(mode) = &self.modes[index].kind
            && let Err(problem) = mode.activate()
        {
            self.say(&problem);
        }
        self.current = index;
    }

    fn combo(&mut self, combo: &str, line: &str) -> bool {
        if let Some(&index) = self.keys.get(combo) {
            if index != self.current {
                // The line stays with the mode it was typed in.
                terminal::write(b"\r\n");
                self.activate(index);
            }
            return true;
        }
        if let Kind::Lua(mode) = &self.modes[self.current].kind
            && mode.takes(combo)
        {
            match mode.combo(combo, line) {
                Ok(after) if after != line => self.modes[self.current].prefill = Some(after),
                Ok(_) => {}
                Err(problem) => self.say(&problem),
            }
        }
        true
    }

    /// Works on a line; says whether to go on.
    fn work(&mut self, line: &str) -> bool {
        signals::forget_interrupt();
        let mode = &mut self.modes[self.current];
        match &mut mode.kind {
            Kind::Lua(lua) => {
                let ran = lua.run(line);
                mode.prefill = ran.prefill;
                if self.edits {
                    let rest = self.input.rest();
                    let parts = mode
                        .prefill
                        .take()
                        .into_iter()
                        .chain((!rest.is_empty()).then_some(rest));
                    mode.prefill = parts.reduce(|before, rest| format!("{before}\n{rest}"));
                }
                self.failed = ran.problem.is_some();
                if let Some(problem) = ran.problem {
                    self.say(&problem);
                }
                !ran.leave
            }
            Kind::Shell { status } => match shell_line::run(line, &self.surroundings) {
                Outcome::Status(ended) => {
                    *status = ended;
                    true
                }
                Outcome::Problem(problem) => {
                    *status = 1;
                    self.say(&problem);
                    true
                }
                Outcome::Leave => false,
            },
        }
    }
}

/// The combinations a mode may want, of those a terminal can send.
fn candidates() -> impl Iterator<Item = String> {
    const MODIFIERS: [&str; 6] = ["ALT+", "CTRL+", "ALT+CTRL+", "SHIFT+ALT+", "SHIFT+CTRL+", ""];
    let letters = ('a'..='z')
        .chain('0'..='9')
        .chain("-=[]\\;',./`+".chars())
        .map(String::from);
    let named = ["ENTER", "PAGE_UP", "PAGE_DOWN", "INSERT", "ESC"].map(str::to_owned);
    let functions = (1..=12).map(|number| format!("F{number}"));
    let keys: Vec<String> = letters.chain(named).chain(functions).collect();
    MODIFIERS.into_iter().flat_map(move |modifier| {
        let typed = modifier.is_empty();
        let keys = keys.clone().into_iter().filter(move |key| !typed || key.len() > 1);
        keys.map(move |key| format!("{modifier}{key}"))
    })
}
