//! The one contract of every carrier: ops in, events out.
//!
//! The Lua module, the sidecar, `exec --json` and the standalone host all speak exactly these types; none of them has
//! logic of its own. [`op`] holds what a client asks and what it gets back, [`event`] what happens meanwhile
//! (with [`payload`], what some of that carries),
//! [`queue`] the bounded queue between the two sides, [`order`] the rules every stream of events keeps.
//!
//! Both lists may grow: a client skips event types, and members, that it does not know.

pub mod event;
pub mod op;
pub mod order;
pub mod payload;
pub mod queue;

pub use event::{Event, EventKind};
pub use op::{
    CancelScope, Candidate, HELLO_TERM_DEFAULT, Hello, HostInfo, Op, Status, Submit, TermInfo, Theme, Welcome,
};
pub use payload::{
    CallOutcome, ChangedFile, Durability, MutationState, NoticeLevel, RequestFinish, SessionState, StopReason,
    ToolFinish, TurnEnd, ViewCursor,
};
pub use queue::EventQueue;

/// The version of the contract. A client and a core that differ refuse each other with the side to update.
pub const PROTOCOL_VERSION: u32 = 1;
