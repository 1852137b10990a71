//! Looking into code, in-process: walking a tree as git would, searching it, and finding what it declares.
//!
//! | file | idea |
//! |---|---|
//! | `walk` | which files there are: ignore rules, globs, what was left out |
//! | `excludes` | the user's own ignore file |
//! | `search` | a pattern in all of them, by as many threads as there are cores |
//! | `rank` | what is worth being shown first |
//! | `languages` | grammars, and which of their nodes declare something |
//! | `symbols` | what a file declares |
//! | `heuristic` | the same by plain patterns, for languages without a grammar |

mod excludes;
pub(super) mod heuristic;
pub(super) mod languages;
pub(super) mod rank;
pub(super) mod search;
pub(super) mod symbols;
pub(super) mod walk;
