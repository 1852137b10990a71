//! The store: what was said, noted, used and configured, on the disk before anybody is told so.
//!
//! One file of the database engine redb, shared by any number of processes: each transaction opens it behind a lock
//! (`lock.rs`), commits with everything the next open needs after a crash, and lets go of it (`open.rs`, `disk.rs`, and
//! `cow.rs` for questions). Where that cannot be done, the records wait in a spool beside it (`spool.rs`), else in memory,
//! and the user is told (`engine.rs`). The keys are in [`keys`], their records in `records.rs`, the bytes in [`codec`].
//! `repair.rs`, `salvage.rs` and `maintenance.rs` are for the person whose disk is not what it was. docs/STORE.md says what
//! is guaranteed and measured.

mod apply;
mod aside;
mod batch;
mod blobs;
pub mod codec;
mod contain;
mod cow;
mod disk;
mod engine;
mod error;
pub mod failpoint;
pub mod keys;
mod lock;
mod maintenance;
mod migrations;
mod notices;
mod open;
mod problem;
mod process;
pub mod project_identity;
mod reader;
mod records;
mod repair;
mod report;
mod salvage;
mod spool;
mod store;
mod tables;
mod view;

pub use batch::{Batch, sha256_hex};
pub use blobs::{Blob, DEFAULT_MAX_BLOB_BYTES};
pub use error::StoreError;
pub use maintenance::{CompactReport, KeyspaceStats, StoreStats, compact, export, stats};
pub use open::is_contained;
pub use process::{ProcessStamp, now_ms};
pub use reader::Reader;
pub use records::{ConversationRecord, LiveTerminal, MessageRecord, NoteRecord, OpenTurn, ProjectMemory, UsageRecord};
pub use repair::{RepairReport, repair};
pub use report::{CommitReport, Durability, NoticeKind, StoreNotice};
pub use salvage::SalvageReport;
pub use store::{DEFAULT_LOCK_DEADLINE, OpenDisk, Store, StoreOptions};
