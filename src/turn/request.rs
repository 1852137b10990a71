//! One model call with its two retry layers: failed requests inside, empty answers around them.

use std::time::{Duration, Instant};

use crate::conversation::{estimate_message, estimate_tools};
use crate::error::{AgentError, ErrorKind};
use crate::llm::usage::add_cost;
use crate::llm::{ChatRequest, ChatResponse, FinishReason, LlmFailure, StreamEvent, random};
use crate::message::{Message, Usage};
use crate::protocol::{EventKind, NoticeLevel, RequestFinish, SessionState};
use crate::turn::context::TurnContext;

/// Why a call gave no answer; what had come of it is kept.
#[derive(Debug)]
pub(super) struct NoAnswer {
    pub error: AgentError,
    pub partial: Option<Message>,
}

/// What a call used, over all its tries, and its answer.
pub(super) struct Called {
    pub usage: Usage,
    pub outcome: Result<ChatResponse, NoAnswer>,
}

/// Asks the model and returns its answer, trying again as the policies allow.
pub(super) async fn call(turn: &TurnContext, messages: &[Message], round: u32) -> Called {
    let mut usage = Usage::default();
    let mut empty = 0;
    let mut attempt = 0;
    let outcome = loop {
        let started = Instant::now();
        let response = match call_until_answered(turn, messages, round, &mut attempt, &mut usage).await {
            Ok(response) => response,
            Err(no_answer) => break Err(no_answer),
        };
        count(turn, &mut usage, response.usage.clone(), messages, &response.message);
        if !response.is_empty() {
            turn.emit(EventKind::LlmRequestCompleted(finish(&response, round, started)));
            break Ok(response);
        }
        let error = empty_answer(empty + 1, &response);
        let Some(delay) = turn.empty_retry.decide(empty, &response, random()) else {
            turn.emit(EventKind::LlmRequestCompleted(finish(&response, round, started)));
            break Err(NoAnswer { error, partial: None });
        };
        empty += 1;
        turn.emit(EventKind::LlmRetryScheduled {
            attempt: empty,
            max: turn.empty_retry.max_retries,
            delay_ms: as_ms(delay),
            error,
        });
        if turn.cancel.run("turn", tokio::time::sleep(delay)).await.is_err() {
            break Err(NoAnswer {
                error: AgentError::cancelled("turn"),
                partial: None,
            });
        }
    };
    Called { usage, outcome }
}

async fn call_until_answered(
    turn: &TurnContext,
    messages: &[Message],
    round: u32,
    attempt: &mut u32,
    usage: &mut Usage,
) -> Result<ChatResponse, NoAnswer> {
    let mut failures = 0;
    loop {
        *attempt += 1;
        turn.emit(EventKind::LlmRequestStarted {
            round,
            attempt: *attempt,
            model: turn.servers.current().model.clone(),
        });
        turn.emit(EventKind::StatusChanged {
            state: SessionState::Thinking,
        });
        let failure = match call_once(turn, messages).await {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let LlmFailure {
            ref error, ref partial, ..
        } = failure;
        if let Some(partial) = partial
            .as_deref()
            .filter(|partial| partial.usage.is_some() || failure.emitted_output)
        {
            count(turn, usage, partial.usage.clone(), messages, &partial.message);
        }
        let cancelled = turn.cancel.is_cancelled() || error.is_cancelled();
        if cancelled {
            turn.emit(EventKind::LlmRequestCancelled { round });
            return Err(NoAnswer {
                error: AgentError::cancelled("turn"),
                partial: partial_message(failure),
            });
        }
        let Some(delay) = turn.retry.decide(failures, &failure, random()) else {
            if go_on_elsewhere(turn, &failure, failures) {
                failures = 0;
                continue;
            }
            return Err(NoAnswer {
                error: error.clone(),
                partial: partial_message(failure),
            });
        };
        failures += 1;
        tracing::info!(code = %error.code, message = %error.message, ?delay, "the request failed and is tried again");
        turn.emit(EventKind::LlmRetryScheduled {
            attempt: failures,
            max: turn.retry.max_retries,
            delay_ms: as_ms(delay),
            error: error.clone(),
        });
        if turn.cancel.run("turn", tokio::time::sleep(delay)).await.is_err() {
            return Err(NoAnswer {
                error: AgentError::cancelled("turn"),
                partial: None,
            });
        }
    }
}

/// Whether the server is down, nothing of an answer was shown, and another one takes over; tells so.
fn go_on_elsewhere(turn: &TurnContext, failure: &LlmFailure, failures: u32) -> bool {
    let down = matches!(&*failure.error.code, "connection" | "timeout" | "server" | "overloaded");
    if !down || failure.emitted_output {
        return false;
    }
    let Some(next) = turn.servers.advance() else {
        return false;
    };
    // Ends the request that failed, for whoever follows the events.
    turn.emit(EventKind::LlmRetryScheduled {
        attempt: failures + 1,
        max: failures + 1,
        delay_ms: 0,
        error: failure.error.clone(),
    });
    let profile = next.profile.as_deref().unwrap_or_default();
    turn.emit(EventKind::Notice {
        level: NoticeLevel::Warn,
        text: format!(
            "{}; going on with the profile `{profile}` and its model `{}`",
            failure.error.message.trim_end_matches('.'),
            next.model
        ),
        hint: Some("/profile --reset goes back".to_owned()),
    });
    true
}

async fn call_once(turn: &TurnContext, messages: &[Message]) -> Result<ChatResponse, LlmFailure> {
    let server = turn.servers.current();
    let request = ChatRequest {
        model: &server.model,
        messages,
        tools: &turn.definitions,
        params: &server.params,
        stream: turn.stream,
    };
    let mut streaming = false;
    let mut sink = |event: StreamEvent| match event {
        StreamEvent::Text(text) => {
            if !std::mem::replace(&mut streaming, true) {
                turn.emit(EventKind::StatusChanged {
                    state: SessionState::Streaming,
                });
            }
            turn.emit(EventKind::LlmTextDelta { text });
        }
        StreamEvent::Thinking(text) => turn.emit(EventKind::LlmThinkingDelta { text }),
        StreamEvent::TextWasThinking => {
            streaming = false;
            turn.emit(EventKind::LlmTextWasThinking {});
            turn.emit(EventKind::StatusChanged {
                state: SessionState::Thinking,
            });
        }
        StreamEvent::ToolCallDetected { id, name, .. } => {
            turn.emit(EventKind::LlmToolCallDetected { call_id: id, name });
        }
        StreamEvent::HeadersReceived => {}
    };
    server.provider.chat(request, &mut sink, &turn.cancel).await
}

/// Adds what a try used: the server's own count and cost, or estimates marked as such.
fn count(turn: &TurnContext, total: &mut Usage, told: Option<Usage>, messages: &[Message], answer: &Message) {
    let mut usage = told.unwrap_or_else(|| Usage {
        prompt_tokens: messages.iter().map(estimate_message).sum::<u64>() + estimate_tools(&turn.definitions),
        completion_tokens: estimate_message(answer),
        estimated: true,
        ..Usage::default()
    });
    usage.requests = 1;
    if let Some(price) = &turn.servers.current().price {
        add_cost(&mut usage, price);
    }
    total.add(&usage);
    (turn.on_usage)(&usage);
}

fn empty_answer(times: u32, response: &ChatResponse) -> AgentError {
    let what = match (&response.finish, &response.message.reasoning) {
        (FinishReason::Length, _) => "the model reached its token limit before it said anything",
        (_, Some(reasoning)) if !reasoning.is_empty() => "the model thought, but gave no answer",
        _ => "the model gave an empty answer",
    };
    let message = if times == 1 {
        what.to_owned()
    } else {
        format!("{what}, {times} times in a row")
    };
    AgentError::new(ErrorKind::Protocol, "empty_response", message)
        .retryable(true)
        .from_origin("llm")
        .with_hint("ask again, or try another model with /model")
}

fn partial_message(failure: LlmFailure) -> Option<Message> {
    let partial = failure.partial?;
    let mut message = partial.message;
    // A call of an answer that broke off was not announced as whole; only what was said is kept.
    message.tool_calls.clear();
    message.incomplete = true;
    (!message.content.trim().is_empty()).then_some(message)
}

fn finish(response: &ChatResponse, round: u32, started: Instant) -> RequestFinish {
    RequestFinish {
        round,
        finish: Some(response.finish.as_str().to_owned()),
        finish_raw: response.finish_raw.clone(),
        tool_calls: response.message.tool_calls.len() + response.incomplete_calls.len(),
        usage: response.usage.clone(),
        duration_ms: as_ms(started.elapsed()),
    }
}

pub(super) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
