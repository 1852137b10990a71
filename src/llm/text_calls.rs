//! Tool calls that a model writes into its text, because its server does not know the markup or the model forgot it.
//!
//! The gate lets text through and holds back what may be markup. A block that turns out to call tools on offer is
//! taken out; anything else is shown after all. Markup in code fences or inline code is quoted, not meant. Whether
//! the calls are used is decided at the end: where structured calls came too, they are not.

use super::calls::Offered;
use super::fences::Fences;
use super::text_forms::{FORMS, Form, Reading, WrittenCall, is_bare, may_be_bare, name_in, read};

/// A call that was taken out of the text.
#[derive(Debug, PartialEq)]
pub(crate) enum TakenOut {
    /// A whole call, with the markup it came in. Calls that share a block have it once, at the first.
    Call(WrittenCall, String),
    /// A call that was cut: its name and all of its markup.
    Cut(String, String),
}

/// Splits the text of one answer.
#[derive(Debug, Default)]
pub(crate) struct CallGate {
    held: String,
    /// The form of the block that `held` begins with.
    form: Option<&'static Form>,
    /// Up to here `held` has no closing mark that ends it.
    searched: usize,
    fences: Fences,
    /// Text other than white space was let through.
    seen_text: bool,
    /// White space right after a block is dropped with it.
    after_block: bool,
    taken: Vec<TakenOut>,
}

impl CallGate {
    /// The text so far was none: the answer starts here.
    pub fn restart(&mut self) {
        self.seen_text = false;
        self.fences = Fences::default();
    }

    /// Takes the next piece and calls `show` with what can be shown.
    pub fn push(&mut self, piece: &str, offered: Offered<'_>, show: &mut dyn FnMut(&str)) {
        if self.held.is_empty()
            && self.seen_text
            && !self.after_block
            && memchr::memchr2(b'<', b'[', piece.as_bytes()).is_none()
        {
            self.fences.feed(piece);
            show(piece);
            return;
        }
        self.held.push_str(piece);
        while self.step(offered, show) {}
    }

    /// The end of the text. What was taken out is returned, in order.
    pub fn finish(&mut self, offered: Offered<'_>, show: &mut dyn FnMut(&str)) -> Vec<TakenOut> {
        if let Some(form) = self.form.take() {
            let block = std::mem::take(&mut self.held);
            match read(form, &block, offered) {
                Reading::Calls(calls) => self.take(calls, block),
                _ => match name_in(&block, offered).filter(|_| !is_bare(form)) {
                    Some(name) => self.taken.push(TakenOut::Cut(name.to_owned(), block)),
                    None => {
                        // The opening was no opening: the rest may hold one.
                        let first = block.chars().next().map_or(0, char::len_utf8);
                        self.let_through(&block[..first], show);
                        self.held = block[first..].to_owned();
                        while self.step(offered, show) {}
                        return self.finish(offered, show);
                    }
                },
            }
        }
        let rest = std::mem::take(&mut self.held);
        self.let_through(&rest, show);
        std::mem::take(&mut self.taken)
    }

    /// One step on the text held; whether another may follow.
    fn step(&mut self, offered: Offered<'_>, show: &mut dyn FnMut(&str)) -> bool {
        match self.form {
            Some(form) => self.inside(form, offered, show),
            None => self.outside(offered, show),
        }
    }

    fn outside(&mut self, offered: Offered<'_>, show: &mut dyn FnMut(&str)) -> bool {
        if self.after_block {
            let rest = self.held.trim_start();
            if rest.is_empty() {
                self.held.clear();
                return false;
            }
            self.held = rest.to_owned();
            self.after_block = false;
        }
        let mut fences = self.fences.clone();
        let mut fed = 0;
        let mut seen_text = self.seen_text;
        let mut from = 0;
        while let Some(at) = self.candidate(from, seen_text) {
            let rest = &self.held[at..];
            fences.feed(&self.held[fed..at]);
            fed = at;
            seen_text |= !self.held[from..at].trim().is_empty();
            let possible = |form: &&Form| !fences.in_code() && (!form.at_start || !seen_text);
            let whole = FORMS
                .iter()
                .filter(possible)
                .find(|form| rest.starts_with(form.open) && (!is_bare(form) || may_be_bare(rest, offered)));
            let partial = || {
                let mut forms = FORMS.iter().filter(possible);
                forms.any(|form| form.open.starts_with(rest) && rest.len() < form.open.len())
            };
            if whole.is_some() || partial() {
                let block = self.held.split_off(at);
                let before = std::mem::replace(&mut self.held, block);
                self.let_through(&before, show);
                self.form = whole;
                self.searched = whole.map_or(0, |form| form.open.len());
                return whole.is_some();
            }
            seen_text = true;
            from = at + 1;
        }
        let all = std::mem::take(&mut self.held);
        self.let_through(&all, show);
        false
    }

    /// The next place from `from` on at which a form may begin.
    fn candidate(&self, from: usize, seen_text: bool) -> Option<usize> {
        let rest = &self.held[from..];
        if !seen_text {
            // The forms that begin an answer.
            let first = rest.len() - rest.trim_start().len();
            if rest[first..].starts_with(['f', '{']) {
                return Some(from + first);
            }
        }
        memchr::memchr2(b'<', b'[', rest.as_bytes()).map(|at| from + at)
    }

    fn inside(&mut self, form: &'static Form, offered: Offered<'_>, show: &mut dyn FnMut(&str)) -> bool {
        if is_bare(form) && !may_be_bare(&self.held, offered) {
            return self.release(show);
        }
        let Some(close) = form.close else { return false };
        // A value may hold the closing mark: then the block is unfinished at the first one.
        while let Some(at) = self.held[self.searched..].find(close) {
            let end = self.searched + at + close.len();
            match read(form, &self.held[..end], offered) {
                Reading::Calls(calls) => {
                    let rest = self.held.split_off(end);
                    let block = std::mem::replace(&mut self.held, rest);
                    self.take(calls, block);
                    self.form = None;
                    return true;
                }
                Reading::Unfinished => self.searched = end,
                Reading::Nothing => return self.release(show),
            }
        }
        // The end of what is held may be the beginning of the mark.
        let tail = self.held.len().saturating_sub(close.len() - 1).max(self.searched);
        self.searched = (self.searched..=tail)
            .rev()
            .find(|at| self.held.is_char_boundary(*at))
            .unwrap_or(self.searched);
        false
    }

    /// The block is none: its first character is text, the rest may hold another.
    fn release(&mut self, show: &mut dyn FnMut(&str)) -> bool {
        self.form = None;
        let first = self.held.chars().next().map_or(0, char::len_utf8);
        let rest = self.held.split_off(first);
        let first = std::mem::replace(&mut self.held, rest);
        self.let_through(&first, show);
        true
    }

    fn take(&mut self, calls: Vec<WrittenCall>, block: String) {
        let mut markup = Some(block);
        for call in calls {
            self.taken.push(TakenOut::Call(call, markup.take().unwrap_or_default()));
        }
        self.after_block = true;
    }

    fn let_through(&mut self, text: &str, show: &mut dyn FnMut(&str)) {
        if text.is_empty() {
            return;
        }
        self.fences.feed(text);
        self.seen_text |= !text.trim().is_empty();
        show(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolDefinition;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn tools() -> Vec<ToolDefinition> {
        let tool = |name: &str, properties: Value| ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": properties}),
        };
        vec![
            tool(
                "get_weather",
                json!({"city": {"type": "string"}, "days": {"type": "integer"}}),
            ),
            tool("write", json!({"text": {"type": "string"}})),
        ]
    }

    /// What is shown of a text that comes in pieces, and what is taken out.
    fn split(pieces: &[&str]) -> (String, Vec<TakenOut>) {
        let tools = tools();
        let mut gate = CallGate::default();
        let mut shown = String::new();
        for piece in pieces {
            gate.push(piece, Offered(&tools), &mut |text| shown.push_str(text));
        }
        let taken = gate.finish(Offered(&tools), &mut |text| shown.push_str(text));
        (shown, taken)
    }

    fn calls(text: &str) -> (String, Vec<(String, Value)>) {
        let (shown, taken) = split(&[text]);
        let calls = taken.into_iter().map(|taken| match taken {
            TakenOut::Call(call, _) => (call.name, Value::Object(call.arguments)),
            TakenOut::Cut(name, raw) => (name, json!({ "cut": raw })),
        });
        (shown, calls.collect())
    }

    #[test]
    fn every_form_is_read() {
        let oslo = json!({"city": "Oslo", "days": 2});
        for text in [
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 2}}\n</tool_call>",
            "<tool_call>[{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Oslo\\\", \\\"days\\\": 2}\"}]</tool_call>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
            "<function=get_weather>{\"city\": \"Oslo\", \"days\": 2}</function>",
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
            "<function_calls>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo</parameter><parameter name=\"days\">2</parameter>\n</invoke>\n</function_calls>",
            "<invoke name=\"get_weather\"><parameter name=\"city\" string=\"true\">Oslo</parameter><parameter name=\"days\">2</parameter></invoke>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\":\"Oslo\",\"days\":2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\":\"Oslo\",\"days\":2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\":\"Oslo\",\"days\":2}<|tool_call_end|><|tool_calls_section_end|>",
            "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 2}}]",
            "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Oslo\", \"days\": 2}",
            "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\", \"days\": 2}}",
            "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 2}}]<|/tool_call|>",
            "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 2}}]",
            "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\", \"days\": 2}}",
            "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 2}}}",
        ] {
            assert_eq!(
                calls(text),
                (String::new(), vec![("get_weather".to_owned(), oslo.clone())]),
                "{text}"
            );
        }
    }

    #[test]
    fn text_around_blocks_is_kept_and_blocks_in_a_row_are_all_taken() {
        let block = "<tool_call>{\"name\":\"get_weather\"}</tool_call>";
        let (shown, calls) = calls(&format!("Look. {block}\n{block}\n"));
        assert_eq!((shown.as_str(), calls.len()), ("Look. ", 2));
    }

    #[test]
    fn a_value_may_hold_the_closing_mark() {
        let text = "<tool_call>{\"name\":\"write\",\"arguments\":{\"text\":\"a </tool_call> b\"}}</tool_call>";
        assert_eq!(
            calls(text).1,
            [("write".to_owned(), json!({"text": "a </tool_call> b"}))]
        );
    }

    #[test]
    fn what_is_quoted_unknown_or_broken_is_text() {
        for text in [
            "```\n<tool_call>{\"name\":\"get_weather\"}</tool_call>\n```\n",
            "write `<tool_call>{\"name\":\"get_weather\"}</tool_call>` so",
            "<tool_call>{\"name\":\"open_door\"}</tool_call>",
            "<tool_call>{'name':'get_weather'}</tool_call>",
            "<tool_call> is a tag",
            "a < b and [TOOL] <too",
            "{\"name\": \"Ada\", \"age\": 36}",
            "{\"name\": \"get_weather\"} is what I would call",
            "I say {\"name\": \"get_weather\", \"parameters\": {}}",
            "functions are nice",
        ] {
            assert_eq!(calls(text), (text.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn a_block_that_is_cut_neither_runs_nor_vanishes() {
        let text = "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"text\": \"a";
        assert_eq!(
            calls(text),
            (String::new(), vec![("write".to_owned(), json!({ "cut": text }))])
        );
        let closed_by_the_end = "<tool_call>{\"name\":\"get_weather\"}";
        assert_eq!(calls(closed_by_the_end).1, [("get_weather".to_owned(), json!({}))]);
    }

    proptest! {
        /// Cuts do not matter, and whatever is not taken out is shown.
        #[test]
        fn cuts_do_not_matter(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<tool_call>", "</tool_call>", "{\"name\":\"get_weather\",\"arguments\":{}}", "\n", "a", "é", "`", "```", "<",
                "[TOOL_CALLS]", "<function=", "get_weather", "</function>", ">", "{", "functools", " "]), 0..12),
            cuts in prop::collection::vec(0usize..160, 0..10),
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
            let (shown, taken) = split(&pieces);
            prop_assert_eq!(&split(&[&whole]), &(shown.clone(), split(&pieces).1));
            let marked: usize = taken.iter().map(|taken| match taken {
                TakenOut::Call(_, markup) | TakenOut::Cut(_, markup) => markup.matches(['a', 'é']).count(),
            }).sum();
            prop_assert_eq!(shown.matches(['a', 'é']).count() + marked, whole.matches(['a', 'é']).count());
        }
    }
}
