//! What several tests share.
#![allow(dead_code, reason = "each test uses some of the helpers")]

pub mod answers;
pub mod gates;
pub mod mock_server;
pub mod store;
