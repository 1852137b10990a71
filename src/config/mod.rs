//! The configuration: one table of keys, four layers, and what they add up to.
//!
//! `schema` is the table; validation, `/config set`, completion, the JSON Schema and docs/CONFIG.md derive from it.
//! `layers` sums the layers up to a [`Config`], `load` gets them from the user's file, `overrides` makes changes,
//! `profile` lays a named set of server and models over all, `paths` says where the user's files are. Nothing here
//! does I/O besides reading and, for whoever asks for it, writing the one file.

mod docs;
mod error;
mod file;
mod json_schema;
mod layers;
mod listing;
mod load;
mod overrides;
mod path;
mod paths;
mod profile;
mod request;
pub mod schema;
mod suggest;
mod validate;
mod value;
mod warnings;
mod write;

pub use docs::markdown;
pub use error::{ConfigError, Origin, Problem, Violation};
pub use file::load_user_file;
pub use json_schema::json_schema;
pub use layers::{Config, Layer, Layers};
pub use listing::{Entry, entries, entry, find as find_entries, settable, values};
pub use load::{Loaded, load};
pub use overrides::{Change, coerce, is_overridable, set, unset};
pub use path::{DottedPath, PathError, join};
pub use paths::Paths;
pub use profile::names as profile_names;
pub use request::RequestSettings;
pub use suggest::nearest_key;
pub use validate::{shown, valid_part, validate};
pub use value::merge;
pub use warnings::KnownNames;
pub use write::write_user_file;
