//! `bash`: a command in its own session, its output as it comes, its end within a known time.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::args::parse;
use super::context::{ToolContext, ToolProgress};
use super::result::{ToolError, ToolOutput};
use super::spec::{Renderer, ToolSpec};
use crate::process::{
    Captured, CommandSpec, Ending, Environment, ExitStatus, Finished, OutputDelta, OutputLimits, RunLimits, RunSpec,
    find_program, run,
};

/// Variables that keep programs from waiting for somebody: pagers, editors, password prompts, colours.
const QUIET: [(&str, &str); 10] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "cmd", alias = "script")]
    command: String,
    timeout: Option<f64>,
}

pub(super) struct Tool {
    spec: ToolSpec,
}

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self {
            spec: ToolSpec::mutating::<Args>("bash", description, Renderer::Shell),
        }
    }
}

impl super::Tool for Tool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, ctx: &'a ToolContext, args: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = parse::<Args>(&self.spec, args)?;
            let timeout = match args.timeout {
                Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds)
                    .map_or(ctx.limits.bash_timeout_max, |timeout| {
                        timeout.min(ctx.limits.bash_timeout_max)
                    }),
                _ => ctx.limits.bash_timeout,
            };
            let progress = Arc::clone(&ctx.progress);
            let watch = move |OutputDelta { text, skipped }| progress(ToolProgress::Output { text, skipped });
            let finished = run(spec(ctx, &args.command, timeout)?, &ctx.cancel, watch)
                .await
                .map_err(|error| ToolError::to_model("spawn", error.to_string()))?;
            Ok(tell(&args.command, timeout, &finished))
        })
    }
}

/// The environment of a command: the turn's, without what it must not see, and quiet.
fn environment(ctx: &ToolContext) -> Environment {
    ctx.env
        .scrubbed(&ctx.limits.scrub_env)
        .with_changes(QUIET.map(|(name, value)| (name, Some(value))))
}

fn spec(ctx: &ToolContext, command: &str, timeout: Duration) -> Result<RunSpec, ToolError> {
    let shell = find_program("bash", &ctx.env)
        .or_else(|| find_program("sh", &ctx.env))
        .ok_or_else(|| ToolError::to_model("no_shell", "There is neither `bash` nor `sh` in PATH."))?;
    Ok(RunSpec {
        command: CommandSpec {
            program: shell,
            args: vec![OsString::from("-c"), OsString::from(command)],
            cwd: ctx.cwd.clone(),
            env: environment(ctx),
        },
        limits: RunLimits {
            timeout: Some(timeout),
            kill_grace: ctx.limits.kill_grace,
            ..RunLimits::default()
        },
        output: OutputLimits {
            head: ctx.limits.output_chars / 2,
            tail: ctx.limits.output_chars / 2,
            file: ctx.limits.output_file_bytes,
            directory: ctx.output_dir(),
            name: file_name(&ctx.turn_id, &ctx.call_id),
        },
    })
}

/// A name for a call's output file that is a plain file name whatever the ids are.
fn file_name(turn_id: &str, call_id: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(40)
            .collect()
    };
    match (plain(turn_id), plain(call_id)) {
        (turn, call) if turn.is_empty() && call.is_empty() => "output".to_owned(),
        (turn, call) => format!("{turn}-{call}"),
    }
}

fn tell(command: &str, timeout: Duration, finished: &Finished) -> ToolOutput {
    let seconds = finished.duration.as_secs_f64();
    let (headline, failure) = match (finished.ending, finished.status) {
        (Ending::Cancelled, _) => (format!("Cancelled after {seconds:.1} s."), None),
        (Ending::TimedOut, _) => (
            format!(
                "Killed after its timeout of {} s. Ask for more with `timeout` if it needs more.",
                timeout.as_secs_f64()
            ),
            Some("timeout"),
        ),
        (Ending::Exited, ExitStatus::Code(0)) => (String::new(), None),
        (Ending::Exited, ExitStatus::Code(code)) => (format!("Exit code {code}."), Some("exit_code")),
        (Ending::Exited, ExitStatus::Signal(signal)) => (
            format!("Ended by signal {signal} ({}).", signal_name(signal)),
            Some("signal"),
        ),
        (Ending::Exited, ExitStatus::Unknown) => (
            "Ended; its status is unknown because something else collected it.".to_owned(),
            None,
        ),
    };
    let mut text = output_text(&finished.output);
    if !finished.survivors.is_empty() {
        let list: Vec<String> = finished
            .survivors
            .iter()
            .map(|survivor| format!("{} ({})", survivor.pid, survivor.command))
            .collect();
        push_line(&mut text, &format!("[Still running: {}.]", list.join(", ")));
    }
    if let Some(hint) = hint(command, &finished.output, finished.status) {
        push_line(&mut text, &format!("[{hint}]"));
    }
    if !headline.is_empty() {
        push_line(&mut text, &format!("[{headline}]"));
    }
    if text.is_empty() {
        text.push_str("[No output.]");
    }
    let mut output = ToolOutput::text(text)
        .with("command", command)
        .with(
            "duration_ms",
            u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        )
        .with("output_bytes", finished.output.bytes)
        .with("output_lines", finished.output.lines);
    match finished.status {
        ExitStatus::Code(code) => output = output.with("exit_code", code),
        ExitStatus::Signal(signal) => output = output.with("signal", signal),
        ExitStatus::Unknown => {}
    }
    if let Some(path) = &finished.output.path {
        output = output.with("output_file", path.to_string_lossy());
    }
    if !finished.survivors.is_empty() {
        let pids: Vec<i32> = finished.survivors.iter().map(|survivor| survivor.pid).collect();
        output = output.with("survivors", pids);
    }
    output.interrupted = finished.ending == Ending::Cancelled;
    match failure {
        Some(code) => output.failed(code, headline),
        None => output,
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// The output as the model reads it. What was left out of the middle is said in one line that names the file and the
/// place in it, so that it is not taken for output.
fn output_text(output: &Captured) -> String {
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

/// What to try instead where a command needed somebody to answer.
fn hint(command: &str, output: &Captured, status: ExitStatus) -> Option<&'static str> {
    if status.success() {
        return None;
    }
    let tail = if output.tail.is_empty() {
        &output.head
    } else {
        &output.tail
    };
    let tail = String::from_utf8_lossy(&tail[tail.len().saturating_sub(2_000)..]);
    if command.contains("sudo") && (tail.contains("a terminal is required") || tail.contains("a password is required"))
    {
        Some("sudo cannot ask for a password here: there is no terminal. Do without it, or ask the user to run it.")
    } else if tail.contains("could not read Username") || tail.contains("terminal prompts disabled") {
        Some("git cannot ask for credentials here. Ask the user to set them up.")
    } else {
        None
    }
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

    #[test]
    fn output_files_have_plain_names() {
        assert_eq!(file_name("t/../1", "call:a b"), "t____1-call_a_b");
        assert_eq!(file_name("", ""), "output");
    }
}
