//! Puts candidates in order: first those that begin with what was typed, then those that hold its letters in order.

use std::cmp::Ordering;

use nucleo_matcher::{Config, Matcher, Utf32Str, chars};

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
    /// the longer. Where something begins with the typed text, letters that stand apart are noise: the others have it in
    /// one piece then. Case counts only where something is typed in upper case.
    pub fn rank<'a, T>(&mut self, typed: &str, items: &'a [T], limit: usize, text: impl Fn(&T) -> &str) -> Vec<&'a T> {
        if typed.is_empty() {
            return items.iter().take(limit).collect();
        }
        let any_case = !typed.chars().any(char::is_uppercase);
        self.matcher.config.ignore_case = any_case;
        // Accents are folded only where none is typed.
        self.matcher.config.normalize = typed.is_ascii();
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
            let apart = ranked.is_empty();
            let fuzzy = self.fuzzy(typed, apart, items, limit - ranked.len(), &text, &begins);
            ranked.extend(fuzzy);
        }
        ranked.truncate(limit);
        ranked
    }

    /// Those that hold the letters of `typed` in order, `apart` or in one piece, and do not begin with it.
    ///
    /// The matcher finds the best of all ways to match, which is too slow for thousands of candidates at every key. So
    /// a rough score picks the ones worth it; where few match, all are.
    fn fuzzy<'a, T>(
        &mut self,
        typed: &str,
        apart: bool,
        items: &'a [T],
        limit: usize,
        text: &impl Fn(&T) -> &str,
        begins: &impl Fn(&T) -> bool,
    ) -> Vec<&'a T> {
        let exact_case = !self.matcher.config.ignore_case;
        let fold_accents = self.matcher.config.normalize;
        let fold = |c: char| match c {
            // The tables are only for the rest.
            c if c.is_ascii() && exact_case => c,
            c if c.is_ascii() => c.to_ascii_lowercase(),
            c => {
                let c = if exact_case { c } else { chars::to_lower_case(c) };
                if fold_accents { chars::normalize(c) } else { c }
            }
        };
        let typed_folded: Vec<char> = typed.chars().map(fold).collect();
        let typed_text: String = typed_folded.iter().collect();
        let typed_folded_bytes = typed_text.as_bytes();
        let mut folded: Vec<char> = Vec::new();
        let mut found: Vec<Scored> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let candidate = text(item);
            let score = if candidate.is_ascii() {
                let lower = |byte: &u8| if exact_case { *byte } else { byte.to_ascii_lowercase() };
                typed
                    .is_ascii()
                    .then(|| rough_score(candidate.as_bytes(), typed.as_bytes(), lower))
                    .flatten()
                    .filter(|_| apart || holds(candidate.as_bytes(), typed_folded_bytes, lower))
            } else {
                folded.clear();
                folded.extend(candidate.chars().map(fold));
                rough_score(&folded, &typed_folded, |c| *c).filter(|_| apart || holds(&folded, &typed_folded, |c| *c))
            };
            if let Some(score) = score
                && !begins(item)
            {
                found.push(Scored {
                    score,
                    len: candidate.len(),
                    index,
                });
            }
        }
        keep_best(&mut found, limit.max(EXACTLY_SCORED));
        let mut typed_chars = Vec::new();
        let needle = Utf32Str::new(&typed_text, &mut typed_chars);
        found.retain_mut(|scored| {
            let haystack = Utf32Str::new(text(&items[scored.index]), &mut self.chars);
            let score = self.matcher.fuzzy_match(haystack, needle).map(i32::from);
            scored.score = score.unwrap_or_default();
            score.is_some()
        });
        keep_best(&mut found, limit);
        found.sort_unstable();
        found.into_iter().map(|scored| &items[scored.index]).collect()
    }
}

/// How many candidates are scored exactly at most, unless more were asked for.
const EXACTLY_SCORED: usize = 128;

/// A candidate; sorts best first.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scored {
    score: i32,
    len: usize,
    index: usize,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.score, self.len, self.index).cmp(&(self.score, other.len, other.index))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Leaves the `count` best, in no order.
fn keep_best(found: &mut Vec<Scored>, count: usize) {
    if count == 0 {
        found.clear();
    } else if found.len() > count {
        found.select_nth_unstable(count - 1);
        found.truncate(count);
    }
}

/// What separates the words of a candidate.
trait Letter: Copy + PartialEq {
    fn is_separator(self) -> bool;
}

impl Letter for u8 {
    fn is_separator(self) -> bool {
        !self.is_ascii_alphanumeric()
    }
}

impl Letter for char {
    fn is_separator(self) -> bool {
        !self.is_alphanumeric()
    }
}

/// A score on the matcher's scale for the letters of `typed` in `text`, in order, from one look in each direction:
/// the first place where they end, and the last place before it where they begin. `None` where they are not there.
/// `fold` makes a letter of the text comparable to one of `typed`.
fn rough_score<L: Letter>(text: &[L], typed: &[L], fold: impl Fn(&L) -> L) -> Option<i32> {
    // The matcher's own weights: a letter, a start at the border of a word, a gap and each further letter of it.
    const LETTER: i32 = 16;
    const BORDER: i32 = 16;
    const GAP: i32 = 3;
    let mut wanted = typed.iter();
    let mut next = *wanted.next()?;
    let end = text.iter().position(|letter| {
        if fold(letter) != next {
            return false;
        }
        wanted.next().is_none_or(|after| {
            next = *after;
            false
        })
    })?;
    let mut wanted = typed.iter().rev();
    let mut next = *wanted.next()?;
    let start = text[..=end].iter().rposition(|letter| {
        if fold(letter) != next {
            return false;
        }
        wanted.next().is_none_or(|before| {
            next = *before;
            false
        })
    })?;
    let border = start == 0 || text[start - 1].is_separator();
    let letters = i32::try_from(typed.len()).unwrap_or(i32::MAX / LETTER);
    let skipped = i32::try_from(end + 1 - start - typed.len()).unwrap_or(i32::MAX / 2);
    let gap = if skipped > 0 { GAP + skipped - 1 } else { 0 };
    Some(LETTER.saturating_mul(letters) + if border { BORDER } else { 0 } - gap)
}

/// Whether `text`, its letters folded, has `typed` in one piece.
fn holds<L: Letter>(text: &[L], typed: &[L], fold: impl Fn(&L) -> L) -> bool {
    text.windows(typed.len())
        .any(|part| part.iter().zip(typed).all(|(letter, wanted)| fold(letter) == *wanted))
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
    fn letters_apart_count_only_where_nothing_begins_with_them() {
        let names = [
            "context.enabled",
            "context.keep_rounds",
            "a.context.enough",
            "contExt.end",
        ];
        assert_eq!(
            rank("context.en", &names, 9),
            ["context.enabled", "contExt.end", "a.context.enough"]
        );
        assert_eq!(rank("xten", &names, 9).len(), 4);
        assert_eq!(rank("äb", &["äbc", "xäbc", "ä_b"], 9), ["äbc", "xäbc"]);
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

    #[test]
    fn of_very_many_the_best_are_still_first() {
        let mut names: Vec<String> = (0..5000)
            .map(|i| format!("src/x{i}/thing/a_long_name_{i}.rs"))
            .collect();
        names.push("zebra/thin_rail.rs".to_owned());
        names.push("deep/down/there/thr".to_owned());
        let found = Ranker::default().rank("thr", &names, 3, |name| name);
        assert_eq!(found[0], "deep/down/there/thr", "{found:?}");
        assert_eq!(found[1], "zebra/thin_rail.rs", "{found:?}");
    }

    proptest! {
        #[test]
        fn the_rough_look_finds_what_the_matcher_finds(text in "[a-cA-C./_]{0,12}", typed in "[a-c]{1,4}") {
            let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
            let exact = matcher.fuzzy_match(Utf32Str::Ascii(text.as_bytes()), Utf32Str::Ascii(typed.as_bytes()));
            prop_assert_eq!(rough_score(text.as_bytes(), typed.as_bytes(), u8::to_ascii_lowercase).is_some(), exact.is_some());
        }

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
