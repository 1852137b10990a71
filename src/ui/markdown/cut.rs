//! Finds the place in an unfinished document before which everything is finished.

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use super::{Definitions, Resume, parser};

/// Deeper nesting than this is not looked into: it is finished with the block around it.
const DEPTH: usize = 16;

/// A place to cut, and what is needed to go on after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cut {
    /// Where, in bytes; a line start.
    pub at: usize,
    /// The opening lines of the blocks the place is inside of.
    pub header: String,
    /// The numbers the open lists go on with.
    pub lists: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quote,
    List {
        number: u64,
    },
    Item,
    Fence {
        text_end: usize,
    },
    /// A heading or a rule: finished with its line.
    OneLine,
    /// A paragraph or a table: finished by a blank line.
    UntilBlank,
    /// Indented code: finished, as those below, only when another block follows.
    Indented,
    /// HTML.
    Html,
    /// The definition of a footnote.
    Footnote,
}

/// A block of the chain of last blocks: each is the last child of the one before it.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    start: usize,
    children: usize,
}

/// A place that may do, with the containers it is inside of.
struct Candidate {
    at: usize,
    /// Where the block after it starts: on the same line, behind nothing but blanks and the marks of quotes.
    block: usize,
    /// Its place in the chain.
    index: usize,
    inside: Vec<Node>,
    lists: Vec<u64>,
}

pub(super) fn find(source: &str, resume: &Resume, definitions: &Definitions) -> Option<Cut> {
    let (chain, top_level) = last_chain(source, resume, definitions);
    let last_line = last_line(source);
    if chain.is_empty() {
        // Nothing that shows: blank lines, or definitions of links.
        let ended = is_blank(last_line) && source.len() > resume.header_len;
        return (ended && resume.header_len == 0).then(|| Cut {
            at: source.len(),
            header: String::new(),
            lists: Vec::new(),
        });
    }
    let candidates = candidates(source, &chain, top_level, last_line);
    candidates.into_iter().rev().find_map(|candidate| {
        if candidate.at <= resume.header_len || !starts_a_line(source, candidate.block) {
            return None;
        }
        let header = header(source, &candidate.inside)?;
        let rest = &source[candidate.at..];
        let known = rest.is_empty() && (header.is_empty() || header == source[..resume.header_len]);
        (known || means_the_same(&header, rest, &candidate, &chain, definitions)).then_some(Cut {
            at: candidate.at,
            header,
            lists: candidate.lists,
        })
    })
}

/// Whether the line before `at` is blank, as far back as it is known.
pub(super) fn blank_before(source: &str, at: usize, resume: &Resume) -> bool {
    let start = line_start(source, at);
    if start <= resume.header_len {
        return resume.after_blank;
    }
    is_blank(last_line(&source[..start]))
}

/// Where an event starts. The parser puts blocks that are indented by tabs at the end of the line before.
pub(super) fn event_start(source: &str, start: usize) -> usize {
    start + usize::from(source.as_bytes().get(start) == Some(&b'\n'))
}

pub(super) fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |end| end + 1)
}

fn last_line(source: &str) -> &str {
    let whole = source.strip_suffix('\n').unwrap_or(source);
    &whole[line_start(whole, whole.len())..]
}

/// Whether a line holds nothing but the marks of quotes.
fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'>'))
}

/// The last block of the document, the last block in it, and so on; and how many blocks the top level has.
fn last_chain(source: &str, resume: &Resume, definitions: &Definitions) -> (Vec<Node>, usize) {
    let mut chain: Vec<Node> = Vec::new();
    let mut top_level = 0;
    let mut depth = 0;
    // Inside a block whose own structure does not matter: how deep.
    let mut opaque = 0usize;
    let mut implicit = false;
    let mut numbers = Numbers::new(resume);
    for (event, range) in parser(source, definitions).into_offset_iter() {
        let start = event_start(source, range.start);
        if opaque > 0 {
            match event {
                Event::Start(_) => opaque += 1,
                Event::End(_) => opaque -= 1,
                Event::Text(_) if opaque == 1 => {
                    if let Some(Node {
                        kind: Kind::Fence { text_end },
                        ..
                    }) = chain.last_mut()
                    {
                        *text_end = range.end;
                    }
                }
                _ => {}
            }
            if opaque == 0 {
                depth -= 1;
            }
            continue;
        }
        let kind = match &event {
            Event::End(tag) => {
                if !matches!(
                    tag,
                    pulldown_cmark::TagEnd::Item
                        | pulldown_cmark::TagEnd::List(_)
                        | pulldown_cmark::TagEnd::BlockQuote(_)
                ) {
                    continue; // The end of text in an implicit paragraph.
                }
                implicit = false;
                depth -= 1;
                continue;
            }
            Event::Start(tag) => block_kind(tag, start, &mut numbers),
            Event::Rule => Some(Kind::OneLine),
            _ => None,
        };
        let is_list = matches!(event, Event::Start(Tag::List(_)));
        let Some(kind) = kind else {
            // Text right in an item, without a paragraph of its own.
            numbers.content(start);
            if !std::mem::replace(&mut implicit, true) {
                add(&mut chain, &mut top_level, depth, Kind::UntilBlank, start);
            }
            continue;
        };
        implicit = false;
        if !is_list && !matches!(kind, Kind::Item | Kind::Quote) {
            numbers.content(start);
        }
        add(&mut chain, &mut top_level, depth, kind, start);
        let container = matches!(kind, Kind::Quote | Kind::List { .. } | Kind::Item);
        if matches!(event, Event::Start(_)) {
            depth += 1;
            if !container || depth > DEPTH {
                opaque = 1;
            }
        }
    }
    (chain, top_level)
}

fn add(chain: &mut Vec<Node>, top_level: &mut usize, depth: usize, kind: Kind, start: usize) {
    chain.truncate(depth);
    match chain.last_mut() {
        Some(parent) => parent.children += 1,
        None => *top_level += 1,
    }
    chain.push(Node {
        kind,
        start,
        children: 0,
    });
}

fn block_kind(tag: &Tag<'_>, start: usize, numbers: &mut Numbers<'_>) -> Option<Kind> {
    Some(match tag {
        Tag::BlockQuote(_) => Kind::Quote,
        Tag::List(number) => Kind::List {
            number: numbers.list(*number).0,
        },
        Tag::Item => Kind::Item,
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Kind::Fence { text_end: start },
        Tag::Heading { .. } => Kind::OneLine,
        Tag::Paragraph | Tag::Table(_) => Kind::UntilBlank,
        Tag::CodeBlock(CodeBlockKind::Indented) => Kind::Indented,
        Tag::HtmlBlock => Kind::Html,
        Tag::FootnoteDefinition(_) => Kind::Footnote,
        _ => return None,
    })
}

/// Hands out the numbers that lists cut before go on with.
pub(super) struct Numbers<'a> {
    resume: &'a Resume,
    given: usize,
    content_seen: bool,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(resume: &'a Resume) -> Self {
        Self {
            resume,
            given: 0,
            content_seen: false,
        }
    }

    /// The first number of the list that starts now, and whether it goes on from before the cut.
    pub(super) fn list(&mut self, own: Option<u64>) -> (u64, bool) {
        if !self.content_seen
            && let Some(number) = self.resume.lists.get(self.given)
        {
            self.given += 1;
            return (*number, true);
        }
        (own.unwrap_or(0), false)
    }

    /// Something that shows starts at `start`; lists after it are new ones.
    pub(super) fn content(&mut self, start: usize) {
        self.content_seen |= start >= self.resume.header_len;
    }
}

/// Every place between finished and unfinished along the chain, in the order of the document.
fn candidates(source: &str, chain: &[Node], top_level: usize, last_line: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut inside: Vec<Node> = Vec::new();
    let mut lists: Vec<u64> = Vec::new();
    let mut propose = |block: usize, index: usize, inside: &[Node], lists: &[u64]| {
        found.push(Candidate {
            at: line_start(source, block),
            block,
            index,
            inside: inside.to_vec(),
            lists: lists.to_vec(),
        });
    };
    if let (Some(last), true) = (chain.first(), top_level > 1) {
        propose(last.start, 0, &inside, &lists);
    }
    let blank = is_blank(last_line);
    let blank_quotes = last_line.matches('>').count();
    // The parser lets a quote of nothing but an alert's label go on over a blank line.
    let ends_empty = chain.last().is_some_and(|node| node.kind == Kind::Quote);
    let mut quotes = 0;
    for (index, node) in chain.iter().enumerate() {
        let child = chain.get(index + 1);
        match node.kind {
            Kind::List { number } => {
                let number = number + u64::try_from(node.children.saturating_sub(1)).unwrap_or(0);
                lists.push(number);
                if let (Some(item), true) = (child, node.children > 1) {
                    propose(item.start, index + 1, &inside, &lists);
                }
            }
            Kind::Quote if blank && blank_quotes <= quotes && !ends_empty => {
                propose(source.len(), chain.len(), &inside, &lists);
                break;
            }
            Kind::Quote | Kind::Item => {
                quotes += usize::from(node.kind == Kind::Quote);
                inside.push(*node);
                if let (Some(child), true) = (child, node.children > 1) {
                    propose(child.start, index + 1, &inside, &lists);
                }
            }
            Kind::Fence { text_end } => {
                if !is_closed(source, node.start, text_end) {
                    inside.push(*node);
                }
                propose(source.len(), chain.len(), &inside, &lists);
            }
            Kind::OneLine => propose(source.len(), chain.len(), &inside, &lists),
            Kind::UntilBlank if blank => propose(source.len(), chain.len(), &inside, &lists),
            Kind::UntilBlank | Kind::Indented | Kind::Html | Kind::Footnote => {}
        }
    }
    found
}

fn starts_a_line(source: &str, block: usize) -> bool {
    let before = &source[line_start(source, block)..block];
    before.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'>'))
}

/// Whether a fenced block of code has its closing fence: a line after the opening one that is none of its text.
fn is_closed(source: &str, start: usize, text_end: usize) -> bool {
    let Some(opening_end) = source[start..].find('\n').map(|end| start + end + 1) else {
        return false;
    };
    let after_text =
        source[text_end.max(opening_end).min(source.len())..].trim_matches(|c: char| " \t\r\n>".contains(c));
    after_text.starts_with("```") || after_text.starts_with("~~~")
}

/// The opening lines of `inside`, or nothing where they cannot be written (tabs).
fn header(source: &str, inside: &[Node]) -> Option<String> {
    let mut header = String::new();
    for (index, node) in inside.iter().enumerate() {
        let start = line_start(source, node.start);
        let next = inside.get(index + 1);
        if next.is_some_and(|next| line_start(source, next.start) == start) {
            continue; // The next one opens on the same line and writes it.
        }
        let line_end = source[start..].find('\n').map_or(source.len(), |end| start + end);
        let opening = match node.kind {
            Kind::Fence { .. } => source[start..line_end].to_owned(),
            _ => format!(
                "{}#",
                &source[start..].get(..content_start(source, node, line_end)? - start)?
            ),
        };
        if opening.contains('\t') {
            return None;
        }
        header.push_str(&opening);
        header.push('\n');
    }
    Some(header)
}

/// Where the content of a quote or an item starts on its opening line.
fn content_start(source: &str, node: &Node, line_end: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let skip = |mut at: usize, what: fn(u8) -> bool| {
        while at < line_end && what(bytes[at]) {
            at += 1;
        }
        at
    };
    let mark = skip(node.start, |byte| byte == b' ');
    let after = match *bytes.get(mark)? {
        b'>' | b'-' | b'*' | b'+' => mark + 1,
        b'0'..=b'9' => skip(mark, |byte| byte.is_ascii_digit()) + 1,
        _ => return None,
    };
    let content = skip(after, |byte| byte == b' ');
    let blanks = content - after;
    if matches!(source[content..line_end].trim(), "[ ]" | "[x]" | "[X]") {
        return None; // The parser takes an item of nothing but a check box for an empty one.
    }
    // Five blanks or more are one blank and indented code.
    match blanks {
        1..=4 if content < line_end => Some(content),
        0 => None,
        _ => Some(after + 1),
    }
}

/// Whether the text after the cut, behind its header, is the same blocks inside the same containers as before.
fn means_the_same(header: &str, rest: &str, cut: &Candidate, chain: &[Node], definitions: &Definitions) -> bool {
    fn kinds(nodes: &[Node]) -> impl Iterator<Item = Kind> + '_ {
        nodes.iter().filter_map(|node| match node.kind {
            Kind::List { .. } => None,
            Kind::Fence { .. } => Some(Kind::Fence { text_end: 0 }),
            kind => Some(kind),
        })
    }
    let resume = Resume::default();
    let (found, top_level) = last_chain(&format!("{header}{rest}"), &resume, definitions);
    let after = if rest.is_empty() {
        &[]
    } else {
        chain.get(cut.index..).unwrap_or_default()
    };
    let sentinel = match cut.inside.last() {
        Some(last) if rest.is_empty() && !matches!(last.kind, Kind::Fence { .. }) => Some(Kind::OneLine),
        _ => None,
    };
    let wanted = kinds(&cut.inside).chain(sentinel).chain(kinds(after));
    top_level == 1 && kinds(&found).eq(wanted)
}
