//! What a file declares: its names with what they are, where they are, and what they belong to.

use std::collections::HashMap;
use std::path::Path;

use tree_sitter::{Node, Parser};

use super::heuristic;
use super::languages::Language;

/// Longest file that is parsed, in bytes.
pub(in crate::tool) const MAX_PARSED: usize = 2 << 20;
/// Bytes of a declaration shown.
const SIGNATURE_BYTES: usize = 140;
/// Lines a declaration's head is gathered from.
const SIGNATURE_LINES: usize = 6;

/// Something that is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tool) struct Symbol {
    pub(in crate::tool) name: String,
    /// What it belongs to: a class, a module, a receiver.
    pub(in crate::tool) owner: String,
    pub(in crate::tool) kind: &'static str,
    /// First and last line, from 1.
    pub(in crate::tool) line: usize,
    pub(in crate::tool) end_line: usize,
    /// How many declarations it stands within.
    pub(in crate::tool) depth: usize,
    /// The head of the declaration as it is written.
    pub(in crate::tool) signature: String,
}

/// Parsers that were made, one a language.
#[derive(Default)]
pub(in crate::tool) struct Parsers {
    made: HashMap<&'static str, Parser>,
}

/// Whether anything is known of how to find declarations in such a file.
pub(in crate::tool) fn is_known(path: &Path) -> bool {
    Language::of(path).is_some() || heuristic::is_known(path)
}

impl Parsers {
    /// What the file at `path` with these `bytes` declares, in order.
    pub(in crate::tool) fn symbols(&mut self, path: &Path, bytes: &[u8]) -> Vec<Symbol> {
        let parsed = Language::of(path)
            .filter(|_| bytes.len() <= MAX_PARSED)
            .and_then(|language| self.parse(language, bytes));
        match parsed {
            Some(symbols) => symbols,
            None => heuristic::symbols(path, bytes),
        }
    }

    fn parse(&mut self, language: &'static Language, bytes: &[u8]) -> Option<Vec<Symbol>> {
        let parser = self.made.entry(language.name).or_default();
        if parser.language().is_none() {
            parser.set_language(&language.grammar()).ok()?;
        }
        let tree = parser.parse(bytes, None)?;
        Some(collect(language, tree.root_node(), bytes))
    }
}

/// Goes through the tree without recursion: trees of made code are as deep as they like.
fn collect(language: &'static Language, root: Node<'_>, bytes: &[u8]) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    // The declarations we are in, each with its depth in the tree.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut cursor = root.walk();
    // The cursor counts its depth anew each time it is asked.
    let mut level = 0;
    loop {
        let node = cursor.node();
        while open.last().is_some_and(|(depth, _)| *depth >= level) {
            open.pop();
        }
        if let Some(rule) = language.rule_of(node)
            && let Some(name) = (rule.name)(node)
        {
            let (owner, name) = split_owner(text_of(name, bytes));
            let owner = if owner.is_empty() {
                owner_of(node, &open, &symbols, bytes)
            } else {
                owner
            };
            if !name.is_empty() {
                open.push((level, symbols.len()));
                symbols.push(Symbol {
                    name,
                    owner,
                    kind: rule.kind,
                    line: node.start_position().row + 1,
                    end_line: last_line(node),
                    depth: open.len() - 1,
                    signature: signature(node, bytes),
                });
            }
        }
        if cursor.goto_first_child() {
            level += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return symbols;
            }
            level -= 1;
        }
    }
}

/// The last line of a node, from 1. One that takes its line end along does not reach into the next line.
fn last_line(node: Node<'_>) -> usize {
    let (start, end) = (node.start_position(), node.end_position());
    if end.column == 0 && end.row > start.row {
        end.row
    } else {
        end.row + 1
    }
}

fn text_of(node: Node<'_>, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[node.byte_range()]);
    let text = text.trim_matches(['"', '\'']);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `Type::name`, `module.name` and `self:name` as owner and name. A type with parameters stays whole.
fn split_owner(text: String) -> (String, String) {
    let plain = text.split(['<', '(', '[']).next().unwrap_or("");
    match plain.rfind(['.', ':']) {
        Some(at) if plain.len() == text.len() && at + 1 < text.len() => {
            let owner = text[..at].trim_end_matches([':', '.']).to_owned();
            (owner, text[at + 1..].to_owned())
        }
        _ => (String::new(), text),
    }
}

/// The declaration around `node`, or the receiver of a Go method.
fn owner_of(node: Node<'_>, open: &[(usize, usize)], symbols: &[Symbol], bytes: &[u8]) -> String {
    if let Some(receiver) = node.child_by_field_name("receiver") {
        let text = text_of(receiver, bytes);
        let last = text
            .trim_matches(['(', ')'])
            .split_whitespace()
            .next_back()
            .unwrap_or("");
        return last.trim_start_matches('*').split('[').next().unwrap_or("").to_owned();
    }
    open.last()
        .map(|(_, index)| symbols[*index].name.clone())
        .unwrap_or_default()
}

/// The head of a declaration: up to its body, in one line.
fn signature(node: Node<'_>, bytes: &[u8]) -> String {
    let start = node.start_byte();
    let end = ["body", "value", "right"]
        .iter()
        .find_map(|field| node.child_by_field_name(field))
        .filter(|part| part.start_byte() > start)
        .map_or(node.end_byte(), |part| part.start_byte());
    head_of(&String::from_utf8_lossy(&bytes[start..end]))
}

/// The first lines of `text` in one, without what opens a body.
pub(super) fn head_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(SIGNATURE_LINES).collect();
    let joined = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let joined = joined.trim_end_matches(['{', '=', ' ', ':', '>', ';']);
    let cut = crate::tool::text::cut(joined, SIGNATURE_BYTES);
    if cut.len() < joined.len() {
        format!("{cut}…")
    } else {
        cut.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind owner.name first-last` of each, indented by depth.
    fn outline(name: &str, source: &str) -> String {
        let symbols = Parsers::default().symbols(Path::new(name), source.as_bytes());
        let lines: Vec<String> = symbols
            .iter()
            .map(|s| {
                let dot = if s.owner.is_empty() { "" } else { "." };
                format!(
                    "{}{} {}{dot}{} {}-{}",
                    "  ".repeat(s.depth),
                    s.kind,
                    s.owner,
                    s.name,
                    s.line,
                    s.end_line
                )
            })
            .collect();
        lines.join("\n")
    }

    #[test]
    fn each_language_tells_its_declarations() {
        let cases = [
            (
                "a.rs",
                "mod m {\n  pub struct S<T>(T);\n  impl<T> S<T> {\n    fn f(&self) {}\n  }\n}\nconst N: u8 = 1;\ntrait T { fn g(); }\nmacro_rules! mac { () => {} }\n",
                "mod m 1-6\n  struct m.S 2-2\n  impl m.S<T> 3-5\n    fn S<T>.f 4-4\nconst N 7-7\ntrait T 8-8\n  fn T.g 8-8\nmacro mac 9-9",
            ),
            (
                "a.lua",
                "local M = {}\nfunction M.a(x)\nend\nM.b = function() end\nlocal function c() end\nreturn { d = function() end, e = 1 }\n",
                "function M.a 2-3\nfunction M.b 4-4\nfunction c 5-5\nfunction d 6-6",
            ),
            (
                "a.c",
                "#ifndef G\n#define G\n#define MAX 10\nstruct point { int x; };\ntypedef struct { int y; } other_t;\nint add(int a, int b);\nstatic char *name(void)\n{\n  return 0;\n}\nint (*callback)(void);\n#endif\n",
                "macro MAX 3-3\nstruct point 4-4\ntype other_t 5-5\nprototype add 6-6\nfunction name 7-10",
            ),
            (
                "a.cpp",
                "namespace n {\nclass C : public B {\n public:\n  int get() const;\n  void set(int x) { y = x; }\n};\n}\nint n::C::get() const { return y; }\ntemplate <typename T> T twice(T x) { return x; }\nenum class E { A };\n",
                "namespace n 1-7\n  class n.C 2-6\n    method C.get 4-4\n    function C.set 5-5\nfunction n::C.get 8-8\nfunction twice 9-9\nenum E 10-10",
            ),
            (
                "a.py",
                "LIMIT = 3\nclass A(B):\n    @property\n    def f(self):\n        def inner(): pass\n        x = 1\nasync def g(): pass\n",
                "variable LIMIT 1-1\nclass A 2-6\n  def A.f 4-6\n    def f.inner 5-5\ndef g 7-7",
            ),
            (
                "a.js",
                "export function f() {}\nconst g = (x) => x;\nclass K { m() {} h = () => 1; }\nexports.z = function () {};\nfunction* gen() {}\nconst o = { p: function () {}, q() {} };\n",
                "function f 1-1\nconst g 2-2\nclass K 3-3\n  method K.m 3-3\n  method K.h 3-3\nfunction exports.z 4-4\nfunction gen 5-5\nconst o 6-6\n  function o.p 6-6\n  method o.q 6-6",
            ),
            (
                "a.ts",
                "interface I { m(): void }\ntype T = string;\nenum E { A }\nnamespace N { export const x = 1 }\nabstract class C { abstract f(): void; private g = () => 1 }\n",
                "interface I 1-1\n  method I.m 1-1\ntype T 2-2\nenum E 3-3\nnamespace N 4-4\n  const N.x 4-4\nclass C 5-5\n  method C.f 5-5\n  method C.g 5-5",
            ),
            ("a.tsx", "export const App = () => <div>{x}</div>;\n", "const App 1-1"),
            (
                "a.go",
                "package p\nconst Max = 1\nvar (\n\ta = 1\n)\ntype S struct{}\ntype R interface {\n\tRead() int\n}\nfunc (s *S) Run() {\n\tvar local = 1\n\t_ = local\n}\nfunc main() {}\n",
                "const Max 2-2\nvar a 4-4\ntype S 6-6\ntype R 7-9\n  method R.Read 8-8\nmethod S.Run 10-13\nfunc main 14-14",
            ),
            (
                "A.java",
                "class A {\n  static final int N = 1;\n  A() {}\n  void f() {}\n  interface I { int g(); }\n}\nrecord P(int x) {}\n",
                "class A 1-6\n  field A.N 2-2\n  constructor A.A 3-3\n  method A.f 4-4\n  interface A.I 5-5\n    method I.g 5-5\nrecord P 7-7",
            ),
            (
                "a.rb",
                "module M\n  class C < B\n    LIMIT = 1\n    def f; end\n    def self.g; end\n  end\nend\n",
                "module M 1-7\n  class M.C 2-6\n    const C.LIMIT 3-3\n    def C.f 4-4\n    def C.g 5-5",
            ),
            (
                "a.sh",
                "f() {\n  echo\n}\nfunction g { :; }\n",
                "function f 1-3\nfunction g 4-4",
            ),
        ];
        for (name, source, expected) in cases {
            assert_eq!(outline(name, source), expected, "{name}");
        }
    }

    #[test]
    fn broken_and_binary_sources_tell_what_they_can() {
        assert_eq!(outline("a.rs", "fn good() {}\nfn bad( {{{\n"), "fn good 1-1");
        let symbols = Parsers::default().symbols(Path::new("a.rs"), b"fn f() {}\n\xff\xfe\0");
        assert_eq!(symbols[0].name, "f");
        let deep = format!("fn f() {{ {}1{} }}", "(".repeat(20_000), ")".repeat(20_000));
        assert_eq!(outline("a.rs", &deep), "fn f 1-1");
    }

    #[test]
    fn a_signature_is_the_head_in_one_line() {
        let source = "pub fn long(\n    a: u32,\n    b: u32,\n) -> u32 {\n    a + b\n}\nconst X: u8 = 1;\n";
        let symbols = Parsers::default().symbols(Path::new("a.rs"), source.as_bytes());
        assert_eq!(symbols[0].signature, "pub fn long( a: u32, b: u32, ) -> u32");
        assert_eq!(symbols[1].signature, "const X: u8");
    }
}
