//! Blocks of code, and HTML: line by line, as they came.

use pulldown_cmark::CodeBlockKind;

use super::rows::Container;
use super::{Block, Layout};
use crate::ui::element::Element;
use crate::ui::line::Span;
use crate::ui::text;
use crate::ui::wrap::chop;

/// Blanks before a block of code.
const CODE_INDENT: usize = 2;

pub(super) struct Code {
    /// The line being read.
    line: String,
    element: Element,
    indent: usize,
    is_diff: bool,
}

impl Layout<'_> {
    pub(super) fn start_code(&mut self, kind: &CodeBlockKind<'_>, at: usize) {
        self.begin(at, Block::Other);
        let info = match kind {
            CodeBlockKind::Fenced(info) => info.as_ref(),
            CodeBlockKind::Indented => "",
        };
        let language = info.split([' ', ',', '{']).next().unwrap_or_default();
        if !info.trim().is_empty() && at >= self.resume.header_len {
            let label = Span::new(&info.replace('\t', " "), Element::CodeLang);
            for mut spans in chop(&[label], self.room().saturating_sub(CODE_INDENT)) {
                spans.insert(0, Span::pad(CODE_INDENT));
                self.emit(spans);
            }
        } else if self.containers.iter().any(Container::has_mark) {
            // The item's mark has a line of its own, so that it does not depend on whether code follows yet.
            self.emit(Vec::new());
        }
        for container in &mut self.containers {
            // Nor does a quote know yet whether it stays empty.
            if let Container::Quote { before } = container {
                *before = None;
            }
        }
        self.code = Some(Code {
            line: String::new(),
            element: Element::CodeBlock,
            indent: CODE_INDENT,
            is_diff: matches!(language, "diff" | "patch"),
        });
    }

    pub(super) fn start_html(&mut self, at: usize) {
        self.begin(at, Block::Other);
        self.code = Some(Code {
            line: String::new(),
            element: Element::Html,
            indent: 0,
            is_diff: false,
        });
    }

    pub(super) fn end_code(&mut self) {
        if self.code.as_ref().is_some_and(|code| !code.line.is_empty()) {
            self.code_line();
        }
        self.code = None;
    }

    pub(super) fn code_text(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            let Some(code) = &mut self.code else { return };
            code.line.push_str(part.trim_end_matches(['\n', '\r']));
            if part.ends_with('\n') {
                self.code_line();
            }
        }
    }

    fn code_line(&mut self) {
        let room = self.room();
        let Some(code) = &mut self.code else { return };
        let line = std::mem::take(&mut code.line);
        let clean = text::sanitize(&line);
        let clean = text::expand_tabs(&clean);
        let element = match clean.as_bytes().first() {
            Some(b'+') if code.is_diff => Element::DiffAdded,
            Some(b'-') if code.is_diff => Element::DiffRemoved,
            Some(b'@') if code.is_diff => Element::DiffHunk,
            _ => code.element,
        };
        let indent = code.indent;
        let span = Span {
            text: clean.into_owned(),
            style: element.into(),
            link: None,
        };
        for mut spans in chop(&[span], room.saturating_sub(indent)) {
            if indent > 0 && !spans.is_empty() {
                spans.insert(0, Span::pad(indent));
            }
            self.emit(spans);
        }
    }
}
