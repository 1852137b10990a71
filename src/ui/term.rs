//! The real terminal: what it can do, and the few things our own executable asks of it.
//!
//! [`describe`] and [`Abilities`] are pure: they look at a snapshot of the environment and ask the terminal nothing, so
//! starting costs no round trip. The guards below them are for our own executable only; inside somebody else's process
//! the host owns the terminal, and nothing here is called.

use std::io::{self, Write};

use crossterm::{cursor, execute, terminal};

use crate::protocol::TermInfo;
use crate::ui::color::Depth;

/// Looks a variable of the environment's snapshot up.
pub type Var<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a terminal may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Columns; 0 where nobody knows.
    pub cols: u16,
    /// Rows; 0 where nobody knows.
    pub rows: u16,
    /// How many colours.
    pub depth: Depth,
    /// Whether bold, underlined and the like are shown.
    pub attributes: bool,
    /// Whether characters outside ASCII are shown.
    pub unicode: bool,
    /// Whether links can be followed (OSC 8).
    pub hyperlinks: bool,
    /// Whether the cursor can be moved, so that lines can be replaced.
    pub cursor: bool,
}

impl Abilities {
    /// What the terminal a client describes may be sent, given the client's environment.
    #[must_use]
    pub fn of(term: &TermInfo, var: Var<'_>) -> Self {
        let dumb = !term.is_tty || is_dumb(var);
        let depth = if dumb || no_color(var) {
            Depth::None
        } else {
            Depth::from_count(term.colors)
        };
        Self {
            cols: term.cols,
            rows: term.rows,
            depth,
            attributes: !dumb,
            unicode: term.unicode,
            hyperlinks: !dumb && follows_links(var),
            cursor: !dumb,
        }
    }

    /// Whether neither styles nor movements may be sent: a file, a pipe, a dumb terminal.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.depth == Depth::None && !self.attributes && !self.cursor
    }
}

/// Describes a terminal by the environment it set. `size` is columns and rows, where they are known.
#[must_use]
pub fn describe(var: Var<'_>, is_tty: bool, size: Option<(u16, u16)>) -> TermInfo {
    let term = var("TERM").unwrap_or_default();
    let (cols, rows) = size.filter(|(cols, rows)| *cols > 0 && *rows > 0).unwrap_or((80, 24));
    TermInfo {
        cols,
        rows,
        colors: colors(var, &term, is_tty),
        unicode: locale_is_utf8(var) && !matches!(term.as_str(), "linux" | "dumb"),
        graphics: is_tty && !is_multiplexed(var, &term) && speaks_kitty_graphics(var, &term),
        // Only an answer of the terminal could tell, and starting asks nothing.
        text_sizing: false,
        is_tty,
    }
}

fn is_set(var: Var<'_>, name: &str) -> bool {
    var(name).is_some_and(|value| !value.is_empty())
}

/// See <https://no-color.org>: present and not empty.
fn no_color(var: Var<'_>) -> bool {
    is_set(var, "NO_COLOR")
}

fn is_dumb(var: Var<'_>) -> bool {
    var("TERM").is_some_and(|term| term == "dumb")
}

fn colors(var: Var<'_>, term: &str, is_tty: bool) -> u32 {
    if !is_tty || no_color(var) || matches!(term, "" | "dumb") || term.starts_with("vt") {
        return 0;
    }
    let direct = matches!(var("COLORTERM").as_deref(), Some("truecolor" | "24bit"));
    if direct || term.ends_with("-direct") || is_set(var, "WT_SESSION") {
        return 1 << 24;
    }
    let known = ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"];
    match term {
        _ if known.iter().any(|name| term.starts_with(name)) => 1 << 24,
        _ if term.contains("256") => 256,
        _ => 16,
    }
}

/// The first of the variables that is set decides, as in `setlocale(3)`; with none of them the locale is plain ASCII.
fn locale_is_utf8(var: Var<'_>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(var)
        .find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8") || (cfg!(target_os = "macos") && locale.is_empty())
}

/// Whether the terminal says that its background is light: `COLORFGBG` ends in the background's index.
#[must_use]
pub fn is_light(var: Var<'_>) -> bool {
    let colors = var("COLORFGBG").unwrap_or_default();
    let background = colors.rsplit(';').next().and_then(|index| index.parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

fn is_multiplexed(var: Var<'_>, term: &str) -> bool {
    is_set(var, "TMUX") || is_set(var, "STY") || term.starts_with("screen") || term.starts_with("tmux")
}

fn speaks_kitty_graphics(var: Var<'_>, term: &str) -> bool {
    is_set(var, "KITTY_WINDOW_ID")
        || term == "xterm-kitty"
        || term == "xterm-ghostty"
        || matches!(var("TERM_PROGRAM").as_deref(), Some("WezTerm" | "ghostty"))
}

fn follows_links(var: Var<'_>) -> bool {
    let term = var("TERM").unwrap_or_default();
    if is_multiplexed(var, &term) {
        return false;
    }
    let program = var("TERM_PROGRAM").unwrap_or_default();
    let number = |name: &str| var(name).and_then(|value| value.parse::<u32>().ok()).unwrap_or(0);
    let by_term = ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"];
    ["iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio", "Tabby"].contains(&program.as_str())
        || by_term.iter().any(|name| term.starts_with(name))
        || ["KITTY_WINDOW_ID", "WT_SESSION", "DOMTERM"].into_iter().any(|name| is_set(var, name))
        // VTE follows links since 0.50, Konsole since 20.12.
        || number("VTE_VERSION") >= 5000
        || number("KONSOLE_VERSION") >= 201_200
}

/// The terminal's columns and rows.
///
/// # Errors
/// Where standard output is no terminal, or does not say.
pub fn size() -> io::Result<(u16, u16)> {
    terminal::size()
}

/// Raw mode for as long as it lives, whatever way it ends.
#[derive(Debug)]
pub struct RawMode(());

impl RawMode {
    /// Switches the terminal to raw mode.
    ///
    /// # Errors
    /// Where there is no terminal.
    pub fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        Ok(Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = terminal::disable_raw_mode();
    }
}

/// The alternate screen, with the cursor hidden, for as long as it lives.
#[derive(Debug)]
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Switches to the alternate screen.
    ///
    /// # Errors
    /// Where standard output cannot be written to.
    pub fn enter() -> io::Result<Self> {
        let guard = Self(());
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(guard)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // Nobody is left to be told.
        let _ = execute!(out, cursor::Show, terminal::LeaveAlternateScreen);
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(vars: &[(&str, &str)]) -> TermInfo {
        describe(&look_up(vars), true, Some((100, 30)))
    }

    fn look_up(vars: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let vars: Vec<(String, String)> = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        move |name| {
            vars.iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        }
    }

    #[test]
    fn colours_are_read_off_the_environment() {
        for (vars, colors) in [
            (&[("TERM", "xterm-256color")][..], 256),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], 1 << 24),
            (&[("TERM", "xterm-kitty")], 1 << 24),
            (&[("TERM", "linux")], 16),
            (&[("TERM", "vt100")], 0),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], 0),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], 0),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], 256),
            (&[], 0),
        ] {
            assert_eq!(info(vars).colors, colors, "{vars:?}");
        }
        assert_eq!(describe(&look_up(&[("TERM", "xterm-256color")]), false, None).colors, 0);
    }

    #[test]
    fn the_locale_decides_on_unicode() {
        for (vars, unicode) in [
            (&[("LANG", "de_DE.UTF-8")][..], true),
            (&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")], true),
            (&[("LANG", "de_DE.UTF-8"), ("TERM", "linux")], false),
        ] {
            assert_eq!(info(vars).unicode, unicode, "{vars:?}");
        }
    }

    #[test]
    fn graphics_and_links_are_believed_only_outside_multiplexers() {
        let kitty = [("TERM", "xterm-kitty"), ("KITTY_WINDOW_ID", "1")];
        assert!(info(&kitty).graphics && follows_links(&look_up(&kitty)));
        let inside = [("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/x")];
        assert!(!info(&inside).graphics && !follows_links(&look_up(&inside)));
        assert!(follows_links(&look_up(&[("VTE_VERSION", "7003")])));
        assert!(!follows_links(&look_up(&[("TERM", "xterm-256color")])));
    }

    #[test]
    fn a_light_background_is_told_by_its_index() {
        for (value, light) in [
            ("0;15", true),
            ("0;default;7", true),
            ("15;0", false),
            ("", false),
            ("x;y", false),
        ] {
            assert_eq!(is_light(&look_up(&[("COLORFGBG", value)])), light, "{value:?}");
        }
    }

    #[test]
    fn what_may_be_sent_follows_from_both() {
        let vars = [("TERM", "xterm-kitty"), ("LANG", "C.UTF-8")];
        let full = Abilities::of(&info(&vars), &look_up(&vars));
        assert_eq!((full.depth, full.attributes, full.cursor), (Depth::True, true, true));
        let no_color = Abilities::of(&info(&vars), &look_up(&[("NO_COLOR", "1")]));
        assert_eq!((no_color.depth, no_color.attributes), (Depth::None, true));
        let dumb = Abilities::of(&info(&vars), &look_up(&[("TERM", "dumb")]));
        assert!(dumb.is_plain());
        let piped = Abilities::of(&TermInfo::default(), &|_| None);
        assert!(piped.is_plain() && !piped.hyperlinks);
        let unknown = describe(&|_| None, true, Some((0, 0)));
        assert_eq!((unknown.cols, unknown.rows), (80, 24));
    }
}
