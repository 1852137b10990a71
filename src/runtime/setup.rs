//! `/setup`: asks which server to talk to, with which key and model, tries them with one request, and writes the user's
//! file. And what is said, and done, while there is no server yet.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cancel::CancelToken;
use crate::config::{self, Config};
use crate::error::AgentError;
use crate::llm::{
    ChatRequest, Client, ClientConfig, LocalServer, Provider, ProxySettings, RequestParams, Secret, Timeouts,
    local_servers,
};
use crate::message::Message;
use crate::process::Environment;
use crate::protocol::NoticeLevel;
use crate::runtime::dialog::Questions;

/// What stands among the choices for a server that is not on this machine.
const ANOTHER: &str = "another";
/// What an answer says that means no key.
const NO_KEY: &str = "none";
/// A list of models longer than this is not asked to be chosen from.
const MOST_CHOICES: usize = 20;
/// How long connecting and one short answer may take while a person waits.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(120);

/// What the dialog needs to know.
pub(super) struct Setup {
    pub questions: Questions,
    pub user_file: PathBuf,
    pub config: Config,
    pub env: Environment,
}

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub api_url: String,
    pub api_key_env: Option<String>,
    pub model: String,
}

impl Setup {
    /// Asks until there is something that works, or that the user wants to keep all the same; then writes it.
    ///
    /// # Errors
    /// `cancelled` where the user gives up; those of the file where it cannot be written.
    pub async fn run(mut self) -> Result<Choice, AgentError> {
        let config = &self.config;
        let mut choice = Choice {
            api_url: config.opt_str("llm_config.api_url").unwrap_or_default().to_owned(),
            api_key_env: config.opt_str("llm_config.api_key_env").map(str::to_owned),
            model: config.opt_str("default_model").unwrap_or_default().to_owned(),
        };
        let local = local_servers(self.questions.cancel()).await;
        loop {
            self.ask_server(&mut choice, &local).await?;
            self.ask_key(&mut choice).await?;
            self.ask_model(&mut choice).await?;
            match self.try_out(&choice).await {
                Ok(()) => break,
                Err(error) => {
                    self.questions.cancel().check("command")?;
                    self.questions
                        .tell(NoticeLevel::Error, error.message, error.hint.map(Into::into));
                    let choices = ["again", "keep", "stop"].map(str::to_owned);
                    let text = "That did not work. Ask again, keep it all the same, or stop?";
                    match self.questions.ask(text, &choices, Some("again")).await?.as_str() {
                        "keep" => break,
                        "stop" => return Err(AgentError::cancelled("command")),
                        _ => {}
                    }
                }
            }
        }
        config::write_user_file(&self.user_file, &choice.changes()).map_err(AgentError::from)?;
        Ok(choice)
    }

    async fn ask_server(&mut self, choice: &mut Choice, local: &[LocalServer]) -> Result<(), AgentError> {
        if !local.is_empty() {
            let mut choices: Vec<String> = local.iter().map(|server| server.api_url.clone()).collect();
            choices.push(ANOTHER.to_owned());
            let names: Vec<String> = local
                .iter()
                .map(|server| format!("{} at {}", server.name, server.api_url))
                .collect();
            let text = format!("Which server? On this machine: {}.", names.join(", "));
            let answer = self
                .questions
                .ask(&text, &choices, choices.first().map(String::as_str))
                .await?;
            if answer != ANOTHER {
                choice.api_url = answer;
                return Ok(());
            }
        }
        let known = Some(choice.api_url.as_str())
            .filter(|url| !url.is_empty())
            .map(str::to_owned);
        loop {
            let text = "Which server? The address of its API, such as https://api.example.com/v1";
            let answer = self.questions.ask(text, &[], known.as_deref()).await?;
            match Client::new(ClientConfig::new(answer.as_str())) {
                Ok(_) => {
                    choice.api_url = answer;
                    return Ok(());
                }
                Err(error) => self
                    .questions
                    .tell(NoticeLevel::Warn, error.message, error.hint.map(Into::into)),
            }
        }
    }

    async fn ask_key(&mut self, choice: &mut Choice) -> Result<(), AgentError> {
        let default = match &choice.api_key_env {
            Some(name) if !is_local(&choice.api_url) || self.env.get(name).is_some() => name.clone(),
            _ => NO_KEY.to_owned(),
        };
        loop {
            let text = format!("Which environment variable holds the key? (`{NO_KEY}` for no key)");
            let answer = self.questions.ask(&text, &[], Some(&default)).await?;
            if answer.eq_ignore_ascii_case(NO_KEY) {
                choice.api_key_env = None;
                return Ok(());
            }
            let name = answer.trim_start_matches('$');
            if !is_variable(name) {
                let text = "That is no name of a variable. Keys themselves are not written into files".to_owned();
                let hint = "export the key in your shell's start-up file, and give the variable's name here".to_owned();
                self.questions.tell(NoticeLevel::Warn, text, Some(hint));
                continue;
            }
            if self.env.text(name).is_none_or(|key| key.trim().is_empty()) {
                let text = format!("{name} is not set here, so the request goes without a key");
                self.questions.tell(NoticeLevel::Warn, text, None);
            }
            choice.api_key_env = Some(name.to_owned());
            return Ok(());
        }
    }

    async fn ask_model(&mut self, choice: &mut Choice) -> Result<(), AgentError> {
        let listed = match self.client(choice) {
            Ok(client) => client.models(self.questions.cancel()).await,
            Err(error) => Err(error.into()),
        };
        self.questions.cancel().check("command")?;
        let models: Vec<String> = match listed {
            Ok(catalogue) => catalogue.models.into_iter().map(|model| model.id).collect(),
            Err(failure) => {
                let error = failure.error;
                let text = format!("The server gives no list of its models: {}", error.message);
                self.questions.tell(NoticeLevel::Warn, text, error.hint.map(Into::into));
                Vec::new()
            }
        };
        let kept = Some(&choice.model).filter(|model| models.is_empty() || models.contains(model));
        let default = kept.filter(|model| !model.is_empty()).or(models.first()).cloned();
        loop {
            let (text, choices) = match models.len() {
                0 => ("Which model?".to_owned(), Vec::new()),
                1..=MOST_CHOICES => ("Which model?".to_owned(), models.clone()),
                many => (
                    format!("Which model? The server has {many}; the first is {}.", models[0]),
                    Vec::new(),
                ),
            };
            let answer = self.questions.ask(&text, &choices, default.as_deref()).await?;
            if !answer.is_empty() {
                choice.model = answer;
                return Ok(());
            }
        }
    }

    fn client(&self, choice: &Choice) -> Result<Client, AgentError> {
        let var = |name: &str| self.env.text(name).map(str::to_owned);
        let mut client = ClientConfig::new(choice.api_url.as_str());
        if let Some(name) = &choice.api_key_env {
            client.api_key = var(name).filter(|key| !key.trim().is_empty()).map(Secret::from);
            client.api_key_name = Some(name.clone());
        }
        client.timeouts = Timeouts {
            connect: CONNECT,
            timeout: ANSWER,
            stream_stall: ANSWER,
            ..Timeouts::default()
        };
        client.extra_headers = self
            .config
            .request_settings(&choice.model)
            .extra_headers
            .into_iter()
            .collect();
        client.ca_file = self.config.opt_str("llm_config.ca_file").map(Into::into);
        client.proxies = ProxySettings::from_vars(var);
        Client::new(client)
    }

    async fn try_out(&mut self, choice: &Choice) -> Result<(), AgentError> {
        let client = self.client(choice)?;
        let text = format!("Asking {} at {} …", choice.model, client.server());
        self.questions.tell(NoticeLevel::Info, text, None);
        let messages = [Message::user("Answer with one word: ready")];
        let settings = self.config.request_settings(&choice.model);
        let params = RequestParams {
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            reasoning_effort: settings.reasoning_effort,
            extra_body: settings.extra_body,
            ..RequestParams::default()
        };
        let request = ChatRequest {
            model: &choice.model,
            messages: &messages,
            tools: &[],
            params: &params,
            stream: true,
        };
        let answer = client.chat(request, &mut |_| {}, self.questions.cancel()).await;
        answer.map(|_| ()).map_err(|failure| failure.error)
    }
}

impl Choice {
    fn changes(&self) -> Value {
        json!({
            "default_model": self.model,
            "llm_config": {"api_url": self.api_url, "api_key_env": self.api_key_env},
        })
    }
}

fn is_variable(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        // Keys are words, too; no variable is that long and has both cases and digits.
        && !(name.len() > 30 && name.chars().any(|c| c.is_ascii_lowercase()) && name.chars().any(|c| c.is_ascii_digit()))
}

fn is_local(api_url: &str) -> bool {
    ["://127.", "://localhost", "://[::1]"]
        .iter()
        .any(|part| api_url.contains(part))
}

/// What a first turn without a server is told: in one line, how to connect one; and what on this machine could be.
pub(super) async fn no_server_notice(cancel: &CancelToken) -> (String, Option<String>) {
    let found = local_servers(cancel).await;
    let text = "No model server is set up yet, so the embedded demo answers; /setup connects one.".to_owned();
    let hint = found.first().map(|server| {
        let more = match found.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        format!("{} answers at {}{more}: /setup offers it", server.name, server.api_url)
    });
    (text, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_taken_for_a_variable() {
        for name in ["LLM_API_KEY", "_K", "openai_key", "A1"] {
            assert!(is_variable(name), "{name}");
        }
        for no in ["", "sk-abc", "1A", "A B", "gsk0aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1", "é"] {
            assert!(!is_variable(no), "{no}");
        }
    }
}
