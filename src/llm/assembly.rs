//! Putting an answer together from its chunks, and telling the sink what is new.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::calls::{Assembled, CallAssembly, Offered};
use super::chunk::{Choice, Chunk, Delta};
use super::finish;
use super::ids::IdMaker;
use super::json::{self as lenient, Carry};
use super::merge;
use super::provider::{ChatResponse, FinishReason, IncompleteCall, IncompleteReason, StreamEvent};
use super::reasoning::{ReasoningAssembly, content_parts};
use super::text_calls::{CallGate, TakenOut};
use super::think::{Part, ThinkSplitter};
use super::usage;
use crate::message::{Message, ToolCall, Usage};

/// What to do with the calls of an answer that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The server said that it is done, by a finish reason or the sentinel.
    Said,
    /// It broke off.
    Broken,
}

/// One answer while it comes.
#[derive(Debug)]
pub(crate) struct Assembly<'a> {
    offered: Offered<'a>,
    messages: usize,
    ids: Option<IdMaker>,
    answer_id: String,
    model: Option<String>,
    text: String,
    carry: Carry,
    refusal: String,
    think: ThinkSplitter,
    gate: CallGate,
    reasoning: ReasoningAssembly,
    calls: CallAssembly,
    extra: Map<String, Value>,
    finish_raw: Option<String>,
    usage: Option<Usage>,
    timings: Option<Usage>,
    /// An event with counts and no alternatives came: what servers send last.
    closing_usage: bool,
    events: Vec<StreamEvent>,
    emitted: bool,
    /// Text came, shown or held back.
    has_text: bool,
}

impl<'a> Assembly<'a> {
    /// For the answer to a request with `messages` messages and these tools on offer.
    pub fn new(offered: Offered<'a>, messages: usize) -> Self {
        Self {
            offered,
            messages,
            ids: None,
            answer_id: String::new(),
            model: None,
            text: String::new(),
            carry: Carry::default(),
            refusal: String::new(),
            think: ThinkSplitter::default(),
            gate: CallGate::default(),
            reasoning: ReasoningAssembly::default(),
            calls: CallAssembly::default(),
            extra: Map::new(),
            finish_raw: None,
            usage: None,
            timings: None,
            closing_usage: false,
            events: Vec::new(),
            emitted: false,
            has_text: false,
        }
    }

    /// Takes one event that is no failure.
    pub fn apply(&mut self, chunk: &Chunk<'_>) {
        if self.answer_id.is_empty() {
            self.answer_id = chunk.id.and_then(lenient::whole_text).unwrap_or_default().into_owned();
        }
        if self.model.is_none() {
            self.model = chunk
                .model
                .and_then(lenient::whole_text)
                .filter(|model| !model.is_empty())
                .map(std::borrow::Cow::into_owned);
        }
        let choices = chunk.choices.as_ref();
        let choice = choices.and_then(|choices| choices.first.as_ref());
        if let Some(choice) = choice {
            self.apply_choice(choice);
        }
        let counts = chunk
            .usage
            .or_else(|| chunk.groq.as_ref().and_then(|groq| groq.usage))
            .or_else(|| choice.and_then(|choice| choice.usage))
            .and_then(|raw| usage::parse(&lenient::value(raw)));
        if counts.is_some() {
            self.closing_usage = choice.is_none();
            self.usage = usage::newer(self.usage.take(), counts);
        }
        if let Some(raw) = chunk.timings {
            self.timings = usage::newer(self.timings.take(), usage::parse_timings(&lenient::value(raw)));
        }
    }

    fn apply_choice(&mut self, choice: &Choice<'_>) {
        if let Some(delta) = choice.delta.as_ref().or(choice.message.as_ref()) {
            self.apply_delta(delta);
        } else if let Some(raw) = choice.text {
            self.take_content(raw);
        }
        let word = [choice.finish, choice.finish_camel]
            .into_iter()
            .flatten()
            .filter_map(lenient::whole_text)
            .find(|word| !word.is_empty());
        // The first word stands: a second one repeats it or comes from a layer that knows less.
        if let (None, Some(word)) = (&self.finish_raw, word) {
            self.finish_raw = Some(word.into_owned());
        }
    }

    fn apply_delta(&mut self, delta: &Delta<'_>) {
        if let Some(text) = self.reasoning.apply(delta) {
            self.think.settle();
            self.emit(StreamEvent::Thinking(text));
        }
        if let Some(raw) = delta.content {
            self.take_content(raw);
        }
        if let Some(text) = delta.refusal.and_then(lenient::whole_text)
            && !text.is_empty()
        {
            self.refusal.push_str(&text);
            self.take_text(&text);
        }
        for (key, raw) in [
            ("extra_content", delta.extra_content),
            ("thinking_blocks", delta.thinking_blocks),
            ("provider_specific_fields", delta.provider_specific_fields),
            ("reasoning_opaque", delta.reasoning_opaque),
        ] {
            if let Some(raw) = raw {
                merge::member(&mut self.extra, key, lenient::value(raw));
            }
        }
        let has_calls = delta.tool_calls.is_some_and(|raw| !matches!(raw.get(), "[]" | "{}"));
        if has_calls || delta.function_call.is_some() {
            let (answer_id, messages) = (&self.answer_id, self.messages);
            let ids = self.ids.get_or_insert_with(|| IdMaker::new(answer_id, messages));
            let mut events = Vec::new();
            match (delta.tool_calls, delta.function_call) {
                (Some(raw), _) if has_calls => self.calls.apply(raw, self.offered, ids, &mut events),
                (_, Some(raw)) => self.calls.apply_legacy(raw, self.offered, ids, &mut events),
                _ => {}
            }
            for event in events {
                self.emit(event);
            }
        }
    }

    fn take_content(&mut self, raw: &RawValue) {
        match lenient::text(raw, &mut self.carry) {
            Some(text) => self.take_text(&text),
            None if raw.get().starts_with(['[', '{']) => {
                let mut parts: Vec<(bool, String)> = Vec::new();
                let cell = std::cell::RefCell::new(&mut parts);
                content_parts(
                    raw,
                    |text| cell.borrow_mut().push((false, text.to_owned())),
                    |text| cell.borrow_mut().push((true, text.to_owned())),
                );
                for (thinks, text) in parts {
                    if thinks {
                        self.think.settle();
                        self.take_thoughts(&text);
                    } else {
                        self.take_text(&text);
                    }
                }
            }
            None => {}
        }
    }

    fn take_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.has_text = true;
        let mut think = std::mem::take(&mut self.think);
        think.push(text, &mut |part| self.take_part(part));
        self.think = think;
    }

    fn take_part(&mut self, part: Part<'_>) {
        match part {
            Part::Text(text) if self.offered.0.is_empty() => self.show(text),
            Part::Text(text) => {
                let mut gate = std::mem::take(&mut self.gate);
                gate.push(text, self.offered, &mut |text| self.show(text));
                self.gate = gate;
            }
            Part::Thinking(text) => self.take_thoughts(text),
            Part::TextWasThinking => {
                let text = std::mem::take(&mut self.text);
                self.gate.restart();
                self.reasoning.add(&text);
                self.emit(StreamEvent::TextWasThinking);
            }
        }
    }

    fn take_thoughts(&mut self, text: &str) {
        if !text.is_empty() {
            self.reasoning.add(text);
            self.emit(StreamEvent::Thinking(text.to_owned()));
        }
    }

    /// Queues an event; neighbouring pieces of one kind become one.
    fn emit(&mut self, event: StreamEvent) {
        self.emitted = true;
        match (self.events.last_mut(), event) {
            (Some(StreamEvent::Thinking(last)), StreamEvent::Thinking(text)) => last.push_str(&text),
            (_, event) => self.events.push(event),
        }
    }

    /// Text that is the answer's.
    fn show(&mut self, text: &str) {
        self.text.push_str(text);
        self.emitted = true;
        match self.events.last_mut() {
            Some(StreamEvent::Text(last)) => last.push_str(text),
            _ => self.events.push(StreamEvent::Text(text.to_owned())),
        }
    }

    /// Hands the queued events out.
    pub fn flush(&mut self, sink: &mut (dyn FnMut(StreamEvent) + Send)) {
        for event in self.events.drain(..) {
            sink(event);
        }
    }

    /// Whether anything of the answer was told to the sink.
    pub fn emitted(&self) -> bool {
        self.emitted
    }

    /// Whether the server gave a reason for the end.
    pub fn has_finish(&self) -> bool {
        self.finish_raw.is_some()
    }

    /// Whether the server counted tokens.
    pub fn has_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// Whether the server sent its counts the way it does last.
    pub fn has_closing_usage(&self) -> bool {
        self.closing_usage
    }

    /// Whether there is anything of an answer.
    pub fn is_empty(&self) -> bool {
        !self.has_text && self.calls.is_empty() && !self.emitted && self.finish_raw.is_none()
    }

    /// Calls that the model wrote as text count where no structured one came. Else they repeat one, and their markup is
    /// dropped, or they do not, and it is text after all.
    fn take_written(&mut self, written: Vec<TakenOut>, calls: &mut Assembled, ids: &IdMaker) {
        let structured = calls.runnable.len() + calls.incomplete.len();
        for (at, written) in written.into_iter().enumerate() {
            match written {
                TakenOut::Call(call, markup) if structured > 0 => {
                    let repeats = calls.runnable.iter().any(|known| {
                        let arguments = lenient::parse::<Map<String, Value>>(&known.arguments);
                        known.name == call.name && arguments.is_ok_and(|known| known == call.arguments)
                    });
                    if !repeats && markup.is_empty() {
                        self.show(&json!({"name": call.name, "arguments": call.arguments}).to_string());
                    } else if !repeats {
                        self.show(&markup);
                    }
                }
                TakenOut::Cut(_, markup) if structured > 0 => self.show(&markup),
                TakenOut::Call(call, _) => {
                    let id = ids.make(at, 0);
                    calls.events.push(StreamEvent::ToolCallDetected {
                        index: at,
                        id: id.clone(),
                        name: call.name.clone(),
                    });
                    calls.runnable.push(ToolCall {
                        id,
                        name: call.name,
                        arguments: Value::Object(call.arguments).to_string(),
                        extra: Map::new(),
                    });
                }
                TakenOut::Cut(name, markup) => {
                    let id = ids.make(at, 0);
                    calls.events.push(StreamEvent::ToolCallDetected {
                        index: at,
                        id: id.clone(),
                        name: name.clone(),
                    });
                    calls.incomplete.push(IncompleteCall {
                        id,
                        name: Some(name),
                        arguments_raw: markup,
                        reason: IncompleteReason::Cut,
                        after: calls.runnable.len(),
                    });
                }
            }
        }
    }

    /// Ends the answer. Events that only the end makes clear are handed out.
    pub fn finish(mut self, ending: Ending, sink: &mut (dyn FnMut(StreamEvent) + Send)) -> ChatResponse {
        if let Some(rest) = self.carry.flush() {
            self.take_text(rest.encode_utf8(&mut [0; 4]));
        }
        let mut think = std::mem::take(&mut self.think);
        think.finish(&mut |part| self.take_part(part));
        let (answer_id, messages) = (&self.answer_id, self.messages);
        let ids = self.ids.take().unwrap_or_else(|| IdMaker::new(answer_id, messages));
        let mut gate = std::mem::take(&mut self.gate);
        let written = gate.finish(self.offered, &mut |text| self.show(text));
        let said = self.finish_raw.as_deref().map(finish::reason);
        let over = ending == Ending::Said && !matches!(said, Some(FinishReason::Length | FinishReason::Error));
        let mut calls = std::mem::take(&mut self.calls).finish(!over, self.offered, &ids);
        self.take_written(written, &mut calls, &ids);
        for event in std::mem::take(&mut calls.events) {
            self.emit(event);
        }
        self.flush(sink);

        let cut = calls.incomplete.iter().any(|call| call.reason == IncompleteReason::Cut);
        let finish = match said {
            Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other) if cut => FinishReason::Length,
            Some(FinishReason::Stop | FinishReason::Other) if !calls.runnable.is_empty() => FinishReason::ToolCalls,
            Some(reason) => reason,
            None if ending == Ending::Broken => FinishReason::Unknown,
            None if cut => FinishReason::Length,
            None if !calls.runnable.is_empty() => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        };
        let mut message = Message::assistant(self.text);
        message.tool_calls = calls.runnable;
        message.reasoning = self.reasoning.finish();
        message.extra = self.extra;
        message.incomplete = ending == Ending::Broken || finish == FinishReason::Length;
        ChatResponse {
            message,
            incomplete_calls: calls.incomplete,
            finish,
            finish_raw: self.finish_raw,
            usage: self.usage.or(self.timings),
            model: self.model,
            refusal: Some(self.refusal).filter(|refusal| !refusal.is_empty()),
        }
    }
}
