//! Key combinations: a terminal's key events by the names a mode knows them by.
//!
//! A name is the modifiers in a fixed order joined by `+`, then the key: letters in lower case, other keys by a name in
//! capitals (`ALT+h`, `CTRL+c`, `PAGE_UP`). A character typed without Ctrl or Alt is itself.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

const MODIFIERS: [(KeyModifiers, &str); 6] = [
    (KeyModifiers::SHIFT, "SHIFT"),
    (KeyModifiers::ALT, "ALT"),
    (KeyModifiers::CONTROL, "CTRL"),
    (KeyModifiers::SUPER, "SUPER"),
    (KeyModifiers::HYPER, "HYPER"),
    (KeyModifiers::META, "META"),
];

const NAMED: [(KeyCode, &str); 14] = [
    (KeyCode::Enter, "ENTER"),
    (KeyCode::Tab, "TAB"),
    (KeyCode::Backspace, "BACKSPACE"),
    (KeyCode::Esc, "ESC"),
    (KeyCode::Left, "LEFT"),
    (KeyCode::Right, "RIGHT"),
    (KeyCode::Up, "UP"),
    (KeyCode::Down, "DOWN"),
    (KeyCode::Home, "HOME"),
    (KeyCode::End, "END"),
    (KeyCode::PageUp, "PAGE_UP"),
    (KeyCode::PageDown, "PAGE_DOWN"),
    (KeyCode::Insert, "INSERT"),
    (KeyCode::Delete, "DELETE"),
];

/// The name of a pressed key; `None` for releases and keys without one.
pub(super) fn name_of(event: &KeyEvent) -> Option<String> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let mut modifiers = event.modifiers;
    let key = match event.code {
        KeyCode::Char(c) if (modifiers - KeyModifiers::SHIFT).is_empty() => return Some(c.to_string()),
        KeyCode::Char(c) => c.to_lowercase().to_string(),
        KeyCode::F(number) => format!("F{number}"),
        KeyCode::BackTab => {
            modifiers |= KeyModifiers::SHIFT;
            "TAB".to_owned()
        }
        code => NAMED.iter().find(|(named, _)| *named == code)?.1.to_owned(),
    };
    let mut name = String::new();
    for (modifier, word) in MODIFIERS {
        if modifiers.contains(modifier) {
            name.push_str(word);
            name.push('+');
        }
    }
    Some(name + &key)
}

/// The key event of a name; `None` where it is no combination.
pub(super) fn parse(name: &str) -> Option<(KeyModifiers, KeyCode)> {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = name;
    'words: while let Some((word, tail)) = rest.split_once('+') {
        if tail.is_empty() {
            break;
        }
        for (modifier, known) in MODIFIERS {
            if word == known {
                modifiers |= modifier;
                rest = tail;
                continue 'words;
            }
        }
        return None;
    }
    let mut chars = rest.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some((modifiers, KeyCode::Char(c)));
    }
    if let Some(number) = rest.strip_prefix('F').and_then(|number| number.parse().ok()) {
        return (1..=12).contains(&number).then_some((modifiers, KeyCode::F(number)));
    }
    let code = NAMED.iter().find(|(_, named)| *named == rest)?.0;
    Some((modifiers, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(code: KeyCode, modifiers: KeyModifiers) -> Option<String> {
        name_of(&KeyEvent::new(code, modifiers))
    }

    #[test]
    fn keys_have_the_names_a_mode_knows() {
        let (none, shift, alt, ctrl) = (
            KeyModifiers::NONE,
            KeyModifiers::SHIFT,
            KeyModifiers::ALT,
            KeyModifiers::CONTROL,
        );
        for (code, modifiers, expected) in [
            (KeyCode::Char('a'), none, "a"),
            (KeyCode::Char('A'), shift, "A"),
            (KeyCode::Char('é'), none, "é"),
            (KeyCode::Char('c'), ctrl, "CTRL+c"),
            (KeyCode::Char('H'), alt | shift, "SHIFT+ALT+h"),
            (KeyCode::Char('x'), ctrl | alt, "ALT+CTRL+x"),
            (KeyCode::F(4), none, "F4"),
            (KeyCode::PageUp, none, "PAGE_UP"),
            (KeyCode::Left, ctrl, "CTRL+LEFT"),
            (KeyCode::BackTab, none, "SHIFT+TAB"),
        ] {
            assert_eq!(name(code, modifiers).as_deref(), Some(expected));
        }
        assert_eq!(name(KeyCode::CapsLock, none), None);
        let release = KeyEvent::new_with_kind(KeyCode::Char('a'), none, KeyEventKind::Release);
        assert_eq!(name_of(&release), None);
    }

    #[test]
    fn a_name_is_read_back_as_the_key_it_came_from() {
        for text in [
            "ALT+h",
            "CTRL+c",
            "ALT+CTRL+x",
            "F4",
            "F12",
            "PAGE_UP",
            "SHIFT+TAB",
            "CTRL++",
            "+",
            "SHIFT+ALT+.",
        ] {
            let (modifiers, code) = parse(text).unwrap();
            assert_eq!(name(code, modifiers).as_deref(), Some(text));
        }
        for wrong in ["", "F13", "F0", "WIN+x", "PAGEUP", "ALT+"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
