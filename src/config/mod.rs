//! The configuration: one table of keys, four layers, and what they add up to.
//!
//! `schema` is the table; validation, `/config set`, completion, the JSON Schema and docs/CONFIG.md derive from it.
//! `layers` sums the layers up to a [`Config`], `load` gets them from the user's file, `overrides` makes changes,
//! `profile` lays a named set of server and models over all, `paths` says where the user's files are. Nothing here
//! does I/O besides reading the one file.

mod error;
mod file;
mod layers;
mod load;
mod path;
mod paths;
mod profile;
pub mod schema;
mod suggest;
mod validate;
mod value;

pub use error::{ConfigError, Origin, Problem, Violation};
pub use file::load_user_file;
pub use layers::{Config, Layer, Layers};
pub use load::{Loaded, load};
pub use path::{DottedPath, PathError, join};
pub use paths::Paths;
pub use profile::names as profile_names;
pub use suggest::nearest_key;
pub use validate::{shown, valid_part, validate};
pub use value::merge;
