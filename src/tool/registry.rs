//! The tools by name, and who may use which.
//!
//! The gate is double: the role matrix must allow the tool and the tool's own lists must too. What a role is offered
//! and what it may call are the same question.

use std::sync::Arc;

use super::{Tool, builtin};
use crate::message::ToolDefinition;
use crate::role::{Role, ToolAccess, check_tool};

/// A tool that cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// There is one of that name.
    #[error("there already is a tool called `{0}`")]
    Taken(String),
    /// A name servers would refuse.
    #[error("`{0}` is no name for a tool: letters, digits, `_` and `-`, at most 64")]
    Name(String),
}

/// A call that may not be made.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is no such tool.
    #[error("There is no tool `{name}`.{} Your tools: {available}.", nearest.as_ref().map(|n| format!(" Did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// One that is written much like it.
        nearest: Option<String>,
        /// What the role has.
        available: String,
    },
    /// The role may not use it.
    #[error("The role `{role}` may not use `{name}`. Your tools: {available}.")]
    Denied {
        /// The name.
        name: String,
        /// The role.
        role: Role,
        /// What the role has.
        available: String,
    },
}

/// The tools of a session.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

impl Registry {
    /// The built-in tools.
    #[must_use]
    pub fn builtin() -> Self {
        Self { tools: builtin() }
    }

    /// Adds a tool.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let name = tool.spec().name.clone();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(RegisterError::Name(name.into_owned()));
        }
        if self.get(&name).is_some() {
            return Err(RegisterError::Taken(name.into_owned()));
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The tool called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// All tools, in the order they are offered.
    pub fn list(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// The tool called `name`, if `role` may use it.
    pub fn resolve(&self, role: Role, name: &str) -> Result<Arc<dyn Tool>, ResolveError> {
        match self.get(name) {
            Some(tool) if is_allowed(role, tool.as_ref()) => Ok(Arc::clone(tool)),
            Some(_) => Err(ResolveError::Denied {
                name: name.to_owned(),
                role,
                available: self.names(role).join(", "),
            }),
            None => {
                let names = self.names(role);
                Err(ResolveError::Unknown {
                    name: name.to_owned(),
                    nearest: nearest(name, names.iter().copied()).map(str::to_owned),
                    available: names.join(", "),
                })
            }
        }
    }

    /// What `role` is offered, without the tools named in `disabled`.
    #[must_use]
    pub fn definitions(&self, role: Role, disabled: &[String]) -> Vec<ToolDefinition> {
        self.tools
            .iter()
            .filter(|tool| is_allowed(role, tool.as_ref()))
            .map(|tool| tool.spec())
            .filter(|spec| !disabled.iter().any(|name| *name == spec.name))
            .map(super::ToolSpec::definition)
            .collect()
    }

    fn names(&self, role: Role) -> Vec<&str> {
        self.tools
            .iter()
            .filter(|tool| is_allowed(role, tool.as_ref()))
            .map(|tool| tool.spec().name.as_ref())
            .collect()
    }
}

fn is_allowed(role: Role, tool: &dyn Tool) -> bool {
    let spec = tool.spec();
    check_tool(role, &spec.name) == ToolAccess::Allow && spec.allows(role)
}

/// The one of `names` that is written most like `name`, if any is at all alike.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    names
        .into_iter()
        .map(|candidate| (likeness(&name, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// From 0 to 1: few slips of the pen, or one within the other.
fn likeness(a: &str, b: &str) -> f64 {
    let contained = a.len().min(b.len()) >= 3 && (a.contains(b) || b.contains(a));
    strsim::normalized_damerau_levenshtein(a, b).max(if contained { 0.6 } else { 0.0 })
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.tools.iter().map(|tool| &tool.spec().name))
            .finish()
    }
}
