//! Ops: what a client asks, and the answers it gets at once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Usage;
use crate::protocol::payload::SessionState;

/// One request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// The first op of every session.
    Hello(Box<Hello>),
    /// A line the user typed: a command or the input of a turn.
    Submit(Submit),
    /// Stops what runs.
    Cancel {
        /// How much to stop.
        #[serde(default)]
        scope: CancelScope,
    },
    /// The answer to a `question` event.
    Answer {
        /// The question's id.
        question_id: String,
        /// The chosen or typed value.
        value: Value,
    },
    /// Candidates for the line being typed; answered by a list of [`Candidate`].
    Complete {
        /// The whole line.
        line: String,
        /// Where the cursor is, in UTF-8 bytes from the line's start.
        cursor: usize,
    },
    /// What the prompt line needs; answered by a [`Status`].
    Status,
    /// The terminal's new size.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// New colours.
    Theme(Theme),
    /// A key for an open view; the frame comes as a `view_frame` event.
    ViewKey {
        /// The view's id, from `open_view`.
        view_id: String,
        /// The key's name: modifiers in the order SHIFT, ALT, CTRL, then the key: `ALT+h`, `PAGE_UP`, `q`.
        key: String,
    },
    /// The client goes away.
    Close {
        /// Why, for the log.
        #[serde(default)]
        reason: String,
    },
}

/// What a client says of itself and its surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The contract's version the client speaks.
    pub protocol: u32,
    /// The client's name and version, for the log.
    #[serde(default)]
    pub client: String,
    /// The program the client lives in.
    #[serde(default)]
    pub host: HostInfo,
    /// The terminal.
    #[serde(default)]
    pub term: TermInfo,
    /// Named colours that replace the built-in palette's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub palette: Option<BTreeMap<String, Value>>,
    /// The directory the user is in.
    #[serde(default)]
    pub cwd: String,
    /// The environment; absent where the core has inherited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// The client's process.
    #[serde(default)]
    pub pid: u32,
    /// Whether `render` events are wanted.
    #[serde(default)]
    pub render: bool,
}

/// The program a client lives in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Its name: `lilush`, `agent-smith`.
    #[serde(default)]
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// What the terminal is and can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TermInfo {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// How many colours: 0, 16, 256 or 16,777,216.
    pub colors: u32,
    /// Whether characters outside ASCII are shown.
    pub unicode: bool,
    /// Whether it speaks the Kitty graphics protocol.
    pub graphics: bool,
    /// Whether it speaks the Kitty text-sizing protocol.
    pub text_sizing: bool,
    /// Whether it is a terminal at all.
    pub is_tty: bool,
}

/// The terminal a client has that does not describe its own.
pub const HELLO_TERM_DEFAULT: TermInfo = TermInfo {
    cols: 80,
    rows: 24,
    colors: 0,
    unicode: true,
    graphics: false,
    text_sizing: false,
    is_tty: false,
};

impl Default for TermInfo {
    fn default() -> Self {
        HELLO_TERM_DEFAULT
    }
}

/// A line the user typed, with the surroundings of that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// The line; may hold line breaks.
    pub line: String,
    /// The directory the user is in; empty means that of `hello`.
    #[serde(default)]
    pub cwd: String,
    /// Variables set since `hello`; `null` where one was removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// Paths of files to put before the model with the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list_of_lua")]
    pub attachments: Vec<String>,
}

/// A list that may come as an empty object: Lua has one empty table for both.
fn list_of_lua<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ListOrNothing {
        List(Vec<String>),
        Nothing(Nothing),
    }
    Ok(match ListOrNothing::deserialize(deserializer)? {
        ListOrNothing::List(list) => list,
        ListOrNothing::Nothing(Nothing {}) => Vec::new(),
    })
}

/// How much a `cancel` stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelScope {
    /// The running turn.
    #[default]
    Turn,
    /// The turn and everything in the background.
    All,
}

/// New colours: named roles of a palette, or styles by their path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Theme {
    /// Colours by role name (`success`, `accent3`, `text`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub palette: Option<BTreeMap<String, Value>>,
    /// Styles by element path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub styles: Option<Map<String, Value>>,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The contract's version the core speaks.
    pub protocol: u32,
    /// The core's own version.
    pub version: String,
    /// What this core can do beyond the first version of the contract.
    pub capabilities: Vec<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What replaces the span.
    pub text: String,
    /// The span's start in the line, in UTF-8 bytes.
    pub start: usize,
    /// The span's end in the line, in UTF-8 bytes.
    pub end: usize,
    /// What to show in a menu where it differs from `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// What it is: `command`, `config_path`, `value`, `model`, `role`, `path`.
    pub kind: String,
    /// A short remark beside it: a command's help, a current value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What the prompt line needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The prompt line, styled for the client's terminal; one line, empty where the client asked for no rendering.
    pub prompt: String,
    /// What is going on.
    pub state: SessionState,
    /// The active role's name.
    pub role: String,
    /// The label shown for the role.
    pub label: String,
    /// The model of the next request.
    pub model: String,
    /// The open conversation.
    pub conversation_id: String,
    /// Lines waiting to join the running turn.
    pub queued: usize,
    /// Tokens of this conversation so far.
    pub usage: Usage,
    /// How full the model's window is, in percent, where both sides are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_pct: Option<u8>,
    /// Key combinations the user chose, by what they do (`cancel`, `conversation`, `inspect`); the client has defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_op_is_one_flat_object_and_defaults_what_is_absent() {
        let op: Op = serde_json::from_value(json!({"op": "submit", "line": "hi"})).unwrap();
        assert_eq!(
            op,
            Op::Submit(Submit {
                line: "hi".into(),
                ..Submit::default()
            })
        );
        let op: Op = serde_json::from_value(json!({"op": "cancel"})).unwrap();
        assert_eq!(
            op,
            Op::Cancel {
                scope: CancelScope::Turn
            }
        );
        let op: Op = serde_json::from_value(json!({"op": "hello", "protocol": 1})).unwrap();
        assert!(matches!(op, Op::Hello(hello) if hello.term == HELLO_TERM_DEFAULT && hello.env.is_none()));
        assert!(serde_json::from_value::<Op>(json!({"op": "reboot"})).is_err());
    }

    #[test]
    fn an_empty_lua_table_is_an_empty_list() {
        for empty in [json!([]), json!({})] {
            let op: Op = serde_json::from_value(json!({"op": "submit", "line": "x", "attachments": empty})).unwrap();
            assert!(matches!(op, Op::Submit(submit) if submit.attachments.is_empty()));
        }
        for bad in [json!({"a": "x"}), json!("x"), json!([1])] {
            assert!(serde_json::from_value::<Op>(json!({"op": "submit", "line": "x", "attachments": bad})).is_err());
        }
    }

    #[test]
    fn a_removed_variable_is_null() {
        let op: Op =
            serde_json::from_value(json!({"op": "submit", "line": "x", "env": {"A": "1", "B": null}})).unwrap();
        let Op::Submit(submit) = op else { panic!("not a submit") };
        assert_eq!(
            submit.env,
            BTreeMap::from([("A".into(), Some("1".into())), ("B".into(), None)])
        );
    }
}
