//! Everything that is shown: events and Markdown become styled lines, lines become bytes.
//!
//! The room is pure. It reads no key, asks the terminal nothing and writes nowhere: [`render::Renderer`] turns the events
//! of the contract into pieces a client writes, a [`view::View`] turns key names into pictures. Only [`term`] touches a
//! real terminal, for our own executable.
//!
//! From the bottom up: [`color`], [`palette`], [`element`], [`theme`] say how things look; [`text`] makes foreign text harmless and
//! measures it; [`line`](mod@line), [`wrap`] lay it out; [`markdown`], [`lines`], [`diff`], [`prompt_line`] make the
//! things that are shown; [`activity`], [`render`], [`view`], [`pager`] put them on a screen.

pub mod activity;
pub mod color;
pub mod diff;
pub mod element;
pub mod line;
pub mod lines;
pub mod markdown;
pub mod pager;
pub mod palette;
pub mod prompt_line;
pub mod render;
pub mod term;
pub mod text;
pub mod theme;
pub mod view;
pub mod wrap;
