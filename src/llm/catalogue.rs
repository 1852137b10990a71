//! Which models a server has, and how much they take: `GET /models` in all its forms.
//!
//! A list has an age and can be kept; nothing here is asked for before a request.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Limits;
use super::client::Client;
use super::failure::{Code, Fault};
use super::json::{self, float, number};
use super::provider::LlmFailure;
use super::usage::Price;
use crate::cancel::CancelToken;

/// The most of a list that is read, in bytes. The largest public one has about 1 MB.
const LONGEST_LIST: usize = 16 * 1024 * 1024;

/// The time limit for a list.
const LIST_WAIT: Duration = Duration::from_secs(30);

/// What is known of one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The id to request it by.
    pub id: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other ids of the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Tokens of prompt and answer together: what is in use where the server tells, else what the model could take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
    /// The most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Whether it can call tools, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// The models of a server, as they were at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// When the list was got, in milliseconds since 1970.
    pub fetched_ms: u64,
    /// The models, in the server's order.
    pub models: Vec<ModelInfo>,
}

impl Catalogue {
    /// The model with this id or alias.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&ModelInfo> {
        let by_id = self.models.iter().find(|model| model.id == id);
        by_id.or_else(|| {
            self.models
                .iter()
                .find(|model| model.aliases.iter().any(|alias| alias == id))
        })
    }

    /// How old the list is.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.fetched_ms))
    }
}

impl Client {
    /// Asks the server for its models.
    ///
    /// # Errors
    /// As with any request; a body that is no list is `unreadable`.
    pub async fn models(&self, cancel: &CancelToken) -> Result<Catalogue, LlmFailure> {
        let mut headers = self.headers("")?;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let limits = Limits::whole(LIST_WAIT);
        let outgoing = self.outgoing(Method::GET, self.models_url(), headers, bytes::Bytes::new(), &limits)?;
        let mut response = outgoing
            .exchange(None, cancel)
            .await
            .map_err(|none| self.no_answer(none))?;
        let reading = async {
            let mut body = Vec::new();
            loop {
                match response.chunk().await {
                    Ok(Some(bytes)) if body.len() + bytes.len() <= LONGEST_LIST => body.extend_from_slice(&bytes),
                    Ok(Some(_)) => break Err(Fault::new(Code::Unreadable, "its list of models is endless").into()),
                    Ok(None) => break Ok(body),
                    Err(error) => break Err(Box::new(super::answer::transport(&error, "the list of models"))),
                }
            }
        };
        let waited = cancel.run("llm", tokio::time::timeout(LIST_WAIT, reading)).await?;
        let late = |_| Err(Box::new(Fault::new(Code::Timeout, "its list of models did not end")));
        let body = waited.unwrap_or_else(late).map_err(|fault| self.failed(*fault))?;
        let text = String::from_utf8_lossy(&body);
        let value: Value = json::parse(text.trim()).unwrap_or_default();
        let models = parse(&value).ok_or_else(|| {
            let failed = value.is_object().then(|| Fault::from_payload(&value));
            self.failed(failed.unwrap_or_else(|| {
                let mut fault = Fault::unreadable(&body[..body.len().min(2000)]);
                fault.retryable = false;
                fault
            }))
        })?;
        Ok(Catalogue {
            fetched_ms: now_ms(),
            models,
        })
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a list of models: `{data: [..]}`, `{models: [..]}`, or the bare list. `None` where it is no list.
#[must_use]
pub fn parse(value: &Value) -> Option<Vec<ModelInfo>> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        Value::Object(map) => {
            let member = |key: &str| map.get(key).filter(|list| list.is_array());
            match member("data").or_else(|| member("models")).and_then(Value::as_array) {
                Some(list) => list.as_slice(),
                // A server without any model.
                None if map.get("data").is_some_and(Value::is_null) => &[],
                None => return None,
            }
        }
        _ => return None,
    };
    let mut models: Vec<ModelInfo> = Vec::with_capacity(list.len());
    for model in list.iter().filter_map(model) {
        if !models.iter().any(|known| known.id == model.id) {
            models.push(model);
        }
    }
    Some(models)
}

fn model(entry: &Value) -> Option<ModelInfo> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = entry
        .as_str()
        .or_else(|| text("id"))
        .or_else(|| text("model"))
        .or_else(|| text("name"))?;
    let count = |value: Option<&Value>| value.and_then(number).filter(|count| *count > 0);
    let top = |key: &str| count(entry.get(key));
    let nested = |outer: &str, key: &str| count(entry.get(outer).and_then(|inner| inner.get(key)));
    // What is in use, then what is told, then what the model could take at best.
    let in_use = nested("meta", "n_ctx").or_else(|| top("loaded_context_length"));
    let told = [
        "max_model_len",
        "context_length",
        "context_window",
        "max_input_tokens",
        "inputTokenLimit",
        "max_context_length",
    ]
    .iter()
    .find_map(|key| top(key));
    let provider = nested("top_provider", "context_length");
    let told = match (told, provider) {
        (Some(told), Some(provider)) => Some(told.min(provider)),
        (told, provider) => told.or(provider),
    };
    let capabilities = entry.get("capabilities");
    let parameters = entry.get("supported_parameters").and_then(Value::as_array);
    Some(ModelInfo {
        id: id.to_owned(),
        name: text("name")
            .or_else(|| text("display_name"))
            .filter(|name| *name != id)
            .map(str::to_owned),
        aliases: entry
            .get("aliases")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|alias| alias.as_str().map(str::to_owned))
            .collect(),
        context_length: in_use.or(told).or_else(|| nested("meta", "n_ctx_train")),
        max_output_tokens: nested("top_provider", "max_completion_tokens").or_else(|| {
            ["max_completion_tokens", "max_output_tokens", "outputTokenLimit"]
                .iter()
                .find_map(|key| top(key))
        }),
        tools: capabilities
            .and_then(|known| known.get("function_calling"))
            .and_then(Value::as_bool)
            .or_else(|| parameters.map(|list| list.iter().any(|name| name == "tools"))),
        price: entry.get("pricing").and_then(price),
    })
}

/// Prices: `prompt` and `completion` are for one token (OpenRouter), `input` and `output` for a million (Together).
fn price(pricing: &Value) -> Option<Price> {
    let get = |key: &str| pricing.get(key).and_then(float).filter(|price| *price >= 0.0);
    if let (Some(prompt), Some(completion)) = (get("prompt"), get("completion")) {
        return Some(Price {
            prompt: prompt * 1e6,
            completion: completion * 1e6,
            cached: get("input_cache_read").map(|price| price * 1e6),
        });
    }
    Some(Price {
        prompt: get("input")?,
        completion: get("output")?,
        cached: get("cached_input"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_in_all_forms() {
        let ids =
            |value: Value| parse(&value).map(|models| models.into_iter().map(|model| model.id).collect::<Vec<_>>());
        let one = Some(vec!["a".to_owned()]);
        assert_eq!(ids(json!({"data": [{"id": "a"}]})), one);
        assert_eq!(ids(json!([{"id": "a"}, {"id": "a"}, 7, {}])), one);
        assert_eq!(ids(json!(["a"])), one);
        assert_eq!(ids(json!({"models": [{"name": "a", "model": "a"}]})), one);
        assert_eq!(ids(json!({"object": "list", "data": null})), Some(vec![]));
        assert_eq!(ids(json!({"detail": "no"})), None);
        assert_eq!(ids(json!("no")), None);
    }

    #[test]
    fn prices_are_for_a_million_tokens() {
        let price = |value: Value| model(&json!({"id": "a", "pricing": value})).unwrap().price;
        let openrouter =
            price(json!({"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"})).unwrap();
        assert!((openrouter.prompt - 3.0).abs() < 1e-9 && (openrouter.cached.unwrap() - 0.3).abs() < 1e-9);
        let together = price(json!({"input": 0.2, "output": 0.6})).unwrap();
        assert!((together.completion - 0.6).abs() < 1e-9);
        assert_eq!(price(json!({"prompt": "-1", "completion": "-1"})), None);
    }

    #[test]
    fn a_model_is_found_by_its_alias() {
        let catalogue = Catalogue {
            fetched_ms: now_ms(),
            models: parse(&json!([{"id": "a-latest", "aliases": ["a-2601"]}])).unwrap(),
        };
        assert_eq!(catalogue.find("a-2601").unwrap().id, "a-latest");
        assert!(catalogue.age() < Duration::from_secs(60));
    }
}
