//! The loop: build the messages, ask, append, run the calls, append their results, again.

use std::time::Instant;

use crate::conversation::{Journal, Transcript, Window};
use crate::error::{AgentError, ErrorKind};
use crate::llm::{ChatResponse, FinishReason};
use crate::message::{Message, Usage};
use crate::protocol::{EventKind, NoticeLevel, StopReason, TurnEnd};
use crate::tool::summarize;
use crate::turn::batch;
use crate::turn::context::{TurnContext, TurnResult};
use crate::turn::request::{self, as_ms};
use crate::turn::unusable;

struct Progress {
    rounds: u32,
    tool_calls: u32,
    usage: Usage,
    text: String,
    unusable_in_a_row: u32,
}

enum Next {
    Go,
    Stop(StopReason, Option<AgentError>),
}

/// Runs one turn that starts with `input`, appends to the transcript, keeps each finished round in the journal, and
/// emits the terminal event. What is left to keep at the end is the caller's: the turn's last transaction.
pub async fn run(
    turn: &TurnContext,
    transcript: &mut Transcript,
    window: &mut Window,
    journal: &mut Journal,
    input: Message,
) -> TurnResult {
    let started = Instant::now();
    let mut progress = Progress {
        rounds: 0,
        tool_calls: 0,
        usage: Usage::default(),
        text: String::new(),
        unusable_in_a_row: 0,
    };
    transcript.push(input);
    let (stop_reason, error) = loop {
        // What the conversation cost before counts: over the limit already, nothing is asked.
        if progress.rounds == 0
            && let Some(Next::Stop(reason, error)) = over_limits(turn, &progress)
        {
            break (reason, error);
        }
        match round(turn, transcript, window, journal, &mut progress).await {
            Next::Go => {}
            Next::Stop(reason, error) => break (reason, error),
        }
    };
    let files = summarize(&turn.tool_context).await;
    if !files.is_empty() {
        turn.emit(EventKind::FilesChanged { files });
    }
    let result = TurnResult {
        stop_reason,
        text: progress.text,
        rounds: progress.rounds,
        tool_calls: progress.tool_calls,
        usage: progress.usage,
        error,
    };
    let end = TurnEnd {
        stop_reason,
        text: result.text.clone(),
        rounds: result.rounds,
        tool_calls: result.tool_calls,
        usage: result.usage.clone(),
        error: result.error.clone(),
        duration_ms: as_ms(started.elapsed()),
    };
    turn.emit(match stop_reason {
        StopReason::Error => EventKind::TurnFailed(end),
        _ => EventKind::TurnCompleted(end),
    });
    result
}

async fn round(
    turn: &TurnContext,
    transcript: &mut Transcript,
    window: &mut Window,
    journal: &mut Journal,
    progress: &mut Progress,
) -> Next {
    if turn.cancel.is_cancelled() {
        return cancelled();
    }
    for trim in window.update(transcript, &turn.window_policy()) {
        turn.emit(EventKind::ContextTrimmed {
            layer: trim.layer.as_str().to_owned(),
            before: trim.before,
            after: trim.after,
        });
    }
    turn.emit(EventKind::PromptBuilt {
        messages: window.messages().len(),
        tools: turn.definitions.len(),
        tokens: window.tokens() + turn.window_policy.fixed_tokens,
    });
    let called = request::call(turn, window.messages(), progress.rounds + 1).await;
    progress.usage.add(&called.usage);
    let response = match called.outcome {
        Ok(response) => response,
        Err(no_answer) => {
            if let Some(partial) = no_answer.partial {
                progress.text.clone_from(&partial.content);
                transcript.push(partial);
            }
            let cancelled = no_answer.error.is_cancelled();
            let reason = if cancelled {
                StopReason::Cancelled
            } else {
                StopReason::Error
            };
            return Next::Stop(reason, Some(no_answer.error));
        }
    };
    progress.rounds += 1;
    take_answer(turn, transcript, journal, progress, response).await
}

async fn take_answer(
    turn: &TurnContext,
    transcript: &mut Transcript,
    journal: &mut Journal,
    progress: &mut Progress,
    response: ChatResponse,
) -> Next {
    let ChatResponse {
        message: mut answer,
        incomplete_calls,
        finish,
        ..
    } = response;
    progress.text.clone_from(&answer.content);
    let plan = unusable::plan(
        std::mem::take(&mut answer.tool_calls),
        incomplete_calls,
        &turn.definitions,
    );
    progress.unusable_in_a_row = if plan.is_unusable() {
        progress.unusable_in_a_row + 1
    } else {
        0
    };
    answer.tool_calls = plan.calls.iter().map(|planned| planned.call.clone()).collect();
    transcript.push(answer);
    if plan.is_empty() {
        tell_odd_end(turn, finish);
        if let Some(over) = over_limits(turn, progress) {
            return over;
        }
        return if steer(turn, transcript) {
            keep_round(turn, transcript, journal).await;
            Next::Go
        } else {
            Next::Stop(StopReason::Completed, None)
        };
    }
    let left = turn
        .limits
        .tool_steps
        .map(|steps| steps.saturating_sub(u64::from(progress.tool_calls)));
    let batch = batch::run(turn, &plan.calls, left).await;
    progress.tool_calls += batch.ran;
    batch.results.into_iter().for_each(|result| transcript.push(result));
    if let Some(note) = plan.note {
        transcript.push(Message::user(note));
    }
    if let Some(error) = batch.fatal {
        return Next::Stop(StopReason::Error, Some(error));
    }
    if turn.cancel.is_cancelled() {
        return cancelled();
    }
    if let Some(text) = batch.terminal {
        progress.text = text;
        return Next::Stop(StopReason::Completed, None);
    }
    if batch.budget_spent {
        let steps = turn.limits.tool_steps.unwrap_or_default();
        let message = format!("the turn has used its {steps} tool calls");
        return budget(
            "tool_step_budget",
            message,
            "raise or unset tool_step_budget, then go on",
        );
    }
    if progress.unusable_in_a_row >= unusable::MAX_IN_A_ROW {
        return Next::Stop(
            StopReason::Error,
            Some(unusable::too_many(finish == FinishReason::Length)),
        );
    }
    if let Some(over) = over_limits(turn, progress) {
        return over;
    }
    steer(turn, transcript);
    keep_round(turn, transcript, journal).await;
    Next::Go
}

/// Makes everything new in the transcript durable.
async fn keep_round(turn: &TurnContext, transcript: &Transcript, journal: &mut Journal) {
    let report = journal.keep_round(transcript).await;
    for notice in report.notices {
        turn.emit(notice);
    }
}

/// Lets the lines typed meanwhile join the turn. Says whether there were any.
fn steer(turn: &TurnContext, transcript: &mut Transcript) -> bool {
    let lines = (turn.steering)();
    let any = !lines.is_empty();
    lines.into_iter().for_each(|line| transcript.push(Message::user(line)));
    any
}

fn cancelled() -> Next {
    Next::Stop(StopReason::Cancelled, Some(AgentError::cancelled("turn")))
}

fn budget(code: &'static str, message: String, hint: &str) -> Next {
    let error = AgentError::new(ErrorKind::BudgetExhausted, code, message)
        .from_origin("turn")
        .with_hint(hint);
    Next::Stop(StopReason::BudgetExhausted, Some(error))
}

fn over_limits(turn: &TurnContext, progress: &Progress) -> Option<Next> {
    if let Some(limit) = turn
        .limits
        .tokens
        .filter(|limit| progress.usage.total_tokens() > *limit)
    {
        let used = progress.usage.total_tokens();
        let message = format!("the turn has used {used} tokens; the limit is {limit}");
        return Some(budget(
            "max_tokens_per_turn",
            message,
            "raise or unset limits.max_tokens_per_turn",
        ));
    }
    let (limit, before) = turn.limits.cost?;
    let spent = before + progress.usage.cost.unwrap_or_default();
    (spent > limit).then(|| {
        let message = format!("the conversation has cost ${spent:.4}; the limit is ${limit:.4}");
        budget("max_cost_usd", message, "raise or unset limits.max_cost_usd")
    })
}

/// An answer that ended otherwise than by the model's own will is an answer all the same, but the user is told.
fn tell_odd_end(turn: &TurnContext, finish: FinishReason) {
    let (text, hint) = match finish {
        FinishReason::Length => (
            "the answer was cut off at the token limit",
            Some("say \"go on\", or raise llm_config.max_tokens"),
        ),
        FinishReason::ContentFilter => ("the server's content filter ended the answer", None),
        _ => return,
    };
    turn.emit(EventKind::Notice {
        level: NoticeLevel::Warn,
        text: text.to_owned(),
        hint: hint.map(str::to_owned),
    });
}
