//! Lays out Markdown that is all there: parser events to styled lines of a given width.

use pulldown_cmark::{BlockQuoteKind, Event, HeadingLevel, Tag, TagEnd};

use super::cut::{self, Numbers};
use super::table::Table;
use super::{Definitions, MarkdownOptions, Resume, parser};
use crate::ui::element::{Element, Style};
use crate::ui::line::{Line, Span};
use crate::ui::text;

mod code;
mod inline;
mod rows;

use code::Code;
use inline::is_line_break;
use rows::Container;

/// Lines, and what those after them need to know.
pub(super) struct Laid {
    pub lines: Vec<Line>,
    pub started: bool,
    pub after_paragraph: bool,
    /// Links defined here: label, address, title.
    pub definitions: Vec<(String, String, String)>,
}

/// Lays out `source`, whose first `resume.header_len` bytes only open blocks and show nothing.
pub(super) fn layout(source: &str, resume: &Resume, definitions: &Definitions, options: &MarkdownOptions) -> Laid {
    let mut layout = Layout {
        source,
        resume,
        options,
        numbers: Numbers::new(resume),
        lines: Vec::new(),
        started: resume.started,
        after_paragraph: resume.after_paragraph,
        gap_line: None,
        containers: Vec::new(),
        lists: Vec::new(),
        inline: Vec::new(),
        styles: vec![Element::Text.into()],
        links: Vec::new(),
        table: None,
        code: None,
        silent: false,
    };
    let mut events = parser(source, definitions).into_offset_iter();
    for (event, range) in events.by_ref() {
        layout.event(event, cut::event_start(source, range.start));
    }
    layout.flush_text();
    let mut defined: Vec<_> = events
        .reference_definitions()
        .iter()
        .filter(|(_, definition)| definition.span.start >= resume.header_len)
        .map(|(label, definition)| (definition.span.start, label, definition))
        .collect();
    defined.sort_by_key(|(start, ..)| *start);
    let definitions = defined.into_iter().map(|(start, label, definition)| {
        let title = definition.title.as_deref().unwrap_or_default();
        layout.definition(start, label, &definition.dest, title);
        (label.to_owned(), definition.dest.to_string(), title.to_owned())
    });
    let definitions = definitions.collect();
    Laid {
        definitions,
        lines: layout.lines,
        started: layout.started,
        after_paragraph: layout.after_paragraph,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Paragraph,
    List,
    Other,
}

struct Layout<'a> {
    source: &'a str,
    resume: &'a Resume,
    options: &'a MarkdownOptions,
    numbers: Numbers<'a>,
    lines: Vec<Line>,
    started: bool,
    after_paragraph: bool,
    /// The source line a gap was last decided for: blocks that start on one line have one gap.
    gap_line: Option<usize>,
    containers: Vec<Container>,
    /// The next number of each open list; nothing for one with bullets.
    lists: Vec<Option<u64>>,
    inline: Vec<Span>,
    styles: Vec<Style>,
    /// Open links and images: address, and where in `inline` their text starts.
    links: Vec<(String, usize)>,
    table: Option<Table>,
    code: Option<Code>,
    /// Inside the empty heading of the header.
    silent: bool,
}

impl Layout<'_> {
    fn event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code.is_some() => self.code_text(&text),
            Event::Html(html) => self.code_text(&html),
            Event::Text(text) => self.text(&text, self.style(), at),
            Event::Code(code) => self.inline_code(&code, at),
            Event::InlineHtml(html) if is_line_break(&html) => self.line_break(at),
            Event::InlineHtml(html) => self.text(&html, self.style().within(Element::Html), at),
            // Plain, for whether its definition is known depends on where the document was cut.
            Event::FootnoteReference(label) => self.text(&format!("[^{label}]"), self.style(), at),
            Event::SoftBreak => self.text(" ", self.style(), at),
            Event::HardBreak => self.line_break(at),
            Event::Rule => {
                self.flush_text();
                self.begin(at, Block::Other);
                let sign = if self.options.unicode { "─" } else { "-" };
                let rule = Span::new(&sign.repeat(self.room()), Element::Rule);
                self.emit(vec![rule]);
            }
            Event::TaskListMarker(checked) => self.task(checked, at),
            // Not asked of the parser; shown all the same if it ever comes.
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.style(), at),
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        if is_block(&tag) {
            self.flush_text();
        }
        match tag {
            Tag::Paragraph => self.begin(at, Block::Paragraph),
            Tag::Heading { .. } if at < self.resume.header_len => self.silent = true,
            Tag::Heading { level, .. } => {
                self.begin(at, Block::Other);
                self.styles.push(heading_element(level).into());
                if self.options.marks {
                    let mark = format!("{} ", "#".repeat(level as usize));
                    self.inline.push(Span::new(&mark, Element::HeadingMark));
                }
            }
            Tag::BlockQuote(kind) => {
                self.begin(at, Block::Other);
                let continued = at < self.resume.header_len;
                self.containers.push(Container::Quote {
                    before: (!continued).then_some(self.lines.len()),
                });
                self.styles.push(self.style().within(Element::Quote));
                if let (Some(kind), false) = (kind, continued) {
                    self.emit(vec![Span::new(alert_name(kind), Element::Alert)]);
                }
            }
            Tag::CodeBlock(kind) => self.start_code(&kind, at),
            Tag::HtmlBlock => self.start_html(at),
            Tag::List(number) => {
                let (first, goes_on) = self.numbers.list(number);
                if !goes_on {
                    self.begin(at, Block::List);
                }
                self.lists.push(number.map(|_| first));
            }
            Tag::Item => self.start_item(at),
            Tag::FootnoteDefinition(label) => {
                self.begin(at, Block::Other);
                let mark = format!("[^{}]:", text::sanitize(&label));
                let indent = text::width(&mark) + 1;
                self.containers.push(Container::Item {
                    mark: Some(mark),
                    indent,
                });
            }
            Tag::Table(alignments) => {
                self.begin(at, Block::Other);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.styles.push(self.style().within(Element::TableHeader)),
            Tag::TableRow => {}
            Tag::TableCell => self.inline.clear(),
            Tag::Emphasis => self.start_inline(Element::Emphasis, at),
            Tag::Strong => self.start_inline(Element::Strong, at),
            Tag::Strikethrough => self.start_inline(Element::Strike, at),
            Tag::Link { dest_url, .. } => {
                self.start_inline(Element::Link, at);
                self.links.push((dest_url.to_string(), self.inline.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.start_inline(Element::Emphasis, at);
                self.links.push((dest_url.to_string(), self.inline.len()));
                self.inline.push(Span::new("[image: ", Element::Url));
            }
            Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush_text(),
            TagEnd::Heading(_) => {
                if std::mem::take(&mut self.silent) {
                    return;
                }
                if self.inline.is_empty() {
                    self.emit(Vec::new());
                }
                self.flush_text();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush_text();
                if matches!(self.containers.last(), Some(Container::Quote { before: Some(lines) }) if *lines == self.lines.len())
                {
                    self.emit(Vec::new());
                }
                self.containers.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.flush_text();
                if let Some(Container::Item { mark: Some(_), .. }) = self.containers.last() {
                    self.emit(Vec::new());
                }
                self.containers.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for spans in table.layout(self.room(), self.options.unicode) {
                        self.emit(spans);
                    }
                }
            }
            TagEnd::TableHead => {
                self.styles.pop();
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                self.table.iter_mut().for_each(|table| table.push_cell(cell.clone()));
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                self.end_link();
            }
            TagEnd::Image => {
                self.styles.pop();
                self.inline.push(Span::new("]", Element::Url));
                self.end_link();
            }
            TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn start_item(&mut self, at: usize) {
        let number = self.lists.last().copied().flatten();
        if let Some(Some(next)) = self.lists.last_mut() {
            *next += 1;
        }
        let continued = at < self.resume.header_len;
        if !continued {
            // Items are set apart where the source sets them apart.
            self.gap(at, |blank| blank);
        }
        let mark = match number {
            Some(number) => format!("{number}{}", ordered_delimiter(&self.source[at..])),
            None if !self.options.unicode => "-".to_owned(),
            None => ["•", "◦", "▪"][self.lists.len().saturating_sub(1) % 3].to_owned(),
        };
        let indent = text::width(&mark) + 1;
        self.containers.push(Container::Item {
            mark: (!continued).then_some(mark),
            indent,
        });
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
    )
}

fn heading_element(level: HeadingLevel) -> Element {
    match level {
        HeadingLevel::H1 => Element::Heading1,
        HeadingLevel::H2 => Element::Heading2,
        _ => Element::Heading3,
    }
}

fn alert_name(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => "Note",
        BlockQuoteKind::Tip => "Tip",
        BlockQuoteKind::Important => "Important",
        BlockQuoteKind::Warning => "Warning",
        BlockQuoteKind::Caution => "Caution",
    }
}

/// The sign after an item's number: `.` or `)`.
fn ordered_delimiter(item: &str) -> char {
    let after = item.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    if after.starts_with(')') { ')' } else { '.' }
}
