//! A terminal for the executable: a pseudo-terminal, the screen a person would see (vt100), and the answers a real
//! terminal gives to the questions programs ask it.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::gates::PATIENCE;
use super::home::Home;

/// The end of the mode's prompt.
pub const PROMPT: &str = "❯";

/// How often a wait looks at the screen.
const LOOK: Duration = Duration::from_millis(5);

/// Which questions the terminal answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Cursor position, device attributes, keyboard flags.
    All,
    /// None: a terminal that keeps silent.
    None,
}

/// The terminal with the program in it.
pub struct Pty {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    pending: Vec<u8>,
    answers: Answers,
    /// Everything the program wrote.
    pub raw: Vec<u8>,
    ended: bool,
}

/// How a program was started.
pub struct PtyOptions<'a> {
    pub arguments: &'a [&'a str],
    pub env: &'a [(&'a str, &'a str)],
    pub size: (u16, u16),
    pub answers: Answers,
}

impl Default for PtyOptions<'_> {
    fn default() -> Self {
        Self {
            arguments: &[],
            env: &[],
            size: (24, 80),
            answers: Answers::All,
        }
    }
}

impl Pty {
    /// The executable without arguments, in `home`, on a terminal of 24 rows and 80 columns.
    pub fn shell(home: &Home) -> Self {
        Self::start(home, &PtyOptions::default())
    }

    /// The executable in `home`.
    pub fn start(home: &Home, options: &PtyOptions<'_>) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_agent-smith"));
        command.args(options.arguments);
        command.env_clear();
        let usual = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/sh")];
        for (name, value) in usual.iter().chain(options.env) {
            command.env(name, value);
        }
        for (name, value) in home.env() {
            command.env(name, value);
        }
        command.cwd(home.project());
        Self::spawn(command, options.size, options.answers)
    }

    /// Any program.
    pub fn spawn(command: CommandBuilder, (rows, cols): (u16, u16), answers: Answers) -> Self {
        let pair = native_pty_system().openpty(size(rows, cols)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keyboard: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
            output,
            parser: vt100::Parser::new(cells(rows), cells(cols), 1000),
            pending: Vec::new(),
            answers,
            raw: Vec::new(),
            ended: false,
        }
    }

    /// Types `text` as it is; `\r` is Enter.
    pub fn send(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Types a line and Enter.
    pub fn line(&mut self, text: &str) {
        self.send(text);
        self.send("\r");
    }

    /// Pastes as a terminal with bracketed paste does.
    pub fn paste(&mut self, text: &str) {
        self.send(&format!("\x1b[200~{text}\x1b[201~"));
    }

    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).unwrap();
        self.parser.screen_mut().set_size(cells(rows), cells(cols));
    }

    /// Takes in what the program writes for `time`, answering its questions.
    pub fn pump(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.pending.extend_from_slice(bytes);
        // What a program asks, it asks at a place: everything before the question is on the screen first.
        const QUESTIONS: [&[u8]; 4] = [b"\x1b[6n", b"\x1b[c", b"\x1b[?u", b"\x1b[>0q"];
        loop {
            let asked = QUESTIONS
                .iter()
                .filter_map(|question| find(&self.pending, question).map(|at| (at, *question)))
                .min();
            let Some((at, question)) = asked else { break };
            let rest = self.pending.split_off(at + question.len());
            let before = std::mem::replace(&mut self.pending, rest);
            self.parser.process(&before[..at]);
            if self.answers == Answers::All {
                let (row, col) = self.parser.screen().cursor_position();
                let answer = match question {
                    b"\x1b[6n" => format!("\x1b[{};{}R", row + 1, col + 1),
                    b"\x1b[c" => "\x1b[?62;c".to_owned(),
                    b"\x1b[?u" => "\x1b[?0u".to_owned(),
                    _ => String::new(),
                };
                let _ = self.keyboard.write_all(answer.as_bytes());
                let _ = self.keyboard.flush();
            }
        }
        // A question may be cut in two by the pipe: its beginning waits.
        let tail = self.pending.iter().rposition(|byte| *byte == 0x1b);
        let keep = tail
            .filter(|at| self.pending.len() - at < 5)
            .unwrap_or(self.pending.len());
        let rest = self.pending.split_off(keep);
        let whole = std::mem::replace(&mut self.pending, rest);
        self.parser.process(&whole);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// The last line on the screen that is not empty.
    pub fn last_line(&self) -> String {
        let screen = self.screen();
        let line = screen.lines().rev().find(|line| !line.trim().is_empty());
        line.unwrap_or_default().to_owned()
    }

    /// What the program wrote, with its escape sequences, from byte `from` on.
    pub fn written(&self, from: usize) -> String {
        String::from_utf8_lossy(&self.raw[from..]).into_owned()
    }

    /// Waits until the screen fits.
    #[track_caller]
    pub fn wait(&mut self, what: &str, mut fits: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        loop {
            self.pump(LOOK);
            if fits(self) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE && !self.ended,
                "waited for {what}; the program {}; the screen:\n{}",
                if self.ended { "ended" } else { "runs" },
                self.screen()
            );
        }
    }

    /// Waits until `text` is on the screen.
    #[track_caller]
    pub fn see(&mut self, text: &str) {
        self.wait(&format!("{text:?}"), |pty| pty.screen().contains(text));
    }

    /// Waits until the prompt is there and nothing more is written.
    #[track_caller]
    pub fn at_prompt(&mut self, prompt: &str) {
        self.wait(&format!("the prompt {prompt:?}"), |pty| {
            pty.last_line().trim_end().ends_with(prompt.trim_end()) && pty.is_raw()
        });
    }

    /// Whether the second screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Whether keys come one by one.
    pub fn is_raw(&self) -> bool {
        let modes = self.master.get_termios().unwrap();
        modes.local_flags.bits() & libc::ICANON == 0
    }

    /// Whether the terminal is as a shell expects it: lines, echo, signals, line ends, the first screen, a cursor.
    #[track_caller]
    pub fn assert_sane(&self) {
        let modes = self.master.get_termios().unwrap();
        let local = modes.local_flags.bits();
        for (name, flag) in [("ICANON", libc::ICANON), ("ECHO", libc::ECHO), ("ISIG", libc::ISIG)] {
            assert!(local & flag != 0, "{name} is off; the screen:\n{}", self.screen());
        }
        assert!(modes.output_flags.bits() & libc::OPOST != 0, "OPOST is off");
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "the second screen is on");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is on");
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits for the end of the program; its exit code, or 128 and the signal.
    #[track_caller]
    pub fn end(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            self.pump(LOOK);
            if let Some(status) = self.child.try_wait().unwrap() {
                // What it wrote last.
                self.pump(Duration::from_millis(30));
                return match status.signal() {
                    Some(_) => 128,
                    None => status.exit_code(),
                };
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "it does not end; the screen:\n{}",
                self.screen()
            );
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Leaves the shell by Ctrl-D.
#[track_caller]
pub fn leave(mut pty: Pty) {
    pty.send("\x04");
    assert_eq!(pty.end(), 0);
    pty.assert_sane();
}

/// A side of a screen, which has at least one cell.
pub fn cells(count: u16) -> std::num::NonZeroU16 {
    std::num::NonZeroU16::new(count).unwrap()
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
