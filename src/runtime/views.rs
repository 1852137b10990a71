//! The full-screen view that is open, if one is: keys go in, pictures come out as events.

use crate::error::{AgentError, ErrorKind};
use crate::protocol::EventKind;
use crate::runtime::bus::EventBus;
use crate::runtime::screen::Screen;
use crate::ui::view::{View, ViewAction};

/// The open view. One at a time: it fills the screen.
pub(super) struct Views {
    open: Option<(String, Box<dyn View>)>,
    opened: u64,
    rows: u16,
}

impl Views {
    /// None open, on a screen of `rows` rows.
    pub fn new(rows: u16) -> Self {
        Self {
            open: None,
            opened: 0,
            rows,
        }
    }

    /// Opens a view and shows its first picture; one that was open is closed.
    ///
    /// # Errors
    /// `policy` where the client draws nothing.
    pub fn open(&mut self, view: Box<dyn View>, screen: Option<&Screen>, bus: &EventBus) -> Result<(), AgentError> {
        let Some(screen) = screen else {
            let message = "this client has no screen to show it on";
            return Err(AgentError::new(ErrorKind::Policy, "no_screen", message).from_origin("runtime"));
        };
        self.opened += 1;
        let view_id = format!("view-{}", self.opened);
        bus.emit(EventKind::OpenView {
            view_id: view_id.clone(),
            title: view.title().to_owned(),
        });
        self.open = Some((view_id, view));
        self.draw(screen, bus, false);
        Ok(())
    }

    /// Gives a key to the view. Every key is answered by a picture, so that a client can wait for it.
    ///
    /// # Errors
    /// `policy` where no view of this id is open.
    pub fn key(&mut self, view_id: &str, key: &str, screen: Option<&Screen>, bus: &EventBus) -> Result<(), AgentError> {
        let (Some((_, view)), Some(screen)) = (self.open.as_mut().filter(|(id, _)| id == view_id), screen) else {
            let message = format!("there is no open view `{view_id}`");
            return Err(AgentError::new(ErrorKind::Policy, "no_view", message).from_origin("runtime"));
        };
        let closes = view.key(key) == ViewAction::Close;
        self.draw(screen, bus, closes);
        Ok(())
    }

    /// The screen has another size or other colours.
    pub fn redraw(&mut self, rows: Option<u16>, screen: &Screen, bus: &EventBus) {
        self.rows = rows.unwrap_or(self.rows);
        self.draw(screen, bus, false);
    }

    fn draw(&mut self, screen: &Screen, bus: &EventBus, closes: bool) {
        let Some((view_id, view)) = &mut self.open else { return };
        let mut frame = screen.frame(&mut **view, self.rows);
        frame.done |= closes;
        let done = frame.done;
        bus.emit(frame.into_event(view_id));
        if done {
            self.open = None;
        }
    }
}
