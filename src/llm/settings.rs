//! What a client of one server needs to know: address, key, time limits, proxies. A plain struct that any caller can fill.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::http::Endpoint;
use super::quirks::Quirks;
use super::secret::Secret;
use crate::error::{AgentError, ErrorKind};

/// The time limits of a request. The defaults are the product's documented ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    /// The whole of a request that is not streamed; and, of a streamed one, the longest time without any event.
    pub timeout: Duration,
    /// Connecting, TLS, and the wait for the answer's headers.
    pub connect: Duration,
    /// Sending the request's body.
    pub send: Duration,
    /// Kept and checked because configurations have it; asynchronous reads have no poll step, so it has no effect.
    pub recv: Duration,
    /// The longest silence (no byte, not even a comment) of an open stream.
    pub stream_stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            connect: Duration::from_secs(120),
            send: Duration::from_secs(30),
            recv: Duration::from_millis(500),
            stream_stall: Duration::from_secs(120),
        }
    }
}

/// Where requests go through. Loopback addresses never go through a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// For `http://` addresses.
    pub http: Option<String>,
    /// For `https://` addresses.
    pub https: Option<String>,
    /// For both, where the other two are not set.
    pub all: Option<String>,
    /// Hosts, domains, addresses and networks reached directly, separated by commas; `*` is all.
    pub no_proxy: String,
}

impl ProxySettings {
    /// Reads the usual variables (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, lower case first) from a
    /// snapshot of the environment. Upper-case `HTTP_PROXY` is ignored where `REQUEST_METHOD` is set: there it is a
    /// header that a stranger sent.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let get = |lower: &str, upper: &str| {
            var(lower)
                .or_else(|| var(upper))
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let cgi = var("REQUEST_METHOD").is_some();
        Self {
            http: get("http_proxy", if cgi { "http_proxy" } else { "HTTP_PROXY" }),
            https: get("https_proxy", "HTTPS_PROXY"),
            all: get("all_proxy", "ALL_PROXY"),
            no_proxy: get("no_proxy", "NO_PROXY").unwrap_or_default(),
        }
    }

    /// Reads the variables of this process. Inside a host prefer [`ProxySettings::from_vars`] on a snapshot.
    #[must_use]
    pub fn from_system() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }
}

/// One server.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The base (`http://host/v1`) or the whole path (`http://host/v1/chat/completions`).
    pub api_url: String,
    /// The key; servers on this machine mostly need none.
    pub api_key: Option<Secret>,
    /// Where the key came from (the variable's name), for the hint when the server refuses it.
    pub api_key_name: Option<String>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Headers added to each request. Their values are treated as secrets.
    pub extra_headers: BTreeMap<String, String>,
    /// A file of PEM certificates trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Proxies.
    pub proxies: ProxySettings,
    /// Deviations to use instead of those the table knows for this server.
    pub quirks: Option<Quirks>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new("")
    }
}

impl ClientConfig {
    /// The defaults for a server at `api_url`.
    #[must_use]
    pub fn new(api_url: impl Into<String>) -> Self {
        Self {
            api_url: api_url.into(),
            api_key: None,
            api_key_name: None,
            timeouts: Timeouts::default(),
            extra_headers: BTreeMap::new(),
            ca_file: None,
            proxies: ProxySettings::default(),
            quirks: None,
        }
    }

    /// Sets the deviations a user configured: the member `row` names a row of the table, the others change single
    /// deviations of that row, or of what the table knows of this server. Nothing configured changes nothing.
    ///
    /// # Errors
    /// `schema` where the row or a member does not exist, or a value does not fit.
    pub fn set_quirks(&mut self, model: &str, mut changes: Map<String, Value>) -> Result<(), AgentError> {
        if changes.is_empty() {
            return Ok(());
        }
        let bad = |why: String| {
            AgentError::new(
                ErrorKind::Schema,
                "bad_quirks",
                format!("`llm_config.quirks` of {model}: {why}"),
            )
            .from_origin("llm")
            .with_hint("docs/LLM.md lists the rows and their deviations")
        };
        let base = match changes.remove("row") {
            None => {
                let host = Endpoint::parse(&self.api_url)?.host;
                Quirks::lookup(&host, model)
            }
            Some(Value::String(row)) => {
                Quirks::named(&row).ok_or_else(|| bad(format!("there is no row \"{row}\" in the table")))?
            }
            Some(other) => return Err(bad(format!("`row` must be a row's name, but is {other}"))),
        };
        self.quirks = Some(base.with_overrides(&changes).map_err(bad)?);
        Ok(())
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn proxies_come_from_the_snapshot_lower_case_first() {
        let vars = |name: &str| match name {
            "http_proxy" => Some("http://low:1".to_owned()),
            "HTTP_PROXY" => Some("http://up:1".to_owned()),
            "HTTPS_PROXY" => Some(" http://s:2 ".to_owned()),
            "NO_PROXY" => Some("corp.example".to_owned()),
            _ => None,
        };
        let proxies = ProxySettings::from_vars(vars);
        assert_eq!(proxies.http.as_deref(), Some("http://low:1"));
        assert_eq!(proxies.https.as_deref(), Some("http://s:2"));
        assert_eq!(proxies.no_proxy, "corp.example");
    }

    #[test]
    fn configured_deviations_stand_over_the_table() {
        let changed = |changes: Value| {
            let mut config = ClientConfig::new("https://api.openai.com/v1");
            let Value::Object(changes) = changes else { panic!() };
            config.set_quirks("m", changes).map(|()| config.quirks)
        };
        assert_eq!(changed(json!({})).unwrap(), None);
        let known = Quirks::lookup("api.openai.com", "m");
        let one = changed(json!({"stream_options": false})).unwrap().unwrap();
        assert_eq!((one.stream_options, one.max_tokens), (false, known.max_tokens));
        let row = changed(json!({"row": "mistral", "stream_options": true}))
            .unwrap()
            .unwrap();
        assert_eq!(
            (row.call_ids, row.stream_options),
            (super::super::quirks::CallIds::Nine, true)
        );
        for wrong in [
            json!({"row": "nobody"}),
            json!({"row": 1}),
            json!({"strem": 1}),
            json!({"stream_options": "no"}),
        ] {
            let error = changed(wrong.clone()).unwrap_err();
            assert_eq!(&*error.code, "bad_quirks", "{wrong}");
        }
    }

    #[test]
    fn a_header_of_a_stranger_is_no_proxy() {
        let vars = |name: &str| matches!(name, "HTTP_PROXY" | "REQUEST_METHOD").then(|| "http://evil:1".to_owned());
        assert_eq!(ProxySettings::from_vars(vars).http, None);
    }
}
