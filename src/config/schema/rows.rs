//! The table: one row a key, in the order of the document.
//!
//! Which defaults are part of the built-in JSON and which are applied at use is marked here and nowhere else: the
//! built-in JSON is the lowest layer and what a user sees as the product's own configuration; the rest are limits and
//! waits that only matter where they are used. A key added here is validated, completed, documented and settable at
//! once; a key not here is refused.

use super::kind::{Kind, NON_NEGATIVE, PERCENT, POSITIVE};
use super::row::Literal::{Bool, Int, Ints, Num, Text, Texts};
use super::row::{Row, row};

/// A group of rows under one heading of the document.
#[derive(Debug)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// What the group is about, in a sentence or two.
    pub intro: &'static str,
    /// Its rows.
    pub rows: &'static [Row],
}

/// Every section, in the order of the document.
pub static SECTIONS: &[Section] = &[
    GENERAL, ENDPOINT, RETRIES, PER_MODEL, PROFILES, CONTEXT, TOOLS, LIMITS, STORE, KEYS,
];

const GENERAL: Section = Section {
    title: "General",
    intro: "Which model and role answer, and what opens the prompt.",
    rows: &[
        row("default_model", Kind::Model, "The model of every role that has none of its own in `models`.")
            .unset("the model called `default`")
            .example(r#""qwen/qwen3-coder""#),
        row("models.<role>", Kind::Model, "The model of one role, or of all roles under the name `default`.")
            .unset("`default_model`")
            .example(r#""qwen/qwen3-coder""#),
        row("active_role", Kind::Choice(&["direct", "orchestrator"]), "The role a new shell starts in.")
            .at_use(Text("direct"))
            .example(r#""orchestrator""#),
        row(
            "index_file",
            Kind::RelativePath,
            "A file at the root of the Git repository that describes it; its text goes into the system prompt. Where it is absent, `AGENTS.md` and then `CLAUDE.md` are looked for.",
        )
        .built_in(Text("INDEX.md"))
        .example(r#""docs/INDEX.md""#),
        row(
            "prompt.index_file_chars",
            Kind::Integer(1),
            "How many characters of the index file go into the prompt; what is left out is told there.",
        )
        .at_use(Int(20_000))
        .example("40000"),
        row(
            "prompt.attachment_chars",
            Kind::Integer(1),
            "How many characters all files attached to one prompt by `@path` may have together; what is left out is told.",
        )
        .at_use(Int(60_000))
        .example("20000"),
        row("services", Kind::Free, "Options for single services, a table each, as `services.<service>`.")
            .file_only()
            .example(r#"{"tool": {"web_search": {"max_results": 5}}}"#),
            row("$schema", Kind::Text, "Where an editor finds the JSON Schema of this file; nothing else reads it.")
            .file_only()
            .example(r#""agent_smith.schema.json""#),
    ],
};

const ENDPOINT: Section = Section {
    title: "Model server",
    intro: "Where requests go and what is in each of them. Keys are never kept in the configuration, only the name of the environment variable that holds one.",
    rows: &[
        row(
            "llm_config.api_url",
            Kind::Url,
            "The base address of a server that speaks Chat Completions, as far as its version: requests go to `<api_url>/chat/completions`.",
        )
        .unset("no server: the embedded `demo` model answers")
        .example(r#""http://127.0.0.1:8080/v1""#),
        row("llm_config.api_key_env", Kind::Variable, "The environment variable that holds the key of the server.")
            .built_in(Text("LLM_API_KEY"))
            .example(r#""OPENROUTER_API_KEY""#),
        row(
            "llm_config.ca_file",
            Kind::Text,
            "A PEM file with certificate authorities to trust besides the system's.",
        )
        .unset("the system's only")
        .example(r#""/etc/ssl/company.pem""#),
        row("llm_config.extra_headers", Kind::Headers, "Headers added to every request. Their values are masked when shown.")
            .example(r#"{"X-Title": "agent_smith"}"#),
        row(
            "llm_config.extra_body",
            Kind::Free,
            "Members added to the body of every chat request, over what is there.",
        )
        .example(r#"{"top_p": 0.9}"#),
        row(
            "llm_config.quirks",
            Kind::Free,
            "How the server deviates from the protocol, where its address does not tell: `row` names a row of the table in docs/LLM.md, the other members change single deviations.",
        )
        .example(r#"{"row": "mistral", "stream_options": true}"#),
        row("llm_config.temperature", NON_NEGATIVE, "How much chance is in the model's choice of words.")
            .unset("the server decides")
            .example("0.2"),
        row("llm_config.max_tokens", Kind::Integer(1), "The most tokens one answer may have.")
            .unset("the server decides")
            .example("8192"),
        row(
            "llm_config.reasoning_effort",
            Kind::Text,
            "How much a reasoning model may think, in the server's words: `low`, `medium`, `high` and the like.",
        )
        .unset("the server decides")
        .example(r#""low""#),
    ],
};

const RETRIES: Section = Section {
    title: "Timeouts and retries",
    intro: "All timeouts are in seconds, all waits between attempts in milliseconds. The two layers of retries nest: with the defaults a round is tried (2+1) × (2+1) = 9 times at worst.",
    rows: &[
        row(
            "llm_config.timeout",
            POSITIVE,
            "The deadline of a request that does not stream, in seconds. A stream fails after as long without any event, whatever comments keep it open.",
        )
        .at_use(Int(600))
        .example("300"),
        row(
            "llm_config.connect_timeout",
            POSITIVE,
            "Seconds to connect, agree on TLS and read the head of the answer, of a request that streams.",
        )
        .at_use(Int(120))
        .example("10"),
        row("llm_config.send_timeout", POSITIVE, "Seconds to send the body of a request that streams.")
            .at_use(Int(30))
            .example("60"),
        row(
            "llm_config.recv_timeout",
            POSITIVE,
            "Kept for configurations that have it, and checked; reads wait for data without polling, so it has no effect.",
        )
        .at_use(Num(0.5))
        .example("0.5"),
        row(
            "llm_config.stream_stall_timeout",
            POSITIVE,
            "Seconds that an open stream may stay silent before it fails as `stream_stalled`. A stream that keeps producing has no deadline.",
        )
        .at_use(Int(120))
        .example("60"),
        row(
            "llm_config.retry_max_retries",
            NON_NEGATIVE,
            "How often a request is repeated after a failure of the connection, a 5xx or a 429. Fractions are dropped; a cancellation is never retried.",
        )
        .built_in(Int(2))
        .example("4"),
        row(
            "llm_config.retry_backoff_ms",
            Kind::Numbers,
            "Milliseconds to wait before each of these retries; the last holds for any further one.",
        )
        .built_in(Ints(&[2000, 8000]))
        .example("[500, 2000, 8000]"),
        row(
            "llm_config.stream_retry_after_output",
            Kind::Bool,
            "Whether a stream that broke after it had begun to answer is retried.",
        )
        .built_in(Bool(false))
        .example("true"),
        row(
            "llm_config.retry_after_max_ms",
            NON_NEGATIVE,
            "The longest wait a server may ask for by `Retry-After`, in milliseconds; a longer one ends the request with a message that names the time.",
        )
        .at_use(Int(60_000))
        .example("10000"),
        row(
            "empty_response_retry_max_retries",
            NON_NEGATIVE,
            "How often a request is repeated when the model's answer is valid and empty. Fractions are dropped.",
        )
        .built_in(Int(2))
        .example("0"),
        row(
            "empty_response_retry_backoff_ms",
            Kind::Numbers,
            "Milliseconds to wait before each of these retries; the last holds for any further one.",
        )
        .built_in(Ints(&[500, 1000]))
        .example("[1000]"),
    ],
};

const PER_MODEL: Section = Section {
    title: "Single models",
    intro: "What differs for one model, by its id. An id with a dot or a colon is quoted in a path: `llm_config.models.\"a/b:c\".temperature`.",
    rows: &[
        row(
            "llm_config.models.<model>.temperature",
            NON_NEGATIVE,
            "As `llm_config.temperature`, for this model.",
        )
        .unset("`llm_config.temperature`")
        .example("0.6"),
        row(
            "llm_config.models.<model>.max_tokens",
            Kind::Integer(1),
            "As `llm_config.max_tokens`, for this model.",
        )
        .unset("`llm_config.max_tokens`")
        .example("16384"),
        row(
            "llm_config.models.<model>.reasoning_effort",
            Kind::Text,
            "As `llm_config.reasoning_effort`, for this model.",
        )
        .unset("`llm_config.reasoning_effort`")
        .example(r#""high""#),
        row(
            "llm_config.models.<model>.extra_headers",
            Kind::Headers,
            "Added to `llm_config.extra_headers` for this model. Their values are masked when shown.",
        )
        .example(r#"{"X-Beta": "long-context"}"#),
        row(
            "llm_config.models.<model>.extra_body",
            Kind::Free,
            "Added to `llm_config.extra_body` for this model.",
        )
        .example(r#"{"chat_template_kwargs": {"enable_thinking": false}}"#),
        row(
            "llm_config.models.<model>.quirks",
            Kind::Free,
            "Over `llm_config.quirks`, for this model.",
        )
        .example(r#"{"row": "alternate"}"#),
        row(
            "llm_config.models.<model>.context_window",
            Kind::Integer(1),
            "How many tokens the model can see, where the server does not say or says it wrong.",
        )
        .unset("what the server's catalogue says, else 128,000")
        .example("32768"),
    ],
};

const PROFILES: Section = Section {
    title: "Profiles",
    intro: "Named sets of a server, its key and its models. The profile in use lies over all layers below it. One that names a server of its own inherits no key variable, header, extra body or certificate file from `llm_config`, so that no secret goes to the wrong server.",
    rows: &[
        row("profile", Kind::Profile, "The profile in use.")
            .unset("`llm_config` as it stands")
            .example(r#""local""#),
        row(
            "fallback_profiles",
            Kind::Texts,
            "Profiles to try in this order when the server in use is down; each change is told.",
        )
        .at_use(Texts(&[]))
        .example(r#"["local"]"#),
        row(
            "profiles.<name>.api_url",
            Kind::Url,
            "The server's base address, as `llm_config.api_url`.",
        )
        .unset("`llm_config.api_url`")
        .example(r#""http://127.0.0.1:8080/v1""#),
        row(
            "profiles.<name>.api_key_env",
            Kind::Variable,
            "The environment variable that holds the server's key.",
        )
        .unset("no key where the profile has its own `api_url`, else `llm_config.api_key_env`")
        .example(r#""LOCAL_API_KEY""#),
        row(
            "profiles.<name>.default_model",
            Kind::Model,
            "As `default_model`, in this profile.",
        )
        .unset("`default_model`")
        .example(r#""qwen3-coder-30b""#),
        row(
            "profiles.<name>.models.<role>",
            Kind::Model,
            "As `models.<role>`, in this profile.",
        )
        .unset("`models.<role>`")
        .example(r#""qwen3-4b""#),
        row(
            "profiles.<name>.ca_file",
            Kind::Text,
            "As `llm_config.ca_file`, in this profile.",
        )
        .example(r#""/etc/ssl/company.pem""#),
        row(
            "profiles.<name>.extra_headers",
            Kind::Headers,
            "As `llm_config.extra_headers`, in this profile.",
        )
        .example(r#"{"X-Title": "agent_smith"}"#),
        row(
            "profiles.<name>.extra_body",
            Kind::Free,
            "As `llm_config.extra_body`, in this profile.",
        )
        .example(r#"{"cache_prompt": true}"#),
        row(
            "profiles.<name>.quirks",
            Kind::Free,
            "As `llm_config.quirks`, in this profile.",
        )
        .example(r#"{"row": "azure"}"#),
    ],
};

const CONTEXT: Section = Section {
    title: "Context management",
    intro: "How the copy of the conversation that the model sees is kept within its context window. What is stored is never shortened.",
    rows: &[
        row("context_management.enabled", Kind::Bool, "Whether old tool output is elided and old rounds are dropped at all.")
            .built_in(Bool(true))
            .example("false"),
        row(
            "context_management.tool_output_keep_rounds",
            NON_NEGATIVE,
            "How many of the latest rounds of tool calls keep their results verbatim. Fractions are dropped.",
        )
        .built_in(Int(7))
        .example("12"),
        row(
            "context_management.tool_output_elide_over_chars",
            NON_NEGATIVE,
            "Older results longer than this many characters are replaced by a short placeholder. Fractions are dropped.",
        )
        .built_in(Int(1024))
        .example("4096"),
        row(
            "context_management.trim_threshold_pct",
            PERCENT,
            "Oldest whole rounds are dropped when the estimate exceeds this share of the context window, in percent.",
        )
        .built_in(Int(80))
        .example("70"),
        row(
            "context_management.elide_step_rounds",
            Kind::Integer(1),
            "How many rounds the border of elision moves at once: larger steps let the server's prompt cache live longer.",
        )
        .at_use(Int(4))
        .example("1"),
    ],
};

const TOOLS: Section = Section {
    title: "Tools",
    intro: "What the model's tools may do.",
    rows: &[
        row("tool_step_budget", Kind::Integer(1), "The most tool calls in one turn.")
            .unset("unlimited")
            .example("50"),
        row("tools.disabled", Kind::Texts, "Tools that are offered to no role.")
            .at_use(Texts(&[]))
            .example(r#"["web_fetch"]"#),
        row(
            "tools.confine_to_root",
            Kind::Bool,
            "Whether the file tools stay inside the repository (outside of one: the working directory). The shell tool is not confined by it.",
        )
        .at_use(Bool(false))
        .example("true"),
        row(
            "tools.output_chars",
            Kind::Integer(1),
            "The most characters of one tool result that go to the model; the result says what was left out.",
        )
        .at_use(Int(16_000))
        .example("30000"),
        row("tools.bash.timeout", POSITIVE, "Seconds a shell command may run where the model names no timeout.")
            .at_use(Int(120))
            .example("60"),
        row("tools.bash.max_timeout", POSITIVE, "The longest timeout the model may ask for, in seconds.")
            .at_use(Int(600))
            .example("3600"),
        row(
            "tools.bash.scrub_env",
            Kind::Texts,
            "Environment variables kept from shell commands, besides the one that holds the server's key.",
        )
        .at_use(Texts(&[]))
        .example(r#"["GITHUB_TOKEN"]"#),
    ],
};

const LIMITS: Section = Section {
    title: "Limits",
    intro: "A turn that reaches one ends as `budget_exhausted` and says which.",
    rows: &[
        row(
            "limits.max_cost_usd",
            POSITIVE,
            "The most a turn may cost, in US dollars, as far as the server tells prices.",
        )
        .unset("unlimited")
        .example("2.5"),
        row(
            "limits.max_tokens_per_turn",
            Kind::Integer(1),
            "The most tokens a turn may use, prompts and answers of all its requests together.",
        )
        .unset("unlimited")
        .example("2000000"),
    ],
};

const STORE: Section = Section {
    title: "Store",
    intro: "What is kept on disk.",
    rows: &[row(
        "persistence.max_blob_bytes",
        Kind::Integer(1),
        "The most bytes kept of one large object (a tool's full output, a file's previous content); what was cut is told.",
    )
    .at_use(Int(16 * 1024 * 1024))
    .example("1048576")],
};

const KEYS: Section = Section {
    title: "Keys",
    intro: "Key combinations in the shell. Modifiers are joined by `+` or `-`, the key comes last.",
    rows: &[
        row("keys.cancel", Kind::Combo, "Cancels the running turn.")
            .at_use(Text("ctrl-c"))
            .example(r#""ctrl-x""#),
        row("keys.conversation", Kind::Combo, "Shows the conversation in the pager.")
            .at_use(Text("ALT+h"))
            .example(r#""ALT+c""#),
        row(
            "keys.inspect",
            Kind::Combo,
            "Opens the inspector over the stored messages.",
        )
        .at_use(Text("ALT+i"))
        .example(r#""ALT+m""#),
    ],
};
