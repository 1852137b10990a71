//! Sending a request and waiting for the head of its answer: time limits, redirects, refusals.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, Response, Url};
use tokio::time::Instant;

use super::answer::{self, Limits};
use super::cassette::Tap;
use super::failure::{Code, Fault};
use super::pool::Pool;
use super::send::WatchedBody;
use crate::cancel::CancelToken;

/// The most of an error's body that is read, in bytes, and how long it is waited for.
const ERROR_BODY: usize = 256 * 1024;
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// Redirects that are followed, all within the same origin.
const REDIRECTS: usize = 3;

/// How often a request is sent again because the connection it went out on had been given up by the server.
const GIVEN_UP: usize = 3;

/// A request that is ready to be sent.
pub(crate) struct Outgoing<'a> {
    pub pool: &'a Pool,
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub limits: &'a Limits,
    /// The time limit for sending the body.
    pub send: Duration,
}

/// Why there is no answer: `None` is a cancellation.
pub(crate) type NoAnswer = Option<Box<Fault>>;

/// Why a request got no head of an answer.
enum Unsent {
    /// The connection could not be made, or broke.
    Broke(reqwest::Error),
    Other(NoAnswer),
}

impl Outgoing<'_> {
    /// Sends it and waits for the head of an answer that is no refusal.
    pub async fn exchange(mut self, mut tap: Option<&mut Tap>, cancel: &CancelToken) -> Result<Response, NoAnswer> {
        for _ in 0..=REDIRECTS {
            let response = self.send(cancel).await.inspect_err(|fault| {
                if let (Some(tap), Some(fault)) = (tap.as_deref_mut(), fault) {
                    tap.broke(fault);
                }
            })?;
            let status = response.status();
            if let Some(tap) = tap.as_deref_mut() {
                tap.head(status.as_u16(), |name| header_of(response.headers(), name));
            }
            if status.is_success() {
                return Ok(response);
            }
            if !status.is_redirection() {
                return Err(refusal(response, tap, cancel).await);
            }
            let to = header_of(response.headers(), LOCATION.as_str()).and_then(|to| self.url.join(&to).ok());
            match to {
                // A key goes to no other origin, and a body is not turned into a query.
                Some(to) if to.origin() == self.url.origin() && matches!(status.as_u16(), 307 | 308) => self.url = to,
                to => {
                    let place = to.map_or_else(|| "another address".to_owned(), |to| to.to_string());
                    let mut fault = Fault::new(Code::NotFound, format!("it redirects to {place}"))
                        .with_hint("set the address of the model server to the one it redirects to, if you trust it");
                    fault.data.insert("status".to_owned(), status.as_u16().into());
                    return Err(Some(fault.into()));
                }
            }
        }
        Err(Some(Fault::new(Code::NotFound, "it redirects in a circle").into()))
    }

    /// Sends it; once more where the connection had been used before and was closed before anything of an answer came.
    async fn send(&self, cancel: &CancelToken) -> Result<Response, NoAnswer> {
        let mut again = 0;
        loop {
            let dials = self.pool.dials.count();
            match self.send_once(cancel).await {
                Err(Unsent::Broke(error)) => {
                    let is_old = dials > 0 && self.pool.dials.count() == dials;
                    if !is_old || again == GIVEN_UP || error.is_timeout() {
                        return Err(Some(answer::transport(&error, "the request").into()));
                    }
                    again += 1;
                    tracing::debug!(%error, "the connection had been given up: the request goes out on another one");
                }
                Err(Unsent::Other(none)) => return Err(none),
                Ok(response) => return Ok(response),
            }
        }
    }

    async fn send_once(&self, cancel: &CancelToken) -> Result<Response, Unsent> {
        let mut request = self
            .pool
            .http
            .request(self.method.clone(), self.url.clone())
            .headers(self.headers.clone());
        let (body, progress) = WatchedBody::new(self.body.clone());
        if self.method == Method::POST {
            request = request.body(reqwest::Body::wrap(body));
        }
        let sending = request.send();
        tokio::pin!(sending);
        let begun = Instant::now();
        let answer_limit = self.limits.headers;
        let late = |what: String| Err(Unsent::Other(Some(Fault::new(Code::Timeout, what).into())));
        let mut wake = begun + answer_limit.min(self.send);
        loop {
            let now = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Unsent::Other(None)),
                response = &mut sending => return response.map_err(Unsent::Broke),
                () = tokio::time::sleep_until(wake) => Instant::now(),
            };
            let deadline = progress.deadline(self.send).map(Instant::from);
            if deadline.is_some_and(|deadline| now >= deadline) {
                return late(format!(
                    "the request was not taken within {}",
                    answer::seconds(self.send)
                ));
            }
            if now >= begun + answer_limit {
                return late(format!("no answer began within {}", answer::seconds(answer_limit)));
            }
            wake = deadline.unwrap_or(now + self.send).min(begun + answer_limit);
        }
    }
}

/// A refusal by status: reads why.
async fn refusal(mut response: Response, tap: Option<&mut Tap>, cancel: &CancelToken) -> NoAnswer {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY - body.len())]);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    // What came is enough where the rest does not come.
    let waited = tokio::time::timeout(ERROR_BODY_WAIT, reading);
    if cancel.run("llm", waited).await.is_err() {
        return None;
    }
    if let Some(tap) = tap {
        tap.piece(&Bytes::copy_from_slice(&body));
    }
    Some(Fault::from_response(status, |name| header_of(&headers, name), &body).into())
}

/// A header as text.
fn header_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}
