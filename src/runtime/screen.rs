//! What the client's terminal shows, for clients that asked for it: behind each event come the styled bytes it looks like.
//!
//! The renderer has no clock. Animations move only while the client polls, at most ten frames a second, and nothing runs
//! while the session is idle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::protocol::{Event, EventKind, EventQueue, Status, Theme};
use crate::runtime::bus::EventBus;
use crate::runtime::clock;
use crate::ui::prompt_line::{Prompt, prompt_ansi};
use crate::ui::render::{RenderChunk, Renderer};
use crate::ui::view::{View, ViewFrame};

/// The name of the mode on the prompt line.
const MODE: &str = "agent_smith";
/// How often an animation may move.
const FRAME: Duration = Duration::from_millis(100);

/// The screen of one client. Clones are the same screen.
#[derive(Clone)]
pub(super) struct Screen {
    renderer: Arc<Mutex<Renderer>>,
    queue: Arc<EventQueue>,
}

impl Screen {
    /// A screen whose pieces go to `queue`.
    pub fn new(renderer: Renderer, queue: &Arc<EventQueue>) -> Self {
        Self {
            renderer: Arc::new(Mutex::new(renderer)),
            queue: Arc::clone(queue),
        }
    }

    fn renderer(&self) -> MutexGuard<'_, Renderer> {
        // A panic in the renderer takes it off the bus; what it left is still good for prompt lines.
        self.renderer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what each event looks like behind it; behind those too that wait in the queue since before there was a screen
    /// (a mistake in the configuration is told so early).
    pub fn follow(&self, bus: &EventBus) {
        for event in self.queue.poll(Duration::ZERO) {
            let chunks = self.renderer().on_event(&event);
            let turn_id = event.turn_id.clone();
            self.queue.push(event);
            self.push(chunks, turn_id.as_deref());
        }
        let screen = self.clone();
        bus.subscribe(move |event| {
            let chunks = screen.renderer().on_event(event);
            screen.push(chunks, event.turn_id.as_deref());
        });
    }

    fn push(&self, chunks: Vec<RenderChunk>, turn_id: Option<&str>) {
        for RenderChunk { ansi, transient } in chunks {
            self.queue.push(Event {
                kind: EventKind::Render { ansi, transient },
                ts: clock::now_ms(),
                turn_id: turn_id.map(str::to_owned),
                source_role: None,
                job_id: None,
            });
        }
    }

    /// How long a client may wait for events before the next frame is due.
    pub fn patience(&self, timeout: Duration) -> Duration {
        if self.renderer().wants_tick() {
            timeout.min(FRAME)
        } else {
            timeout
        }
    }

    /// Lets time pass; a due frame goes to the queue.
    pub fn tick(&self) {
        let frame = self.renderer().tick(clock::now_ms());
        self.push(frame.into_iter().collect(), None);
    }

    /// The terminal has a new size.
    pub fn resize(&self, cols: u16, rows: u16) {
        let chunks = self.renderer().resize(cols, rows);
        self.push(chunks, None);
    }

    /// The client has new colours; gives what of them cannot be used, in sentences.
    pub fn set_theme(&self, theme: &Theme) -> Vec<String> {
        self.renderer()
            .set_theme(theme)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// A view's picture on this screen.
    pub fn frame(&self, view: &mut dyn View, rows: u16) -> ViewFrame {
        let renderer = self.renderer();
        view.frame(rows, renderer.page(), renderer.theme())
    }

    /// The prompt line for a status.
    pub fn prompt(&self, status: &Status) -> String {
        let renderer = self.renderer();
        let prompt = Prompt {
            mode: MODE,
            state: status.state,
            role: &status.role,
            model: &status.model,
            context_pct: status.context_pct,
            usage: &status.usage,
            queued: status.queued,
        };
        prompt_ansi(renderer.page(), renderer.theme(), &prompt)
    }
}
