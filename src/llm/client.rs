//! The client of one server: builds the request, sends it, reads the answer, and says what went wrong.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};

use super::answer::{self, Body, Limits};
use super::calls::Offered;
use super::cassette::{Recorder, Tap};
use super::exchange::{NoAnswer, Outgoing};
use super::failure::{Code, Fault};
use super::http::{self, Endpoint};
use super::pool::Pool;
use super::provider::{BoxFuture, ChatRequest, ChatResponse, LlmFailure, Provider, StreamEvent};
use super::quirks::{EffortForm, MaxTokens, Quirks, ReasoningEcho};
use super::redact;
use super::request;
use super::secret::Secret;
use super::settings::ClientConfig;
use crate::cancel::CancelToken;
use crate::error::AgentError;

/// The client of one server. Connections are pooled and kept alive; a clone of an `Arc` of it is what to share.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    endpoint: Endpoint,
    /// Built at first use: for an encrypted address that reads the system's certificates.
    pool: OnceLock<Result<Pool, AgentError>>,
    secrets: Mutex<Vec<Secret>>,
    /// Members this server refused by name; they are left out from then on.
    refused: Mutex<BTreeSet<String>>,
    last_body: AtomicUsize,
    recorder: OnceLock<Arc<Recorder>>,
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
        secrets.extend(endpoint.secrets());
        Ok(Self {
            config,
            endpoint,
            pool: OnceLock::new(),
            secrets: Mutex::new(secrets),
            refused: Mutex::default(),
            last_body: AtomicUsize::new(4096),
            recorder: OnceLock::new(),
        })
    }

    /// The values that must not get into messages or recordings.
    fn secrets(&self) -> Vec<Secret> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the secrets that stand in the members a user adds to the request's body.
    fn note_secrets(&self, extra_body: &serde_json::Map<String, serde_json::Value>) {
        let mut found = Vec::new();
        for (name, value) in extra_body {
            redact::secrets_in(&serde_json::json!({ name: value }), &mut found);
        }
        if !found.is_empty() {
            let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            found.retain(|secret| !known.contains(secret));
            known.append(&mut found);
        }
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

    pub(crate) fn models_url(&self) -> &Url {
        &self.endpoint.models
    }

    /// The headers of each request.
    pub(crate) fn headers(&self, model: &str) -> Result<HeaderMap, AgentError> {
        http::headers(&self.config, self.quirks(model).key_header)
    }

    fn pool(&self) -> Result<&Pool, AgentError> {
        self.pool
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
        self.note_secrets(&request.params.extra_body);
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
        let body = Bytes::from(body);
        let recorded = self.recorder.get().map(|recorder| (recorder, body.clone()));
        let mut tap = recorded.is_some().then(Tap::default);
        let outgoing = self.outgoing(Method::POST, &self.endpoint.chat, headers, body, &limits)?;
        let outcome = match outgoing.exchange(tap.as_mut(), cancel).await {
            Err(no_answer) => Err(self.no_answer(no_answer)),
            Ok(response) => {
                sink(StreamEvent::HeadersReceived);
                let answer = Body::Http(Box::new(response));
                let (offered, count) = (Offered(request.tools), request.messages.len());
                answer::read(answer, offered, count, &limits, tap.as_mut(), sink, cancel)
                    .await
                    .map(|mut response| {
                        response.message.served_by = Some(served_by.clone());
                        response
                    })
                    .map_err(|broken| self.failure(*broken, &served_by))
            }
        };
        if let (Some((recorder, body)), Some(tap)) = (recorded, tap) {
            recorder.hide(&self.secrets());
            recorder.write(self.server(), &body, &served_by, tap, &outcome);
        }
        outcome
    }

    pub(crate) fn outgoing<'a>(
        &'a self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        limits: &'a Limits,
    ) -> Result<Outgoing<'a>, AgentError> {
        Ok(Outgoing {
            pool: self.pool()?,
            method,
            url: url.clone(),
            headers,
            body,
            limits,
            send: self.config.timeouts.send,
        })
    }

    /// The failure of a request that was not answered.
    pub(crate) fn no_answer(&self, no_answer: NoAnswer) -> LlmFailure {
        let Some(mut fault) = no_answer else {
            return AgentError::cancelled("llm").into();
        };
        if fault.code == Code::BadRequest
            && let Some(name) = self.learn(&fault)
        {
            fault.hint = Some(format!("{name} is left out from now on: try again"));
        }
        self.failed(*fault)
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
        if let (Code::Auth, None, Some(name)) = (fault.code, &fault.hint, &self.config.api_key_name) {
            fault.hint = Some(match &self.config.api_key {
                Some(_) => format!("check the key in {name}"),
                None => format!("set {name} to the server's API key"),
            });
        }
        for secret in &self.secrets() {
            fault.detail = secret.scrub(fault.detail);
            fault.cause = fault.cause.map(|cause| secret.scrub(cause));
            let data = serde_json::to_string(&fault.data).unwrap_or_default();
            if data.contains(secret.expose()) && !secret.is_empty() {
                fault.data = serde_json::from_str(&secret.scrub(data)).unwrap_or_default();
            }
        }
        fault.into_error(&self.endpoint.server)
    }

    /// A failure before anything of an answer came.
    pub(crate) fn failed(&self, fault: Fault) -> LlmFailure {
        let retry_after = fault.retry_after;
        LlmFailure {
            retry_after,
            ..LlmFailure::new(self.fail(fault))
        }
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

    fn record_to(&self, recorder: &Arc<Recorder>) {
        // The first one stays: a client is not recorded twice.
        let _ = self.recorder.set(Arc::clone(recorder));
    }
}
