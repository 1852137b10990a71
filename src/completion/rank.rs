//! Puts candidates in order: first those that begin with what was typed, then those that hold its letters in order.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// One thing that can be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is typed in its place, and what is matched.
    pub text: String,
    /// What to show in a menu where it differs.
    pub display: Option<String>,
    /// What it is, in the contract's words: `command`, `config_path`, `value`, `model`, `role`, `path`.
    pub kind: &'static str,
    /// A short remark beside it: a command's help, a current value.
    pub hint: Option<String>,
}

impl Item {
    /// An item with nothing beside it.
    #[must_use]
    pub fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            display: None,
            kind,
            hint: None,
        }
    }

    /// The item with a remark.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Ranks candidates; keeps the matcher's memory between keys.
pub struct Ranker {
    matcher: Matcher,
    chars: Vec<char>,
}

impl Default for Ranker {
    fn default() -> Self {
        Self {
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            chars: Vec::new(),
        }
    }
}

impl Ranker {
    /// The candidates that fit `typed`, best first, at most `limit`; `text` says what of a candidate is matched.
    ///
    /// Where nothing is typed all fit, in the order they came. What begins with the typed text comes first, in the
    /// order it came, an exact match before all; then what holds its letters in order, by score, the shorter before
    /// the longer. Case counts only where something is typed in upper case.
    pub fn rank<'a, T>(&mut self, typed: &str, items: &'a [T], limit: usize, text: impl Fn(&T) -> &str) -> Vec<&'a T> {
        if typed.is_empty() {
            return items.iter().take(limit).collect();
        }
        let any_case = !typed.chars().any(char::is_uppercase);
        let begins = |item: &T| starts_with(text(item), typed, any_case);
        let mut ranked: Vec<&T> = Vec::new();
        for item in items.iter().filter(|item| begins(item)) {
            if text(item) == typed {
                ranked.insert(0, item);
            } else {
                ranked.push(item);
            }
        }
        if ranked.len() < limit {
            let fuzzy = self.fuzzy(typed, items, limit - ranked.len(), &text, &begins);
            ranked.extend(fuzzy);
        }
        ranked.truncate(limit);
        ranked
    }

    /// Those that hold the letters of `typed` in order and do not begin with it.
    fn fuzzy<'a, T>(
        &mut self,
        typed: &str,
        items: &'a [T],
        limit: usize,
        text: &impl Fn(&T) -> &str,
        begins: &impl Fn(&T) -> bool,
    ) -> Vec<&'a T> {
        let atom = Atom::new(typed, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy, false);
        let mut scored: Vec<(u16, usize, usize)> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let candidate = text(item);
            let haystack = Utf32Str::new(candidate, &mut self.chars);
            if let Some(score) = atom.score(haystack, &mut self.matcher)
                && !begins(item)
            {
                scored.push((score, candidate.len(), index));
            }
        }
        let best_first = |a: &(u16, usize, usize), b: &(u16, usize, usize)| (b.0, a.1, a.2).cmp(&(a.0, b.1, b.2));
        if scored.len() > limit && limit > 0 {
            scored.select_nth_unstable_by(limit - 1, best_first);
            scored.truncate(limit);
        }
        scored.sort_unstable_by(best_first);
        scored
            .into_iter()
            .filter_map(|(_, _, index)| items.get(index))
            .collect()
    }
}

/// Whether `text` begins with `start`, in any case if so asked.
fn starts_with(text: &str, start: &str, any_case: bool) -> bool {
    if !any_case {
        return text.starts_with(start);
    }
    match text.as_bytes().get(..start.len()) {
        Some(head) if head.eq_ignore_ascii_case(start.as_bytes()) => true,
        _ if start.is_ascii() => false,
        _ => {
            let mut letters = text.chars().flat_map(char::to_lowercase);
            start
                .chars()
                .flat_map(char::to_lowercase)
                .all(|c| letters.next() == Some(c))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rank<'a>(typed: &str, items: &'a [&'a str], limit: usize) -> Vec<&'a str> {
        Ranker::default()
            .rank(typed, items, limit, |item| item)
            .into_iter()
            .copied()
            .collect()
    }

    const KEYS: [&str; 8] = [
        "default_model",
        "llm_config.timeout",
        "llm_config.connect_timeout",
        "tools.bash.timeout",
        "models.direct",
        "models.worker",
        "model",
        "modelling",
    ];

    #[test]
    fn what_begins_with_it_comes_first_and_an_exact_match_before_all() {
        assert_eq!(
            rank("model", &KEYS, 10),
            ["model", "models.direct", "models.worker", "modelling", "default_model"]
        );
        assert_eq!(rank("model", &KEYS, 2), ["model", "models.direct"]);
        assert_eq!(rank("", &KEYS, 2), ["default_model", "llm_config.timeout"]);
        assert_eq!(rank("zzz", &KEYS, 9), Vec::<&str>::new());
    }

    #[test]
    fn letters_in_order_are_found_by_words_and_shorter_first() {
        assert_eq!(
            rank("timeout", &KEYS, 9)[..2],
            ["llm_config.timeout", "tools.bash.timeout"]
        );
        assert_eq!(rank("lct", &KEYS, 1), ["llm_config.timeout"]);
        assert_eq!(rank("mw", &KEYS, 1), ["models.worker"]);
    }

    #[test]
    fn upper_case_counts_only_where_it_is_typed() {
        let names = ["README.md", "readme.txt", "Ärger", "über"];
        assert_eq!(rank("read", &names, 9), ["README.md", "readme.txt"]);
        assert_eq!(rank("READ", &names, 9), ["README.md"]);
        assert_eq!(rank("är", &names, 9)[0], "Ärger");
        assert_eq!(
            rank("ub", &names, 9),
            ["über"],
            "accents are folded where none is typed"
        );
    }

    proptest! {
        #[test]
        fn a_ranking_is_a_choice_without_repeats(typed in "[a-cA-Cé.]{0,4}", items in prop::collection::vec("[a-cA-Cé.]{0,6}", 0..30), limit in 0..40_usize) {
            let mut ranker = Ranker::default();
            let all = ranker.rank(&typed, &items, usize::MAX, |item| item);
            let some = ranker.rank(&typed, &items, limit, |item| item);
            prop_assert_eq!(&all[..limit.min(all.len())], &some[..], "a limit only cuts");
            let mut addresses: Vec<*const String> = all.iter().map(|item| std::ptr::from_ref(*item)).collect();
            addresses.sort_unstable();
            addresses.dedup();
            prop_assert_eq!(addresses.len(), all.len());
            for item in items.iter().filter(|item| item.starts_with(&typed)) {
                prop_assert!(all.iter().any(|found| std::ptr::eq(*found, item)));
            }
        }
    }
}
