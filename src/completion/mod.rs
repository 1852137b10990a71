//! Completion: what is being typed at the cursor, and which candidates fit it best.
//!
//! `place` says what the word at the cursor is; whoever owns the registries (commands, keys, models, roles, files)
//! supplies the [`Item`]s for such a place; `rank` puts those that fit in order. Pure: no I/O, no state but a
//! matcher's memory, fast enough for every key.

mod config_items;
mod place;
mod rank;

pub use config_items::{config_keys, config_values};
pub use place::{Place, mention_text, place};
pub use rank::{Item, Ranker};
