//! What several tests share.
#![allow(dead_code, reason = "each test uses some of the helpers")]

pub mod answers;
pub mod ask;
pub mod gates;
pub mod home;
pub mod lua;
pub mod masked;
pub mod mock_server;
pub mod power;
pub mod pty;
pub mod quirk_cases;
pub mod skip;
pub mod store;
pub mod strict;
pub mod tools;
pub mod victim;
