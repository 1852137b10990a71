//! One turn of a session: what the engine is given, and what is kept when it ends.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;

use crate::conversation::{Journal, TurnRecord, WindowPolicy, estimate_tools};
use crate::error::AgentError;
use crate::llm::{EmptyRetryPolicy, Provider, RetryPolicy};
use crate::message::{Message, Usage};
use crate::persistence::Batch;
use crate::protocol::{EventKind, SessionState, StopReason, TurnEnd};
use crate::role::SelectedModel;
use crate::runtime::bus::EventBus;
use crate::runtime::clock;
use crate::runtime::context::ExecutionContext;
use crate::runtime::conversations::LastTurn;
use crate::runtime::held::Conversation;
use crate::runtime::lifecycle::ActiveTurn;
use crate::runtime::models::Fallback;
use crate::runtime::preimages::StoredPreimages;
use crate::runtime::steering::Steering;
use crate::tool::{ToolContext, ToolState};
use crate::turn::{self, Server, Servers, TurnContext, TurnLimits, TurnResult};

/// What a turn needs besides its conversation.
pub(super) struct TurnJob {
    pub context: ExecutionContext,
    pub turn: ActiveTurn,
    pub provider: Arc<dyn Provider>,
    pub model: SelectedModel,
    pub fallbacks: Vec<Fallback>,
    pub input: Message,
    pub line: String,
    /// What the turn takes the place of: goes with its first commit.
    pub replaced: Batch,
    /// Whether tools that change something are withheld.
    pub read_only: bool,
    pub bus: EventBus,
    pub steering: Steering,
    pub tool_state: Arc<ToolState>,
    /// Whether the conversation becomes the one a shell comes back to.
    pub remember: bool,
}

/// Runs a turn from its first event to `turn_persisted`. Gives why it stopped, and the profile of the server that
/// answered last where the first one was down.
pub(super) async fn run(mut job: TurnJob, conversation: &mut Conversation) -> (StopReason, Option<String>) {
    let started = clock::now_ms();
    let turn_id = job.turn.id.clone();
    let emit = {
        let (bus, turn_id) = (job.bus.clone(), turn_id.clone());
        move |kind| bus.emit_turn(&turn_id, kind)
    };
    emit(EventKind::TurnStarted {
        conversation_id: conversation.record.id.clone(),
        role: job.context.active_role.name().to_owned(),
        model: job.model.model.clone(),
        input: job.line.clone(),
    });
    let engine = engine_context(&job, conversation);
    let start = conversation.transcript.messages().len();
    let replaced = std::mem::take(&mut job.replaced);
    let mut journal = Journal::new(
        job.context.services.persistence.clone(),
        conversation.record.clone(),
        turn_id.clone(),
        conversation.kept,
        clock::now_ms,
    )
    .replacing(replaced);
    let Conversation { transcript, window, .. } = conversation;
    let run = turn::run(&engine, transcript, window, &mut journal, job.input.clone());
    let result = AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|panic| {
        let result = panicked(&*panic);
        emit(EventKind::TurnFailed(end_of(&result)));
        result
    });
    let record = TurnRecord {
        turn_id: turn_id.clone(),
        role: job.context.active_role.name().to_owned(),
        model: job.model.model.clone(),
        cwd: job.context.scope.project.cwd.display().to_string(),
        project_id: job.context.scope.project.project_id.clone(),
        started,
        ended: clock::now_ms(),
        stop_reason: result.stop_reason,
        rounds: result.rounds,
        tool_calls: result.tool_calls,
        usage: result.usage.clone(),
        error: result.error.clone(),
    };
    let report = journal.finish(&conversation.transcript, &record, job.remember).await;
    for notice in report.notices {
        emit(notice);
    }
    conversation.record = journal.conversation().clone();
    conversation.kept = conversation.transcript.messages().len();
    conversation.last_turn = Some(LastTurn {
        start,
        message_ids: (start..conversation.kept)
            .map(|index| Journal::message_id(&turn_id, index))
            .collect(),
        line: job.line.clone(),
    });
    emit(EventKind::StatusChanged {
        state: match result.stop_reason {
            StopReason::Completed | StopReason::BudgetExhausted => SessionState::Idle,
            StopReason::Cancelled => SessionState::Cancelled,
            StopReason::Error => SessionState::Error,
        },
    });
    emit(EventKind::TurnPersisted {
        durability: report.durability,
        conversation_id: conversation.record.id.clone(),
    });
    (result.stop_reason, engine.fell_back_to().map(str::to_owned))
}

fn engine_context(job: &TurnJob, conversation: &Conversation) -> TurnContext {
    let services = &job.context.services;
    let config = &services.config;
    let registry = services.tool.registry();
    let mut definitions = services.tool.definitions(job.context.active_role);
    if job.read_only {
        definitions.retain(|offered| registry.get(&offered.name).is_some_and(|tool| !tool.spec().mutating));
    }
    let project = &job.context.scope.project;
    let bus = job.bus.clone();
    let turn_id = job.turn.id.clone();
    let steering = job.steering.clone();
    let spent = conversation
        .usage
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .total()
        .cost
        .unwrap_or_default();
    TurnContext {
        turn_id: turn_id.clone(),
        servers: Servers::new(
            Server {
                profile: None,
                provider: Arc::clone(&job.provider),
                model: job.model.model.clone(),
                params: services.model.params(&job.model.model),
                context_window: job.model.context_window,
                price: services
                    .model
                    .known_models()
                    .and_then(|list| list.find(&job.model.model)?.price),
            },
            job.fallbacks.iter().map(|fallback| Server {
                profile: Some(fallback.profile.clone()),
                provider: Arc::clone(&fallback.provider),
                model: fallback.model.clone(),
                params: fallback.params.clone(),
                context_window: fallback.context_window,
                price: fallback.price,
            }),
        ),
        stream: true,
        retry: RetryPolicy {
            max_retries: clamp(config.u64("llm_config.retry_max_retries")),
            backoff_ms: config.numbers("llm_config.retry_backoff_ms"),
            after_output: config.bool("llm_config.stream_retry_after_output"),
            retry_after_max_ms: config.u64("llm_config.retry_after_max_ms"),
        },
        empty_retry: EmptyRetryPolicy {
            max_retries: clamp(config.u64("empty_response_retry_max_retries")),
            backoff_ms: config.numbers("empty_response_retry_backoff_ms"),
        },
        registry,
        window_policy: WindowPolicy {
            enabled: config.bool("context_management.enabled"),
            keep_rounds: count(config.u64("context_management.tool_output_keep_rounds")),
            elide_over_chars: count(config.u64("context_management.tool_output_elide_over_chars")),
            step_rounds: count(config.u64("context_management.elide_step_rounds")),
            context_window: job.model.context_window,
            trim_threshold_pct: config.f64("context_management.trim_threshold_pct"),
            fixed_tokens: estimate_tools(&definitions),
        },
        definitions,
        tool_context: ToolContext {
            role: job.context.active_role,
            turn_id: turn_id.clone(),
            call_id: String::new(),
            cancel: job.turn.cancel.clone(),
            cwd: project.cwd.clone(),
            git_root: project.git_root.clone(),
            env: job.context.scope.env.clone(),
            progress: Arc::new(|_| {}),
            limits: services.tool.limits(),
            state: Arc::clone(&job.tool_state),
            keeper: Some(Arc::new(StoredPreimages::new(
                services.persistence.clone(),
                conversation.record.id.clone(),
                count(config.u64("persistence.max_blob_bytes")),
            ))),
        },
        limits: TurnLimits {
            tool_steps: config.opt_u64("tool_step_budget"),
            tokens: config.opt_u64("limits.max_tokens_per_turn"),
            cost: config.opt_f64("limits.max_cost_usd").map(|limit| (limit, spent)),
        },
        cancel: job.turn.cancel.clone(),
        events: Arc::new(move |kind| bus.emit_turn(&turn_id, kind)),
        steering: Arc::new(move || steering.drain()),
        on_usage: usage_counter(job, conversation),
    }
}

/// Adds what each request used to the session's totals and tells them.
fn usage_counter(job: &TurnJob, conversation: &Conversation) -> Arc<dyn Fn(&Usage) + Send + Sync> {
    let context_window = job.model.context_window;
    let tracker = Arc::clone(&conversation.usage);
    let (bus, turn_id) = (job.bus.clone(), job.turn.id.clone());
    let turn_total = Mutex::new(Usage::default());
    Arc::new(move |used: &Usage| {
        let turn = {
            let mut total = turn_total.lock().unwrap_or_else(PoisonError::into_inner);
            total.add(used);
            total.clone()
        };
        let conversation = {
            let mut tracker = tracker.lock().unwrap_or_else(PoisonError::into_inner);
            tracker.add_parent(used);
            tracker.total()
        };
        let context_tokens = used.prompt_tokens;
        bus.emit_turn(
            &turn_id,
            EventKind::UsageUpdated {
                turn,
                conversation,
                context_tokens,
                context_window,
            },
        );
    })
}

fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> TurnResult {
    let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let what = what
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    TurnResult {
        stop_reason: StopReason::Error,
        text: String::new(),
        rounds: 0,
        tool_calls: 0,
        usage: Usage::default(),
        error: Some(
            AgentError::internal("turn", format!("the turn stopped on a defect: {what}"))
                .with_hint("the conversation is kept; go on, and please report this"),
        ),
    }
}

fn end_of(result: &TurnResult) -> TurnEnd {
    TurnEnd {
        stop_reason: result.stop_reason,
        text: result.text.clone(),
        rounds: result.rounds,
        tool_calls: result.tool_calls,
        usage: result.usage.clone(),
        error: result.error.clone(),
        duration_ms: 0,
    }
}
