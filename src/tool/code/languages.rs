//! The grammars, and which of their nodes declare something.
//!
//! A language is one row of [`LANGUAGES`]; a declaration is one rule: the node, what it is called in an outline, and
//! where its name stands.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::{Language as Grammar, Node};

/// Where the name of a declaration stands, if the node is one.
type NameOf = for<'t> fn(Node<'t>) -> Option<Node<'t>>;

/// A node that declares something.
pub(in crate::tool) struct Rule {
    node: &'static str,
    /// What it is called in an outline.
    pub(in crate::tool) kind: &'static str,
    pub(in crate::tool) name: NameOf,
}

/// One language.
pub(in crate::tool) struct Language {
    pub(in crate::tool) name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Grammar,
    rules: &'static [Rule],
    by_kind: OnceLock<HashMap<u16, &'static Rule>>,
}

const fn rule(node: &'static str, kind: &'static str, name: NameOf) -> Rule {
    Rule { node, kind, name }
}

const fn language(
    name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Grammar,
    rules: &'static [Rule],
) -> Language {
    Language {
        name,
        extensions,
        grammar,
        rules,
        by_kind: OnceLock::new(),
    }
}

impl Language {
    /// The language a file is written in, by its name.
    pub(in crate::tool) fn of(path: &Path) -> Option<&'static Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        LANGUAGES
            .iter()
            .find(|language| language.extensions.contains(&extension.as_str()))
    }

    pub(in crate::tool) fn grammar(&self) -> Grammar {
        (self.grammar)()
    }

    /// The rule of a node, if it has one.
    pub(in crate::tool) fn rule_of(&'static self, node: Node<'_>) -> Option<&'static Rule> {
        let rules = self.by_kind.get_or_init(|| {
            let grammar = self.grammar();
            self.rules
                .iter()
                .map(|rule| (grammar.id_for_node_kind(rule.node, true), rule))
                .collect()
        });
        rules.get(&node.kind_id()).copied()
    }
}

/// All of them.
pub(in crate::tool) static LANGUAGES: [Language; 12] = [
    language("Rust", &["rs"], || tree_sitter_rust::LANGUAGE.into(), &RUST),
    language("Lua", &["lua"], || tree_sitter_lua::LANGUAGE.into(), &LUA),
    language("C", &["c"], || tree_sitter_c::LANGUAGE.into(), &C),
    language(
        "C++",
        &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h", "ipp", "inl"],
        || tree_sitter_cpp::LANGUAGE.into(),
        &CPP,
    ),
    language(
        "Python",
        &["py", "pyi", "pyw"],
        || tree_sitter_python::LANGUAGE.into(),
        &PYTHON,
    ),
    language(
        "JavaScript",
        &["js", "mjs", "cjs", "jsx"],
        || tree_sitter_javascript::LANGUAGE.into(),
        &SCRIPT,
    ),
    language(
        "TypeScript",
        &["ts", "mts", "cts"],
        || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        &SCRIPT,
    ),
    language("TSX", &["tsx"], || tree_sitter_typescript::LANGUAGE_TSX.into(), &SCRIPT),
    language("Go", &["go"], || tree_sitter_go::LANGUAGE.into(), &GO),
    language("Java", &["java"], || tree_sitter_java::LANGUAGE.into(), &JAVA),
    language(
        "Ruby",
        &["rb", "rake", "gemspec"],
        || tree_sitter_ruby::LANGUAGE.into(),
        &RUBY,
    ),
    language(
        "Bash",
        &["sh", "bash", "zsh"],
        || tree_sitter_bash::LANGUAGE.into(),
        &BASH,
    ),
];

static RUST: [Rule; 13] = [
    rule("function_item", "fn", named),
    rule("function_signature_item", "fn", named),
    rule("struct_item", "struct", named),
    rule("enum_item", "enum", named),
    rule("union_item", "union", named),
    rule("trait_item", "trait", named),
    rule("impl_item", "impl", |node| node.child_by_field_name("type")),
    rule("mod_item", "mod", with_body),
    rule("type_item", "type", named),
    rule("associated_type", "type", named),
    rule("const_item", "const", named),
    rule("static_item", "static", named),
    rule("macro_definition", "macro", named),
];

static LUA: [Rule; 3] = [
    rule("function_declaration", "function", named),
    rule("assignment_statement", "function", |node| {
        let (names, values) = (node.named_child(0)?, node.named_child(1)?);
        is_a(values.named_child(0)?, &["function_definition"]).then(|| names.named_child(0))?
    }),
    rule("field", "function", |node| {
        let value = node.child_by_field_name("value")?;
        is_a(value, &["function_definition"]).then(|| named(node))?
    }),
];

static C: [Rule; 8] = [
    rule("function_definition", "function", declared),
    rule("declaration", "prototype", prototype),
    rule("struct_specifier", "struct", with_body),
    rule("union_specifier", "union", with_body),
    rule("enum_specifier", "enum", with_body),
    rule("type_definition", "type", declared),
    rule("preproc_def", "macro", macro_with_value),
    rule("preproc_function_def", "macro", named),
];

static CPP: [Rule; 13] = [
    rule("function_definition", "function", declared),
    rule("declaration", "prototype", prototype),
    rule("field_declaration", "method", prototype),
    rule("class_specifier", "class", with_body),
    rule("struct_specifier", "struct", with_body),
    rule("union_specifier", "union", with_body),
    rule("enum_specifier", "enum", with_body),
    rule("namespace_definition", "namespace", named),
    rule("alias_declaration", "type", named),
    rule("concept_definition", "concept", named),
    rule("type_definition", "type", declared),
    rule("preproc_def", "macro", macro_with_value),
    rule("preproc_function_def", "macro", named),
];

static PYTHON: [Rule; 4] = [
    rule("class_definition", "class", named),
    rule("function_definition", "def", named),
    rule("type_alias_statement", "type", |node| node.child_by_field_name("left")),
    rule("assignment", "variable", |node| {
        let left = node.child_by_field_name("left")?;
        let top = node.parent()?.parent()?;
        (is_a(left, &["identifier"]) && is_a(top, &["module"])).then_some(left)
    }),
];

static SCRIPT: [Rule; 18] = [
    rule("function_declaration", "function", named),
    rule("generator_function_declaration", "function", named),
    rule("function_signature", "function", named),
    rule("class_declaration", "class", named),
    rule("abstract_class_declaration", "class", named),
    rule("method_definition", "method", named),
    rule("method_signature", "method", named),
    rule("abstract_method_signature", "method", named),
    rule("interface_declaration", "interface", named),
    rule("type_alias_declaration", "type", named),
    rule("enum_declaration", "enum", named),
    rule("internal_module", "namespace", named),
    rule("module", "module", named),
    rule("field_definition", "method", |node| {
        is_function(node.child_by_field_name("value")?).then(|| node.child_by_field_name("property"))?
    }),
    rule("public_field_definition", "method", |node| {
        is_function(node.child_by_field_name("value")?).then(|| named(node))?
    }),
    rule("variable_declarator", "const", |node| {
        let name = named(node).filter(|name| is_a(*name, &["identifier"]))?;
        let top = node.parent()?.parent()?;
        let function = node.child_by_field_name("value").is_some_and(is_function);
        (function || is_a(top, &["program", "export_statement"])).then_some(name)
    }),
    rule("assignment_expression", "function", |node| {
        let left = node.child_by_field_name("left")?;
        let function = is_function(node.child_by_field_name("right")?);
        (function && is_a(left, &["member_expression"])).then_some(left)
    }),
    rule("pair", "function", |node| {
        is_function(node.child_by_field_name("value")?).then(|| node.child_by_field_name("key"))?
    }),
];

static GO: [Rule; 7] = [
    rule("function_declaration", "func", named),
    rule("method_declaration", "method", named),
    rule("method_elem", "method", named),
    rule("type_spec", "type", named),
    rule("type_alias", "type", named),
    rule("const_spec", "const", at_top),
    rule("var_spec", "var", at_top),
];

static JAVA: [Rule; 10] = [
    rule("class_declaration", "class", named),
    rule("interface_declaration", "interface", named),
    rule("enum_declaration", "enum", named),
    rule("record_declaration", "record", named),
    rule("annotation_type_declaration", "annotation", named),
    rule("method_declaration", "method", named),
    rule("constructor_declaration", "constructor", named),
    rule("compact_constructor_declaration", "constructor", named),
    rule("constant_declaration", "const", |node| {
        named(node.child_by_field_name("declarator")?)
    }),
    rule("field_declaration", "field", |node| {
        named(node.child_by_field_name("declarator")?)
    }),
];

static RUBY: [Rule; 5] = [
    rule("class", "class", named),
    rule("module", "module", named),
    rule("method", "def", named),
    rule("singleton_method", "def", named),
    rule("assignment", "const", |node| {
        let left = node.child_by_field_name("left")?;
        is_a(left, &["constant"]).then_some(left)
    }),
];

static BASH: [Rule; 1] = [rule("function_definition", "function", named)];

fn named(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("name")
}

fn is_a(node: Node<'_>, kinds: &[&str]) -> bool {
    kinds.contains(&node.kind())
}

fn is_function(node: Node<'_>) -> bool {
    is_a(
        node,
        &["arrow_function", "function_expression", "generator_function", "class"],
    )
}

/// The name of what is defined here, not only mentioned.
fn with_body(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("body")?;
    named(node)
}

/// A macro that stands for something: include guards and switches do not.
fn macro_with_value(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("value")?;
    named(node)
}

/// The name within the declarators of C, inside pointers, arrays and parameter lists.
fn declared(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node;
    // Each step goes one level down.
    while let Some(inner) = at.child_by_field_name("declarator").or_else(|| inner_declarator(at)) {
        at = inner;
    }
    (at != node).then_some(at)
}

/// Where a declarator holds another without naming it: `(*f)`, `&f`.
fn inner_declarator(node: Node<'_>) -> Option<Node<'_>> {
    is_a(
        node,
        &[
            "parenthesized_declarator",
            "reference_declarator",
            "attributed_declarator",
        ],
    )
    .then(|| node.named_child(0))?
}

/// The name of a function that is declared without a body.
fn prototype(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.child_by_field_name("declarator")?;
    while is_a(at, &["pointer_declarator", "reference_declarator"]) {
        at = at.child_by_field_name("declarator").or_else(|| inner_declarator(at))?;
    }
    let inner = at
        .child_by_field_name("declarator")
        .filter(|_| is_a(at, &["function_declarator"]))?;
    // `int (*pointer)(void)` is a variable.
    (!is_a(inner, &["parenthesized_declarator"])).then_some(inner)
}

/// The name of a Go declaration outside of functions.
fn at_top(node: Node<'_>) -> Option<Node<'_>> {
    let mut parent = node.parent()?;
    while is_a(parent, &["const_declaration", "var_declaration", "var_spec_list"]) {
        parent = parent.parent()?;
    }
    is_a(parent, &["source_file"]).then(|| named(node))?
}
