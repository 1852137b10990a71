//! Full-screen views: state machines that take key names and give pictures.
//!
//! A view knows no terminal. The client opens the alternate screen, sends each key's name and draws each frame.

use crate::protocol::{EventKind, ViewCursor};
use crate::ui::lines::Page;
use crate::ui::theme::Theme;

/// What a key did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAction {
    /// Nothing: the view does not know the key.
    Ignored,
    /// The picture may have changed.
    Redraw,
    /// The view is finished.
    Close,
}

/// A view's whole picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewFrame {
    /// One styled string a row, from the top; none is wider than the screen.
    pub rows: Vec<String>,
    /// Where the cursor is to be shown.
    pub cursor: Option<ViewCursor>,
    /// Whether the view is finished and to be closed.
    pub done: bool,
}

impl ViewFrame {
    /// The event that carries it.
    #[must_use]
    pub fn into_event(self, view_id: &str) -> EventKind {
        EventKind::ViewFrame {
            view_id: view_id.to_owned(),
            rows: self.rows,
            cursor: self.cursor,
            done: self.done,
        }
    }
}

/// A full-screen view.
pub trait View: Send {
    /// Its title.
    fn title(&self) -> &str;

    /// Takes a key by its name: `q`, `ENTER`, `PAGE_UP`, `CTRL+d`, `ALT+h`.
    fn key(&mut self, key: &str) -> ViewAction;

    /// Its picture for a screen of `rows` rows and `page.width` columns.
    fn frame(&mut self, rows: u16, page: &Page, theme: &Theme) -> ViewFrame;
}

/// A key by one name, whatever the host calls it: control characters by their key, `SHIFT+g` as `G`, modifiers in the
/// order SHIFT, ALT, CTRL.
#[must_use]
pub fn normalise_key(key: &str) -> String {
    let (modifiers, name) = match key.rsplit_once('+') {
        Some((modifiers, "")) => (modifiers.trim_end_matches('+'), "+"),
        Some(parts) => parts,
        None => ("", key),
    };
    let has = |modifier: &str| modifiers.split('+').any(|part| part.eq_ignore_ascii_case(modifier));
    let (mut shift, alt, mut ctrl) = (has("SHIFT"), has("ALT"), has("CTRL"));
    let mut chars = name.chars();
    let name = match (chars.next(), chars.next()) {
        (Some(' '), None) => "SPACE".to_owned(),
        (Some('\r' | '\n'), None) => "ENTER".to_owned(),
        (Some('\t'), None) => "TAB".to_owned(),
        (Some('\u{1b}'), None) => "ESC".to_owned(),
        (Some('\u{7f}' | '\u{8}'), None) => "BACKSPACE".to_owned(),
        (Some(c @ '\u{1}'..='\u{1a}'), None) => {
            ctrl = true;
            char::from(b'a' + u8::try_from(u32::from(c)).unwrap_or(1) - 1).to_string()
        }
        (Some(c), None) if shift => {
            shift = false;
            c.to_uppercase().collect()
        }
        (Some(_), None) => name.to_owned(),
        _ => match name.to_ascii_uppercase().as_str() {
            "ESCAPE" => "ESC".to_owned(),
            "RETURN" => "ENTER".to_owned(),
            "PAGEUP" => "PAGE_UP".to_owned(),
            "PAGEDOWN" => "PAGE_DOWN".to_owned(),
            upper => upper.to_owned(),
        },
    };
    let prefix = [(shift, "SHIFT+"), (alt, "ALT+"), (ctrl, "CTRL+")];
    let prefix: String = prefix.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
    prefix + &name
}

/// The character a key types, if it types one.
#[must_use]
pub fn typed(key: &str) -> Option<char> {
    if key == "SPACE" {
        return Some(' ');
    }
    let mut chars = key.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) if !c.is_control() => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_name() {
        for (key, name) in [
            ("q", "q"),
            ("G", "G"),
            ("SHIFT+g", "G"),
            ("\r", "ENTER"),
            ("\u{1b}", "ESC"),
            ("\u{4}", "CTRL+d"),
            ("CTRL+d", "CTRL+d"),
            ("CTRL+ALT+x", "ALT+CTRL+x"),
            (" ", "SPACE"),
            ("PageUp", "PAGE_UP"),
            ("SHIFT+TAB", "SHIFT+TAB"),
            ("+", "+"),
            ("ALT++", "ALT++"),
            ("", ""),
        ] {
            assert_eq!(normalise_key(key), name, "{key:?}");
        }
        assert_eq!(typed("SPACE"), Some(' '));
        assert_eq!(typed("é"), Some('é'));
        assert_eq!(typed("UP"), None);
        assert_eq!(typed("CTRL+d"), None);
    }
}
