//! Foreign text on its way to the screen: made harmless, measured, cut.
//!
//! Text of a model, a tool or a file may hold control characters and escape sequences. None ever reaches a terminal:
//! [`sanitize`] shows them as what they are, [`strip_escapes`] takes them out the way a terminal would read them.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;
use vte::{Parser, Perform};

/// Cells a tab may fill.
pub const TAB: usize = 4;

/// Whether `c` could act on a terminal or turn the order of what is read: control characters, line and paragraph
/// separators, the bidirectional overrides and isolates.
fn is_harmful(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Shows control characters instead of letting them act: `^[` for escape, `<U+009B>` for what has no such name.
/// Line breaks and tabs stay.
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let clean = |byte: u8| (0x20..0x7f).contains(&byte) || byte == b'\n' || byte == b'\t';
    if text.bytes().all(clean) || !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\u{7f}' => out.push_str("^?"),
            c if !is_harmful(c) => out.push(c),
            c if u32::from(c) < 0x20 => {
                out.push('^');
                out.extend(char::from_u32(u32::from(c) ^ 0x40));
            }
            c => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

/// What a terminal would show of a program's output, as plain text: escape sequences are taken out, a carriage return
/// starts its line anew (progress bars), a backspace takes a character back. The result is harmless.
#[must_use]
pub fn strip_escapes(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut screen = Plain::default();
    Parser::new().advance(&mut screen, text.as_bytes());
    screen.out.truncate(screen.out.trim_end_matches('\r').len());
    match sanitize(&screen.out) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => Cow::Owned(screen.out),
    }
}

#[derive(Default)]
struct Plain {
    out: String,
    /// Where the current line starts.
    line: usize,
    /// A carriage return came; the next character starts the line anew.
    returned: bool,
}

impl Perform for Plain {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.returned) {
            self.out.truncate(self.line);
        }
        self.out.push(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.out.push('\n');
                self.line = self.out.len();
            }
            b'\t' => self.print('\t'),
            b'\r' => self.returned = true,
            8 if self.out.len() > self.line => {
                self.out.pop();
            }
            _ => {}
        }
    }
}

/// The cells `text` takes; it must hold no control characters.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        UnicodeWidthStr::width(text)
    }
}

/// The longest start of `text` that fits into `cells`, in bytes, and the cells it takes.
#[must_use]
pub fn fit(text: &str, cells: usize) -> (usize, usize) {
    if text.is_ascii() {
        let len = text.len().min(cells);
        return (len, len);
    }
    let (mut end, mut used) = (0, 0);
    for grapheme in text.graphemes(true) {
        let cells_of = width(grapheme);
        if used + cells_of > cells {
            break;
        }
        used += cells_of;
        end += grapheme.len();
    }
    (end, used)
}

/// `text` cut to `cells`, its end replaced by `mark` where it was cut.
#[must_use]
pub fn shorten<'a>(text: &'a str, cells: usize, mark: &str) -> Cow<'a, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let (end, _) = fit(text, cells.saturating_sub(width(mark)));
    let (mark_end, _) = fit(mark, cells);
    Cow::Owned(format!("{}{}", text[..end].trim_end(), &mark[..mark_end]))
}

/// `line` with its tabs as spaces up to the next multiple of [`TAB`].
#[must_use]
pub fn expand_tabs(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for (index, part) in line.split('\t').enumerate() {
        if index > 0 {
            let spaces = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        out.push_str(part);
        column += width(part);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(
            sanitize("a\x1b]0;x\x07b\u{9b}31m\u{202e}c\x7f"),
            "a^[]0;x^Gb<U+009B>31m<U+202E>c^?"
        );
        assert!(matches!(sanitize("plain\ttext\n"), Cow::Borrowed(_)));
        assert!(matches!(sanitize("Grüße, 世界 👩‍👩‍👧"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_programs_colours_and_progress_bars_become_plain_text() {
        assert_eq!(strip_escapes("\x1b[1;31merror\x1b[0m: no\n"), "error: no\n");
        assert_eq!(strip_escapes("10%\r50%\r100%\r\ndone"), "100%\ndone");
        assert_eq!(strip_escapes("N\x08NA\x08AM"), "NAM");
        assert_eq!(strip_escapes("a\x1b]52;c;ZXZpbA==\x07b\x1bPq#0\x1b\\c"), "abc");
        assert_eq!(strip_escapes("half \x1b[3"), "half ");
        assert_eq!(strip_escapes("rtl \u{202e}x"), "rtl <U+202E>x");
    }

    #[test]
    fn cutting_respects_what_a_person_sees_as_one_character() {
        assert_eq!(fit("日本語", 5), (6, 4));
        assert_eq!(fit("e\u{301}e\u{301}", 1), (3, 1));
        assert_eq!(shorten("hello world", 8, "…"), "hello w…");
        assert_eq!(shorten("hello world", 7, "…"), "hello…");
        assert_eq!(shorten("hello", 5, "…"), "hello");
        assert_eq!(shorten("hello", 2, "..."), "..");
        assert_eq!(expand_tabs("a\tbc\td"), "a   bc  d");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in any::<String>()) {
            for clean in [sanitize(&text), strip_escapes(&text)] {
                prop_assert!(!clean.chars().any(is_harmful), "{clean:?}");
            }
        }

        #[test]
        fn a_cut_text_fits(text in "\\PC*", cells in 0usize..40) {
            let cut = shorten(&text, cells, "…");
            prop_assert!(width(&cut) <= cells);
            let (end, used) = fit(&text, cells);
            prop_assert!(used <= cells && text.is_char_boundary(end));
        }
    }
}
