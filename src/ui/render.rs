//! The one writer: events in, pieces of styled text out.
//!
//! A piece is either permanent (whole lines, each ended by `\n`) or transient (lines without a line end behind the last:
//! the unfinished text, a spinner). A transient piece replaces the one before it, and whatever is written next, erases
//! it first; [`erase`] says how. Terminals without a cursor get no transient pieces.
//!
//! Nothing here looks at a clock or has a thread: time comes with the events and with [`Renderer::tick`], which the
//! caller need not call while [`Renderer::wants_tick`] is false. Whatever is called how often, an animation costs at most
//! ten frames a second, and a preview of unfinished text at most thirty.

use crate::protocol::{self, Event, EventKind, SessionState, StopReason, TermInfo, ToolFinish, TurnEnd};
use crate::ui::activity::{Activity, Running};
use crate::ui::element::role_element;
use crate::ui::line::{Line, Span};
use crate::ui::lines::{self, Call, Page, role_name};
use crate::ui::markdown::MarkdownStream;
use crate::ui::term::{self, Abilities, Var};
use crate::ui::theme::{Theme, ThemeProblem, ThemeSource};

/// Milliseconds between two frames of an animation.
const FRAME_MS: u64 = 100;
/// Milliseconds between two previews of text that arrives, at least.
const PREVIEW_MS: u64 = 33;
/// Bytes of an unfinished block that make previews one millisecond rarer: long blocks cost no more than short ones.
const PREVIEW_BYTES_PER_MS: usize = 64;

/// A piece to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderChunk {
    /// The bytes; control sequences only set styles and links.
    pub ansi: String,
    /// Whether the next piece replaces it.
    pub transient: bool,
}

/// The bytes that erase a transient piece the cursor stands behind.
#[must_use]
pub fn erase(transient: &str) -> String {
    if transient.is_empty() {
        return String::new();
    }
    match transient.matches('\n').count() {
        0 => "\r\x1b[J".to_owned(),
        up => format!("\r\x1b[{up}A\x1b[J"),
    }
}

/// What was printed last: different things are set apart by a blank line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Start,
    Label,
    Text,
    Tool,
    Note,
    Usage,
}

/// Turns the events of one session into what its terminal shows.
#[derive(Clone, Debug)]
pub struct Renderer {
    abilities: Abilities,
    source: ThemeSource,
    theme: Theme,
    page: Page,
    stream: MarkdownStream,
    /// The active role.
    role: String,
    surface: Surface,
    /// Whether the turn's label stands there already.
    labelled: bool,
    /// Whether the running request has shown text.
    text_shown: bool,
    /// The call whose line is the last one printed.
    last_call: Option<String>,
    activity: Activity,
    /// The latest time heard of.
    now: u64,
    /// When the last transient piece was made.
    drawn: u64,
    /// Text came that the last transient piece does not show.
    stale: bool,
    /// The transient piece on the screen.
    shown: String,
}

impl Renderer {
    /// A renderer for a terminal with these abilities.
    #[must_use]
    pub fn new(abilities: Abilities, source: ThemeSource) -> Self {
        let page = Page::of(&abilities);
        Self {
            theme: source.resolve(abilities.depth, abilities.attributes),
            stream: MarkdownStream::new(page.markdown()),
            page,
            abilities,
            source,
            role: String::new(),
            surface: Surface::Start,
            labelled: false,
            text_shown: false,
            last_call: None,
            activity: Activity::Idle,
            now: 0,
            drawn: 0,
            stale: false,
            shown: String::new(),
        }
    }

    /// A renderer for the terminal a client describes, with the built-in theme and the client's colours. `var` looks into
    /// the client's environment.
    ///
    /// # Errors
    /// Where the built-in theme cannot be read, which a test rules out.
    pub fn for_client(info: &TermInfo, var: Var<'_>, theme: &protocol::Theme) -> Result<Self, ThemeProblem> {
        let mut source = ThemeSource::built_in(if term::is_light(var) { "light" } else { "dark" })?;
        // What cannot be used of a client's theme is left out; the client hears of it from `set_theme`.
        let _ = source.overlay(theme);
        Ok(Self::new(Abilities::of(info, var), source))
    }

    /// The terminal's theme, for prompt lines and views.
    #[must_use]
    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// What lines are laid out for.
    #[must_use]
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// What the terminal may be sent.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Takes over new colours or styles. What cannot be used is returned; the rest holds from now on.
    pub fn set_theme(&mut self, theme: &protocol::Theme) -> Vec<ThemeProblem> {
        let problems = self.source.overlay(theme);
        self.theme = self.source.resolve(self.abilities.depth, self.abilities.attributes);
        problems
    }

    /// The terminal has a new size.
    pub fn resize(&mut self, cols: u16, rows: u16) -> Vec<RenderChunk> {
        self.abilities.cols = cols;
        self.abilities.rows = rows;
        self.page = Page::of(&self.abilities);
        self.stream.set_options(self.page.markdown());
        self.draw().into_iter().collect()
    }

    /// What an event changes on the screen.
    pub fn on_event(&mut self, event: &Event) -> Vec<RenderChunk> {
        self.now = self.now.max(event.ts);
        let mut out = Vec::new();
        let redraw = match &event.source_role {
            Some(role) => self.child_event(role, &event.kind, &mut out),
            None => self.event(&event.kind, &mut out),
        };
        let mut chunks = Vec::new();
        if !out.is_empty() {
            chunks.push(self.permanent(&out));
        }
        let due = redraw || !out.is_empty() || (self.stale && self.now.saturating_sub(self.drawn) >= self.preview_ms());
        if due {
            chunks.extend(self.draw());
        }
        chunks
    }

    /// Whether something moves, or unfinished text waits to be shown: only then [`Renderer::tick`] has an effect.
    #[must_use]
    pub fn wants_tick(&self) -> bool {
        self.abilities.cursor && (self.stale || self.activity.moves())
    }

    /// Lets time pass. `now` is on the clock of the events.
    pub fn tick(&mut self, now: u64) -> Option<RenderChunk> {
        if !self.wants_tick() || now.saturating_sub(self.drawn) < FRAME_MS {
            return None;
        }
        self.now = self.now.max(now);
        self.draw()
    }

    // What each event means. The answer is whether the transient part changes at once.

    fn event(&mut self, kind: &EventKind, out: &mut Vec<Line>) -> bool {
        match kind {
            EventKind::TurnStarted { role, .. } => self.turn_started(role),
            EventKind::LlmRequestStarted { .. } => {
                self.text_shown = false;
                self.activity = Activity::thinking(self.now);
            }
            EventKind::LlmThinkingDelta { text } => {
                self.activity.think(self.now, text);
                self.stale = true;
                return false;
            }
            EventKind::LlmTextDelta { text } => return self.text_delta(text, out),
            EventKind::LlmTextWasThinking {} => {
                // Its unfinished part need not be shown at all.
                self.stream = MarkdownStream::new(self.page.markdown());
                if std::mem::take(&mut self.text_shown) {
                    self.begin(Surface::Note, out);
                    out.extend(lines::remark(&self.page, "So far the model was thinking aloud."));
                }
                self.activity = Activity::thinking(self.now);
            }
            EventKind::LlmToolCallDetected { name, .. } => {
                self.end_text(out);
                self.activity = Activity::Calling {
                    name: name.clone(),
                    since: self.now,
                };
            }
            EventKind::LlmRequestCompleted(_) | EventKind::LlmRequestCancelled { .. } => {
                self.end_text(out);
                self.activity = Activity::Idle;
            }
            EventKind::LlmRetryScheduled {
                attempt,
                max,
                delay_ms,
                error,
            } => {
                self.end_text(out);
                self.begin(Surface::Note, out);
                out.extend(lines::retry(&self.page, *attempt, *max, *delay_ms, error));
                if std::mem::take(&mut self.text_shown) {
                    out.extend(lines::remark(
                        &self.page,
                        "What the answer had shown so far does not count.",
                    ));
                }
                self.activity = Activity::Waiting {
                    until: self.now.saturating_add(*delay_ms),
                };
            }
            EventKind::ToolExecutionStarted {
                call_id,
                name,
                arguments,
            } => {
                self.end_text(out);
                self.begin(Surface::Tool, out);
                out.push(lines::tool_call(&self.page, Call { name, arguments }));
                self.last_call = Some(call_id.clone());
                self.activity.start_tool(Running::new(call_id, name, self.now));
            }
            EventKind::ToolOutputDelta { call_id, text, .. } => {
                self.activity.tool_output(call_id, text);
                self.stale = true;
                return false;
            }
            EventKind::ToolExecutionFinished(finish) => self.tool_finished(finish, out),
            EventKind::ToolExecutionCancelled(outcome) => {
                let named = self.last_call.as_deref() != Some(&outcome.call_id);
                self.begin(Surface::Tool, out);
                out.push(lines::tool_cancelled(&self.page, outcome, named));
                self.activity.end_tool(&outcome.call_id);
            }
            EventKind::ContextTrimmed { layer, before, after } => {
                self.begin(Surface::Note, out);
                out.push(lines::trimmed(&self.page, layer, *before, *after));
            }
            EventKind::FilesChanged { files } => {
                self.end_text(out);
                self.begin(Surface::Note, out);
                out.extend(lines::changed_files(&self.page, files));
            }
            EventKind::TurnCompleted(end) | EventKind::TurnFailed(end) => self.turn_ended(end, out),
            EventKind::TurnCancelRequested { .. } => {
                self.activity = Activity::Cancelling { since: self.now };
            }
            // What a view or a dialog shows is its own answer.
            EventKind::CommandOutput { text, ok: true, .. } if text.is_empty() => {}
            EventKind::CommandOutput { command, text, ok, .. } => {
                self.begin(Surface::Note, out);
                out.extend(lines::command_result(&self.page, command, text, *ok));
            }
            EventKind::Notice { level, text, hint } => {
                self.begin(Surface::Note, out);
                out.extend(lines::notice(&self.page, *level, text, hint.as_deref()));
            }
            EventKind::Question {
                text, choices, default, ..
            } => {
                self.end_text(out);
                self.begin(Surface::Note, out);
                out.extend(lines::question(&self.page, text, choices, default.as_deref()));
                self.activity = Activity::Idle;
            }
            EventKind::InputQueued { text, queued } => {
                self.begin(Surface::Note, out);
                out.push(lines::queued(&self.page, text, *queued));
            }
            EventKind::InputSettled { .. } => {
                self.end_text(out);
                self.activity = Activity::Idle;
                // The next prompt sets what follows apart already.
                self.surface = Surface::Start;
            }
            EventKind::StatusChanged { state } => match state {
                SessionState::Idle | SessionState::Error | SessionState::Cancelled => {
                    self.end_text(out);
                    self.activity = Activity::Idle;
                }
                SessionState::Thinking if self.activity == Activity::Idle => {
                    self.activity = Activity::thinking(self.now);
                }
                SessionState::Thinking | SessionState::Streaming | SessionState::Tool => return false,
            },
            EventKind::PromptBuilt { .. }
            | EventKind::DispatchCancelRequested { .. }
            | EventKind::UsageUpdated { .. }
            | EventKind::TurnPersisted { .. }
            | EventKind::Prefill { .. }
            | EventKind::OpenView { .. }
            | EventKind::ViewFrame { .. }
            | EventKind::Render { .. }
            | EventKind::Notify { .. } => return false,
        }
        true
    }

    /// Of a delegated child the calls and the failures are shown, on lines that begin with its label.
    fn child_event(&mut self, role: &str, kind: &EventKind, out: &mut Vec<Line>) -> bool {
        let mut labelled = |page: &Page, mut line: Line| {
            line.spans.insert(0, Span::new(role_name(role), role_element(role)));
            line.spans.insert(1, Span::pad(1));
            line.truncate(page.width, page.ellipsis());
            out.push(line);
        };
        match kind {
            EventKind::ToolExecutionStarted { name, arguments, .. } => {
                labelled(&self.page, lines::tool_call(&self.page, Call { name, arguments }));
            }
            EventKind::ToolExecutionFinished(finish) if !finish.ok => {
                labelled(&self.page, lines::tool_result(&self.page, finish, true));
            }
            EventKind::LlmRetryScheduled {
                attempt,
                max,
                delay_ms,
                error,
            } => {
                for line in lines::retry(&self.page, *attempt, *max, *delay_ms, error) {
                    labelled(&self.page, line);
                }
            }
            EventKind::TurnFailed(TurnEnd { error: Some(error), .. }) => {
                for line in lines::error(&self.page, error) {
                    labelled(&self.page, line);
                }
            }
            _ => return false,
        }
        self.surface = Surface::Tool;
        self.last_call = None;
        true
    }

    fn turn_started(&mut self, role: &str) {
        role.clone_into(&mut self.role);
        self.surface = Surface::Start;
        self.labelled = false;
        self.text_shown = false;
        self.last_call = None;
        self.activity = Activity::thinking(self.now);
    }

    fn text_delta(&mut self, text: &str, out: &mut Vec<Line>) -> bool {
        let finished = self.stream.push(text);
        let first = !self.text_shown && !text.trim().is_empty();
        if first || !finished.is_empty() {
            self.text_shown = true;
            self.begin(Surface::Text, out);
            out.extend(finished);
        }
        let starts = self.activity != Activity::Streaming;
        self.activity = Activity::Streaming;
        self.stale = true;
        starts
    }

    /// The text is complete: what was unfinished of it becomes permanent.
    fn end_text(&mut self, out: &mut Vec<Line>) {
        if self.stream.is_empty() {
            return;
        }
        let rest = self.stream.finish();
        if !rest.is_empty() {
            self.begin(Surface::Text, out);
            out.extend(rest);
        }
        self.stale = false;
    }

    fn tool_finished(&mut self, finish: &ToolFinish, out: &mut Vec<Line>) {
        let named = self.last_call.as_deref() != Some(&finish.outcome.call_id);
        self.begin(Surface::Tool, out);
        out.extend(lines::tool_finished(&self.page, finish, named));
        self.activity.end_tool(&finish.outcome.call_id);
    }

    fn turn_ended(&mut self, end: &TurnEnd, out: &mut Vec<Line>) {
        self.end_text(out);
        match (&end.error, end.stop_reason) {
            (_, StopReason::Cancelled) => {
                self.begin(Surface::Note, out);
                out.push(lines::cancelled(&self.page));
            }
            (Some(error), _) => {
                self.begin(Surface::Note, out);
                out.extend(lines::error(&self.page, error));
            }
            (None, _) => {}
        }
        if end.usage.requests > 0 {
            self.begin(Surface::Usage, out);
            out.push(lines::usage(&self.page, &end.usage, end.duration_ms));
        }
        self.activity = Activity::Idle;
    }

    /// Something of another kind is printed: a blank line sets it apart. The turn's first words come under its label.
    fn begin(&mut self, surface: Surface, out: &mut Vec<Line>) {
        if matches!(surface, Surface::Text | Surface::Tool) && !std::mem::replace(&mut self.labelled, true) {
            self.set_apart(Surface::Label, out);
            out.push(lines::role_label(&self.page, &self.role));
        }
        self.set_apart(surface, out);
        self.last_call = None;
    }

    fn set_apart(&mut self, surface: Surface, out: &mut Vec<Line>) {
        let before = std::mem::replace(&mut self.surface, surface);
        let joined = before == surface
            || matches!(before, Surface::Start | Surface::Label)
            || (surface == Surface::Usage && before != Surface::Text);
        if !joined {
            out.push(Line::new());
        }
    }

    // Pieces.

    fn preview_ms(&self) -> u64 {
        PREVIEW_MS + u64::try_from(self.stream.unfinished() / PREVIEW_BYTES_PER_MS).unwrap_or(u64::MAX / 2)
    }

    fn permanent(&mut self, lines: &[Line]) -> RenderChunk {
        let mut ansi = String::new();
        for line in lines {
            line.write_ansi(&self.theme, &mut ansi);
            ansi.push('\n');
        }
        // The client has erased the transient piece before it writes this.
        self.shown.clear();
        RenderChunk { ansi, transient: false }
    }

    /// The transient piece, if it differs from the one on the screen.
    fn draw(&mut self) -> Option<RenderChunk> {
        self.drawn = self.now;
        self.stale = false;
        if !self.abilities.cursor {
            return None;
        }
        let mut lines = self.stream.preview();
        if lines.is_empty() {
            lines = self.activity.lines(&self.page, self.now);
        }
        // What is taller than the screen could not be erased.
        let most = usize::from(self.abilities.rows.max(3)) - 2;
        let skip = lines.len().saturating_sub(most);
        let pieces: Vec<String> = lines[skip..].iter().map(|line| line.ansi(&self.theme)).collect();
        let ansi = pieces.join("\n");
        if ansi == self.shown {
            return None;
        }
        self.shown.clone_from(&ansi);
        Some(RenderChunk { ansi, transient: true })
    }
}

#[cfg(test)]
mod tests;
