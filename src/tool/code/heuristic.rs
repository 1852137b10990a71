//! Declarations by plain patterns, for languages without a grammar here, and for documents with headings.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::symbols::{Symbol, head_of};

/// Languages whose declarations begin with a word that says what they are.
const CODE: [&str; 44] = [
    "kt", "kts", "swift", "scala", "php", "cs", "fs", "fsx", "vb", "zig", "ex", "exs", "erl", "hs", "ml", "mli", "pl",
    "pm", "r", "jl", "dart", "nim", "cr", "d", "v", "sv", "groovy", "gradle", "clj", "el", "lisp", "scm", "tcl",
    "proto", "thrift", "graphql", "sql", "m", "mm", "f90", "pas", "odin", "vue", "svelte",
];

/// A word that says what is declared, after any number of words about it, and the name.
static DECLARATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^[ \t]*(?:(?:pub|public|private|protected|internal|export|static|final|abstract|async|override|open|sealed",
        r"|inline|virtual|unsafe|extern|default|data|suspend|partial|case|create|or|replace|temp|temporary)\s+)*",
        r"(fn|func|fun|function|def|defp|defn|defun|defmodule|defmacro|class|struct|enum|interface|trait|protocol|object",
        r"|record|type|module|namespace|package|sub|proc|procedure|message|service|rpc|table|view|contract|actor|extension",
        r"|theorem|lemma|subroutine|program)\s+",
        r#"(?:if\s+not\s+exists\s+)?["`\[]?([\w$.:?!'-]+)"#
    ))
    .ok()
});
static HEADING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(#{1,6})\s+(.+?)\s*#*$").ok());
static SECTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*\[+([^\[\]]+)\]+\s*$").ok());
static TARGET: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^([A-Za-z0-9_./-]+)\s*:(?:[^=]|$)").ok());

/// How declarations look in a kind of file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Code,
    Headings,
    Sections,
    Targets,
}

fn look_of(path: &Path) -> Option<Look> {
    let name = path.file_name()?.to_str()?;
    if matches!(name, "Makefile" | "makefile" | "GNUmakefile" | "justfile" | "Justfile") {
        return Some(Look::Targets);
    }
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "md" | "markdown" => Some(Look::Headings),
        "toml" | "ini" | "cfg" => Some(Look::Sections),
        "mk" => Some(Look::Targets),
        other => CODE.contains(&other).then_some(Look::Code),
    }
}

/// Whether there are patterns for such a file.
pub(super) fn is_known(path: &Path) -> bool {
    look_of(path).is_some()
}

/// What the lines of a file seem to declare. A file of an unknown kind is taken for code.
pub(super) fn symbols(path: &Path, bytes: &[u8]) -> Vec<Symbol> {
    let look = look_of(path).unwrap_or(Look::Code);
    let text = String::from_utf8_lossy(bytes);
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        fenced ^= look == Look::Headings && line.trim_start().starts_with("```");
        let found = if fenced || line.len() > 1_000 {
            None
        } else {
            declared(look, line)
        };
        if let Some((kind, name, depth)) = found {
            symbols.push(Symbol {
                name: name.to_owned(),
                owner: String::new(),
                kind,
                line: index + 1,
                end_line: index + 1,
                depth,
                signature: head_of(line),
            });
        }
    }
    // Each goes on to the next that does not stand within it.
    let mut end = text.lines().count();
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for symbol in symbols.iter_mut().rev() {
        while ends.last().is_some_and(|(depth, _)| *depth > symbol.depth) {
            ends.pop();
        }
        end = ends.last().map_or(end, |(_, line)| line - 1);
        symbol.end_line = end.max(symbol.line);
        ends.push((symbol.depth, symbol.line));
        end = text.lines().count();
    }
    symbols
}

fn declared(look: Look, line: &str) -> Option<(&'static str, &str, usize)> {
    let group = |regex: &LazyLock<Option<Regex>>, n: usize| {
        let captures = regex.as_ref()?.captures(line)?;
        captures.get(n)
    };
    match look {
        Look::Code => {
            let name = group(&DECLARATION, 2)?.as_str();
            let word = group(&DECLARATION, 1)?.as_str();
            Some((known_word(word), name, usize::from(line.starts_with([' ', '\t']))))
        }
        Look::Headings => {
            let level = group(&HEADING, 1)?.as_str().len();
            Some(("heading", group(&HEADING, 2)?.as_str(), level - 1))
        }
        Look::Sections => Some(("section", group(&SECTION, 1)?.as_str(), 0)),
        Look::Targets => Some(("target", group(&TARGET, 1)?.as_str(), 0)),
    }
}

/// The few words that outlines use for what a declaring word says.
fn known_word(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "class" | "object" | "actor" | "contract" => "class",
        "struct" | "record" | "message" | "table" | "view" => "struct",
        "enum" => "enum",
        "interface" | "protocol" | "trait" | "service" | "extension" => "interface",
        "type" => "type",
        "module" | "namespace" | "package" | "defmodule" | "program" => "module",
        _ => "function",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(name: &str, source: &str) -> Vec<String> {
        symbols(Path::new(name), source.as_bytes())
            .iter()
            .map(|s| format!("{} {} {} {}-{}", s.depth, s.kind, s.name, s.line, s.end_line))
            .collect()
    }

    #[test]
    fn declaring_words_headings_sections_and_targets() {
        let kotlin = "data class P(val x: Int) {\n  override fun f() = 1\n}\nfun main() {}\n";
        assert_eq!(
            outline("a.kt", kotlin),
            ["0 class P 1-3", "1 function f 2-3", "0 function main 4-4"]
        );
        let sql = "CREATE TABLE IF NOT EXISTS users (id int);\nselect type from users;\n";
        assert_eq!(outline("a.sql", sql), ["0 struct users 1-2"]);
        let document = "# One\ntext\n```\n# not one\n```\n## Two\n# Three\n";
        assert_eq!(
            outline("a.md", document),
            ["0 heading One 1-6", "1 heading Two 6-6", "0 heading Three 7-7"]
        );
        assert_eq!(
            outline("a.toml", "[package]\nname = 1\n[[bin]]\n"),
            ["0 section package 1-2", "0 section bin 3-3"]
        );
        assert_eq!(
            outline("Makefile", "all: x\nV := 1\nx:\n\tcc\n"),
            ["0 target all 1-2", "0 target x 3-4"]
        );
    }
}
