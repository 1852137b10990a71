//! Standard input as lines: one buffer for all who read it, the prompt where there is no line editor, the mode's questions,
//! and lines typed during a turn. Two readers with a buffer each would lose lines to one another.
//!
//! Nothing here waits for the rest of a line unless it was asked to: what somebody began to type just before a turn began,
//! or what the terminal answered late, is there without a line end.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What one read takes at most.
const READ_BYTES: usize = 64 * 1024;
const ESC: u8 = 0x1B;
const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7F;

/// The input. Clones are the same input.
#[derive(Clone)]
pub(super) struct Typed(Rc<RefCell<Inner>>);

struct Inner {
    bytes: Vec<u8>,
    is_terminal: bool,
    ended: bool,
    /// Whether the end is one for whoever asks next, too; Ctrl-D at a terminal tells it only once.
    stays_ended: bool,
}

impl Typed {
    /// Standard input as it is now.
    pub(super) fn new() -> Self {
        Self(Rc::new(RefCell::new(Inner {
            bytes: Vec::new(),
            is_terminal: io::stdin().is_terminal(),
            ended: false,
            stays_ended: false,
        })))
    }

    /// From now on the end of the input is told to everybody who asks: no line editor reads the terminal as well, whose
    /// own the end would be.
    pub(super) fn stay_ended(&self) {
        self.0.borrow_mut().stays_ended = true;
    }

    /// Whether somebody typed a line, or the end, that is there already. Lines of a pipe or a file are all there from the
    /// start: they are worked on one by one, not typed meanwhile.
    pub(super) fn is_ready(&self) -> bool {
        let mut inner = self.0.borrow_mut();
        if !inner.is_terminal {
            return false;
        }
        while inner.line_end().is_none() && !inner.ended && is_readable() {
            inner.fill();
        }
        inner.line_end().is_some() || inner.ended
    }

    /// The next line, however long it takes, without its end; `None` at the end of the input.
    pub(super) fn line(&self) -> Option<Vec<u8>> {
        let mut inner = self.0.borrow_mut();
        while inner.line_end().is_none() && !inner.ended {
            inner.fill();
        }
        let line = inner.take_line();
        if line.is_none() {
            inner.ended = inner.stays_ended;
        }
        line.map(|line| if inner.is_terminal { text_of(&line) } else { line })
    }

    /// What was typed and not taken, for the line editor to go on with.
    pub(super) fn rest(&self) -> String {
        let bytes = std::mem::take(&mut self.0.borrow_mut().bytes);
        let text = String::from_utf8_lossy(&text_of(&bytes)).replace('\r', "\n");
        text.trim_end_matches('\n').to_owned()
    }
}

impl Inner {
    /// Where the first line ends. Enter is a carriage return where it was pressed before the terminal was in its line mode.
    fn line_end(&self) -> Option<usize> {
        let ends = |byte: &u8| *byte == b'\n' || (self.is_terminal && *byte == b'\r');
        self.bytes.iter().position(ends)
    }

    /// Reads what there is, waiting for something. What cannot be read counts as the end.
    fn fill(&mut self) {
        let mut buffer = vec![0; READ_BYTES];
        match rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut buffer)) {
            Ok(count) if count > 0 => self.bytes.extend_from_slice(&buffer[..count]),
            _ => self.ended = true,
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.line_end() else {
            let rest = std::mem::take(&mut self.bytes);
            return (!rest.is_empty()).then_some(rest);
        };
        let rest = self.bytes.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.truncate(end);
        Some(line)
    }
}

/// Whether a read would give something at once.
fn is_readable() -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// The text among what a terminal sent: without the sequences of keys and of answers to questions, a backspace applied.
fn text_of(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            ESC => rest = behind_sequence(after),
            BACKSPACE | DELETE => while text.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {},
            b'\n' | b'\r' | b'\t' | b' '.. => text.push(first),
            _ => {}
        }
    }
    text
}

/// What follows an escape sequence, of which `rest` is what stands behind its ESC.
fn behind_sequence(rest: &[u8]) -> &[u8] {
    match rest.split_first() {
        Some((b'[', rest)) => {
            let end = rest.iter().position(|byte| (0x40..=0x7E).contains(byte));
            end.map_or(&[], |end| &rest[end + 1..])
        }
        // A key of the keypad, or one pressed with Alt.
        Some((b'O', rest)) => rest.get(1..).unwrap_or_default(),
        Some((_, rest)) => rest,
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(bytes: &[u8]) -> Inner {
        Inner {
            bytes: bytes.to_vec(),
            is_terminal: true,
            ended: false,
            stays_ended: false,
        }
    }

    #[test]
    fn lines_come_one_by_one_and_an_unfinished_one_stays() {
        let mut inner = terminal("one\rzw\u{f6}lf\nhal".as_bytes());
        assert_eq!(inner.take_line().unwrap(), b"one");
        assert_eq!(inner.take_line().unwrap(), "zw\u{f6}lf".as_bytes());
        assert_eq!(inner.line_end(), None);
        let typed = Typed(Rc::new(RefCell::new(inner)));
        assert_eq!(typed.rest(), "hal");
        assert_eq!(typed.rest(), "");
        let mut pipe = Inner {
            is_terminal: false,
            ..terminal(b"a\rb\nc")
        };
        assert_eq!(pipe.take_line().unwrap(), b"a\rb");
        assert_eq!(pipe.take_line().unwrap(), b"c");
        assert_eq!(pipe.take_line(), None);
    }

    #[test]
    fn only_text_is_left_of_what_a_terminal_sent() {
        for (sent, left) in [
            ("\x1b[12;40R", ""),
            ("ab\x1b[Ac\x1bOHd\x1bxe", "abcde"),
            ("a\u{4f60}\x7f\x7fb\x08", ""),
            ("a\tb\x00\x03", "a\tb"),
            ("cut\x1b[1;2", "cut"),
            ("cut\x1b", "cut"),
        ] {
            assert_eq!(text_of(sent.as_bytes()), left.as_bytes(), "{sent:?}");
        }
    }
}
