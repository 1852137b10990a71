//! What is worth being shown first.

use std::path::Path;

/// Words that stand before a name where it is declared, in common languages.
const DECLARING: [&str; 40] = [
    "fn",
    "func",
    "function",
    "def",
    "class",
    "struct",
    "enum",
    "union",
    "interface",
    "trait",
    "type",
    "typedef",
    "mod",
    "module",
    "namespace",
    "package",
    "impl",
    "const",
    "static",
    "let",
    "var",
    "val",
    "local",
    "macro_rules!",
    "#define",
    "object",
    "record",
    "protocol",
    "extension",
    "sub",
    "proc",
    "theorem",
    "data",
    "newtype",
    "table",
    "view",
    "message",
    "service",
    "rpc",
    "defmodule",
];

/// Whether what follows `before` on its line is declared there: the word before it says so.
pub(in crate::tool) fn declares(before: &[u8]) -> bool {
    let Ok(before) = std::str::from_utf8(before) else {
        return false;
    };
    // `M.name`, `self:name`, `Type::name`, `(r *Receiver) name`: what qualifies the name belongs to it.
    let word = before.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'));
    let word = match word.trim_end().strip_suffix(')') {
        Some(receiver) => receiver.rfind('(').map_or(word, |at| &receiver[..at]),
        None => word,
    };
    let last = word.split_whitespace().next_back().unwrap_or("");
    word.ends_with(char::is_whitespace) && DECLARING.contains(&last)
}

/// How far down a file belongs: 0 is what people write and read, 1 tests and documents, 2 what is made or copied.
pub(in crate::tool) fn tier(path: &Path) -> u8 {
    let mut tier = 0;
    for component in path.components() {
        let name = component.as_os_str().to_string_lossy().to_lowercase();
        let this = match name.as_str() {
            "vendor" | "third_party" | "node_modules" | "target" | "dist" | "build" | "out" | "generated" | "gen"
            | "external" | "deps" | "__pycache__" | ".venv" | "venv" => 2,
            "test" | "tests" | "spec" | "specs" | "testdata" | "fixtures" | "examples" | "docs" | "doc" | "benches"
            | "benchmarks" | "snapshots" => 1,
            _ => file_tier(&name),
        };
        tier = tier.max(this);
    }
    tier
}

fn file_tier(name: &str) -> u8 {
    let made = [
        ".min.js",
        ".min.css",
        ".map",
        ".lock",
        ".snap",
        ".svg",
        ".generated.rs",
        ".pb.go",
        "_pb2.py",
        ".g.dart",
    ];
    let locks = ["package-lock.json", "pnpm-lock.yaml", "go.sum", "composer.lock"];
    if made.iter().any(|ending| name.ends_with(ending)) || locks.contains(&name) {
        2
    } else if name.ends_with(".md") || name.contains("_test.") || name.contains(".test.") || name.contains(".spec.") {
        1
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_told_by_the_word_before_it() {
        for before in [
            "pub fn ",
            "  local function M.",
            "class ",
            "func (s *Server) ",
            "\tdef self.",
            "export const ",
        ] {
            assert!(declares(before.as_bytes()), "{before}");
        }
        for before in ["", "return ", "x = ", "undef", "call(", "classy ", "self."] {
            assert!(!declares(before.as_bytes()), "{before}");
        }
    }

    #[test]
    fn sources_come_before_tests_and_tests_before_copies() {
        assert_eq!(tier(Path::new("src/a.rs")), 0);
        assert_eq!(tier(Path::new("src/a_test.go")), 1);
        assert_eq!(tier(Path::new("docs/a.txt")), 1);
        assert_eq!(tier(Path::new("tests/vendor/a.c")), 2);
        assert_eq!(tier(Path::new("web/app.min.js")), 2);
    }
}
