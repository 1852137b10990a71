//! Thoughts that come inside the text: `<think>…</think>` at its start, or only the closing tag where the prompt had
//! opened the block unseen.

use super::fences::Fences;

/// Pairs of tags that open and close thoughts at the start of an answer.
const TAGS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
];

/// The closing tag that may come without an opening one.
const UNOPENED: &str = "</think>";

/// What a piece of text turns out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// All text so far was thoughts.
    TextWasThinking,
}

/// Splits the text of one answer. Text that may be the start of a tag is held back until it is clear.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    state: State,
    held: String,
    fences: Fences,
    /// The last character handed out as text.
    last: Option<char>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space came.
    #[default]
    Start,
    /// Inside thoughts that end with this tag.
    Inside(&'static str),
    /// Between the closing tag and the answer: line ends are dropped.
    Gap,
    /// The answer, which may still turn out to be thoughts.
    Doubtful,
    /// The answer.
    Settled,
}

impl ThinkSplitter {
    /// Thoughts came in a member of their own: the text is the text.
    pub fn settle(&mut self) {
        if matches!(self.state, State::Start | State::Doubtful) {
            self.state = State::Settled;
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str, on_part: &mut dyn FnMut(Part<'_>)) {
        if self.held.is_empty() && self.state == State::Settled {
            on_part(Part::Text(piece));
            return;
        }
        self.held.push_str(piece);
        while self.step(false, on_part) {}
    }

    /// The end of the text: what was held back is what it looks like.
    pub fn finish(&mut self, on_part: &mut dyn FnMut(Part<'_>)) {
        while self.step(true, on_part) {}
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        match self.state {
            State::Inside(_) => on_part(Part::Thinking(&held)),
            State::Gap => {}
            State::Start | State::Doubtful | State::Settled => on_part(Part::Text(&held)),
        }
    }

    /// One step on the text held; whether another may follow.
    fn step(&mut self, at_end: bool, on_part: &mut dyn FnMut(Part<'_>)) -> bool {
        match self.state {
            State::Start => self.start(),
            State::Inside(close) => self.inside(close, on_part),
            State::Gap => {
                let rest = self.held.trim_start_matches(['\n', '\r']);
                if rest.is_empty() {
                    self.held.clear();
                    return false;
                }
                self.held = rest.to_owned();
                self.state = State::Settled;
                true
            }
            State::Doubtful => self.doubtful(at_end, on_part),
            State::Settled => {
                if !self.held.is_empty() {
                    on_part(Part::Text(&self.held));
                    self.held.clear();
                }
                false
            }
        }
    }

    fn start(&mut self) -> bool {
        let text = self.held.trim_start();
        if text.is_empty() {
            return false;
        }
        for (open, close) in TAGS {
            if let Some(rest) = text.strip_prefix(open) {
                self.held = rest.to_owned();
                self.state = State::Inside(close);
                return true;
            }
        }
        if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
            return false;
        }
        self.state = State::Doubtful;
        true
    }

    fn inside(&mut self, close: &'static str, on_part: &mut dyn FnMut(Part<'_>)) -> bool {
        if let Some(at) = self.held.find(close) {
            if at > 0 {
                on_part(Part::Thinking(&self.held[..at]));
            }
            self.held.drain(..at + close.len());
            self.state = State::Gap;
            return true;
        }
        let keep = partial_suffix(&self.held, close);
        let shown = self.held.len() - keep;
        if shown > 0 {
            on_part(Part::Thinking(&self.held[..shown]));
            self.held.drain(..shown);
        }
        false
    }

    /// Looks for the closing tag that was never opened: alone at the start of a line and at its end, not in code.
    fn doubtful(&mut self, at_end: bool, on_part: &mut dyn FnMut(Part<'_>)) -> bool {
        if let Some(at) = self.held.find(UNOPENED) {
            let after = &self.held[at + UNOPENED.len()..];
            if after.is_empty() && !at_end {
                self.show(at, on_part);
                return false;
            }
            let ends_line = after.is_empty() || after.starts_with(['\n', '\r']);
            self.show(at, on_part);
            let starts_line = matches!(self.last, Some('\n'));
            if ends_line && starts_line && !self.fences.in_code() {
                on_part(Part::TextWasThinking);
                self.held.drain(..UNOPENED.len());
                self.state = State::Gap;
            } else {
                self.show(UNOPENED.len(), on_part);
            }
            return true;
        }
        let keep = if at_end {
            0
        } else {
            partial_suffix(&self.held, UNOPENED)
        };
        self.show(self.held.len() - keep, on_part);
        false
    }

    fn show(&mut self, count: usize, on_part: &mut dyn FnMut(Part<'_>)) {
        if count == 0 {
            return;
        }
        let text = &self.held[..count];
        self.fences.feed(text);
        self.last = text.chars().next_back();
        on_part(Part::Text(text));
        self.held.drain(..count);
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
pub(crate) fn partial_suffix(text: &str, tag: &str) -> usize {
    (1..tag.len().min(text.len() + 1))
        .rev()
        .find(|count| text.as_bytes().ends_with(&tag.as_bytes()[..*count]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Text and thoughts of an answer that comes in `pieces`.
    fn split(pieces: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let (mut text, mut thoughts) = (String::new(), String::new());
        let mut on_part = |part: Part<'_>| match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Thinking(piece) => thoughts.push_str(piece),
            Part::TextWasThinking => thoughts.push_str(&std::mem::take(&mut text)),
        };
        for piece in pieces {
            splitter.push(piece, &mut on_part);
        }
        splitter.finish(&mut on_part);
        (text, thoughts)
    }

    fn pair(text: &str, thoughts: &str) -> (String, String) {
        (text.to_owned(), thoughts.to_owned())
    }

    #[test]
    fn opened_blocks_at_the_start_only() {
        assert_eq!(split(&["<th", "ink>a</thi", "nk>\n\nb"]), pair("b", "a"));
        assert_eq!(split(&["\n<think>\n\n</think>\n\nb"]), pair("b", "\n\n"));
        assert_eq!(split(&["<think>a"]), pair("", "a"));
        assert_eq!(split(&["see <think>a</think>"]), pair("see <think>a</think>", ""));
        assert_eq!(split(&["<thin", "gs>"]), pair("<things>", ""));
        assert_eq!(split(&["  ", "x"]), pair("  x", ""));
    }

    #[test]
    fn a_closing_tag_alone_counts_only_on_a_line_of_its_own_outside_code() {
        assert_eq!(split(&["a.\n</thi", "nk>", "\n\nb"]), pair("b", "a.\n"));
        assert_eq!(split(&["a.\n</think>"]), pair("", "a.\n"));
        assert_eq!(split(&["write </think> to end"]), pair("write </think> to end", ""));
        let fenced = "```\n</think>\n```\n";
        assert_eq!(split(&[fenced]), pair(fenced, ""));
    }

    proptest! {
        /// Cuts do not matter, and nothing is lost but the tags and the gap.
        #[test]
        fn cuts_do_not_matter(
            parts in prop::collection::vec(
                prop::sample::select(vec!["<think>", "</think>", "\n", "a", "é", "`", "<", "</th", "[THINK]", " "]), 0..14),
            cuts in prop::collection::vec(0usize..80, 0..8),
        ) {
            let whole = parts.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| whole.is_char_boundary(*at)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([whole.len()]) {
                pieces.push(&whole[from..cut]);
                from = cut;
            }
            let (text, thoughts) = split(&pieces);
            prop_assert_eq!(split(&[&whole]), (text.clone(), thoughts.clone()));
            let count = |s: &str| s.matches('a').count() + s.matches('é').count();
            prop_assert_eq!(count(&text) + count(&thoughts), count(&whole));
        }
    }
}
