//! The pooled HTTP client of one server: TLS only where the address needs it, proxies, no surprises with redirects.

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{NoProxy, Proxy, Url};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::pool::{Dials, Pool};
use super::quirks::KeyHeader;
use super::redact::is_secret_name;
use super::secret::Secret;
use super::settings::{ClientConfig, ProxySettings};
use crate::error::{AgentError, ErrorKind};

/// Addresses that are never reached through a proxy.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// The path of the chat endpoint below the base.
const CHAT: &str = "/chat/completions";

/// The addresses of one server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub chat: Url,
    pub models: Url,
    /// Host and port, for people.
    pub server: String,
    /// The host alone, for the quirk table.
    pub host: String,
}

impl Endpoint {
    /// Reads the configured address: the base, or the whole path of the chat endpoint.
    pub fn parse(api_url: &str) -> Result<Self, AgentError> {
        let bad = |why: &str| {
            AgentError::new(
                ErrorKind::Schema,
                "bad_api_url",
                format!("The address of the model server, \"{}\", {why}.", shown(api_url)),
            )
            .from_origin("llm")
            .with_hint("give the base address, for example http://127.0.0.1:8080/v1")
        };
        let text = api_url.trim();
        if text.is_empty() {
            return Err(bad("is empty"));
        }
        if !text.contains("://") {
            return Err(bad("does not start with http:// or https://"));
        }
        let mut chat = Url::parse(text).map_err(|error| bad(&format!("cannot be read: {error}")))?;
        if !matches!(chat.scheme(), "http" | "https") {
            return Err(bad("does not start with http:// or https://"));
        }
        let Some(host) = chat.host_str().map(str::to_owned) else {
            return Err(bad("names no host"));
        };
        chat.set_fragment(None);
        let base = chat.path().trim_end_matches('/');
        let base = base.strip_suffix(CHAT).unwrap_or(base).trim_end_matches('/').to_owned();
        let mut models = chat.clone();
        chat.set_path(&format!("{base}{CHAT}"));
        models.set_path(&format!("{base}/models"));
        let server = chat
            .port()
            .map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        Ok(Self {
            chat,
            models,
            server,
            host,
        })
    }
}

impl Endpoint {
    /// What of the address nobody must see: the password, a user that stands for one, the values of parameters that are
    /// named like secrets; each as it is written and as it is meant.
    pub fn secrets(&self) -> Vec<Secret> {
        let url = &self.chat;
        let mut found: Vec<String> = match url.password() {
            Some(password) => vec![password.to_owned()],
            None => vec![url.username().to_owned()],
        };
        let pairs = url.query_pairs().filter(|(name, _)| is_secret_name(name));
        found.extend(pairs.map(|(_, value)| value.into_owned()));
        let raw = url.query().unwrap_or_default().split('&');
        let raw = raw.filter_map(|pair| pair.split_once('='));
        found.extend(
            raw.filter(|(name, _)| is_secret_name(name))
                .map(|(_, value)| value.to_owned()),
        );
        let meant: Vec<String> = found.iter().map(|text| percent_decoded(text)).collect();
        found.extend(meant);
        found.sort();
        found.dedup();
        found.iter().filter(|text| !text.is_empty()).map(Secret::new).collect()
    }
}

/// `text` with its `%XX` replaced; what is no UTF-8 then stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                out.push(byte);
                rest = &tail[2..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// An address without user and password.
fn shown(api_url: &str) -> String {
    match Url::parse(api_url.trim()) {
        Ok(mut url) if url.has_host() => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.to_string()
        }
        _ => api_url.split('@').next_back().unwrap_or_default().to_owned(),
    }
}

/// Builds the pooled client.
pub(crate) fn build(config: &ClientConfig, endpoint: &Endpoint) -> Result<Pool, AgentError> {
    let proxies = proxies(&config.proxies)?;
    let encrypted = endpoint.chat.scheme() == "https"
        || [&config.proxies.http, &config.proxies.all]
            .into_iter()
            .flatten()
            .any(|proxy| proxy.starts_with("https:"));
    let dials = Dials::default();
    let mut builder = reqwest::Client::builder()
        .connector_layer(dials.clone())
        .tls_backend_preconfigured(tls(config, encrypted)?)
        .connect_timeout(config.timeouts.connect)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .no_proxy();
    for proxy in proxies {
        builder = builder.proxy(proxy);
    }
    let http = builder.build().map_err(|error| {
        AgentError::new(
            ErrorKind::Internal,
            "http_client",
            "The HTTP client could not be set up.",
        )
        .from_origin("llm")
        .with_cause(&error)
    })?;
    Ok(Pool { http, dials })
}

/// The TLS settings. For plain addresses there are no certificates to load: the settings only fill the place.
fn tls(config: &ClientConfig, encrypted: bool) -> Result<rustls::ClientConfig, AgentError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls_error(&error))?;
    if !encrypted {
        return Ok(builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth());
    }
    let extra = match &config.ca_file {
        None => Vec::new(),
        Some(path) => {
            let bad = |why: String| {
                AgentError::new(
                    ErrorKind::Schema,
                    "bad_ca_file",
                    format!("The certificate file {} {why}.", path.display()),
                )
                .from_origin("llm")
            };
            let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
                .map_err(|error| bad(format!("cannot be read: {error}")))?
                .collect::<Result<_, _>>()
                .map_err(|error| bad(format!("is no PEM file: {error}")))?;
            if certificates.is_empty() {
                return Err(bad("holds no certificate".to_owned()));
            }
            certificates
        }
    };
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider).map_err(|error| tls_error(&error))?;
    let mut tls = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

fn tls_error(error: &rustls::Error) -> AgentError {
    AgentError::new(ErrorKind::Transport, "connection", "TLS could not be set up.")
        .from_origin("llm")
        .with_cause(error)
        .with_hint("are the system's CA certificates installed? Else name a file of them")
}

/// Whether the proxies' addresses can be used.
pub(crate) fn check_proxies(settings: &ProxySettings) -> Result<(), AgentError> {
    proxies(settings).map(|_| ())
}

fn proxies(settings: &ProxySettings) -> Result<Vec<Proxy>, AgentError> {
    let direct = format!("{LOOPBACK},{}", settings.no_proxy);
    let mut out = Vec::new();
    let http = settings.http.as_ref().or(settings.all.as_ref());
    let https = settings.https.as_ref().or(settings.all.as_ref());
    for (url, encrypted) in [(http, false), (https, true)] {
        let Some(url) = url else { continue };
        let made = if encrypted { Proxy::https(url) } else { Proxy::http(url) };
        let proxy = made.map_err(|error| {
            AgentError::new(
                ErrorKind::Schema,
                "bad_proxy",
                format!("The proxy address \"{}\" cannot be read.", shown(url)),
            )
            .from_origin("llm")
            .with_cause(&error)
        })?;
        out.push(proxy.no_proxy(NoProxy::from_string(&direct)));
    }
    Ok(out)
}

/// The headers that every request has.
pub(crate) fn headers(config: &ClientConfig, key_header: KeyHeader) -> Result<HeaderMap, AgentError> {
    let bad = |what: &str| {
        AgentError::new(
            ErrorKind::Schema,
            "bad_header",
            format!("{what} holds characters that cannot be sent in a header."),
        )
        .from_origin("llm")
    };
    let mut headers = HeaderMap::new();
    let agent = concat!("agent-smith/", env!("CARGO_PKG_VERSION"));
    headers.insert(reqwest::header::USER_AGENT, HeaderValue::from_static(agent));
    if let Some(key) = config.api_key.as_ref().filter(|key| !key.is_empty()) {
        let (name, value) = match key_header {
            KeyHeader::Bearer => (reqwest::header::AUTHORIZATION, format!("Bearer {}", key.expose())),
            KeyHeader::ApiKey => (HeaderName::from_static("api-key"), key.expose().to_owned()),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| bad("The API key"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &config.extra_headers {
        let what = format!("The extra header \"{name}\"");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| bad(&what))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad(&what))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_and_the_whole_path_are_the_same_place() {
        for (given, chat, models) in [
            (
                "http://h:1/v1",
                "http://h:1/v1/chat/completions",
                "http://h:1/v1/models",
            ),
            (
                "http://h:1/v1/",
                "http://h:1/v1/chat/completions",
                "http://h:1/v1/models",
            ),
            (
                " http://h:1/v1/chat/completions/ ",
                "http://h:1/v1/chat/completions",
                "http://h:1/v1/models",
            ),
            ("https://h", "https://h/chat/completions", "https://h/models"),
            (
                "https://h/openai/deployments/x/chat/completions?api-version=1",
                "https://h/openai/deployments/x/chat/completions?api-version=1",
                "https://h/openai/deployments/x/models?api-version=1",
            ),
        ] {
            let endpoint = Endpoint::parse(given).unwrap();
            assert_eq!((endpoint.chat.as_str(), endpoint.models.as_str()), (chat, models));
        }
    }

    #[test]
    fn the_secrets_of_an_address() {
        let of = |url: &str| Endpoint::parse(url).unwrap().secrets();
        let secrets = of("http://u:p%40ss@h/v1?api-version=2024&api_key=k%2Bk");
        let texts: Vec<_> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(texts, ["k%2Bk", "k+k", "p%40ss", "p@ss"]);
        assert_eq!(of("https://tokentoken@h/v1")[0].expose(), "tokentoken");
        assert!(of("http://h/v1").is_empty());
    }

    #[test]
    fn what_is_no_address_is_told_without_its_password() {
        for given in ["", "h:8080/v1", "ftp://u:secret@h/v1", "http://"] {
            let error = Endpoint::parse(given).unwrap_err();
            assert_eq!(&*error.code, "bad_api_url");
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
        let error = proxies(&ProxySettings {
            http: Some("http://u:secret@[bad".to_owned()),
            ..ProxySettings::default()
        });
        assert!(!error.unwrap_err().message.contains("secret"));
    }

    #[test]
    fn keys_that_cannot_be_sent_are_told() {
        let config = ClientConfig::new("http://h").with_key("sk-a\nb");
        let error = headers(&config, KeyHeader::Bearer).unwrap_err();
        assert!(error.message.starts_with("The API key holds") && !error.message.contains("sk-a"));
    }
}
