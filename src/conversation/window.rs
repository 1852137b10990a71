//! The model-bound copy of a transcript, made smaller where it must be.
//!
//! Two layers. *Elide*: long tool results of old rounds become a short placeholder. *Drop*: under token pressure the
//! oldest whole rounds are left out. Always kept: the system message, the latest user message, the latest round, and the
//! link between calls and their results (a round is kept or left out whole).
//!
//! Both boundaries move in steps of [`WindowPolicy::step_rounds`], never backwards, so that the messages before them stay
//! byte for byte the same over several requests and a provider's cache stays useful. Between two moves an update only
//! appends: its cost is that of the new messages.

use crate::conversation::counter::estimate_message;
use crate::conversation::transcript::{Transcript, is_tool_round};
use crate::message::{Message, Speaker};

/// When and how much to leave out; the values of `context_management.*` and of the resolved model.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPolicy {
    /// Off: everything is sent.
    pub enabled: bool,
    /// Tool rounds whose results are always sent whole.
    pub keep_rounds: usize,
    /// Results up to this many characters are never elided.
    pub elide_over_chars: usize,
    /// Rounds a boundary moves by.
    pub step_rounds: usize,
    /// The model's window in tokens.
    pub context_window: u64,
    /// How full, in percent, the window may be.
    pub trim_threshold_pct: f64,
    /// Tokens of what is sent beside the messages: the tool schemas.
    pub fixed_tokens: u64,
}

/// What made the copy smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimLayer {
    /// Old tool results became placeholders.
    Elide,
    /// Old rounds were left out.
    Drop,
}

impl TrimLayer {
    /// The word used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elide => "elide",
            Self::Drop => "drop",
        }
    }
}

/// One reduction, in estimated tokens of the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Which layer.
    pub layer: TrimLayer,
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// The model-bound copy.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The system message, where there is one, and the kept messages.
    bound: Vec<Message>,
    /// Messages of the transcript taken in so far.
    taken: usize,
    /// Tool rounds among them.
    rounds: usize,
    /// Tool rounds whose long results are elided.
    elided_rounds: usize,
    /// Messages of the transcript that the drop boundary lies behind.
    dropped: usize,
    tokens: u64,
}

impl Window {
    /// The messages of the next request.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.bound
    }

    /// Their estimated tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Takes in what is new in the transcript and keeps to the policy. Says what was reduced.
    pub fn update(&mut self, transcript: &Transcript, policy: &WindowPolicy) -> Vec<Trim> {
        let messages = transcript.messages();
        let system_changed = self.system() != transcript.system.as_deref();
        if self.taken > messages.len() || system_changed {
            *self = Self::default();
        }
        if self.taken == 0
            && let Some(system) = &transcript.system
            && self.bound.is_empty()
        {
            self.append(Message::system(system.as_str()));
        }
        for message in &messages[self.taken..] {
            self.rounds += usize::from(is_tool_round(message));
            self.append(message.clone());
        }
        self.taken = messages.len();
        let mut trims = Vec::new();
        if policy.enabled {
            trims.extend(self.elide(messages, policy));
            trims.extend(self.drop_rounds(messages, policy));
        }
        trims
    }

    fn system(&self) -> Option<&str> {
        self.bound
            .first()
            .filter(|first| first.role == Speaker::System)
            .map(|first| first.content.as_str())
    }

    fn append(&mut self, message: Message) {
        self.tokens += estimate_message(&message);
        self.bound.push(message);
    }

    fn elide(&mut self, messages: &[Message], policy: &WindowPolicy) -> Option<Trim> {
        let step = policy.step_rounds.max(1);
        let boundary = self.rounds.saturating_sub(policy.keep_rounds) / step * step;
        if boundary <= self.elided_rounds {
            return None;
        }
        let before = self.tokens + policy.fixed_tokens;
        self.elided_rounds = boundary;
        self.rebuild(messages, policy);
        let after = self.tokens + policy.fixed_tokens;
        (after < before).then_some(Trim {
            layer: TrimLayer::Elide,
            before,
            after,
        })
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; a window is far below 2^52 tokens"
    )]
    fn drop_rounds(&mut self, messages: &[Message], policy: &WindowPolicy) -> Option<Trim> {
        let limit = (policy.context_window as f64 * policy.trim_threshold_pct / 100.0) as u64;
        let before = self.tokens + policy.fixed_tokens;
        if before <= limit {
            return None;
        }
        let starts = unit_starts(messages, self.dropped);
        let step = policy.step_rounds.max(1);
        // The latest round always stays; the steps in between are tried from the smallest that may do.
        for count in (step..starts.len())
            .step_by(step)
            .chain([starts.len().saturating_sub(1)])
        {
            let Some(&start) = starts.get(count).filter(|start| **start > self.dropped) else {
                continue;
            };
            self.dropped = start;
            self.rebuild(messages, policy);
            if self.tokens + policy.fixed_tokens <= limit {
                break;
            }
        }
        let after = self.tokens + policy.fixed_tokens;
        (after < before).then_some(Trim {
            layer: TrimLayer::Drop,
            before,
            after,
        })
    }

    fn rebuild(&mut self, messages: &[Message], policy: &WindowPolicy) {
        let system = self
            .bound
            .first()
            .filter(|first| first.role == Speaker::System)
            .cloned();
        self.bound.clear();
        self.tokens = 0;
        system.into_iter().for_each(|system| self.append(system));
        let last_user = messages.iter().rposition(|message| message.role == Speaker::User);
        let mut round = 0;
        for (index, message) in messages.iter().enumerate() {
            round += usize::from(is_tool_round(message));
            if index < self.dropped && Some(index) != last_user {
                continue;
            }
            let old = message.role == Speaker::Tool && round <= self.elided_rounds;
            self.append(if old {
                elided(message, policy.elide_over_chars)
            } else {
                message.clone()
            });
        }
    }
}

/// Where the whole rounds from `from` on begin: at each message that is no tool result.
fn unit_starts(messages: &[Message], from: usize) -> Vec<usize> {
    (from..messages.len())
        .filter(|&index| messages[index].role != Speaker::Tool)
        .collect()
}

/// A tool result with its text replaced by a placeholder that says how to get it back, where that is possible.
fn elided(message: &Message, over_chars: usize) -> Message {
    let chars = message.content.chars().count();
    if chars <= over_chars {
        return message.clone();
    }
    let content = match &message.recall_key {
        Some(key) => format!("[elided {chars} chars of tool output; retrieve with recall(key=\"{key}\")]"),
        None => format!("[elided {chars} chars of tool output]"),
    };
    Message {
        content,
        ..message.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;
    use proptest::prelude::*;

    const LONG: &str = "a result that is longer than ten characters and than the words put in its place";

    fn policy() -> WindowPolicy {
        WindowPolicy {
            enabled: true,
            keep_rounds: 2,
            elide_over_chars: 10,
            step_rounds: 1,
            context_window: 100_000,
            trim_threshold_pct: 80.0,
            fixed_tokens: 0,
        }
    }

    fn push_round(transcript: &mut Transcript, index: usize, result: &str) {
        let call = ToolCall {
            id: format!("c{index}"),
            name: "read".into(),
            arguments: "{}".into(),
            extra: Default::default(),
        };
        transcript.push(Message {
            tool_calls: vec![call],
            ..Message::assistant("")
        });
        transcript.push(Message::tool(format!("c{index}"), "read", result));
    }

    fn transcript(rounds: usize, result: &str) -> Transcript {
        let mut transcript = Transcript::new("c");
        transcript.system = Some("system".into());
        transcript.push(Message::user("do it"));
        (0..rounds).for_each(|index| push_round(&mut transcript, index, result));
        transcript
    }

    fn elided_count(window: &Window) -> usize {
        window
            .messages()
            .iter()
            .filter(|message| message.content.starts_with("[elided"))
            .count()
    }

    #[test]
    fn old_long_results_become_placeholders_and_name_their_key() {
        let mut transcript = transcript(4, LONG);
        transcript.push(Message {
            recall_key: Some("dispatch/j1".into()),
            ..Message::tool("c3", "dispatch", LONG)
        });
        push_round(&mut transcript, 4, "short");
        push_round(&mut transcript, 5, LONG);
        let mut window = Window::default();
        let trims = window.update(&transcript, &policy());
        assert_eq!(trims.len(), 1);
        assert!(trims[0].layer == TrimLayer::Elide && trims[0].after < trims[0].before);
        let texts: Vec<_> = window
            .messages()
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        assert_eq!(texts[3], "[elided 79 chars of tool output]");
        assert!(texts.contains(&"[elided 79 chars of tool output; retrieve with recall(key=\"dispatch/j1\")]"));
        assert!(texts.contains(&"short") && texts.last() == Some(&LONG));
        assert_eq!(transcript.messages()[2].content, LONG, "the transcript stays as it is");
    }

    #[test]
    fn a_result_of_exactly_the_limit_stays() {
        let mut window = Window::default();
        window.update(&transcript(5, "1234567890"), &policy());
        assert_eq!(elided_count(&window), 0);
    }

    #[test]
    fn the_elision_boundary_moves_in_steps() {
        let mut window = Window::default();
        let policy = WindowPolicy {
            step_rounds: 4,
            ..policy()
        };
        let counts: Vec<_> = (0..=10)
            .map(|rounds| {
                window.update(&transcript(rounds, LONG), &policy);
                elided_count(&window)
            })
            .collect();
        assert_eq!(counts, [0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 8]);
    }

    #[test]
    fn under_pressure_the_oldest_rounds_go_and_the_latest_user_message_stays() {
        let transcript = transcript(50, &"x".repeat(400));
        let policy = WindowPolicy {
            keep_rounds: 100,
            context_window: 2000,
            trim_threshold_pct: 50.0,
            ..policy()
        };
        let mut window = Window::default();
        let trims = window.update(&transcript, &policy);
        assert!(trims[0].layer == TrimLayer::Drop && trims[0].after <= 1000);
        assert!(window.tokens() > 700, "no more than needed is dropped");
        assert_eq!(window.messages()[0].content, "system");
        assert_eq!(window.messages()[1].content, "do it");
        assert_eq!(window.messages().last().unwrap().tool_call_id.as_deref(), Some("c49"));
    }

    #[test]
    fn disabled_means_everything_is_sent() {
        let transcript = transcript(50, &"x".repeat(400));
        let policy = WindowPolicy {
            enabled: false,
            context_window: 10,
            ..policy()
        };
        let mut window = Window::default();
        assert!(window.update(&transcript, &policy).is_empty());
        assert_eq!(window.messages()[1..], *transcript.messages());
    }

    #[test]
    fn one_round_larger_than_the_window_is_sent_all_the_same() {
        let transcript = transcript(3, &"x".repeat(40_000));
        let policy = WindowPolicy {
            keep_rounds: 9,
            context_window: 1000,
            ..policy()
        };
        let mut window = Window::default();
        window.update(&transcript, &policy);
        assert_eq!(window.messages().len(), 4, "system, user, and the last round whole");
    }

    proptest! {
        #[test]
        fn linkage_and_anchors_hold_and_the_prefix_is_stable_between_moves(
            steps in proptest::collection::vec((0u8..3, 0usize..300), 1..60),
            context_window in 50u64..3000, step_rounds in 1usize..5, keep_rounds in 0usize..5
        ) {
            let policy = WindowPolicy { context_window, step_rounds, keep_rounds, ..policy() };
            let mut transcript = Transcript::new("c");
            transcript.system = Some("system".into());
            let mut window = Window::default();
            let mut before: Vec<Message> = Vec::new();
            for (index, (kind, size)) in steps.into_iter().enumerate() {
                match kind {
                    0 => transcript.push(Message::user("u".repeat(size + 1))),
                    1 => transcript.push(Message::assistant("a".repeat(size + 1))),
                    _ => push_round(&mut transcript, index, &"r".repeat(size)),
                }
                let moved = (window.elided_rounds, window.dropped);
                let trims = window.update(&transcript, &policy);
                prop_assert_eq!(window.tokens(), window.messages().iter().map(estimate_message).sum::<u64>());
                prop_assert_eq!(&window.messages()[0].content, "system");
                let last_user = transcript.messages().iter().rfind(|m| m.role == Speaker::User);
                if let Some(user) = last_user {
                    prop_assert!(window.messages().contains(user));
                }
                let called: Vec<_> =
                    window.messages().iter().flat_map(|m| m.tool_calls.iter().map(|c| c.id.clone())).collect();
                let answered: Vec<_> =
                    window.messages().iter().filter_map(|m| m.tool_call_id.clone()).collect();
                prop_assert_eq!(called, answered);
                if (window.elided_rounds, window.dropped) == moved {
                    prop_assert!(trims.is_empty());
                    prop_assert_eq!(&window.messages()[..before.len()], &before[..]);
                }
                before = window.messages().to_vec();
            }
        }
    }
}
