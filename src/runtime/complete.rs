//! Candidates for the line being typed, from the registries of a session.

use std::ops::Range;

use crate::command::Completer;
use crate::completion::{Item, Place, Ranker, config_keys, config_values, place};
use crate::config::profile_names;
use crate::protocol::Candidate;
use crate::role::ROLES;
use crate::runtime::files;
use crate::runtime::services::Services;
use crate::runtime::shared::Shared;

/// How many candidates a menu is given at most.
const MAX_CANDIDATES: usize = 200;

/// The candidates at `cursor` in `line`, best first.
pub(super) fn candidates(shared: &Shared, line: &str, cursor: usize) -> Vec<Candidate> {
    match place(line, cursor) {
        Place::Command { span, typed } => best(&format!("/{typed}"), &commands(shared, "/"), &span),
        Place::Argument {
            command,
            before,
            span,
            typed,
        } => best(typed, &arguments(shared, command, &before), &span),
        Place::Mention { span, typed } => {
            let mut found = best(typed, &shared.listings.mentioned(&shared.cwd(), typed), &span);
            for candidate in &mut found {
                candidate.display = Some(candidate.text.clone());
                candidate.text = files::replacement(&candidate.text);
            }
            found
        }
        Place::Text => Vec::new(),
    }
}

fn best(typed: &str, items: &[Item], span: &Range<usize>) -> Vec<Candidate> {
    let ranked = Ranker::default().rank(typed, items, MAX_CANDIDATES, |item| &item.text);
    ranked
        .into_iter()
        .map(|item| Candidate {
            text: item.text.clone(),
            start: span.start,
            end: span.end,
            display: item.display.clone(),
            kind: item.kind.to_owned(),
            hint: item.hint.clone(),
        })
        .collect()
}

/// The built-in commands and then the user's own, each name after `prefix`.
fn commands(shared: &Shared, prefix: &str) -> Vec<Item> {
    let services = shared.services();
    let mut items: Vec<Item> = services
        .command
        .list()
        .iter()
        .map(|command| Item::new("command", format!("{prefix}{}", command.name)).with_hint(command.help))
        .collect();
    let mine = shared.user_commands.kept(&services.command, &shared.cwd());
    items.extend(mine.commands.iter().map(|own| {
        let hint = match &own.argument_hint {
            Some(arguments) => format!("{arguments}: {}", own.description),
            None => own.description.clone(),
        };
        Item::new("command", format!("{prefix}{}", own.name)).with_hint(hint)
    }));
    items
}

fn arguments(shared: &Shared, command: &str, before: &[&str]) -> Vec<Item> {
    let services = shared.services();
    let Some(command) = services.command.find(command) else {
        return Vec::new();
    };
    match command.completer {
        Completer::Nothing => Vec::new(),
        Completer::Commands if before.is_empty() => commands(shared, ""),
        Completer::Config => config(&services, before),
        Completer::Jobs => match before {
            [] => words(&["kill"], before),
            ["kill"] => jobs(shared),
            _ => Vec::new(),
        },
        Completer::Models(others) => {
            let named = before.iter().any(|word| !word.starts_with("--"));
            let mut items = if named { Vec::new() } else { models(&services) };
            items.extend(words(others, before));
            items
        }
        Completer::Roles if before.is_empty() => ROLES
            .iter()
            .filter(|spec| spec.user_facing)
            .map(|spec| Item::new("role", spec.name).with_hint(spec.label))
            .collect(),
        Completer::Profiles(others) if before.is_empty() => {
            let mut items: Vec<Item> = profile_names(&services.config)
                .into_iter()
                .map(|name| Item::new("profile", name))
                .collect();
            items.extend(words(others, before));
            items
        }
        Completer::Words(all) => words(all, before),
        Completer::Commands | Completer::Roles | Completer::Profiles(_) => Vec::new(),
    }
}

/// The jobs of which something runs.
fn jobs(shared: &Shared) -> Vec<Item> {
    let running = shared.tool_state.jobs().list().into_iter().filter(|job| job.runs());
    running
        .map(|job| Item::new("job", job.id).with_hint(job.command))
        .collect()
}

fn words(all: &[&str], before: &[&str]) -> Vec<Item> {
    let left = all.iter().filter(|word| !before.contains(word));
    left.map(|word| Item::new("value", *word)).collect()
}

fn config(services: &Services, before: &[&str]) -> Vec<Item> {
    let names = |wildcard: &str| names_for(services, wildcard);
    match before {
        [] => ["get", "set", "unset"].map(|verb| Item::new("value", verb)).to_vec(),
        ["get" | "set"] => config_keys(&services.config, &names),
        // Only what is kept can be taken back.
        ["unset"] => config_keys(&services.config, &names)
            .into_iter()
            .filter(|item| {
                let path = crate::config::DottedPath::parse(&item.text).ok();
                let patch = &services.config.layers().patch;
                path.is_some_and(|path| {
                    let place = path.segments().iter().try_fold(patch, |table, name| table.get(name));
                    place.is_some()
                })
            })
            .collect(),
        ["set", key] => config_values(&services.config, key, &names),
        _ => Vec::new(),
    }
}

/// The names to offer for a wildcard of the configuration's table.
fn names_for(services: &Services, wildcard: &str) -> Vec<String> {
    match wildcard {
        "<role>" => {
            let own = ROLES.iter().map(|spec| spec.name);
            own.chain(["default"]).map(str::to_owned).collect()
        }
        "<model>" => models(services).into_iter().map(|item| item.text).collect(),
        "<name>" => profile_names(&services.config).into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The models that the configuration names, then those that the server listed.
fn models(services: &Services) -> Vec<Item> {
    let config = &services.config;
    let mut items: Vec<Item> = Vec::new();
    let mut add = |id: &str, hint: Option<String>| {
        if !items.iter().any(|item| item.text == id) {
            let item = Item::new("model", id);
            items.push(match hint {
                Some(hint) => item.with_hint(hint),
                None => item,
            });
        }
    };
    let configured = config
        .value_at(&["models"])
        .and_then(serde_json::Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(_, model)| model.as_str());
    for model in config.opt_str("default_model").into_iter().chain(configured) {
        add(model, Some("configured".to_owned()));
    }
    let listed = services.model.known_models();
    let mut seen: std::collections::HashSet<&str> = std::collections::HashSet::new();
    let mut more: Vec<Item> = Vec::new();
    for model in listed.iter().flat_map(|list| &list.models) {
        if seen.insert(&model.id) && !items.iter().any(|item| item.text == model.id) {
            let item = Item::new("model", &model.id);
            more.push(match model.context_length {
                Some(tokens) => item.with_hint(format!("{tokens} tokens")),
                None => item,
            });
        }
    }
    items.append(&mut more);
    items
}
