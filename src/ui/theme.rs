//! The theme section `agent_smith`: a style for every element that is shown, built from the roles of a palette.
//!
//! [`ThemeSource`] is what was asked for (palette and styles, the client's changes included); [`Theme`] is what that
//! means on one terminal. Styles cascade: an element inside another keeps what it does not set itself.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::protocol;
use crate::ui::color::{Color, Depth};
pub use crate::ui::element::{Element, Style, role_element};
use crate::ui::palette::{Palette, PaletteError};

const SECTION: &str = include_str!("../../theme/agent_smith.json");

/// The attributes a style may set, with their escape-sequence parameters.
const ATTRIBUTES: [(&str, u8); 6] = [
    ("bold", 1),
    ("dim", 2),
    ("italic", 3),
    ("underlined", 4),
    ("inverted", 7),
    ("strike", 9),
];

/// What one terminal is told for a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Look {
    fg: Option<Color>,
    bg: Option<Color>,
    /// A bit for each of [`ATTRIBUTES`].
    attributes: u8,
}

impl Look {
    fn over(self, inner: Self) -> Self {
        Self {
            fg: inner.fg.or(self.fg),
            bg: inner.bg.or(self.bg),
            attributes: self.attributes | inner.attributes,
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Writes the escape sequence that switches to it from plain.
    pub fn write(&self, out: &mut String) {
        let mut parameters = Vec::with_capacity(12);
        for (bit, (_, parameter)) in ATTRIBUTES.iter().enumerate() {
            if self.attributes & (1 << bit) != 0 {
                parameters.push(*parameter);
            }
        }
        if let Some(color) = self.fg {
            color.push_sgr(false, &mut parameters);
        }
        if let Some(color) = self.bg {
            color.push_sgr(true, &mut parameters);
        }
        out.push_str("\x1b[");
        for (index, parameter) in parameters.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            // Writing to a string cannot fail.
            let _ = write!(out, "{separator}{parameter}");
        }
        out.push('m');
    }
}

/// What is wrong with a theme a client sent. The rest of it holds.
#[derive(Debug, Error)]
pub enum ThemeProblem {
    /// A colour.
    #[error(transparent)]
    Palette(#[from] PaletteError),
    /// A path nobody knows.
    #[error("The theme has no element {0:?}; see theme/agent_smith.json for those there are.")]
    UnknownElement(String),
    /// A style that cannot be read.
    #[error(
        "The style of {path:?} cannot be read: {value}. A style has \"fg\", \"bg\" (a palette role or a colour) and \
         \"s\" (bold, dim, italic, underlined, inverted, strike)."
    )]
    Style {
        /// The element.
        path: String,
        /// The value.
        value: Value,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Paint {
    Role(String),
    Fixed(Color),
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Rule {
    fg: Option<Paint>,
    bg: Option<Paint>,
    attributes: u8,
}

impl Rule {
    fn parse(value: &Value, palette: &Palette) -> Option<Self> {
        let map = value.as_object()?;
        let paint = |key: &str| match map.get(key) {
            None => Some(None),
            Some(Value::String(name)) if palette.get(name, Depth::True).is_some() => {
                Some(Some(Paint::Role(name.clone())))
            }
            Some(value) => Color::parse(value).map(|color| Some(Paint::Fixed(color))),
        };
        let mut attributes = 0;
        let words: Vec<&str> = match map.get("s") {
            None => Vec::new(),
            Some(Value::String(text)) => text.split([' ', ',']).filter(|word| !word.is_empty()).collect(),
            Some(Value::Array(list)) => list.iter().map(Value::as_str).collect::<Option<_>>()?,
            Some(_) => return None,
        };
        for word in words {
            let bit = ATTRIBUTES.iter().position(|(name, _)| *name == word)?;
            attributes |= 1 << bit;
        }
        Some(Self {
            fg: paint("fg")?,
            bg: paint("bg")?,
            attributes,
        })
    }
}

/// A palette and a rule for every element.
#[derive(Clone, Debug, PartialEq)]
pub struct ThemeSource {
    palette: Palette,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Section {
    styles: Map<String, Value>,
}

impl ThemeSource {
    /// The theme section with the built-in palette `name`.
    ///
    /// # Errors
    /// [`ThemeProblem::Palette`] where there is no such palette.
    pub fn built_in(name: &str) -> Result<Self, ThemeProblem> {
        let mut source = Self {
            palette: Palette::built_in(name)?,
            rules: vec![Rule::default(); Element::ALL.len()],
        };
        let section: Section = serde_json::from_str(SECTION).map_err(PaletteError::from)?;
        match source.overlay_styles(&section.styles).pop() {
            Some(problem) => Err(problem),
            None => Ok(source),
        }
    }

    /// Takes over what a client sent. What cannot be used is left as it was and returned.
    pub fn overlay(&mut self, theme: &protocol::Theme) -> Vec<ThemeProblem> {
        let mut problems = Vec::new();
        if let Some(colors) = &theme.palette {
            problems.extend(self.palette.overlay(colors).into_iter().map(ThemeProblem::from));
        }
        if let Some(styles) = &theme.styles {
            problems.extend(self.overlay_styles(styles));
        }
        problems
    }

    /// Styles by dotted path, or nested by its parts.
    fn overlay_styles(&mut self, styles: &Map<String, Value>) -> Vec<ThemeProblem> {
        let mut problems = Vec::new();
        let mut open: Vec<(String, &Value)> = styles.iter().map(|(path, value)| (path.clone(), value)).collect();
        while let Some((path, value)) = open.pop() {
            let Some(element) = Element::named(&path) else {
                let prefix = format!("{path}.");
                let is_group = Element::ALL.iter().any(|element| element.path().starts_with(&prefix));
                match value {
                    Value::Object(map) if is_group => {
                        open.extend(map.iter().map(|(key, value)| (format!("{path}.{key}"), value)));
                    }
                    _ => problems.push(ThemeProblem::UnknownElement(path)),
                }
                continue;
            };
            match (Rule::parse(value, &self.palette), self.rules.get_mut(element as usize)) {
                (Some(rule), Some(slot)) => *slot = rule,
                _ => problems.push(ThemeProblem::Style {
                    path,
                    value: value.clone(),
                }),
            }
        }
        problems
    }

    /// What it means on a terminal of `depth`; `attributes` says whether bold, underlined and the like may be used.
    #[must_use]
    pub fn resolve(&self, depth: Depth, attributes: bool) -> Theme {
        let paint = |paint: &Option<Paint>| {
            let color = match paint.as_ref()? {
                Paint::Role(role) => self.palette.get(role, depth)?,
                Paint::Fixed(color) => color.reduce(depth),
            };
            // The terminal's own colour is what is there anyway; without any colour nothing is to be said at all.
            (color != Color::Default).then_some(color)
        };
        let looks = self.rules.iter().map(|rule| Look {
            fg: paint(&rule.fg),
            bg: paint(&rule.bg),
            attributes: if attributes { rule.attributes } else { 0 },
        });
        Theme { looks: looks.collect() }
    }
}

/// What every element looks like on one terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    looks: Vec<Look>,
}

impl Theme {
    /// The theme of something that shows no styles.
    #[must_use]
    pub fn plain() -> Self {
        Self { looks: Vec::new() }
    }

    /// What `style` looks like.
    #[must_use]
    pub fn look(&self, style: &Style) -> Look {
        let looks = style.elements().iter();
        looks.fold(Look::default(), |outer, element| {
            outer.over(self.looks.get(*element as usize).copied().unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn sequence(theme: &Theme, style: impl Into<Style>) -> String {
        let mut out = String::new();
        theme.look(&style.into()).write(&mut out);
        out
    }

    #[test]
    fn the_section_styles_every_element_and_reads_without_a_complaint() {
        for palette in crate::ui::palette::BUILT_IN {
            ThemeSource::built_in(palette).unwrap();
        }
        let section: Section = serde_json::from_str(SECTION).unwrap();
        let mut paths: Vec<&str> = Element::ALL.iter().map(|element| element.path()).collect();
        let mut styled: Vec<&str> = section.styles.keys().map(String::as_str).collect();
        paths.sort_unstable();
        styled.sort_unstable();
        assert_eq!(paths, styled);
    }

    #[test]
    fn the_depth_decides_what_is_said() {
        let source = ThemeSource::built_in("dark").unwrap();
        assert_eq!(
            sequence(&source.resolve(Depth::True, true), Element::ToolFailed),
            "\x1b[1;38;2;255;123;114m"
        );
        assert_eq!(
            sequence(&source.resolve(Depth::Ansi256, true), Element::ToolFailed),
            "\x1b[1;38;5;209m"
        );
        assert_eq!(
            sequence(&source.resolve(Depth::Ansi16, true), Element::ToolFailed),
            "\x1b[1;31m"
        );
        assert_eq!(
            sequence(&source.resolve(Depth::None, true), Element::ToolFailed),
            "\x1b[1m"
        );
        let bare = source.resolve(Depth::None, false);
        assert!(
            Element::ALL
                .iter()
                .all(|element| bare.look(&(*element).into()).is_plain())
        );
    }

    #[test]
    fn an_inner_element_keeps_what_it_does_not_set() {
        let theme = ThemeSource::built_in("dark").unwrap().resolve(Depth::Ansi16, true);
        let style = Style::of(Element::Heading2).within(Element::Emphasis);
        assert_eq!(sequence(&theme, style), "\x1b[1;3;94m");
    }

    #[test]
    fn a_client_changes_colours_and_styles_and_hears_of_what_cannot_be_used() {
        let mut source = ThemeSource::built_in("dark").unwrap();
        let problems = source.overlay(&protocol::Theme {
            palette: Some(BTreeMap::from([("success".into(), json!([9, 8, 7]))])),
            styles: json!({
                "tool": {"name": {"fg": "error"}, "ok": {"s": ["bold"]}},
                "role.smith": {"fg": "success", "s": "dim,italic"},
                "md.code": {"fg": "no such role"},
                "wall": {"fg": "red"},
            })
            .as_object()
            .cloned(),
        });
        let theme = source.resolve(Depth::True, true);
        assert_eq!(sequence(&theme, Element::RoleSmith), "\x1b[2;3;38;2;9;8;7m");
        assert_eq!(sequence(&theme, Element::ToolName), "\x1b[38;2;255;123;114m");
        assert_eq!(sequence(&theme, Element::ToolOk), "\x1b[1m");
        let mut told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        told.sort();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("\"md.code\"") && told[1].contains("\"wall\""));
    }
}
