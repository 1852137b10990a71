//! A command's output as the model reads it.

use std::fmt::Write as _;

use crate::process::{Captured, ExitStatus, Survivor};

/// Processes named one by one.
const LISTED: usize = 10;

/// Adds `line` on a line of its own.
pub(super) fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// The output as the model reads it. What was left out of the middle is said in one line that names the file and the
/// place in it, so that it is not taken for output.
pub(super) fn output_text(output: &Captured) -> String {
    let mut text = clean(&output.head);
    if output.left_out > 0 {
        let mut line = format!("[agent_smith left out {} bytes here", output.left_out);
        match &output.path {
            Some(path) => {
                let _ = write!(line, "; read {} offset {}", path.display(), output.left_out_from_line);
            }
            None => line.push_str(", and they are lost"),
        }
        if let Some(error) = &output.path_error {
            let _ = write!(line, "; {error}");
        }
        line.push(']');
        push_line(&mut text, &line);
        text.push('\n');
        text.push_str(&clean(&output.tail));
    }
    let invalid = invalid_bytes(&output.head) + invalid_bytes(&output.tail);
    if invalid > 0 {
        push_line(
            &mut text,
            &format!("[{invalid} bytes were no UTF-8 and are shown as \u{fffd}]"),
        );
    }
    text
}

fn invalid_bytes(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum()
}

/// Text without terminal escape sequences and without the characters that only mean something to a terminal.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(['\x1b', '\x08', '\x07', '\0']) {
        return text.into_owned();
    }
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\x07' | '\0' => {}
            // What man and nroff write for bold and underlined: the character, back, the character again.
            '\x08' => drop(result.pop()),
            c => result.push(c),
        }
    }
    result
}

/// Skips what follows an ESC: a control sequence to its final byte, a string to its terminator, else one character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => drop(chars.find(|c| ('\x40'..='\x7e').contains(c))),
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        // Three-byte sequences: the choice of a character set.
        Some('(' | ')' | '#' | '%') => drop(chars.next()),
        _ => {}
    }
}

/// How a command ended, in a sentence; nothing where it exited with 0.
pub(super) fn status_text(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(0) => String::new(),
        ExitStatus::Code(code) => format!("Exit code {code}."),
        ExitStatus::Signal(signal) => format!("Ended by signal {signal} ({}).", signal_name(signal)),
        ExitStatus::Unknown => "Ended; its status is unknown because something else collected it.".to_owned(),
    }
}

/// Processes in a line: `12 (sleep 5), 13 (nc)`.
pub(super) fn list_of(survivors: &[Survivor]) -> String {
    let mut list: Vec<String> = survivors
        .iter()
        .take(LISTED)
        .map(|survivor| format!("{} ({})", survivor.pid, survivor.command))
        .collect();
    if survivors.len() > LISTED {
        list.push(format!("{} more", survivors.len() - LISTED));
    }
    list.join(", ")
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL: killed, perhaps for want of memory",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => "see signal(7)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_and_text_stays() {
        let cases = [
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
            ("b\x08bo\x08old\x07", "bold"),
            ("\x1b(Bplain\x1b=", "plain"),
            ("unfinished\x1b[12", "unfinished"),
            ("ä\r\nß", "ä\r\nß"),
        ];
        for (given, expected) in cases {
            assert_eq!(clean(given.as_bytes()), expected);
        }
        assert_eq!(clean(b"\xff\x1b[0m!"), "\u{fffd}!");
    }
}
