//! The request's body on its way out: handed over in slices, so that it is known when it is all sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The size of a slice in bytes.
const SLICE: usize = 64 * 1024;

/// A body whose progress can be watched. Slices share the bytes; nothing is copied.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    rest: Bytes,
    progress: Progress,
}

/// How far the sending of a body is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    started: OnceLock<Instant>,
    sent: AtomicBool,
}

impl Progress {
    /// When sending must be done, if it has begun and is not.
    pub fn deadline(&self, limit: Duration) -> Option<Instant> {
        if self.0.sent.load(Ordering::Acquire) {
            return None;
        }
        self.0.started.get().map(|started| *started + limit)
    }
}

impl WatchedBody {
    pub fn new(bytes: Bytes) -> (Self, Progress) {
        let progress = Progress::default();
        let body = Self {
            rest: bytes,
            progress: progress.clone(),
        };
        (body, progress)
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.progress.0.started.get_or_init(Instant::now);
        if self.rest.is_empty() {
            self.progress.0.sent.store(true, Ordering::Release);
            return Poll::Ready(None);
        }
        let count = self.rest.len().min(SLICE);
        let slice = self.rest.split_to(count);
        if self.rest.is_empty() {
            self.progress.0.sent.store(true, Ordering::Release);
        }
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
