//! Markdown as it streams in, laid out as styled lines.
//!
//! [`MarkdownStream::push`] takes any piece of a document and gives the lines that are finished: no later text can change
//! them, and they are never given again. [`MarkdownStream::preview`] shows the unfinished rest as it looks so far.
//!
//! # How it stays cheap
//! Only the unfinished rest of the document is kept. At every line end [`cut`] looks for the last place before which
//! everything is finished: between two blocks, two items, two lines of code. What is before it is laid out once and
//! forgotten. So that the rest still means the same, it is kept with a *header*: the opening lines of the blocks the place
//! is inside of (`- #`, `> #`, the fence of a code block), whose own content, an empty heading, shows nothing. The cost of
//! a piece depends on the block it is in, not on the document; a block that cannot be cut (a long table) is looked at
//! again only when it has grown by a quarter.
//!
//! Places are looked for at line ends only, whatever pieces the text came in: any split gives the same lines.
//!
//! # What differs from CommonMark
//! A link by reference is resolved when its definition came before it, or in the same block; definitions are shown, so
//! nothing is lost. HTML is shown as it came.

mod cut;
mod layout;
mod table;

use std::collections::HashMap;

use pulldown_cmark::{BrokenLink, CowStr, Options, Parser};

use crate::ui::element::Element;
use crate::ui::line::Line;
use crate::ui::text;

/// How a document is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkdownOptions {
    /// The cells of a line.
    pub width: usize,
    /// Whether characters outside ASCII may be used for bullets, bars and boxes.
    pub unicode: bool,
    /// Whether the terminal can follow links; where it cannot, a link's address stands beside its text.
    pub hyperlinks: bool,
    /// Whether headings and code keep their marks, because styles cannot be seen.
    pub marks: bool,
}

impl Default for MarkdownOptions {
    fn default() -> Self {
        Self {
            width: 80,
            unicode: true,
            hyperlinks: false,
            marks: false,
        }
    }
}

/// Above this many bytes an unfinished block is looked at again only when it has grown by a quarter.
const EAGER_BYTES: usize = 2048;
/// Above this many bytes a preview shows the end of the unfinished block as plain text.
const PREVIEW_BYTES: usize = 8192;
/// How much of it such a preview looks at.
const PREVIEW_TAIL: usize = 2048;

/// What is known at a place where a document was cut.
#[derive(Clone, Debug, Default, PartialEq)]
struct Resume {
    /// How much of the kept text is header.
    header_len: usize,
    /// The numbers of the items that the lists open at the cut go on with, outermost list first.
    lists: Vec<u64>,
    /// Whether the line before the cut was blank.
    after_blank: bool,
    /// Whether anything was laid out before.
    started: bool,
    /// Whether the last block of the document's top level was a paragraph.
    after_paragraph: bool,
}

/// Definitions of links by their normalised label: address and title.
#[derive(Clone, Debug, Default)]
struct Definitions(HashMap<String, (String, String)>);

impl Definitions {
    fn normalise(label: &str) -> String {
        label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
    }

    fn add(&mut self, label: &str, url: &str, title: &str) {
        let entry = self.0.entry(Self::normalise(label));
        // The first definition of a label holds.
        entry.or_insert_with(|| (url.to_owned(), title.to_owned()));
    }

    fn get(&self, label: &str) -> Option<(CowStr<'static>, CowStr<'static>)> {
        let (url, title) = self.0.get(&Self::normalise(label))?;
        Some((CowStr::from(url.clone()), CowStr::from(title.clone())))
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM
}

fn parser<'a>(
    source: &'a str,
    definitions: &'a Definitions,
) -> Parser<'a, impl FnMut(BrokenLink<'a>) -> Option<(CowStr<'a>, CowStr<'a>)>> {
    let resolve = move |link: BrokenLink<'a>| definitions.get(&link.reference);
    Parser::new_with_broken_link_callback(source, options(), Some(resolve))
}

/// A document that is still being written.
#[derive(Clone, Debug)]
pub struct MarkdownStream {
    options: MarkdownOptions,
    /// The header, and after it what is not finished yet.
    kept: String,
    resume: Resume,
    definitions: Definitions,
    /// Below this length no place to cut is looked for.
    next_look: usize,
}

impl MarkdownStream {
    /// An empty document.
    #[must_use]
    pub fn new(options: MarkdownOptions) -> Self {
        Self {
            options,
            kept: String::new(),
            resume: Resume::default(),
            definitions: Definitions::default(),
            next_look: 0,
        }
    }

    /// Takes the next piece and gives the lines that are finished by it.
    pub fn push(&mut self, piece: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = piece;
        while let Some(end) = rest.find('\n') {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            self.kept.push_str(line);
            self.line_ended(&mut lines);
        }
        self.kept.push_str(rest);
        lines
    }

    /// Ends the document and gives the lines of what was left. A new document may follow.
    pub fn finish(&mut self) -> Vec<Line> {
        if self.kept.len() > self.resume.header_len && !self.kept.ends_with('\n') {
            self.kept.push('\n');
        }
        let laid = layout::layout(&self.kept, &self.resume, &self.definitions, &self.options);
        *self = Self::new(self.options);
        laid.lines
    }

    /// The unfinished rest as it looks so far. Costs as much as the last block is long, up to a limit.
    #[must_use]
    pub fn preview(&self) -> Vec<Line> {
        let body = &self.kept[self.resume.header_len..];
        if body.len() > PREVIEW_BYTES {
            return self.preview_tail(body);
        }
        layout::layout(&self.kept, &self.resume, &self.definitions, &self.options).lines
    }

    /// How long the unfinished rest is, in bytes: what a preview costs grows with it.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.kept.len() - self.resume.header_len
    }

    /// Whether nothing is left unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unfinished() == 0
    }

    /// From now on lines have this width.
    pub fn set_options(&mut self, options: MarkdownOptions) {
        self.options = options;
    }

    fn line_ended(&mut self, lines: &mut Vec<Line>) {
        if self.kept.len() < self.next_look {
            return;
        }
        let Some(cut) = cut::find(&self.kept, &self.resume, &self.definitions) else {
            let len = self.kept.len();
            self.next_look = if len > EAGER_BYTES { len + len / 4 } else { 0 };
            return;
        };
        let finished = &self.kept[..cut.at];
        let laid = layout::layout(finished, &self.resume, &self.definitions, &self.options);
        lines.extend(laid.lines);
        for (label, url, title) in &laid.definitions {
            self.definitions.add(label, url, title);
        }
        self.resume = Resume {
            header_len: cut.header.len(),
            lists: cut.lists,
            after_blank: cut::blank_before(&self.kept, cut.at, &self.resume),
            started: laid.started,
            after_paragraph: laid.after_paragraph,
        };
        self.kept.replace_range(..cut.at, &cut.header);
        self.next_look = 0;
    }

    fn preview_tail(&self, body: &str) -> Vec<Line> {
        let mut start = body.len() - PREVIEW_TAIL;
        while !body.is_char_boundary(start) {
            start += 1;
        }
        let tail = &body[start..];
        let tail = tail.split_once('\n').map_or(tail, |(_, rest)| rest);
        let mut lines = Vec::new();
        for line in tail.lines() {
            let line = Line::of(&text::expand_tabs(&text::sanitize(line)), Element::Text);
            let wrapped = crate::ui::wrap::wrap(&line.spans, self.options.width);
            lines.extend(wrapped.into_iter().map(|spans| Line { spans }));
        }
        lines
    }
}

/// Lays out a whole document.
#[must_use]
pub fn render(document: &str, options: MarkdownOptions) -> Vec<Line> {
    let mut stream = MarkdownStream::new(options);
    let mut lines = stream.push(document);
    lines.extend(stream.finish());
    lines
}

#[cfg(test)]
mod tests;
