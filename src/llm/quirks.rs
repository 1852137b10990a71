//! The one table of how servers deviate: a matcher by host and model, and typed deviations. No other place asks which
//! server it is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which ids of calls a server takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// Any: they go back as they came.
    #[default]
    Keep,
    /// Exactly nine of `a-z A-Z 0-9`.
    Nine,
}

/// In which order roles may follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleOrder {
    /// Any that the protocol itself allows.
    #[default]
    Free,
    /// No user message right after a tool message.
    NoUserAfterTool,
    /// User and assistant take turns after one system message, or the chat template raises.
    Alternate,
}

/// When the model's thoughts go back as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEcho {
    /// Never: the server refuses the member, or has no use for it.
    Never,
    /// With messages that call tools.
    #[default]
    WithCalls,
    /// With each assistant message.
    Always,
    /// With messages that call tools, and the server refuses those without.
    Required,
}

/// How the limit of an answer's tokens is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokens {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How the effort of thinking is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortForm {
    /// `"reasoning_effort": "high"`.
    #[default]
    Plain,
    /// `"reasoning": {"effort": "high"}`.
    Object,
    /// Not at all: the server refuses it.
    Off,
}

/// How the key is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// `api-key: KEY`.
    ApiKey,
}

/// The typed deviations of one server and model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// Ids of calls.
    pub call_ids: CallIds,
    /// Order of roles.
    pub roles: RoleOrder,
    /// Only one system message is taken.
    pub one_system: bool,
    /// Thoughts as text.
    pub reasoning: ReasoningEcho,
    /// Sealed or structured thoughts (`reasoning_details`, `thinking_blocks`) go back.
    pub details: bool,
    /// Signatures and other opaque members of calls and messages (`extra_content`) go back.
    pub extras: bool,
    /// The tool's name goes along with its result.
    pub tool_name: bool,
    /// `stream_options` may be sent.
    pub stream_options: bool,
    /// `parallel_tool_calls` may be sent.
    pub parallel_tool_calls: bool,
    /// `temperature` and `top_p` may be sent.
    pub sampling: bool,
    /// The limit's name.
    pub max_tokens: MaxTokens,
    /// The effort's form.
    pub effort: EffortForm,
    /// Marks for the server's prompt cache are sent (`cache_control` on the system and the last message).
    pub cache_control: bool,
    /// How the key is sent.
    pub key_header: KeyHeader,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            call_ids: CallIds::Keep,
            roles: RoleOrder::Free,
            one_system: false,
            reasoning: ReasoningEcho::WithCalls,
            details: true,
            extras: true,
            tool_name: false,
            stream_options: true,
            parallel_tool_calls: true,
            sampling: true,
            max_tokens: MaxTokens::MaxTokens,
            effort: EffortForm::Plain,
            cache_control: false,
            key_header: KeyHeader::Bearer,
        }
    }
}

/// One row of the table.
pub struct Row {
    /// The row's name, by which a configuration can choose it.
    pub name: &'static str,
    /// Hosts, or the ends of their names after a dot; empty is any host.
    pub hosts: &'static [&'static str],
    /// Parts of model ids, lower case; empty is any model.
    pub models: &'static [&'static str],
    /// What is known of it, and from where.
    pub why: &'static str,
    change: fn(&mut Quirks),
}

/// The table. All rows that match apply, in this order.
pub const ROWS: &[Row] = &[
    Row {
        name: "openai",
        hosts: &["api.openai.com"],
        models: &[],
        why: "newer models take only max_completion_tokens; unknown members of messages are refused",
        change: |quirks| {
            quirks.max_tokens = MaxTokens::MaxCompletionTokens;
            quirks.strict_members();
        },
    },
    Row {
        name: "azure",
        hosts: &["openai.azure.com", "services.ai.azure.com"],
        models: &[],
        why: "the key has a header of its own",
        change: |quirks| {
            quirks.key_header = KeyHeader::ApiKey;
            quirks.max_tokens = MaxTokens::MaxCompletionTokens;
        },
    },
    Row {
        name: "mistral",
        hosts: &["mistral.ai"],
        models: &[],
        why: "call ids of nine letters or digits (opencode#1680, langchain#24668), no user after tool (crush#279)",
        change: |quirks| {
            quirks.call_ids = CallIds::Nine;
            quirks.roles = RoleOrder::NoUserAfterTool;
            quirks.strict_members();
            quirks.tool_name = true;
            quirks.stream_options = false;
        },
    },
    Row {
        name: "alternate",
        hosts: &["localhost", "127.0.0.1", "[::1]"],
        models: &["gemma", "mixtral", "mistral-7b"],
        why: "chat templates of these models raise unless user and assistant take turns",
        change: |quirks| quirks.roles = RoleOrder::Alternate,
    },
    Row {
        name: "minimax",
        hosts: &["minimax.io", "minimaxi.com", "minimax.chat"],
        models: &[],
        why: "one system message only (oh-my-pi#954); unknown parameters are refused (aimee#761)",
        change: |quirks| {
            quirks.one_system = true;
            quirks.effort = EffortForm::Off;
            quirks.parallel_tool_calls = false;
        },
    },
    Row {
        name: "deepseek",
        hosts: &["deepseek.com"],
        models: &[],
        why: "thinking with tools: reasoning_content must come back with calls (pi#3636, langchain#34166)",
        change: |quirks| quirks.reasoning = ReasoningEcho::Required,
    },
    Row {
        name: "groq",
        hosts: &["groq.com"],
        models: &[],
        why: "refuses members of messages that it does not know (from memory)",
        change: Quirks::strict_members,
    },
    Row {
        name: "gemini",
        hosts: &["generativelanguage.googleapis.com"],
        models: &[],
        why: "thought signatures in extra_content must come back (open-webui/computer#224)",
        change: |quirks| {
            quirks.extras = true;
            quirks.reasoning = ReasoningEcho::Never;
            quirks.parallel_tool_calls = false;
        },
    },
    Row {
        name: "openrouter",
        hosts: &["openrouter.ai"],
        models: &[],
        why: "reasoning_details must come back unchanged (agno#5802, req_llm#300); effort is an object (docs)",
        change: |quirks| {
            quirks.details = true;
            quirks.effort = EffortForm::Object;
        },
    },
    Row {
        name: "openrouter-anthropic",
        hosts: &["openrouter.ai"],
        models: &["anthropic/"],
        why: "the prompt is cached only where it is marked (docs)",
        change: |quirks| quirks.cache_control = true,
    },
    Row {
        name: "no-extra-fields",
        hosts: &["api.anthropic.com", "api.x.ai", "api.cohere.ai"],
        models: &[],
        why: "no use for thoughts that come back as text (docs, from memory); not sent",
        change: Quirks::strict_members,
    },
    Row {
        name: "old-params",
        hosts: &[],
        models: &["text-generation-inference", "koboldcpp"],
        why: "older local servers refuse newer parameters; chosen by name for others",
        change: |quirks| {
            quirks.stream_options = false;
            quirks.parallel_tool_calls = false;
            quirks.effort = EffortForm::Off;
            quirks.max_tokens = MaxTokens::MaxTokens;
        },
    },
];

impl Quirks {
    /// What the table knows of `model` at `host`.
    #[must_use]
    pub fn lookup(host: &str, model: &str) -> Self {
        let host = host.to_ascii_lowercase();
        let model = model.to_ascii_lowercase();
        let mut quirks = Self::default();
        for row in ROWS.iter().filter(|row| row.matches(&host, &model)) {
            (row.change)(&mut quirks);
        }
        quirks
    }

    /// The deviations of one row by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.name == name)?;
        let mut quirks = Self::default();
        (row.change)(&mut quirks);
        Some(quirks)
    }

    /// Changes single members by name, as a configuration gives them.
    ///
    /// # Errors
    /// A sentence about a member that does not exist or a value that does not fit.
    pub fn with_overrides(&self, overrides: &Map<String, Value>) -> Result<Self, String> {
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        if let Value::Object(all) = &mut all {
            all.extend(overrides.clone());
        }
        serde_json::from_value(all).map_err(|error| format!("the quirks cannot be read: {error}"))
    }

    /// Only the protocol's own members of messages are sent.
    fn strict_members(&mut self) {
        self.reasoning = ReasoningEcho::Never;
        self.details = false;
        self.extras = false;
    }
}

impl Row {
    fn matches(&self, host: &str, model: &str) -> bool {
        if self.hosts.is_empty() && self.models.is_empty() {
            return false;
        }
        let host_fits = self.hosts.is_empty()
            || self
                .hosts
                .iter()
                .any(|known| host == *known || host.strip_suffix(known).is_some_and(|rest| rest.ends_with('.')));
        let model_fits = self.models.is_empty() || self.models.iter().any(|part| model.contains(part));
        host_fits && model_fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_match_whole_names_of_hosts_and_add_up() {
        assert_eq!(Quirks::lookup("API.Mistral.ai", "x").call_ids, CallIds::Nine);
        assert_eq!(Quirks::lookup("notmistral.ai", "x"), Quirks::default());
        let both = Quirks::lookup("openrouter.ai", "anthropic/claude");
        assert!(both.cache_control && both.effort == EffortForm::Object);
        assert!(!Quirks::lookup("openrouter.ai", "openai/x").cache_control);
    }

    #[test]
    fn names_are_unique_and_each_row_changes_something_or_says_so() {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
        assert!(
            ROWS.iter()
                .all(|row| !row.why.is_empty() && Quirks::named(row.name).is_some())
        );
    }

    #[test]
    fn single_members_can_be_overridden_and_typos_are_told() {
        let overrides = json!({"reasoning": "never"});
        let quirks = Quirks::default()
            .with_overrides(overrides.as_object().unwrap())
            .unwrap();
        assert_eq!(quirks.reasoning, ReasoningEcho::Never);
        let typo = json!({"reasonning": "never"});
        let error = Quirks::default().with_overrides(typo.as_object().unwrap()).unwrap_err();
        assert!(error.contains("reasonning"), "{error}");
    }
}
