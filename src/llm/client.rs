//! The client of one server: builds the request, sends it, reads the answer, and says what went wrong.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, Url};
use tokio::time::Instant;

use super::answer::{self, Limits};
use super::calls::Offered;
use super::failure::{Code, Fault};
use super::http::{self, Endpoint};
use super::provider::{BoxFuture, ChatRequest, ChatResponse, LlmFailure, Provider, StreamEvent};
use super::quirks::{EffortForm, MaxTokens, Quirks, ReasoningEcho};
use super::request;
use super::secret::Secret;
use super::send::WatchedBody;
use super::settings::ClientConfig;
use crate::cancel::CancelToken;
use crate::error::AgentError;

/// The most of an error's body that is read, in bytes, and how long it is waited for.
const ERROR_BODY: usize = 256 * 1024;
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// Redirects that are followed, all within the same origin.
const REDIRECTS: usize = 3;

/// The client of one server. Connections are pooled and kept alive; a clone of an `Arc` of it is what to share.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    endpoint: Endpoint,
    /// Built at first use: for an encrypted address that reads the system's certificates.
    http: OnceLock<Result<reqwest::Client, AgentError>>,
    secrets: Vec<Secret>,
    /// Members this server refused by name; they are left out from then on.
    refused: Mutex<BTreeSet<String>>,
    last_body: AtomicUsize,
}

impl Client {
    /// A client for the configured server. Nothing is sent or read yet.
    ///
    /// # Errors
    /// Where the address, a proxy, the key or a header cannot be used.
    pub fn new(config: ClientConfig) -> Result<Self, AgentError> {
        let endpoint = Endpoint::parse(&config.api_url)?;
        http::headers(&config, Quirks::default().key_header)?;
        http::check_proxies(&config.proxies)?;
        let mut secrets: Vec<Secret> = config.api_key.iter().cloned().collect();
        secrets.extend(config.extra_headers.values().map(Secret::new));
        Ok(Self {
            config,
            endpoint,
            http: OnceLock::new(),
            secrets,
            refused: Mutex::default(),
            last_body: AtomicUsize::new(4096),
        })
    }

    /// Host and port of the server, for people.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.endpoint.server
    }

    /// The deviations in force for `model`.
    #[must_use]
    pub fn quirks(&self, model: &str) -> Quirks {
        let known = self.config.quirks.clone();
        let mut quirks = known.unwrap_or_else(|| Quirks::lookup(&self.endpoint.host, model));
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for name in refused.iter() {
            leave_out(&mut quirks, name);
        }
        quirks
    }

    /// What a message from `model` at this server is marked with.
    #[must_use]
    pub fn served_by(&self, model: &str) -> String {
        format!("{model}@{}", self.endpoint.host)
    }

    fn http(&self) -> Result<&reqwest::Client, AgentError> {
        self.http
            .get_or_init(|| http::build(&self.config, &self.endpoint))
            .as_ref()
            .map_err(Clone::clone)
    }

    async fn run(
        &self,
        request: ChatRequest<'_>,
        sink: &mut (dyn FnMut(StreamEvent) + Send),
        cancel: &CancelToken,
    ) -> Result<ChatResponse, LlmFailure> {
        cancel.check("llm")?;
        let quirks = self.quirks(request.model);
        let served_by = self.served_by(request.model);
        let capacity = self.last_body.load(Ordering::Relaxed) * 5 / 4;
        let body = request::body(&request, &quirks, &served_by, capacity)
            .map_err(|error| AgentError::internal("llm", "The request could not be written.").with_cause(&error))?;
        self.last_body.store(body.len(), Ordering::Relaxed);

        let limits = Limits::new(&self.config.timeouts, request.stream);
        let accept = if request.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let mut headers = http::headers(&self.config, quirks.key_header)?;
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if request.stream {
            // Compression on the way holds events back.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let response = self
            .exchange(
                &Method::POST,
                &self.endpoint.chat,
                &headers,
                body.into(),
                &limits,
                cancel,
            )
            .await?;
        sink(StreamEvent::HeadersReceived);
        let offered = Offered(request.tools);
        let outcome = answer::read(response, offered, request.messages.len(), &limits, sink, cancel).await;
        match outcome {
            Ok(mut response) => {
                response.message.served_by = Some(served_by);
                Ok(response)
            }
            Err(broken) => Err(self.failure(*broken, &served_by)),
        }
    }

    /// Sends a request and waits for the headers of an answer that is none of failure.
    pub(crate) async fn exchange(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
        limits: &Limits,
        cancel: &CancelToken,
    ) -> Result<Response, LlmFailure> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let response = self.send(method, &url, headers, body.clone(), limits, cancel).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if status.is_redirection() {
                let to = response
                    .headers()
                    .get(LOCATION)
                    .and_then(|value| value.to_str().ok())
                    .and_then(|to| url.join(to).ok());
                match to {
                    // A key goes to no other origin, and a body is not turned into a query.
                    Some(to) if to.origin() == url.origin() && matches!(status.as_u16(), 307 | 308) => {
                        url = to;
                        continue;
                    }
                    to => {
                        let place = to.map_or_else(|| "another address".to_owned(), |to| to.to_string());
                        let mut fault = Fault::new(Code::NotFound, format!("it redirects to {place}")).with_hint(
                            "set the address of the model server to the one it redirects to, if you trust it",
                        );
                        fault.data.insert("status".to_owned(), status.as_u16().into());
                        return Err(self.fail(fault).into());
                    }
                }
            }
            return Err(self.refusal(response, cancel).await);
        }
        let fault = Fault::new(Code::NotFound, "it redirects in a circle");
        Err(self.fail(fault).into())
    }

    async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Bytes,
        limits: &Limits,
        cancel: &CancelToken,
    ) -> Result<Response, LlmFailure> {
        let mut request = self
            .http()?
            .request(method.clone(), url.clone())
            .headers(headers.clone());
        let (body, progress) = WatchedBody::new(body);
        if *method == Method::POST {
            request = request.body(reqwest::Body::wrap(body));
        }
        let sending = request.send();
        tokio::pin!(sending);
        let begun = Instant::now();
        let send_limit = self.config.timeouts.send;
        let mut wake = begun + limits.headers.min(send_limit);
        loop {
            let timed = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(AgentError::cancelled("llm").into()),
                response = &mut sending => {
                    return response.map_err(|error| self.fail(answer::transport(&error, "the request")).into());
                }
                () = tokio::time::sleep_until(wake) => Instant::now(),
            };
            if progress
                .deadline(send_limit)
                .is_some_and(|deadline| timed >= deadline.into())
            {
                let detail = format!("the request was not taken within {}", answer::seconds(send_limit));
                return Err(self.fail(Fault::new(Code::Timeout, detail)).into());
            }
            if timed >= begun + limits.headers {
                let detail = format!("no answer began within {}", answer::seconds(limits.headers));
                return Err(self.fail(Fault::new(Code::Timeout, detail)).into());
            }
            let next = progress.deadline(send_limit).map_or(timed + send_limit, Instant::from);
            wake = next.min(begun + limits.headers);
        }
    }

    /// A refusal by status: reads why.
    async fn refusal(&self, mut response: Response, cancel: &CancelToken) -> LlmFailure {
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
        let waited = tokio::time::timeout(ERROR_BODY_WAIT, reading);
        // What came is enough where the rest does not come.
        if cancel.run("llm", waited).await.is_err() {
            return AgentError::cancelled("llm").into();
        }
        let header = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let mut fault = Fault::from_response(status, header, &body);
        if fault.code == Code::BadRequest
            && let Some(name) = self.learn(&fault)
        {
            fault.hint = Some(format!("{name} is left out from now on: try again"));
        }
        self.fail(fault).into()
    }

    /// Notes an optional member that the server refuses by name, so that the next request does without it.
    fn learn(&self, fault: &Fault) -> Option<String> {
        let named = fault.data.get("param").and_then(|param| param.as_str());
        let words = fault.detail.to_ascii_lowercase();
        let refuses = [
            "unrecognized",
            "unknown",
            "unsupported",
            "not supported",
            "unexpected",
            "extra",
            "not permitted",
            "not allowed",
            "does not support",
        ]
        .iter()
        .any(|word| words.contains(word));
        let name = OPTIONAL_MEMBERS
            .iter()
            .find(|name| named == Some(**name) || refuses && words.contains(**name))
            .filter(|_| refuses)?;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert((*name).to_owned());
        Some((*name).to_owned())
    }

    fn fail(&self, mut fault: Fault) -> AgentError {
        if fault.hint.is_none() {
            fault.hint = self.hint(fault.code);
        }
        for secret in &self.secrets {
            fault.detail = secret.scrub(fault.detail);
            fault.cause = fault.cause.map(|cause| secret.scrub(cause));
            let data = serde_json::to_string(&fault.data).unwrap_or_default();
            if data.contains(secret.expose()) && !secret.is_empty() {
                fault.data = serde_json::from_str(&secret.scrub(data)).unwrap_or_default();
            }
        }
        fault.into_error(&self.endpoint.server)
    }

    fn failure(&self, broken: answer::Broken, served_by: &str) -> LlmFailure {
        let retry_after = broken.fault.as_ref().and_then(|fault| fault.retry_after);
        let error = match broken.fault {
            Some(fault) => self.fail(*fault),
            None => AgentError::cancelled("llm"),
        };
        let partial = broken.partial.map(|mut partial| {
            partial.message.served_by = Some(served_by.to_owned());
            partial.message.incomplete = true;
            partial
        });
        LlmFailure {
            error,
            partial,
            retry_after,
            emitted_output: broken.emitted,
        }
    }

    fn hint(&self, code: Code) -> Option<String> {
        let hint = match code {
            Code::Auth => match (&self.config.api_key_name, &self.config.api_key) {
                (Some(name), Some(_)) => format!("check the key in {name}"),
                (Some(name), None) => format!("set {name} to the server's API key"),
                (None, _) => "check the API key".to_owned(),
            },
            Code::NotFound => "check the model's name and the server's address (is /v1 missing or doubled?)".to_owned(),
            Code::ContextLength => "start anew or shorten the conversation".to_owned(),
            Code::Quota => "check the account's billing".to_owned(),
            Code::Connection => "is the server running, and the network up?".to_owned(),
            _ => return None,
        };
        Some(hint)
    }
}

/// Members of a request that a server may refuse and that can be done without.
const OPTIONAL_MEMBERS: [&str; 8] = [
    "stream_options",
    "parallel_tool_calls",
    "reasoning_effort",
    "max_completion_tokens",
    "max_tokens",
    "reasoning_content",
    "reasoning_details",
    "temperature",
];

fn leave_out(quirks: &mut Quirks, name: &str) {
    match name {
        "stream_options" => quirks.stream_options = false,
        "parallel_tool_calls" => quirks.parallel_tool_calls = false,
        "reasoning_effort" => quirks.effort = EffortForm::Off,
        "max_completion_tokens" => quirks.max_tokens = MaxTokens::MaxTokens,
        "max_tokens" => quirks.max_tokens = MaxTokens::MaxCompletionTokens,
        "reasoning_content" => quirks.reasoning = ReasoningEcho::Never,
        "reasoning_details" => quirks.details = false,
        "temperature" => quirks.sampling = false,
        _ => {}
    }
}

impl Provider for Client {
    fn chat<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: &'a mut (dyn FnMut(StreamEvent) + Send),
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<ChatResponse, LlmFailure>> {
        self.run(request, sink, cancel).boxed()
    }
}
