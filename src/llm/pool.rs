//! The pool of connections to one server, and how many were made: so that it is known whether a request went out on one
//! that had been used before.
//!
//! A server closes a connection that it thinks idle, and a request may cross that on the way: it fails though nothing is
//! wrong. llama.cpp does so after each answer that took more than five seconds. Browsers send such a request once more, on a
//! new connection; so do we.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// How many connections were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dials(Arc<AtomicUsize>);

impl Dials {
    /// So far.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A client with its pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub http: reqwest::Client,
    pub dials: Dials,
}

impl<S> Layer<S> for Dials {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            dials: self.clone(),
        }
    }
}

/// What makes connections, counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    inner: S,
    dials: Dials,
}

impl<S: Service<R>, R> Service<R> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, to: R) -> S::Future {
        self.dials.0.fetch_add(1, Ordering::SeqCst);
        self.inner.call(to)
    }
}
