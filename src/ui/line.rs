//! A line of styled text, and the three things it can become: bytes, plain text, a description for tests.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::ui::text;
use crate::ui::theme::{Element, Style, Theme};

/// A piece of text that looks the same throughout. Its text holds no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The text.
    pub text: String,
    /// How it looks.
    pub style: Style,
    /// Where it leads, on a terminal that can follow links.
    pub link: Option<Arc<str>>,
}

impl Span {
    /// A span; control characters in `text` are made visible.
    #[must_use]
    pub fn new(text: &str, style: impl Into<Style>) -> Self {
        Self {
            text: text::sanitize(text).into_owned(),
            style: style.into(),
            link: None,
        }
    }

    /// `cells` blanks.
    #[must_use]
    pub fn pad(cells: usize) -> Self {
        Self {
            text: " ".repeat(cells),
            style: Element::Pad.into(),
            link: None,
        }
    }
}

/// One line, without a line end.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Line {
    /// Its pieces, left to right.
    pub spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of one piece.
    #[must_use]
    pub fn of(text: &str, style: impl Into<Style>) -> Self {
        Self::new().with(text, style)
    }

    /// Adds a piece. Line breaks and tabs in it become blanks: a line stays one.
    #[must_use]
    pub fn with(mut self, text: &str, style: impl Into<Style>) -> Self {
        if text.contains(['\n', '\t']) {
            return self.with(&text.replace(['\n', '\t'], " "), style);
        }
        if !text.is_empty() {
            self.spans.push(Span::new(text, style));
        }
        self
    }

    /// The cells it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| text::width(&span.text)).sum()
    }

    /// Its text.
    #[must_use]
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Its text without marks, bars and padding of ours.
    #[must_use]
    pub fn content(&self) -> String {
        let content = self.spans.iter().filter(|span| !span.style.is_decoration());
        content.map(|span| span.text.as_str()).collect()
    }

    /// Its text with every style spelled out: `<role.smith>Smith</> said`. For tests and `/theme`.
    #[must_use]
    pub fn described(&self) -> String {
        let mut out = String::new();
        for span in &self.spans {
            let path: Vec<&str> = span.style.elements().iter().map(|element| element.path()).collect();
            let path = path.join("/");
            match path.as_str() {
                "" | "text" | "pad" => out.push_str(&span.text),
                path => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "<{path}>{}</>", span.text);
                }
            }
        }
        out
    }

    /// Cuts it to `cells`, replacing its end by `mark` where it was longer.
    pub fn truncate(&mut self, cells: usize, mark: &str) {
        if self.width() <= cells {
            return;
        }
        let mut room = cells.saturating_sub(text::width(mark));
        let mut kept = Vec::new();
        for mut span in std::mem::take(&mut self.spans) {
            let (end, used) = text::fit(&span.text, room);
            let whole = end == span.text.len();
            span.text.truncate(end);
            room -= used;
            if !span.text.is_empty() {
                kept.push(span);
            }
            if !whole {
                break;
            }
        }
        self.spans = kept;
        let (end, _) = text::fit(mark, cells);
        self.spans.push(Span::new(&mark[..end], Element::Marker));
    }

    /// Appends it as bytes for a terminal. It begins and ends in the plain style, without a line end.
    pub fn write_ansi(&self, theme: &Theme, out: &mut String) {
        let mut styled = false;
        let mut last = Style::default();
        let mut link: Option<&Arc<str>> = None;
        for span in &self.spans {
            if span.link.as_ref() != link {
                link = span.link.as_ref();
                out.push_str("\x1b]8;;");
                out.push_str(link.map_or("", |url| url));
                out.push_str("\x1b\\");
            }
            if span.style != last {
                last = span.style;
                let look = theme.look(&last);
                if std::mem::take(&mut styled) {
                    out.push_str("\x1b[0m");
                }
                if !look.is_plain() {
                    look.write(out);
                    styled = true;
                }
            }
            out.push_str(&span.text);
        }
        if styled {
            out.push_str("\x1b[0m");
        }
        if link.is_some() {
            out.push_str("\x1b]8;;\x1b\\");
        }
    }

    /// It as bytes for a terminal.
    #[must_use]
    pub fn ansi(&self, theme: &Theme) -> String {
        let mut out = String::new();
        self.write_ansi(theme, &mut out);
        out
    }
}

/// Lines as plain text, one a line, without blanks at their ends. For tests and files.
#[must_use]
pub fn plain(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.plain().trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Lines with every style spelled out, one a line.
#[must_use]
pub fn described(lines: &[Line]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.described().trim_end().to_owned())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::color::Depth;
    use crate::ui::theme::ThemeSource;

    #[test]
    fn bytes_switch_styles_only_where_they_change_and_end_plain() {
        let theme = ThemeSource::built_in("dark").unwrap().resolve(Depth::Ansi16, true);
        let line = Line::of("a", Element::ToolOk)
            .with("b", Element::ToolOk)
            .with("c", Element::Text);
        assert_eq!(line.ansi(&theme), "\x1b[32mab\x1b[0mc");
        assert_eq!(line.ansi(&Theme::plain()), "abc");
        let mut linked = Line::of("here", Element::Text);
        linked.spans[0].link = Some("https://example.org/".into());
        assert_eq!(
            linked.ansi(&theme),
            "\x1b]8;;https://example.org/\x1b\\here\x1b]8;;\x1b\\"
        );
    }

    #[test]
    fn a_cut_line_says_so() {
        let mut line = Line::of("abc", Element::ToolName).with("日本語", Element::Text);
        line.truncate(6, "…");
        assert_eq!(line.described(), "<tool.name>abc</>日<marker>…</>");
        let mut fits = Line::of("abc", Element::Text);
        fits.truncate(3, "…");
        assert_eq!(fits.plain(), "abc");
    }
}
