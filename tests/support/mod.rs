//! What several tests share.

pub mod store;
