//! The pager: a long page to scroll and search, laid out anew when the screen's width changes.

use crate::message::Message;
use crate::protocol::ViewCursor;
use crate::ui::element::{Element, Style};
use crate::ui::line::{Line, Span};
use crate::ui::lines::{Page, transcript};
use crate::ui::markdown;
use crate::ui::text;
use crate::ui::theme::Theme;
use crate::ui::view::{View, ViewAction, ViewFrame, normalise_key, typed};

/// What a pager shows.
#[derive(Clone, Debug)]
pub enum Document {
    /// A conversation; the name is that of the role the assistant's messages stand under.
    Conversation(Vec<Message>, String),
    /// Markdown.
    Markdown(String),
    /// Plain text.
    Text(String),
}

impl Document {
    fn lines(&self, page: &Page) -> Vec<Line> {
        match self {
            Self::Conversation(messages, role) => transcript(page, messages, role),
            Self::Markdown(text) => markdown::render(text, page.markdown()),
            Self::Text(text) => {
                let clean = text::strip_escapes(text);
                let lines = clean.lines().flat_map(|line| {
                    let span = Span::new(&text::expand_tabs(line), Element::Text);
                    crate::ui::wrap::chop(&[span], page.width)
                });
                lines.map(|spans| Line { spans }).collect()
            }
        }
    }
}

/// A found text: a line, and where in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    line: usize,
    start: usize,
    end: usize,
}

/// The pager.
#[derive(Debug)]
pub struct Pager {
    title: String,
    document: Document,
    page: Option<Page>,
    lines: Vec<Line>,
    /// The first line on the screen.
    top: usize,
    /// Rows for text at the last frame.
    height: usize,
    /// The search being typed.
    typing: Option<String>,
    needle: String,
    matches: Vec<Match>,
    /// The match the view stands at.
    current: Option<usize>,
    /// Whether the end is to be shown first: the last thing said is what one looks for.
    at_end: bool,
    done: bool,
}

impl Pager {
    /// A pager that starts at the top, or for a conversation at its end.
    #[must_use]
    pub fn new(title: impl Into<String>, document: Document) -> Self {
        Self {
            title: title.into(),
            at_end: matches!(document, Document::Conversation(..)),
            document,
            page: None,
            lines: Vec::new(),
            top: 0,
            height: 1,
            typing: None,
            needle: String::new(),
            matches: Vec::new(),
            current: None,
            done: false,
        }
    }

    fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.height)
    }

    fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.last_top());
    }

    /// Lays the document out for `page`, keeping the text at the top of the screen where it was.
    fn lay_out(&mut self, page: &Page) {
        if self.page.as_ref() == Some(page) {
            return;
        }
        let characters = |line: &Line| line.content().chars().filter(|c| !c.is_whitespace()).count();
        let before: usize = self.lines.iter().take(self.top).map(characters).sum();
        self.page = Some(*page);
        self.lines = self.document.lines(page);
        let mut seen = 0;
        self.top = self
            .lines
            .iter()
            .position(|line| {
                let starts_at = seen;
                seen += characters(line);
                seen > before || (starts_at == before && seen > starts_at)
            })
            .unwrap_or(0);
        if before == 0 {
            self.top = 0;
        }
        self.find();
    }

    /// Looks for the needle in every line. Small letters find large ones too, a large letter only itself.
    fn find(&mut self) {
        self.matches.clear();
        self.current = None;
        if self.needle.is_empty() {
            return;
        }
        let exact = self.needle.chars().any(char::is_uppercase);
        let fold = |c: char| if exact { c } else { c.to_lowercase().next().unwrap_or(c) };
        let needle: Vec<char> = self.needle.chars().map(fold).collect();
        for (line, text) in self.lines.iter().map(Line::plain).enumerate() {
            let chars: Vec<(usize, char)> = text.char_indices().map(|(at, c)| (at, fold(c))).collect();
            let mut at = 0;
            while at + needle.len() <= chars.len() {
                if chars[at..at + needle.len()]
                    .iter()
                    .map(|(_, c)| *c)
                    .eq(needle.iter().copied())
                {
                    let end = chars.get(at + needle.len()).map_or(text.len(), |(end, _)| *end);
                    self.matches.push(Match {
                        line,
                        start: chars[at].0,
                        end,
                    });
                    at += needle.len();
                } else {
                    at += 1;
                }
            }
        }
    }

    /// Goes to the next match from where the view is, or the one before it, around the ends.
    fn go(&mut self, forward: bool) {
        let count = self.matches.len();
        if count == 0 {
            return;
        }
        let next = match (self.current, forward) {
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
            (None, true) => self
                .matches
                .iter()
                .position(|found| found.line >= self.top)
                .unwrap_or(0),
            (None, false) => {
                let before = self.matches.iter().rposition(|found| found.line < self.top);
                before.unwrap_or(count - 1)
            }
        };
        self.current = Some(next);
        let line = self.matches[next].line;
        if line < self.top || line >= self.top + self.height {
            self.top = line.saturating_sub(self.height / 3).min(self.last_top());
        }
    }

    fn search_key(&mut self, key: &str) -> ViewAction {
        let Some(typing) = &mut self.typing else {
            return ViewAction::Ignored;
        };
        match key {
            "ESC" | "CTRL+c" | "CTRL+g" => self.typing = None,
            "ENTER" => {
                let typed = std::mem::take(typing);
                self.typing = None;
                // An empty search repeats the last one.
                if !typed.is_empty() {
                    self.needle = typed;
                    self.find();
                }
                self.go(true);
            }
            "BACKSPACE" => {
                if typing.pop().is_none() {
                    self.typing = None;
                }
            }
            "CTRL+u" => typing.clear(),
            key => match typed(key) {
                Some(c) => typing.push(c),
                None => return ViewAction::Ignored,
            },
        }
        ViewAction::Redraw
    }

    fn bar(&self, page: &Page) -> (Line, Option<usize>) {
        if let Some(typing) = &self.typing {
            let line = Line::of("/", Element::ViewTitle).with(typing, Element::Text);
            let cursor = line.width();
            return (line, Some(cursor));
        }
        let end = (self.top + self.height).min(self.lines.len());
        let percent = (end * 100).checked_div(self.lines.len()).unwrap_or(100);
        let mut parts = vec![format!("{end}/{} {percent}%", self.lines.len())];
        if !self.needle.is_empty() {
            let found = match (self.matches.len(), self.current) {
                (0, _) => format!("\"{}\" not found", self.needle),
                (count, Some(at)) => format!("\"{}\" {}/{count}", self.needle, at + 1),
                (count, None) => format!("\"{}\" {count}", self.needle),
            };
            parts.push(found);
        }
        parts.push("q leaves, / searches".to_owned());
        let line = Line::of(&self.title, Element::ViewTitle)
            .with(page.separator(), Element::ViewBar)
            .with(&parts.join(page.separator()), Element::ViewBar);
        (line, None)
    }

    /// A line with the matches in it marked.
    fn marked(&self, index: usize) -> Line {
        let Some(line) = self.lines.get(index) else {
            return Line::new();
        };
        let found = self.matches.iter().enumerate().filter(|(_, found)| found.line == index);
        let found: Vec<(usize, &Match)> = found.collect();
        if found.is_empty() {
            return line.clone();
        }
        let mut out = Line::new();
        let mut at = 0;
        for span in &line.spans {
            let (start, end) = (at, at + span.text.len());
            at = end;
            let mut from = start;
            let mut push = |from: usize, to: usize, style: Style| {
                if from < to {
                    out.spans.push(Span {
                        text: span.text[from - start..to - start].to_owned(),
                        style,
                        link: span.link.clone(),
                    });
                }
            };
            for (number, found) in &found {
                let (first, last) = (found.start.clamp(from, end), found.end.clamp(from, end));
                let mark = if self.current == Some(*number) {
                    Element::ViewMatchCurrent
                } else {
                    Element::ViewMatch
                };
                push(from, first, span.style);
                push(first, last, span.style.within(mark));
                from = last.max(first);
            }
            push(from, end, span.style);
        }
        out
    }
}

impl View for Pager {
    fn title(&self) -> &str {
        &self.title
    }

    fn key(&mut self, key: &str) -> ViewAction {
        let key = normalise_key(key);
        if self.typing.is_some() {
            return self.search_key(&key);
        }
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        let half = (page / 2).max(1);
        match key.as_str() {
            "q" | "ESC" | "CTRL+c" | "ALT+h" => {
                self.done = true;
                return ViewAction::Close;
            }
            "DOWN" | "j" | "ENTER" | "CTRL+n" => self.scroll(1),
            "UP" | "k" | "CTRL+p" => self.scroll(-1),
            "PAGE_DOWN" | "SPACE" | "f" | "CTRL+f" => self.scroll(page),
            "PAGE_UP" | "b" | "CTRL+b" => self.scroll(-page),
            "d" | "CTRL+d" => self.scroll(half),
            "u" | "CTRL+u" => self.scroll(-half),
            "HOME" | "g" => self.top = 0,
            "END" | "G" => self.top = self.last_top(),
            "/" => self.typing = Some(String::new()),
            "n" => self.go(true),
            "N" => self.go(false),
            _ => return ViewAction::Ignored,
        }
        ViewAction::Redraw
    }

    fn frame(&mut self, rows: u16, page: &Page, theme: &Theme) -> ViewFrame {
        self.height = usize::from(rows).saturating_sub(1).max(1);
        self.lay_out(page);
        if std::mem::take(&mut self.at_end) {
            self.top = self.last_top();
        }
        self.top = self.top.min(self.last_top());
        let mut drawn: Vec<String> = Vec::with_capacity(self.height + 1);
        for index in self.top..self.top + self.height {
            let mut line = self.marked(index);
            line.truncate(page.width, page.ellipsis());
            drawn.push(line.ansi(theme));
        }
        let (mut bar, cursor) = self.bar(page);
        bar.truncate(page.width, page.ellipsis());
        if rows > 1 {
            drawn.push(bar.ansi(theme));
        }
        let cursor = cursor.and_then(|col| {
            Some(ViewCursor {
                row: rows.checked_sub(1)?,
                col: u16::try_from(col.min(page.width.saturating_sub(1))).ok()?,
            })
        });
        ViewFrame {
            rows: drawn,
            cursor,
            done: self.done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;

    fn page(width: usize) -> Page {
        Page {
            width,
            unicode: true,
            hyperlinks: false,
            marks: false,
        }
    }

    fn rows(pager: &mut Pager, rows: u16, width: usize) -> Vec<String> {
        pager.frame(rows, &page(width), &Theme::plain()).rows
    }

    fn numbers() -> Pager {
        let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
        Pager::new("numbers", Document::Text(text))
    }

    #[test]
    fn it_scrolls_by_line_half_page_page_and_to_the_ends() {
        let mut pager = numbers();
        assert_eq!(
            rows(&mut pager, 5, 60),
            [
                "line 1",
                "line 2",
                "line 3",
                "line 4",
                "numbers · 4/30 13% · q leaves, / searches"
            ]
        );
        for (key, first) in [
            ("j", "line 2"),
            ("PAGE_DOWN", "line 5"),
            ("CTRL+d", "line 6"),
            ("UP", "line 5"),
            ("SHIFT+g", "line 27"),
            ("DOWN", "line 27"),
            ("PAGE_UP", "line 24"),
            ("u", "line 23"),
            ("HOME", "line 1"),
            ("k", "line 1"),
        ] {
            assert_eq!(pager.key(key), ViewAction::Redraw);
            assert_eq!(rows(&mut pager, 5, 60)[0], first, "{key}");
        }
        assert_eq!(pager.key("ALT+z"), ViewAction::Ignored);
        assert_eq!(pager.key("ESC"), ViewAction::Close);
        assert!(pager.frame(5, &page(60), &Theme::plain()).done);
    }

    #[test]
    fn it_searches_forward_and_back_and_around() {
        let mut pager = numbers();
        rows(&mut pager, 5, 60);
        for key in ["/", "E", "BACKSPACE", "e", "SPACE", "2", "ENTER"] {
            assert_eq!(pager.key(key), ViewAction::Redraw, "{key}");
        }
        assert_eq!(pager.matches.len(), 11);
        assert_eq!(
            rows(&mut pager, 5, 60)[4],
            "numbers · 4/30 13% · \"e 2\" 1/11 · q leaves, / searches"
        );
        pager.key("n");
        assert!(rows(&mut pager, 5, 60).contains(&"line 20".to_owned()));
        pager.key("N");
        pager.key("N");
        assert!(rows(&mut pager, 5, 60).contains(&"line 29".to_owned()));
        for key in ["/", "X", "x", "ENTER"] {
            pager.key(key);
        }
        assert!(rows(&mut pager, 5, 60)[4].contains("\"Xx\" not found"));
        pager.key("/");
        pager.key("a");
        let frame = pager.frame(5, &page(60), &Theme::plain());
        assert_eq!(
            (frame.rows[4].as_str(), frame.cursor),
            ("/a", Some(ViewCursor { row: 4, col: 2 }))
        );
        pager.key("ESC");
        assert_eq!(pager.typing, None);
    }

    #[test]
    fn a_match_is_marked_over_the_styles_around_it() {
        let mut pager = Pager::new("t", Document::Markdown("one **two** three two".into()));
        rows(&mut pager, 3, 60);
        for key in ["/", "e", " ", "t", "w", "ENTER"] {
            pager.key(key);
        }
        assert_eq!(
            pager.marked(0).described(),
            "on<text/view.match_current>e </><text/md.strong/view.match_current>tw</><text/md.strong>o</> \
             thre<text/view.match>e tw</>o"
        );
    }

    #[test]
    fn a_conversation_opens_at_its_end_and_keeps_its_place_when_the_width_changes() {
        let mut call = Message::assistant("");
        call.tool_calls.push(ToolCall {
            id: "1".into(),
            name: "bash".into(),
            arguments: r#"{"command":"ls"}"#.into(),
            extra: serde_json::Map::new(),
        });
        let mut messages = vec![Message::system("x".repeat(2000)), Message::user("Please list."), call];
        messages.push(Message::tool("1", "bash", "a.rs\n\x1b[31mb.rs"));
        messages.push(Message::assistant("# Done\nTwo files."));
        let mut pager = Pager::new("conversation", Document::Conversation(messages, "direct".into()));
        let all = rows(&mut pager, 40, 60);
        insta::assert_snapshot!(all[..pager.lines.len()].join("\n"), @"
        System
        2.0k characters of instructions

        You
        Please list.

        Smith
        [bash] ls
          a.rs
          b.rs

        Done

        Two files.
        ");
        let words: String = (0..400).map(|n| format!("word{n} ")).collect();
        let mut pager = Pager::new("t", Document::Markdown(words));
        rows(&mut pager, 10, 60);
        pager.key("G");
        pager.key("PAGE_UP");
        let first = rows(&mut pager, 10, 60)[0].clone();
        let narrow = rows(&mut pager, 10, 31)[0].clone();
        let word = first.split(' ').next().unwrap();
        assert!(narrow.contains(word), "{first} | {narrow}");
        assert!(rows(&mut pager, 10, 1).len() == 10 && rows(&mut pager, 1, 60).len() == 1);
    }
}
