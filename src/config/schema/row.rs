//! What one row of the table says.

use serde_json::Value;

use super::kind::Kind;

/// A value that a row can hold in a static table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// Any number.
    Num(f64),
    /// A text.
    Text(&'static str),
    /// A list of whole numbers.
    Ints(&'static [u64]),
    /// A list of texts.
    Texts(&'static [&'static str]),
}

impl Literal {
    /// The same as JSON.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Bool(value) => value.into(),
            Self::Int(value) => value.into(),
            Self::Num(value) => value.into(),
            Self::Text(value) => value.into(),
            Self::Ints(values) => values.into(),
            Self::Texts(values) => values.into(),
        }
    }
}

/// What holds where no layer sets a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fallback {
    /// Part of the built-in JSON, the lowest layer.
    BuiltIn(Literal),
    /// Applied where the value is used; no layer holds it.
    AtUse(Literal),
    /// Nothing holds; the words say what that means.
    Unset(&'static str),
}

impl Fallback {
    /// The value that whoever uses the key puts in where no layer has one.
    #[must_use]
    pub fn at_use(self) -> Option<Literal> {
        match self {
            Self::AtUse(literal) => Some(literal),
            Self::BuiltIn(_) | Self::Unset(_) => None,
        }
    }

    /// The value that holds, if any.
    #[must_use]
    pub fn literal(self) -> Option<Literal> {
        match self {
            Self::BuiltIn(literal) | Self::AtUse(literal) => Some(literal),
            Self::Unset(_) => None,
        }
    }
}

/// One key of the configuration: everything that validation, completion, help, the document and the JSON Schema say of
/// it comes from here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Its dotted path. A segment in angle brackets stands for a name the user chooses.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds where nothing is set.
    pub fallback: Fallback,
    /// Whether `/config set` may change it.
    pub overridable: bool,
    /// What it is for, in one or two sentences, units included.
    pub doc: &'static str,
    /// A value as JSON, for the document and for tests.
    pub example: &'static str,
}

/// A row with nothing set by default, which `/config set` may change.
pub(super) const fn row(path: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row {
        path,
        kind,
        fallback: Fallback::Unset("nothing"),
        overridable: true,
        doc,
        example: "",
    }
}

impl Row {
    pub(super) const fn built_in(mut self, value: Literal) -> Self {
        self.fallback = Fallback::BuiltIn(value);
        self
    }

    pub(super) const fn at_use(mut self, value: Literal) -> Self {
        self.fallback = Fallback::AtUse(value);
        self
    }

    /// Says in words what an absent key means.
    pub(super) const fn unset(mut self, words: &'static str) -> Self {
        self.fallback = Fallback::Unset(words);
        self
    }

    pub(super) const fn example(mut self, json: &'static str) -> Self {
        self.example = json;
        self
    }

    /// Only the user file may set it.
    pub(super) const fn file_only(mut self) -> Self {
        self.overridable = false;
        self
    }

    /// The segments of its path; names the user chooses are in angle brackets.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &'static str> + Clone + use<> {
        self.path.split('.')
    }

    /// Whether the path holds a name that the user chooses.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.path.contains('<')
    }
}

/// Whether a segment of a row's path stands for any name.
#[must_use]
pub fn is_wildcard(segment: &str) -> bool {
    segment.starts_with('<')
}
