//! Palettes: colours by the name of what they are for.
//!
//! A style never names a colour, only a role of the palette (`success`, `accent3`, `text`), so a palette changes
//! everything at once. The built-in ones are `theme/*.json`; a client may send its own colours, role by role.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::ui::color::{Color, Depth};

/// The roles of a palette and what each is for.
pub const PALETTE_ROLES: [(&str, &str); 26] = [
    ("text", "plain text"),
    ("subtext", "text of second rank"),
    ("muted", "remarks, hints"),
    ("faint", "what should hardly be seen"),
    ("inverse", "text on an accent as background"),
    ("background", "the screen"),
    ("surface", "a raised surface"),
    ("overlay", "a bar over the screen"),
    ("border", "rules, boxes, bars"),
    ("selection", "what is chosen or found"),
    ("cursor", "the prompt's sign"),
    ("link", "links"),
    ("accent1", "Smith, the direct role"),
    ("accent2", "Tank, the orchestrator"),
    ("accent3", "Niobe, the worker"),
    ("accent4", "Link, the explorer"),
    ("accent5", "headings"),
    ("accent6", "code within text"),
    ("accent7", "names of tools"),
    ("accent8", "models, numbers"),
    ("success", "what went well"),
    ("warning", "what needs a look"),
    ("error", "what failed"),
    ("info", "what is good to know"),
    ("added", "lines added"),
    ("removed", "lines removed"),
];

/// The names of the built-in palettes; the first is the default.
pub const BUILT_IN: [&str; 2] = ["dark", "light"];

const DARK: &str = include_str!("../../theme/dark.json");
const LIGHT: &str = include_str!("../../theme/light.json");

/// What is wrong with a palette.
#[derive(Debug, Error)]
pub enum PaletteError {
    /// The text is no palette.
    #[error("The palette cannot be read: {0}. A palette is an object with \"name\" and \"colors\".")]
    Unreadable(#[from] serde_json::Error),
    /// A value is no colour.
    #[error(
        "The palette's colour for {role:?} is {value}, which is no colour. Use a name such as \"bright_green\", \
         \"#rrggbb\", a number from 0 to 255, or [r, g, b]."
    )]
    Color {
        /// The role.
        role: String,
        /// The value.
        value: Value,
    },
    /// There is no such palette.
    #[error("There is no palette named {0:?}; the built-in ones are dark and light.")]
    Unknown(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    color: Color,
    /// What to show where there are only sixteen colours; computed from `color` where the palette does not say.
    ansi: Option<Color>,
}

/// Colours by role.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    name: String,
    entries: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    colors: BTreeMap<String, Value>,
}

impl Palette {
    /// A built-in palette.
    ///
    /// # Errors
    /// [`PaletteError::Unknown`] where there is none of that name.
    pub fn built_in(name: &str) -> Result<Self, PaletteError> {
        match name {
            "dark" => Self::from_json(DARK),
            "light" => Self::from_json(LIGHT),
            other => Err(PaletteError::Unknown(other.to_owned())),
        }
    }

    /// Reads a palette file: `{"name", "colors": {role: colour | {"color", "ansi"}}}`.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn from_json(text: &str) -> Result<Self, PaletteError> {
        let file: File = serde_json::from_str(text)?;
        let mut entries = BTreeMap::new();
        for (role, value) in file.colors {
            let Some(entry) = Entry::parse(&value) else {
                return Err(PaletteError::Color { role, value });
            };
            entries.insert(role, entry);
        }
        Ok(Self {
            name: file.name,
            entries,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes over the colours a client sent; what cannot be read is left as it was and returned.
    pub fn overlay(&mut self, colors: &BTreeMap<String, Value>) -> Vec<PaletteError> {
        let mut problems = Vec::new();
        for (role, value) in colors {
            match Entry::parse(value) {
                Some(entry) => {
                    self.entries.insert(role.clone(), entry);
                }
                None => problems.push(PaletteError::Color {
                    role: role.clone(),
                    value: value.clone(),
                }),
            }
        }
        problems
    }

    /// The colour of `role` for a terminal of `depth`.
    #[must_use]
    pub fn get(&self, role: &str, depth: Depth) -> Option<Color> {
        let entry = self.entries.get(role)?;
        Some(match (depth, entry.ansi) {
            (Depth::Ansi16, Some(ansi)) => ansi,
            _ => entry.color.reduce(depth),
        })
    }
}

impl Entry {
    fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self {
                color: Color::parse(map.get("color")?)?,
                ansi: match map.get("ansi") {
                    Some(ansi) => Some(Color::parse(ansi)?.reduce(Depth::Ansi16)),
                    None => None,
                },
            }),
            plain => Some(Self {
                color: Color::parse(plain)?,
                ansi: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_built_in_palettes_have_every_role_and_no_other() {
        for name in BUILT_IN {
            let palette = Palette::built_in(name).unwrap();
            let mut roles: Vec<&str> = PALETTE_ROLES.iter().map(|(role, _)| *role).collect();
            roles.sort_unstable();
            assert_eq!(palette.entries.keys().map(String::as_str).collect::<Vec<_>>(), roles);
            assert_eq!(palette.name(), name);
        }
        assert!(matches!(Palette::built_in("blue"), Err(PaletteError::Unknown(_))));
    }

    #[test]
    fn a_clients_colours_win_and_bad_ones_are_told() {
        let mut palette = Palette::built_in("dark").unwrap();
        let before = palette.get("error", Depth::True);
        let colors = BTreeMap::from([
            ("success".to_owned(), json!("#010203")),
            ("error".to_owned(), json!("reddish")),
        ]);
        let problems = palette.overlay(&colors);
        assert_eq!(palette.get("success", Depth::True), Some(Color::Rgb(1, 2, 3)));
        assert_eq!(palette.get("success", Depth::Ansi16), Some(Color::Indexed(0)));
        assert_eq!(palette.get("error", Depth::True), before);
        assert!(problems[0].to_string().contains("\"error\" is \"reddish\""));
    }

    #[test]
    fn sixteen_colours_use_the_palettes_own_choice() {
        let palette = Palette::built_in("dark").unwrap();
        assert_eq!(palette.get("accent3", Depth::Ansi16), Some(Color::Indexed(5)));
        assert_eq!(palette.get("accent3", Depth::None), Some(Color::Default));
        assert_eq!(palette.get("nonsense", Depth::True), None);
    }
}
