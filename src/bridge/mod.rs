//! The two carriers a Lua host reaches the core through. Both carry the same ops and events and decide nothing.
//!
//! | file | idea |
//! |---|---|
//! | `native` | the Lua module `agent_smith.core`: sessions as userdata, in the host's own process |
//! | `sidecar` | `agent-smith serve`: one session on two pipes, JSON lines, where a host can load nothing |
//! | `lines`, `watch` | what the sidecar reads, and how it learns that its client is gone |
//! | `probe` | whether a shared object is the module |
//! | `convert` | values across the border, the same through both |
//! | `guard` | the fork check and the catch that stand at every entry |
//!
//! Below this room there is no Lua.

mod convert;
mod guard;
mod lines;
pub mod native;
pub mod probe;
pub mod sidecar;
mod watch;

use serde_json::{Map, Value};

use crate::error::{AgentError, ErrorKind};
use crate::failpoint;
use crate::protocol::{Hello, Op};
use crate::runtime::{ConversationStart, Session, SessionOptions};

pub use guard::{catch, quiet_panics};

/// A session of a client with a person at a terminal, as both carriers open it.
fn shell_session() -> SessionOptions {
    SessionOptions {
        start: ConversationStart::Auto,
        shell: true,
        ..SessionOptions::default()
    }
}

/// The op `name` with the members of `arguments`.
fn parse_op(name: &str, mut arguments: Map<String, Value>) -> Result<Op, AgentError> {
    arguments.insert("op".to_owned(), Value::from(name));
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let message = format!("the op `{name}` is not as agreed: {error}");
        AgentError::new(ErrorKind::Schema, "bad_op", message).from_origin("bridge")
    })
}

/// The same for `hello`, which opens a session instead of being done by one. Where it names no directory, it is the one
/// this process is in now, as it is with the environment.
fn parse_hello(arguments: Map<String, Value>) -> Result<Hello, AgentError> {
    match parse_op("hello", arguments)? {
        Op::Hello(mut hello) => {
            if hello.cwd.is_empty() {
                hello.cwd = own_directory()?;
            }
            Ok(*hello)
        }
        other => Err(AgentError::internal("bridge", format!("a hello became {other:?}"))),
    }
}

fn own_directory() -> Result<String, AgentError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "on the host's own thread, in a call of its own: it cannot change meanwhile"
    )]
    let directory = std::env::current_dir();
    let failed = |why: String| {
        AgentError::new(
            ErrorKind::Schema,
            "cwd",
            format!("the current directory cannot be used: {why}"),
        )
        .from_origin("bridge")
        .with_hint("name a directory in hello's `cwd`")
    };
    directory
        .map_err(|error| failed(error.to_string()))?
        .into_os_string()
        .into_string()
        .map_err(|name| failed(format!("{} is not UTF-8", name.to_string_lossy())))
}

/// Does an op of a client; what goes wrong in it, a panic included, is an error.
fn call(session: &Session, name: &str, arguments: Map<String, Value>) -> Result<Value, AgentError> {
    guard::catch(|| {
        failpoint::reach("bridge.call");
        session.call(parse_op(name, arguments)?)
    })
}

fn closed() -> AgentError {
    AgentError::new(ErrorKind::Policy, "session_closed", "the session is closed").from_origin("bridge")
}
