//! Candidates for the line being typed, from the registries of a session.

use crate::completion::{Item, Place, Ranker, place};
use crate::protocol::Candidate;
use crate::runtime::services::Services;

/// How many candidates a menu is given at most.
const MAX_CANDIDATES: usize = 200;

/// The candidates at `cursor` in `line`, best first.
pub(super) fn candidates(services: &Services, line: &str, cursor: usize) -> Vec<Candidate> {
    let (span, typed, items) = match place(line, cursor) {
        Place::Command { span, typed } => (span, typed, commands(services)),
        Place::Argument {
            command: "help",
            span,
            typed,
            ..
        } => (span, typed, names(services)),
        _ => return Vec::new(),
    };
    let mut ranker = Ranker::default();
    let slash = |item: &Item| item.text.starts_with('/');
    let typed_slash = format!("/{typed}");
    let typed = if items.first().is_some_and(slash) {
        &typed_slash
    } else {
        typed
    };
    ranker
        .rank(typed, &items, MAX_CANDIDATES, |item| &item.text)
        .into_iter()
        .map(|item| candidate(item, &span))
        .collect()
}

fn candidate(item: &Item, span: &std::ops::Range<usize>) -> Candidate {
    Candidate {
        text: item.text.clone(),
        start: span.start,
        end: span.end,
        display: item.display.clone(),
        kind: item.kind.to_owned(),
        hint: item.hint.clone(),
    }
}

fn commands(services: &Services) -> Vec<Item> {
    let item =
        |command: &&crate::command::Command| Item::new("command", format!("/{}", command.name)).with_hint(command.help);
    services.command.list().iter().map(item).collect()
}

fn names(services: &Services) -> Vec<Item> {
    let item = |command: &&crate::command::Command| Item::new("command", command.name).with_hint(command.help);
    services.command.list().iter().map(item).collect()
}
