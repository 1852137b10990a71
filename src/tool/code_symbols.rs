//! `code_symbols`: where a name is declared, in the whole tree.

use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use grep_matcher::Matcher as _;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern as Fuzzy};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use schemars::JsonSchema;
use serde::Deserialize;

use super::code::rank::tier;
use super::code::search::{Pattern, matcher};
use super::code::symbols::{MAX_PARSED, Parsers, Symbol, is_known};
use super::code::walk::Scope;
use super::context::ToolContext;
use super::looking::Looking;
use super::result::{ToolError, ToolOutput};
use super::spec::Renderer;

/// Declarations shown.
const LIMIT: usize = 40;
/// How long similar names are looked for when there is none like it.
const FUZZY_TIME: Duration = Duration::from_millis(1_500);
/// Similar names shown.
const FUZZY_LIMIT: usize = 8;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "name", alias = "symbol")]
    query: String,
    /// Such as `fn`, `class`.
    kind: Option<String>,
    path: Option<String>,
}

pub(super) type Tool = Looking<Args>;

impl Tool {
    pub(super) fn new(description: &'static str) -> Self {
        Self::named("code_symbols", description, Renderer::Listing, symbols)
    }
}

/// A declaration that matches, and how well: less is better.
struct Match {
    rank: u8,
    tier: u8,
    path: PathBuf,
    symbol: Symbol,
}

/// A name that is looked for, with what it should belong to.
struct Wanted {
    owner: String,
    name: String,
    kind: Option<String>,
}

impl Wanted {
    fn new(args: &Args) -> Self {
        let query = args.query.trim().trim_end_matches("()");
        let (owner, name) = match query.rfind(['.', ':', '#']) {
            Some(at) if at + 1 < query.len() => (query[..at].trim_end_matches([':', '.']), &query[at + 1..]),
            _ => ("", query),
        };
        Self {
            owner: owner.to_lowercase(),
            name: name.to_owned(),
            kind: args.kind.as_ref().map(|kind| kind.trim().to_lowercase()),
        }
    }

    fn rank(&self, symbol: &Symbol) -> Option<u8> {
        let of_kind = self.kind.as_ref().is_none_or(|kind| same_kind(symbol.kind, kind));
        let of_owner = self.owner.is_empty() || symbol.owner.to_lowercase().contains(&self.owner);
        if !of_kind || !of_owner {
            return None;
        }
        if symbol.name == self.name {
            return Some(0);
        }
        let (name, wanted) = (symbol.name.to_lowercase(), self.name.to_lowercase());
        match name.find(&wanted) {
            Some(0) if name.len() == wanted.len() => Some(1),
            Some(0) => Some(2),
            Some(_) => Some(3),
            None => None,
        }
    }
}

/// Whether `kind`, as a model writes it, means what an outline calls `known`.
fn same_kind(known: &str, kind: &str) -> bool {
    let family = |kind: &str| match kind {
        "fn" | "func" | "function" | "def" | "method" | "prototype" | "constructor" => 1,
        "class" | "struct" | "record" | "type" | "union" | "enum" => 2,
        "interface" | "trait" | "protocol" | "concept" => 3,
        "const" | "constant" | "static" | "var" | "variable" | "field" => 4,
        "mod" | "module" | "namespace" | "package" => 5,
        _ => 0,
    };
    known == kind || (family(known) != 0 && family(known) == family(kind))
}

fn symbols(ctx: &ToolContext, args: &Args) -> Result<ToolOutput, ToolError> {
    let wanted = Wanted::new(args);
    if wanted.name.is_empty() {
        return Err(ToolError::to_model("bad_arguments", "`query` is empty."));
    }
    let scope = Scope::new(ctx, args.path.as_deref(), &[], false)?;
    // Only files that hold the name at all are parsed.
    let mentions = matcher(&Pattern {
        text: wanted.name.clone(),
        literal: true,
        ignore_case: true,
        ..Pattern::default()
    })
    .map_err(|error| ToolError::to_model("bad_arguments", format!("`query` cannot be looked for: {error}.")))?;
    let mut found = collect(
        &scope,
        |bytes| mentions.is_match(bytes).unwrap_or(false),
        |symbol| wanted.rank(symbol),
    )?;
    if found.is_empty() {
        return similar(&scope, &wanted);
    }
    found.sort_by(|a, b| {
        let by_rank = (a.rank, a.tier).cmp(&(b.rank, b.tier));
        by_rank.then_with(|| (&a.path, a.symbol.line).cmp(&(&b.path, b.symbol.line)))
    });
    // Where the very name is declared, parts of other names are noise.
    let exact = found.iter().filter(|found| found.rank <= 1).count();
    let (total, shown) = (found.len(), if exact > 0 { exact } else { found.len() }.min(LIMIT));
    let mut text = format!("{total} declarations match");
    if scope.stopped() {
        text.push_str(" (the search was stopped before its end)");
    }
    if shown < total {
        let which = if exact > 0 && exact <= LIMIT {
            "of exactly that name"
        } else {
            "best"
        };
        let _ = write!(text, "; the {shown} {which} below");
    }
    text.push_str(":\n");
    text.push_str(&list(&scope, &found[..shown]));
    Ok(ToolOutput::text(text)
        .with("symbols", total)
        .with("shown", shown)
        .with("truncated", shown < total))
}

fn list(scope: &Scope, found: &[Match]) -> String {
    let mut text = String::new();
    for Match { path, symbol, .. } in found {
        let owner = if symbol.owner.is_empty() {
            String::new()
        } else {
            format!(" (in {})", symbol.owner)
        };
        let _ = writeln!(
            text,
            "{}:{}-{} {}{owner}",
            scope.shown(path),
            symbol.line,
            symbol.end_line,
            symbol.signature
        );
    }
    text
}

/// The declarations of the files that pass `worth` to which `rank` gives a rank.
fn collect(
    scope: &Scope,
    worth: impl Fn(&[u8]) -> bool + Sync,
    rank: impl Fn(&Symbol) -> Option<u8> + Sync,
) -> Result<Vec<Match>, ToolError> {
    let found = Mutex::new(Vec::new());
    scope.each_file(|| {
        let mut parsers = Parsers::default();
        let (found, worth, rank) = (&found, &worth, &rank);
        move |entry| {
            let path = entry.path();
            if !is_known(path)
                || !entry
                    .metadata()
                    .is_ok_and(|metadata| metadata.len() <= MAX_PARSED as u64)
            {
                return true;
            }
            let mut bytes = Vec::new();
            let read = scope.open(path).and_then(|mut file| file.read_to_end(&mut bytes));
            if read.is_err() || !worth(&bytes) {
                return true;
            }
            let matches = parsers.symbols(path, &bytes).into_iter().filter_map(|symbol| {
                Some(Match {
                    rank: rank(&symbol)?,
                    tier: tier(path),
                    path: path.to_owned(),
                    symbol,
                })
            });
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(matches);
            true
        }
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The answer where nothing has the name: names that are written alike.
fn similar(scope: &Scope, wanted: &Wanted) -> Result<ToolOutput, ToolError> {
    let mut scope = scope.clone();
    scope.deadline = Some(Instant::now() + FUZZY_TIME);
    let all = collect(&scope, |_| true, |_| Some(0))?;
    let pattern = Fuzzy::parse(&wanted.name, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, Match)> = all
        .into_iter()
        .filter_map(|found| {
            let score = pattern.score(Utf32Str::new(&found.symbol.name, &mut buffer), &mut matcher);
            let likeness = strsim::normalized_damerau_levenshtein(&wanted.name, &found.symbol.name);
            // A slip of the pen is no subsequence, an abbreviation is nothing alike: either will do.
            match (score, likeness > 0.6) {
                (Some(score), _) => Some((score, found)),
                (None, true) => Some((1, found)),
                (None, false) => None,
            }
        })
        .collect();
    scored.sort_by(|a, b| (b.0, a.1.tier, &a.1.path).cmp(&(a.0, b.1.tier, &b.1.path)));
    scored.truncate(FUZZY_LIMIT);
    let mut text = format!("Nothing called {:?} is declared here.", wanted.name);
    if scope.stopped() {
        text.push_str(" Not all files were looked at for similar names.");
    }
    if !scored.is_empty() {
        text.push_str(" Similar:\n");
        let matches: Vec<Match> = scored.into_iter().map(|(_, found)| found).collect();
        text.push_str(&list(&scope, &matches));
    }
    Ok(ToolOutput::text(text).with("symbols", 0).with("shown", 0))
}
