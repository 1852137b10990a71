//! The Lua module `agent_smith.core`: sessions as userdata in the host's own process.
//!
//! A method blocks at most as long as it says, holds nothing Lua needs meanwhile, and never raises but for arguments of
//! the wrong Lua type: failures come back as `nil, {kind, code, message, hint, …}`.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Table, UserData, UserDataMethods, Value as LuaValue};
use serde_json::{Map, Value};

use crate::bridge::convert;
use crate::bridge::guard::{self, Owner};
use crate::error::AgentError;
use crate::failpoint;
use crate::protocol::{CancelScope, Event, PROTOCOL_VERSION, Welcome};
use crate::runtime::Session;

/// How long a wait goes on before Lua gets a turn, in which an interrupt the host has set as a hook takes effect.
const SLICE: Duration = Duration::from_millis(50);
/// How long one wait is at most, in seconds.
const MAX_WAIT: f64 = 3600.0;
/// How long a closed session's tools have to end well, …
const CLOSE_WAIT: Duration = Duration::from_millis(400);
/// … and what is killed then to be gone and the turn to be kept.
const URGENT_WAIT: Duration = Duration::from_millis(600);
/// The methods that are an op each: their argument is a table of the op's members, or nothing.
const OPS: [&str; 8] = [
    "submit", "cancel", "answer", "complete", "status", "resize", "theme", "view_key",
];

/// The module's table: `new`, `protocol`, `version`.
///
/// # Errors
/// Where Lua has no memory left.
pub fn module(lua: &Lua) -> mlua::Result<Table> {
    guard::quiet_panics();
    let tick = lua.load("return").set_name("=agent_smith.core").into_function()?;
    let module = lua.create_table()?;
    module.set("protocol", PROTOCOL_VERSION)?;
    module.set("version", env!("CARGO_PKG_VERSION"))?;
    module.set(
        "new",
        lua.create_function(move |lua, hello: LuaValue| new(lua, &hello, tick.clone()))?,
    )?;
    Ok(module)
}

/// What a Lua host calls to load the module.
#[mlua::lua_module(name = "agent_smith_core")]
fn open(lua: &Lua) -> mlua::Result<Table> {
    module(lua)
}

fn new(lua: &Lua, hello: &LuaValue, tick: Function) -> mlua::Result<MultiValue> {
    let hello = arguments("new", hello)?;
    let opened = guard::catch(|| {
        let owner = Owner::claim()?;
        failpoint::reach("bridge.new");
        let (session, welcome) = Session::open(super::parse_hello(hello)?, super::shell_session())?;
        Ok((owner, session, welcome))
    });
    answer(lua, opened, |lua, (owner, session, welcome)| {
        let session = Some(session);
        let session = NativeSession {
            owner,
            session,
            welcome,
            left: RefCell::default(),
            closed: Cell::new(false),
            tick,
        };
        lua.create_userdata(session).map(LuaValue::UserData)
    })
}

/// A session as Lua holds it.
struct NativeSession {
    owner: Owner,
    /// There until the drop.
    session: Option<Session>,
    welcome: Welcome,
    /// Events that came while the session was being closed.
    left: RefCell<Vec<Event>>,
    closed: Cell<bool>,
    /// A Lua function that does nothing; see [`SLICE`].
    tick: Function,
}

impl UserData for NativeSession {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        for name in OPS {
            methods.add_method(name, move |lua, this, given: LuaValue| {
                let given = arguments(name, &given)?;
                answer(
                    lua,
                    this.open().and_then(|session| super::call(session, name, given)),
                    |lua, value| convert::to_lua(lua, &value),
                )
            });
        }
        methods.add_method("poll", |lua, this, ms: Option<f64>| {
            this.poll(lua, ms.unwrap_or_default())
        });
        methods.add_method("close", |lua, this, given: LuaValue| {
            let given = arguments("close", &given)?;
            let reason = given
                .get("reason")
                .and_then(Value::as_str)
                .unwrap_or("closed by the client")
                .to_owned();
            answer(lua, this.here().map(|session| this.close(session, &reason)), |_, ()| {
                Ok(LuaValue::Boolean(true))
            })
        });
        methods.add_method("welcome", |lua, this, ()| convert::to_lua(lua, &this.welcome));
    }
}

impl NativeSession {
    /// The session, closed or not, in the process it belongs to.
    fn here(&self) -> Result<&Session, AgentError> {
        self.owner.check()?;
        self.session.as_ref().ok_or_else(super::closed)
    }

    /// The session, for another op.
    fn open(&self) -> Result<&Session, AgentError> {
        let session = self.here()?;
        if self.closed.get() {
            Err(super::closed())
        } else {
            Ok(session)
        }
    }

    /// The events that wait, or those that come first within `ms`.
    fn poll(&self, lua: &Lua, ms: f64) -> mlua::Result<MultiValue> {
        // A number that is none is no wait.
        let wait = Duration::try_from_secs_f64((ms / 1000.0).clamp(0.0, MAX_WAIT)).unwrap_or_default();
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let events = self
                .here()
                .and_then(|session| guard::catch(|| self.take(session, left.min(SLICE))));
            let nothing_yet = events.as_ref().is_ok_and(Vec::is_empty);
            if !nothing_yet || left <= SLICE {
                return answer(lua, events, |lua, events| convert::to_lua(lua, &events));
            }
            self.tick.call::<()>(())?;
        }
    }

    fn take(&self, session: &Session, wait: Duration) -> Result<Vec<Event>, AgentError> {
        failpoint::reach("bridge.poll");
        let mut events = self.left.take();
        if events.is_empty() {
            events = session.poll(wait);
        }
        if events.is_empty() && session.is_closed() {
            return Err(super::closed());
        }
        Ok(events)
    }

    /// Ends the session, and waits until nothing of it runs any more. What happens meanwhile can still be polled.
    fn close(&self, session: &Session, reason: &str) {
        if self.closed.replace(true) {
            return;
        }
        session.close(reason);
        if !self.ended_within(session, CLOSE_WAIT) {
            session.cancel(CancelScope::All, reason);
            self.ended_within(session, URGENT_WAIT);
        }
    }

    /// Waits for the end of a closed session, keeping the events that come.
    fn ended_within(&self, session: &Session, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        while !session.is_closed() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.left.borrow_mut().extend(session.poll(left));
        }
        true
    }
}

impl Drop for NativeSession {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if !self.owner.is_here() {
            // The locks in it may be held by threads this process does not have.
            std::mem::forget(session);
            return;
        }
        // A panic in a destructor would end the host.
        let _ = guard::catch(|| {
            self.close(&session, "the host let go of the session");
            drop(session);
            Ok(())
        });
    }
}

/// A method's argument: a table of an op's members, or nothing.
fn arguments(method: &str, given: &LuaValue) -> mlua::Result<Map<String, Value>> {
    let bad = |what: &str| mlua::Error::runtime(format!("bad argument to `{method}`: {what}"));
    match given {
        LuaValue::Nil => Ok(Map::new()),
        LuaValue::Table(_) => match convert::to_json(given).map_err(|what| bad(&what))? {
            Value::Object(members) => Ok(members),
            _ => Err(bad("a table with names is expected, not a list")),
        },
        other => Err(bad(&format!(
            "a table is expected, not a {}",
            convert::type_name(other)
        ))),
    }
}

/// What a method returns: its value, or nil and the error as a table.
fn answer<T>(
    lua: &Lua,
    result: Result<T, AgentError>,
    value: impl FnOnce(&Lua, T) -> mlua::Result<LuaValue>,
) -> mlua::Result<MultiValue> {
    match result {
        Ok(done) => value(lua, done)?.into_lua_multi(lua),
        Err(error) => (LuaValue::Nil, convert::to_lua(lua, &error)?).into_lua_multi(lua),
    }
}
