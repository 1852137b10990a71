//! Lays out Markdown that is all there: parser events to styled lines of a given width.

use std::sync::Arc;

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::cut::{self, Numbers};
use super::table::Table;
use super::{Definitions, MarkdownOptions, Resume, parser};
use crate::ui::element::{Element, Style};
use crate::ui::line::{Line, Span};
use crate::ui::text;
use crate::ui::wrap::{chop, wrap};

/// Blanks before a block of code.
const CODE_INDENT: usize = 2;

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

enum Container {
    /// A quote, and how many lines there were before it, unless it goes on from before a cut. Every block shows at least
    /// one line: the mark of the item it opens must not depend on what follows.
    Quote { before: Option<usize> },
    /// A list's item or a footnote: text behind a mark, which stands on the first line only.
    Item { mark: Option<String>, indent: usize },
}

struct Code {
    /// The line being read.
    line: String,
    element: Element,
    indent: usize,
    is_diff: bool,
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
            Tag::HtmlBlock => {
                self.begin(at, Block::Other);
                self.code = Some(Code {
                    line: String::new(),
                    element: Element::Html,
                    indent: 0,
                    is_diff: false,
                });
            }
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
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                if self.code.as_ref().is_some_and(|code| !code.line.is_empty()) {
                    self.code_line();
                }
                self.code = None;
            }
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

    /// A block starts: decides whether a blank line stands before it.
    fn begin(&mut self, at: usize, block: Block) {
        if at < self.resume.header_len {
            return;
        }
        self.numbers_seen(at, block);
        let top_level = self.containers.is_empty() && self.lists.is_empty();
        let after_paragraph = self.after_paragraph;
        if top_level {
            self.after_paragraph = block == Block::Paragraph;
        }
        let line = cut::line_start(self.source, at).max(self.resume.header_len);
        if self.gap_line.replace(line) == Some(line) || !std::mem::replace(&mut self.started, true) {
            return;
        }
        let blank = cut::blank_before(self.source, at, self.resume);
        if blank || (top_level && !(after_paragraph && block == Block::List)) {
            let (prefix, _) = self.prefix(false);
            self.lines.push(trim_end(prefix));
        }
    }

    fn numbers_seen(&mut self, at: usize, block: Block) {
        if block != Block::List {
            self.numbers.content(at);
        }
    }

    fn start_item(&mut self, at: usize) {
        let number = self.lists.last().copied().flatten();
        if let Some(Some(next)) = self.lists.last_mut() {
            *next += 1;
        }
        let continued = at < self.resume.header_len;
        if !continued {
            self.gap_before_item(at);
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

    /// Items are set apart where the source sets them apart.
    fn gap_before_item(&mut self, at: usize) {
        let line = cut::line_start(self.source, at).max(self.resume.header_len);
        if self.gap_line.replace(line) == Some(line) || !std::mem::replace(&mut self.started, true) {
            return;
        }
        if cut::blank_before(self.source, at, self.resume) {
            let (prefix, _) = self.prefix(false);
            self.lines.push(trim_end(prefix));
        }
    }

    fn task(&mut self, checked: bool, at: usize) {
        self.begin_inline(at);
        let sign = if checked { "[x] " } else { "[ ] " };
        self.inline.push(Span::new(sign, Element::ListMarker));
    }

    // Text within a block.

    /// Text right in an item has no paragraph of its own; it starts one.
    fn begin_inline(&mut self, at: usize) {
        if self.inline.is_empty() && self.table.is_none() {
            self.begin(at, Block::Other);
        }
    }

    fn start_inline(&mut self, element: Element, at: usize) {
        self.begin_inline(at);
        self.styles.push(self.style().within(element));
    }

    fn text(&mut self, text: &str, style: Style, at: usize) {
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

    fn line_break(&mut self, at: usize) {
        self.begin_inline(at);
        self.inline.push(Span {
            text: "\n".to_owned(),
            style: self.style(),
            link: None,
        });
    }

    fn inline_code(&mut self, code: &str, at: usize) {
        self.begin_inline(at);
        let mark = self.options.marks.then(|| Span::new("`", Element::CodeMark));
        self.inline.extend(mark.clone());
        self.text(code, self.style().within(Element::Code), at);
        self.inline.extend(mark);
    }

    fn end_link(&mut self) {
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

    fn definition(&mut self, at: usize, label: &str, url: &str, title: &str) {
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

    fn flush_text(&mut self) {
        if self.inline.is_empty() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        for spans in wrap(&inline, self.room()) {
            self.emit(spans);
        }
    }

    // Blocks of code, and HTML.

    fn start_code(&mut self, kind: &CodeBlockKind<'_>, at: usize) {
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

    fn code_text(&mut self, text: &str) {
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

    // Lines.

    /// What stands before a line inside the open containers, and its cells. Marks are used up by the first line, unless
    /// this is for a blank one. Containers that would leave less than half of the width are left out.
    fn prefix(&mut self, first: bool) -> (Vec<Span>, usize) {
        let mut spans = Vec::with_capacity(self.containers.len() + 1);
        let mut used = 0;
        for container in &mut self.containers {
            let cells = container.cells();
            if used + cells > self.options.width / 2 {
                break;
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
        (spans, used)
    }

    /// The cells left for a line's text.
    fn room(&self) -> usize {
        let mut used = 0;
        for container in &self.containers {
            let cells = container.cells();
            if used + cells > self.options.width / 2 {
                break;
            }
            used += cells;
        }
        self.options.width.saturating_sub(used).max(1)
    }

    fn emit(&mut self, spans: Vec<Span>) {
        let (mut line, _) = self.prefix(true);
        line.extend(spans);
        self.lines.push(trim_end(line));
    }
}

impl Container {
    fn has_mark(&self) -> bool {
        matches!(self, Self::Item { mark: Some(_), .. })
    }

    fn cells(&self) -> usize {
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

fn is_line_break(html: &str) -> bool {
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
