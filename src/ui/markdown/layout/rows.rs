//! Rows: what stands before them inside quotes and items, and the blank ones between blocks.

use super::super::cut;
use super::{Block, Layout};
use crate::ui::element::{Element, Style};
use crate::ui::line::{Line, Span};
use crate::ui::text;

pub(super) enum Container {
    /// A quote, and how many lines there were before it, unless it goes on from before a cut. Every block shows at least
    /// one line: the mark of the item it opens must not depend on what follows.
    Quote { before: Option<usize> },
    /// A list's item or a footnote: text behind a mark, which stands on the first line only.
    Item { mark: Option<String>, indent: usize },
}

impl Layout<'_> {
    /// A block starts: decides whether a blank line stands before it.
    pub(super) fn begin(&mut self, at: usize, block: Block) {
        if at < self.resume.header_len {
            return;
        }
        if block != Block::List {
            self.numbers.content(at);
        }
        let top_level = self.containers.is_empty() && self.lists.is_empty();
        let after_paragraph = self.after_paragraph;
        if top_level {
            self.after_paragraph = block == Block::Paragraph;
        }
        // At the top level blocks are always set apart, but for a list right below the paragraph that announces it.
        let apart = top_level && !(after_paragraph && block == Block::List);
        self.gap(at, |blank| blank || apart);
    }

    /// Puts a blank line before what starts at `at` if `wanted` says so, knowing whether the source has one there.
    pub(super) fn gap(&mut self, at: usize, wanted: impl FnOnce(bool) -> bool) {
        let line = cut::line_start(self.source, at).max(self.resume.header_len);
        if self.gap_line.replace(line) == Some(line) || !std::mem::replace(&mut self.started, true) {
            return;
        }
        if wanted(cut::blank_before(self.source, at, self.resume)) {
            let prefix = self.prefix(false);
            self.lines.push(trim_end(prefix));
        }
    }

    /// What stands before a line inside the open containers. Marks are used up by the `first` line. Containers that would leave less than half of the width are left out.
    fn prefix(&mut self, first: bool) -> Vec<Span> {
        let mut spans = Vec::with_capacity(self.containers.len() + 1);
        let mut used = 0;
        for container in &mut self.containers {
            let cells = container.cells();
            if used + cells > self.options.width / 2 {
                if let Container::Item { mark, .. } = container {
                    mark.take_if(|_| first);
                }
                continue;
            }
            used += cells;
            match container {
                Container::Quote { .. } => {
                    let bar = if self.options.unicode { "│ " } else { "| " };
                    spans.push(Span::new(bar, Element::QuoteBar));
                }
                Container::Item { mark, indent } => match mark.take_if(|_| first) {
                    Some(mark) => {
                        let blanks = indent.saturating_sub(text::width(&mark));
                        spans.push(Span::new(&mark, Element::ListMarker));
                        spans.push(Span::pad(blanks));
                    }
                    None => spans.push(Span::pad(*indent)),
                },
            }
        }
        spans
    }

    /// The cells left for a line's text.
    pub(super) fn room(&self) -> usize {
        let mut used = 0;
        for container in &self.containers {
            let cells = container.cells();
            if used + cells <= self.options.width / 2 {
                used += cells;
            }
        }
        self.options.width.saturating_sub(used).max(1)
    }

    pub(super) fn emit(&mut self, spans: Vec<Span>) {
        let mut line = self.prefix(true);
        line.extend(spans);
        self.lines.push(trim_end(line));
    }
}

impl Container {
    pub(super) fn has_mark(&self) -> bool {
        matches!(self, Self::Item { mark: Some(_), .. })
    }

    pub(super) fn cells(&self) -> usize {
        match self {
            Self::Quote { .. } => 2,
            Self::Item { indent, .. } => *indent,
        }
    }
}

/// A line without the padding at its end.
fn trim_end(mut spans: Vec<Span>) -> Line {
    while let Some(last) = spans.last_mut() {
        if last.style == Style::of(Element::Pad) {
            spans.pop();
            continue;
        }
        if last.style == Style::of(Element::QuoteBar) {
            last.text.truncate(last.text.trim_end().len());
        }
        break;
    }
    Line { spans }
}
