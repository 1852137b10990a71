//! The code tools on trees with everything that trips a search: ignored and hidden files, binary files, other
//! encodings, long lines, repeated lines.
#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use agent_smith_core::role::Role;
use serde_json::json;

use crate::support::tools::Yard;

fn tree() -> Yard {
    let yard = Yard::new();
    std::fs::create_dir(yard.root.join(".git")).unwrap();
    yard.write(".gitignore", "dist/\n*.log\n");
    yard.write(
        "src/parser.rs",
        "pub fn parse(input: &str) -> Ast {\n    lex(input)\n}\n\nstruct Ast;\n",
    );
    yard.write(
        "src/main.rs",
        "mod parser;\nfn main() {\n    parser::parse(\"x\");\n}\n",
    );
    yard.write(
        "tests/parse_test.rs",
        "#[test]\nfn parse_works() {\n    parse(\"x\");\n}\n",
    );
    yard.write("docs/guide.md", "# Guide\n\nCall parse first.\n\n## Then\n");
    yard.write("dist/bundle.js", "function bundled_only() {}\nparse();\n");
    yard.write(".hidden/secret.txt", "bundled_only\n");
    yard
}

#[tokio::test]
async fn grep_shows_the_declaration_first_and_tests_after_sources() {
    let yard = tree();
    let result = yard.call("code_grep", json!({"pattern": r"\bparse\("})).await;
    assert_eq!(
        result.content,
        "3 matches in 3 files.\n\nsrc/parser.rs\n1: pub fn parse(input: &str) -> Ast {\n\nsrc/main.rs\n3:     \
         parser::parse(\"x\");\n\ntests/parse_test.rs\n3:     parse(\"x\");\n"
    );
    assert_eq!(result.metadata["matches"], 3);
    let result = yard
        .call(
            "code_grep",
            json!({"pattern": "parse", "glob": ["*.rs", "!tests/"], "path": "src", "context": 1}),
        )
        .await;
    assert!(
        result
            .content
            .contains("src/main.rs\n1: mod parser;\n2- fn main() {\n3:     parser"),
        "{}",
        result.content
    );
    assert!(!result.content.contains("tests"));
}

#[tokio::test]
async fn what_is_hidden_is_told_and_can_be_had() {
    let yard = tree();
    let result = yard.call("code_grep", json!({"pattern": "bundled_only"})).await;
    assert!(
        result.content.contains("0 shown; 2 in ignored or hidden files: ")
            && result.content.contains("dist/ 1")
            && result.content.contains(".hidden/ 1"),
        "{}",
        result.content
    );
    let result = yard
        .call("code_grep", json!({"pattern": "bundled_only", "ignored": true}))
        .await;
    assert!(result.content.starts_with("2 matches in 2 files"), "{}", result.content);
    let result = yard.call("code_grep", json!({"pattern": "PARSE_WORKS"})).await;
    assert!(
        result.content.contains("No matches. 1 with `ignore_case`."),
        "{}",
        result.content
    );
    let result = yard.call("code_files", json!({"query": "bundle"})).await;
    assert!(
        result.content.contains("1 among ignored or hidden files: dist/ 1"),
        "{}",
        result.content
    );
    // Git's own files are never part of the tree.
    yard.write(".git/parse", "bundled_only");
    let result = yard
        .call("code_grep", json!({"pattern": "bundled_only", "ignored": true}))
        .await;
    assert!(result.content.starts_with("2 matches in 2 files"), "{}", result.content);
}

#[tokio::test]
async fn a_pattern_that_is_no_regex_is_taken_as_text_and_that_is_told() {
    let yard = tree();
    let result = yard.call("code_grep", json!({"pattern": "parse(\"x\""})).await;
    assert!(
        result
            .content
            .starts_with("2 matches in 2 files.\nIt is no regular expression ("),
        "{}",
        result.content
    );
    let result = yard
        .call("code_grep", json!({"pattern": "lex(input)", "literal": true}))
        .await;
    assert!(result.content.contains("2:     lex(input)"), "{}", result.content);
    let result = yard
        .call("code_grep", json!({"pattern": "main\\(\\) \\{\\n    parser"}))
        .await;
    assert!(
        result.content.contains("2: fn main() {\n3:     parser"),
        "{}",
        result.content
    );
    let result = yard.call("code_grep", json!({"pattern": "x", "glob": ["{a"]})).await;
    assert_eq!(result.error.unwrap().code, "bad_glob");
    let result = yard.call("code_grep", json!({"pattern": "x", "path": "sorc"})).await;
    assert!(result.content.contains("holds src"), "{}", result.content);
}

#[tokio::test]
async fn files_that_are_no_plain_text_do_no_harm() {
    let yard = tree();
    yard.write("bin.dat", b"\0\x01needle\n");
    yard.write("latin.txt", b"caf\xe9 needle\n");
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("needle Ω\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    yard.write("wide.txt", utf16);
    yard.write(
        "long.js",
        format!("{}needle{}\n", "x".repeat(5_000_000), "y".repeat(5_000_000)),
    );
    let result = yard.call("code_grep", json!({"pattern": "needle"})).await;
    assert!(result.content.starts_with("3 matches in 3 files"), "{}", result.content);
    assert!(result.content.contains("wide.txt\n1: needle Ω"), "{}", result.content);
    assert!(result.content.contains("1: caf\u{fffd} needle"), "{}", result.content);
    let line = result.content.lines().find(|line| line.contains("xxx")).unwrap();
    assert!(line.contains("needle") && line.len() < 300, "{line}");
}

#[tokio::test]
async fn a_search_of_much_is_cut_and_goes_on_by_offset() {
    let yard = Yard::new();
    for n in 0..40 {
        let text: String = (0..20)
            .map(|line| format!("needle {n} {line} {}\n", "x".repeat(30)))
            .collect();
        yard.write(&format!("f{n:02}.txt"), text);
    }
    let result = yard.call("code_grep", json!({"pattern": "needle"})).await;
    assert!(
        result.content.starts_with("800 matches in 40 files; files 1 to "),
        "{}",
        result.content
    );
    assert!(result.content.contains("(12 more in this file)"), "{}", result.content);
    assert!(result.content.len() <= 8_300, "{}", result.content.len());
    let mut seen = result.metadata["shown_files"].as_u64().unwrap();
    while seen < 40 {
        let result = yard
            .call("code_grep", json!({"pattern": "needle", "offset": seen}))
            .await;
        assert!(
            result.content.contains(&format!("\nf{seen:02}.txt\n")),
            "{}",
            result.content
        );
        seen += result.metadata["shown_files"].as_u64().unwrap();
    }
    assert_eq!(seen, 40);
}

#[tokio::test]
async fn one_and_the_same_line_is_shown_a_few_times_only() {
    let yard = Yard::new();
    for n in 0..9 {
        yard.write(&format!("f{n}.c"), "#include <stdio.h>\n");
    }
    let result = yard.call("code_grep", json!({"pattern": "stdio"})).await;
    assert_eq!(
        result.content.matches("1: #include <stdio.h>").count(),
        3,
        "{}",
        result.content
    );
    assert!(result.content.contains("9 matches in 9 files."), "{}", result.content);
}

#[tokio::test]
async fn files_are_found_by_parts_of_their_names() {
    let yard = tree();
    let result = yard.call("code_files", json!({"query": "prsr"})).await;
    assert!(
        result.content.starts_with("2 of 4 files match:\nsrc/parser.rs\n"),
        "{}",
        result.content
    );
    let result = yard.call("code_files", json!({"glob": ["*.md"]})).await;
    assert_eq!(result.content, "1 of 1 files match:\ndocs/guide.md\n");
    let result = yard.call("code_files", json!({"query": "rs", "limit": 1})).await;
    assert!(result.content.contains("; the first 1 below"), "{}", result.content);
    let result = yard.call("code_files", json!({})).await;
    assert_eq!(result.error.unwrap().code, "bad_arguments");
}

#[tokio::test]
async fn names_are_found_where_they_are_declared() {
    let yard = tree();
    yard.write(
        "src/server.go",
        "package s\nfunc (s *Server) Parse() {}\ntype Server struct{}\n",
    );
    let result = yard.call("code_symbols", json!({"query": "parse"})).await;
    assert!(
        result
            .content
            .contains("of exactly that name below:\nsrc/parser.rs:1-3 pub fn parse(input: &str) -> Ast\n"),
        "{}",
        result.content
    );
    let result = yard
        .call("code_symbols", json!({"query": "Server.Parse", "kind": "function"}))
        .await;
    assert!(
        result
            .content
            .contains("src/server.go:2-2 func (s *Server) Parse() (in Server)"),
        "{}",
        result.content
    );
    let result = yard.call("code_symbols", json!({"query": "prase"})).await;
    assert!(
        result
            .content
            .starts_with("Nothing called \"prase\" is declared here. Similar:\n")
            && result.content.contains("src/parser.rs:1-3"),
        "{}",
        result.content
    );
}

#[tokio::test]
async fn an_outline_is_cut_from_the_inside() {
    let mut yard = tree();
    let result = yard.call("code_outline", json!({"path": "docs/guide.md"})).await;
    assert!(result.content.contains(": 5 lines, hash "), "{}", result.content);
    assert!(
        result.content.ends_with("\n1-5 # Guide\n  5 ## Then\n"),
        "{}",
        result.content
    );
    let source: String = (0..50)
        .map(|n| format!("struct S{n};\nimpl S{n} {{\n    fn long_name_of_a_function_{n}() {{}}\n}}\n"))
        .collect();
    yard.write("many.rs", source);
    yard.ctx.limits.output_chars = 4_000;
    let result = yard.call("code_outline", json!({"path": "many.rs"})).await;
    assert!(
        result.content.contains("; 50 inner declarations not shown"),
        "{}",
        result.content
    );
    assert!(result.content.contains("198-200 impl S49"), "{}", result.content);
    let result = yard.call("code_outline", json!({"path": "src"})).await;
    assert_eq!(result.error.unwrap().code, "not_a_file");
}

#[tokio::test]
async fn a_map_fits_whatever_the_tree() {
    let mut yard = tree();
    let result = yard.call("code_map", json!({})).await;
    let (head, body) = result.content.split_once('\n').unwrap();
    assert_eq!(
        head,
        format!(
            "{}: 4 files (Rust 3, .md 1); ignored and hidden ones left out.",
            yard.root.display()
        )
    );
    assert_eq!(
        body,
        "docs/ 1: guide.md\nsrc/ 2: main.rs, parser.rs\ntests/ 1: parse_test.rs\n"
    );
    for a in 0..30 {
        for b in 0..10 {
            yard.write(&format!("deep/only/d{a}/e{b}/f.txt"), "");
        }
    }
    yard.ctx.limits.output_chars = 4_000;
    let result = yard.call("code_map", json!({})).await;
    assert!(result.content.contains("deep/only/ 300"), "{}", result.content);
    assert!(
        result.content.contains("d29/ 10 (10 in directories below)"),
        "{}",
        result.content
    );
    let result = yard.call("code_map", json!({"depth": 9})).await;
    assert!(
        result.content.contains("more directories are not shown"),
        "{}",
        result.content
    );
    assert!(result.content.len() < 2_300);
}

#[tokio::test]
async fn a_confined_search_does_not_follow_links_out() {
    let mut yard = tree();
    std::fs::write(yard.home.path().join("secret"), "needle").unwrap();
    std::os::unix::fs::symlink(yard.home.path(), yard.root.join("out")).unwrap();
    yard.write("in.txt", "needle");
    yard.ctx.limits.confine_to_root = true;
    let result = yard.call("code_grep", json!({"pattern": "needle"})).await;
    assert!(result.content.starts_with("1 matches in 1 files"), "{}", result.content);
    let result = yard
        .call("code_grep", json!({"pattern": "needle", "path": "out"}))
        .await;
    assert_eq!(result.error.unwrap().code, "outside_root");
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let yard = tree();
    let cancel = yard.ctx.cancel.clone();
    for n in 0..300 {
        yard.write(&format!("d{n}/f.txt"), "needle");
    }
    let (result, ()) = tokio::join!(yard.call("code_grep", json!({"pattern": "needle"})), async {
        cancel.cancel();
    });
    assert!(result.cancelled && !result.ok);
}

#[tokio::test]
async fn all_tools_together_stay_small() {
    let yard = Yard::new();
    let size: usize = [Role::Direct, Role::Orchestrator]
        .iter()
        .flat_map(|role| yard.registry.definitions(*role, &[]))
        .map(|tool| (tool.name.clone(), serde_json::to_string(&tool).unwrap().len()))
        .collect::<std::collections::BTreeMap<_, _>>()
        .values()
        .sum();
    assert!(size <= 4_500, "{size}");
}
