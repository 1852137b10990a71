//! Counting tokens: what servers say in their several dialects, and what they cost.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::{float, number};
use crate::message::Usage;

/// Reads a `usage` member. `None` where it holds no count at all.
#[must_use]
pub fn parse(value: &Value) -> Option<Usage> {
    let map = value.as_object()?;
    let get = |names: &[&str]| names.iter().find_map(|name| map.get(*name).and_then(number));
    let nested = |outer: &[&str], inner: &str| {
        outer
            .iter()
            .find_map(|name| map.get(*name).and_then(|details| details.get(inner)).and_then(number))
    };
    let prompt = get(&["prompt_tokens", "input_tokens"]);
    let completion = get(&["completion_tokens", "output_tokens"]);
    let total = get(&["total_tokens"]);
    if prompt.is_none() && completion.is_none() && total.is_none() {
        return None;
    }
    // Only a sum: what cannot be split is counted as sent, and marked.
    let estimated = prompt.is_none() || completion.is_none();
    let completion_tokens = completion.unwrap_or_else(|| match (total, prompt) {
        (Some(total), Some(prompt)) => total.saturating_sub(prompt),
        _ => 0,
    });
    let prompt_tokens = prompt.unwrap_or_else(|| total.unwrap_or(0).saturating_sub(completion_tokens));
    let prompt_details = ["prompt_tokens_details", "input_tokens_details"];
    let completion_details = ["completion_tokens_details", "output_tokens_details"];
    Some(Usage {
        prompt_tokens,
        completion_tokens,
        cached_tokens: nested(&prompt_details, "cached_tokens").or_else(|| {
            get(&[
                "prompt_cache_hit_tokens",
                "cached_tokens",
                "cache_read_input_tokens",
                "num_cached_tokens",
            ])
        }),
        reasoning_tokens: nested(&completion_details, "reasoning_tokens").or_else(|| get(&["reasoning_tokens"])),
        cost: ["cost", "total_cost", "estimated_cost"]
            .iter()
            .find_map(|name| map.get(*name).and_then(float)),
        requests: 1,
        estimated,
    })
}

/// Reads llama.cpp's `timings`, which are there even where `usage` is not.
#[must_use]
pub fn parse_timings(value: &Value) -> Option<Usage> {
    let map = value.as_object()?;
    let get = |name: &str| map.get(name).and_then(number);
    let cached = get("cache_n");
    Some(Usage {
        prompt_tokens: get("prompt_n")?.saturating_add(cached.unwrap_or(0)),
        completion_tokens: get("predicted_n")?,
        cached_tokens: cached,
        requests: 1,
        ..Usage::default()
    })
}

/// The newer of two counts of one answer. Running totals replace each other; a count of nothing replaces none.
pub(crate) fn newer(old: Option<Usage>, new: Option<Usage>) -> Option<Usage> {
    match (old, new) {
        (Some(old), Some(new)) if new.total_tokens() == 0 => Some(old),
        (Some(old), Some(new)) => Some(Usage {
            cached_tokens: new.cached_tokens.or(old.cached_tokens),
            reasoning_tokens: new.reasoning_tokens.or(old.reasoning_tokens),
            cost: new.cost.or(old.cost),
            ..new
        }),
        (old, new) => new.or(old),
    }
}

/// What one million tokens cost, in the currency the server bills in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens sent.
    pub prompt: f64,
    /// Tokens that came back.
    pub completion: f64,
    /// Tokens the server had in its cache; the full price where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// Adds the cost by price list where the server did not tell it; the sum is then marked as an estimate.
pub fn add_cost(usage: &mut Usage, price: &Price) {
    if usage.cost.is_some() {
        return;
    }
    let cached = usage.cached_tokens.unwrap_or(0).min(usage.prompt_tokens);
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
    let part = |count: u64, price: f64| count as f64 * price / 1e6;
    usage.cost = Some(
        part(usage.prompt_tokens - cached, price.prompt)
            + part(cached, price.cached.unwrap_or(price.prompt))
            + part(usage.completion_tokens, price.completion),
    );
    usage.estimated = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dialects_of_the_same_counts() {
        let anthropic = parse(&json!({"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 3})).unwrap();
        assert_eq!((anthropic.prompt_tokens, anthropic.completion_tokens), (9, 4));
        assert_eq!(anthropic.cached_tokens, Some(3));
        let only_total = parse(&json!({"total_tokens": "19"})).unwrap();
        assert_eq!((only_total.total_tokens(), only_total.estimated), (19, true));
        assert_eq!(parse(&json!({})), None);
        assert_eq!(parse(&json!([])), None);
    }

    #[test]
    fn a_count_of_nothing_replaces_no_count() {
        let old = parse(&json!({"prompt_tokens": 5, "completion_tokens": 2}));
        let nothing = parse(&json!({"prompt_tokens": 0, "completion_tokens": 0}));
        assert_eq!(newer(old.clone(), nothing).unwrap().prompt_tokens, 5);
        assert_eq!(newer(None, old.clone()), old);
    }

    #[test]
    fn cost_by_price_list_is_an_estimate_and_told_cost_is_not_touched() {
        let mut usage = Usage {
            prompt_tokens: 1_000_000,
            completion_tokens: 500_000,
            cached_tokens: Some(400_000),
            requests: 1,
            ..Usage::default()
        };
        let price = Price {
            prompt: 2.0,
            completion: 10.0,
            cached: Some(0.5),
        };
        add_cost(&mut usage, &price);
        assert!((usage.cost.unwrap() - 6.4).abs() < 1e-9 && usage.estimated);
        let told = Usage {
            cost: Some(1.0),
            ..Usage::default()
        };
        let mut same = told.clone();
        add_cost(&mut same, &price);
        assert_eq!(same, told);
    }
}
