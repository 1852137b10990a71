//! Text within a block: styles, links, code, and the text of a whole paragraph to its lines.

use std::sync::Arc;

use super::{Block, Layout};
use crate::ui::element::{Element, Style};
use crate::ui::line::Span;
use crate::ui::text;
use crate::ui::wrap::wrap;

impl Layout<'_> {
    /// Text right in an item has no paragraph of its own; it starts one.
    pub(super) fn begin_inline(&mut self, at: usize) {
        if self.inline.is_empty() && self.table.is_none() {
            self.begin(at, Block::Other);
        }
    }

    pub(super) fn start_inline(&mut self, element: Element, at: usize) {
        self.begin_inline(at);
        self.styles.push(self.style().within(element));
    }

    pub(super) fn text(&mut self, text: &str, style: Style, at: usize) {
        self.begin_inline(at);
        let text = text::sanitize(text).replace(['\n', '\t'], " ");
        match self.inline.last_mut() {
            Some(last) if last.style == style && self.links.is_empty() && last.link.is_none() => {
                last.text.push_str(&text)
            }
            _ => self.inline.push(Span {
                text,
                style,
                link: None,
            }),
        }
    }

    pub(super) fn line_break(&mut self, at: usize) {
        self.begin_inline(at);
        self.inline.push(Span {
            text: "\n".to_owned(),
            style: self.style(),
            link: None,
        });
    }

    pub(super) fn inline_code(&mut self, code: &str, at: usize) {
        self.begin_inline(at);
        let mark = self.options.marks.then(|| Span::new("`", Element::CodeMark));
        self.inline.extend(mark.clone());
        self.text(code, self.style().within(Element::Code), at);
        self.inline.extend(mark);
    }

    pub(super) fn end_link(&mut self) {
        let Some((url, from)) = self.links.pop() else { return };
        let Some(spans) = self.inline.get_mut(from..) else {
            return;
        };
        let shown: String = spans.iter().map(|span| span.text.as_str()).collect();
        if self.options.hyperlinks && is_safe_url(&url) {
            let url: Arc<str> = url.into();
            spans.iter_mut().for_each(|span| span.link = Some(url.clone()));
        } else if !url.is_empty() && shown != url && format!("mailto:{shown}") != url {
            self.inline.push(Span::new(
                &format!(" ({})", text::sanitize(&url).replace(['\n', '\t'], " ")),
                Element::Url,
            ));
        }
    }

    pub(super) fn definition(&mut self, at: usize, label: &str, url: &str, title: &str) {
        self.begin(at, Block::Other);
        let title = if title.is_empty() {
            String::new()
        } else {
            format!(" \"{title}\"")
        };
        let line = format!("[{label}]: {url}{title}").replace(['\n', '\t'], " ");
        for spans in wrap(&[Span::new(&line, Element::Url)], self.room()) {
            self.emit(spans);
        }
    }

    pub(super) fn flush_text(&mut self) {
        if self.inline.is_empty() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        for spans in wrap(&inline, self.room()) {
            self.emit(spans);
        }
    }

    pub(super) fn task(&mut self, checked: bool, at: usize) {
        self.begin_inline(at);
        let sign = if checked { "[x] " } else { "[ ] " };
        self.inline.push(Span::new(sign, Element::ListMarker));
    }
}

pub(super) fn is_line_break(html: &str) -> bool {
    let name = html
        .trim_start_matches('<')
        .trim_end_matches('>')
        .trim_end_matches('/')
        .trim();
    name.eq_ignore_ascii_case("br")
}

/// Whether an address may stand in an escape sequence, and is of a kind one follows.
fn is_safe_url(url: &str) -> bool {
    let printable = url.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    let known = ["https://", "http://", "mailto:", "ftp://", "file://"];
    printable && known.iter().any(|scheme| url.starts_with(scheme))
}
