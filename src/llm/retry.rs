//! When a request is made again, and after how long: the two layers, each a pure decision. Who makes requests nests them.
//!
//! The inner layer repeats requests that failed on the way (connection, server, overload, rate); the outer one repeats
//! those whose answer held nothing. With the defaults that is at most (2 + 1) × (2 + 1) = 9 requests.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::provider::{ChatResponse, LlmFailure};

/// By how much a wait is varied, so that clients that failed together do not come back together: ± a quarter.
const SPREAD: f64 = 0.25;
/// A wait the server asked for is only lengthened, by a tenth at most.
const SPREAD_ASKED: f64 = 0.1;

/// The inner layer: failures on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// How many times a request is made again.
    pub max_retries: u32,
    /// The wait before each of them, in milliseconds; the last one repeats.
    pub backoff_ms: Vec<u64>,
    /// Whether a streamed answer of which something was shown is asked for again.
    pub after_output: bool,
    /// The longest wait a server may ask for, in milliseconds; it is not retried when it asks for more.
    pub retry_after_max_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            backoff_ms: vec![2000, 8000],
            after_output: false,
            retry_after_max_ms: 60_000,
        }
    }
}

impl RetryPolicy {
    /// The wait before the request is made again, or `None` if it is not.
    ///
    /// `retries_made` counts the repetitions so far, `random` is a number from 0 to 1 ([`random`] gives one).
    #[must_use]
    pub fn decide(&self, retries_made: u32, failure: &LlmFailure, random: f64) -> Option<Duration> {
        if retries_made >= self.max_retries || !failure.error.retryable || failure.error.is_cancelled() {
            return None;
        }
        if failure.emitted_output && !self.after_output {
            return None;
        }
        match failure.retry_after {
            Some(asked) if asked > Duration::from_millis(self.retry_after_max_ms) => None,
            Some(asked) => Some(asked.mul_f64(1.0 + SPREAD_ASKED * unit(random))),
            None => Some(backoff(&self.backoff_ms, retries_made, random)),
        }
    }
}

/// The outer layer: answers that hold neither text nor calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmptyRetryPolicy {
    /// How many times a request is made again.
    pub max_retries: u32,
    /// The wait before each of them, in milliseconds; the last one repeats.
    pub backoff_ms: Vec<u64>,
}

impl Default for EmptyRetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            backoff_ms: vec![500, 1000],
        }
    }
}

impl EmptyRetryPolicy {
    /// The wait before the request is made again, or `None` if it is not.
    #[must_use]
    pub fn decide(&self, retries_made: u32, response: &ChatResponse, random: f64) -> Option<Duration> {
        let again = response.is_empty() && retries_made < self.max_retries;
        again.then(|| backoff(&self.backoff_ms, retries_made, random))
    }
}

fn backoff(waits: &[u64], retries_made: u32, random: f64) -> Duration {
    let at = usize::try_from(retries_made).unwrap_or(usize::MAX);
    let wait = waits.get(at).or(waits.last()).copied().unwrap_or(0);
    Duration::from_millis(wait).mul_f64(1.0 - SPREAD + 2.0 * SPREAD * unit(random))
}

fn unit(random: f64) -> f64 {
    if random.is_finite() {
        random.clamp(0.0, 1.0)
    } else {
        0.5
    }
}

/// A random number from 0 to 1: good enough to spread waits, no good for secrets.
#[must_use]
pub fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let number = bits as f64;
    number / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{AgentError, ErrorKind};
    use proptest::prelude::*;

    fn failure(retryable: bool) -> LlmFailure {
        LlmFailure::new(AgentError::new(ErrorKind::Transport, "server", "x").retryable(retryable))
    }

    #[test]
    fn the_last_wait_repeats_and_the_count_ends() {
        let policy = RetryPolicy {
            max_retries: 4,
            ..RetryPolicy::default()
        };
        let waits: Vec<_> = (0..5).map(|made| policy.decide(made, &failure(true), 0.5)).collect();
        let ms = |count| Some(Duration::from_millis(count));
        assert_eq!(waits, [ms(2000), ms(8000), ms(8000), ms(8000), None]);
    }

    #[test]
    fn what_is_not_repeated() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.decide(0, &failure(false), 0.5), None);
        assert_eq!(
            policy.decide(0, &AgentError::cancelled("llm").retryable(true).into(), 0.5),
            None
        );
        let mut shown = failure(true);
        shown.emitted_output = true;
        assert_eq!(policy.decide(0, &shown, 0.5), None);
        let brave = RetryPolicy {
            after_output: true,
            ..policy
        };
        assert!(brave.decide(0, &shown, 0.5).is_some());
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_up_to_the_limit() {
        let policy = RetryPolicy::default();
        let mut asked = failure(true);
        asked.retry_after = Some(Duration::from_secs(60));
        assert_eq!(policy.decide(0, &asked, 0.0), Some(Duration::from_secs(60)));
        asked.retry_after = Some(Duration::from_millis(60_001));
        assert_eq!(policy.decide(0, &asked, 0.0), None);
    }

    proptest! {
        /// A wait never leaves its spread, and is never shorter than asked.
        #[test]
        fn waits_stay_in_bounds(made in 0u32..9, random: f64, asked in prop::option::of(0u64..60_000)) {
            let policy = RetryPolicy { max_retries: 9, ..RetryPolicy::default() };
            let mut failure = failure(true);
            failure.retry_after = asked.map(Duration::from_millis);
            let wait = policy.decide(made, &failure, random).unwrap().as_millis();
            match asked {
                Some(asked) => prop_assert!(wait >= u128::from(asked) && wait <= u128::from(asked) * 11 / 10 + 1),
                None => prop_assert!((1500..=10_000).contains(&wait)),
            }
        }
    }
}
