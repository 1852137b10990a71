//! One colour, how it is written in a theme, and how it looks on a terminal with fewer colours.

use serde_json::Value;

/// How many colours a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Depth {
    /// None at all.
    #[default]
    None,
    /// The sixteen named ones.
    Ansi16,
    /// The 256 indexed ones.
    Ansi256,
    /// Red, green and blue, eight bits each.
    True,
}

impl Depth {
    /// The depth for a count of colours as a terminal description gives it.
    #[must_use]
    pub fn from_count(colors: u32) -> Self {
        match colors {
            0..=7 => Self::None,
            8..=255 => Self::Ansi16,
            256..=65_535 => Self::Ansi256,
            _ => Self::True,
        }
    }
}

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Color {
    /// The terminal's own.
    Default,
    /// One of the 256 indexed ones; the first sixteen are the terminal's named colours.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// The names of the first sixteen colours, in their order.
pub const ANSI_NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright_black",
    "bright_red",
    "bright_green",
    "bright_yellow",
    "bright_blue",
    "bright_magenta",
    "bright_cyan",
    "bright_white",
];

/// What xterm shows for the first sixteen colours unless told otherwise.
const ANSI_RGB: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// The steps of the 6×6×6 cube that the colours 16 to 231 are.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

impl Color {
    /// Reads a colour as a theme writes it: a name, `#rrggbb` or `#rgb`, an index, `[r, g, b]`, `"default"`.
    #[must_use]
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse_str(text),
            Value::Number(number) => Some(Self::Indexed(u8::try_from(number.as_u64()?).ok()?)),
            Value::Array(parts) => {
                let [r, g, b] = parts.as_slice() else { return None };
                let part = |value: &Value| value.as_u64().and_then(|n| u8::try_from(n).ok());
                Some(Self::Rgb(part(r)?, part(g)?, part(b)?))
            }
            _ => None,
        }
    }

    fn parse_str(text: &str) -> Option<Self> {
        if let Some(hex) = text.strip_prefix('#') {
            return Self::parse_hex(hex);
        }
        match text {
            "default" | "none" | "reset" => return Some(Self::Default),
            "gray" | "grey" => return Some(Self::Indexed(8)),
            _ => {}
        }
        let index = ANSI_NAMES.iter().position(|name| *name == text)?;
        Some(Self::Indexed(u8::try_from(index).ok()?))
    }

    fn parse_hex(hex: &str) -> Option<Self> {
        let number = u32::from_str_radix(hex, 16).ok()?;
        let [_, r, g, b] = number.to_be_bytes();
        match hex.len() {
            6 => Some(Self::Rgb(r, g, b)),
            3 => {
                let [hi, lo] = [g, b];
                Some(Self::Rgb((hi & 15) * 17, (lo >> 4) * 17, (lo & 15) * 17))
            }
            _ => None,
        }
    }

    /// The nearest colour a terminal of `depth` can show; [`Color::Default`] where it shows none.
    #[must_use]
    pub fn reduce(self, depth: Depth) -> Self {
        match (self, depth) {
            (_, Depth::None) => Self::Default,
            (Self::Rgb(r, g, b), Depth::Ansi256) => Self::Indexed(nearest_256(r, g, b)),
            (Self::Rgb(r, g, b), Depth::Ansi16) => Self::Indexed(nearest_16(r, g, b)),
            (Self::Indexed(index), Depth::Ansi16) if index >= 16 => {
                let (r, g, b) = rgb_of(index);
                Self::Indexed(nearest_16(r, g, b))
            }
            (color, _) => color,
        }
    }

    /// Adds the parameters of the escape sequence that switches to it, as background or foreground.
    pub fn push_sgr(self, background: bool, out: &mut Vec<u8>) {
        let base = if background { 10 } else { 0 };
        match self {
            Self::Default => out.push(39 + base),
            Self::Indexed(index @ 0..=7) => out.push(30 + base + index),
            Self::Indexed(index @ 8..=15) => out.push(90 + base + index - 8),
            Self::Indexed(index) => out.extend([38 + base, 5, index]),
            Self::Rgb(r, g, b) => out.extend([38 + base, 2, r, g, b]),
        }
    }
}

fn rgb_of(index: u8) -> (u8, u8, u8) {
    match index {
        0..=15 => ANSI_RGB[usize::from(index)],
        16..=231 => {
            let cell = usize::from(index - 16);
            (CUBE[cell / 36], CUBE[cell / 6 % 6], CUBE[cell % 6])
        }
        grey => {
            let level = 8 + 10 * (grey - 232);
            (level, level, level)
        }
    }
}

/// Distance as the eye sees it, roughly: the weights follow the mean of the reds ("redmean").
fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> i32 {
    let mean = (i32::from(a.0) + i32::from(b.0)) / 2;
    let (r, g, b) = (
        i32::from(a.0) - i32::from(b.0),
        i32::from(a.1) - i32::from(b.1),
        i32::from(a.2) - i32::from(b.2),
    );
    (((512 + mean) * r * r) >> 8) + 4 * g * g + (((767 - mean) * b * b) >> 8)
}

fn nearest_256(r: u8, g: u8, b: u8) -> u8 {
    let step = |value: u8| {
        let index = CUBE.iter().enumerate().min_by_key(|(_, step)| value.abs_diff(**step));
        index.map_or(0, |(index, _)| index)
    };
    let cell = step(r) * 36 + step(g) * 6 + step(b);
    let cube = u8::try_from(16 + cell).unwrap_or(231);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = 232 + u8::try_from((mean.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    [cube, grey]
        .into_iter()
        .min_by_key(|index| distance(rgb_of(*index), (r, g, b)))
        .unwrap_or(cube)
}

fn nearest_16(r: u8, g: u8, b: u8) -> u8 {
    (0u8..16)
        .min_by_key(|index| distance(rgb_of(*index), (r, g, b)))
        .unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_a_theme_may_use_is_read() {
        for (value, color) in [
            (json!("red"), Some(Color::Indexed(1))),
            (json!("bright_cyan"), Some(Color::Indexed(14))),
            (json!("#ff8000"), Some(Color::Rgb(255, 128, 0))),
            (json!("#f80"), Some(Color::Rgb(255, 136, 0))),
            (json!(208), Some(Color::Indexed(208))),
            (json!([1, 2, 3]), Some(Color::Rgb(1, 2, 3))),
            (json!("default"), Some(Color::Default)),
            (json!("mauve"), None),
            (json!(256), None),
            (json!([1, 2]), None),
            (json!("#12345"), None),
            (json!("#ä0"), None),
            (json!(null), None),
        ] {
            assert_eq!(Color::parse(&value), color, "{value}");
        }
    }

    #[test]
    fn fewer_colours_take_the_nearest() {
        let orange = Color::Rgb(255, 135, 0);
        assert_eq!(orange.reduce(Depth::True), orange);
        assert_eq!(orange.reduce(Depth::Ansi256), Color::Indexed(208));
        assert_eq!(Color::Rgb(128, 128, 128).reduce(Depth::Ansi256), Color::Indexed(244));
        assert_eq!(Color::Rgb(250, 10, 10).reduce(Depth::Ansi16), Color::Indexed(9));
        assert_eq!(Color::Indexed(196).reduce(Depth::Ansi16), Color::Indexed(9));
        assert_eq!(orange.reduce(Depth::None), Color::Default);
    }

    #[test]
    fn exact_colours_of_the_cube_stay_what_they_are() {
        for index in 16..=255u8 {
            let (r, g, b) = rgb_of(index);
            let Color::Indexed(found) = Color::Rgb(r, g, b).reduce(Depth::Ansi256) else {
                panic!("not indexed")
            };
            assert_eq!(rgb_of(found), (r, g, b), "{index}");
        }
    }
}
