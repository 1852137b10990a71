//! The immutable snapshot of environment variables that a turn and its child processes see.
//!
//! The process's own environment may change at any time under a host that calls `setenv`, so it is read in one place
//! and one moment ([`Environment::capture`]); workers only ever see the snapshot.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

/// A snapshot of variables. Clones share it; a change makes a new snapshot.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Arc<BTreeMap<OsString, OsString>>,
}

impl Environment {
    /// The process's variables as they are now. Call it on the thread that owns the environment: at start-up, or at
    /// the host's submit.
    #[must_use]
    pub fn capture() -> Self {
        std::env::vars_os().collect()
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// The value of `name` where it is text and not empty.
    #[must_use]
    pub fn text(&self, name: impl AsRef<OsStr>) -> Option<&str> {
        self.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// All variables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// This snapshot with changes applied in order: a value sets the variable, `None` removes it.
    #[must_use]
    pub fn with_changes<N, V>(&self, changes: impl IntoIterator<Item = (N, Option<V>)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let mut changed = self.clone();
        let variables = Arc::make_mut(&mut changed.variables);
        for (name, value) in changes {
            match value {
                Some(value) => variables.insert(name.into(), value.into()),
                None => variables.remove(&name.into()),
            };
        }
        changed
    }

    /// This snapshot without the variables in `names`. A name that ends in `*` stands for all that begin so.
    #[must_use]
    pub fn scrubbed<S: AsRef<str>>(&self, names: &[S]) -> Self {
        if names.is_empty() {
            return self.clone();
        }
        let matches = |variable: &OsStr| {
            names.iter().any(|name| match name.as_ref().strip_suffix('*') {
                Some(prefix) => variable.as_encoded_bytes().starts_with(prefix.as_bytes()),
                None => variable == name.as_ref(),
            })
        };
        self.iter()
            .filter(|(name, _)| !matches(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self {
            variables: Arc::new(
                variables
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
            ),
        }
    }
}

impl fmt::Debug for Environment {
    /// The names only: values may be secrets, and debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Environment")
            .field(&self.variables.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_make_a_new_snapshot_and_leave_the_old_one() {
        let old: Environment = [("A", "1"), ("B", "2")].into_iter().collect();
        let new = old.with_changes([("A", None), ("C", Some("3"))]);
        assert_eq!(old.get("A"), Some(OsStr::new("1")));
        assert_eq!(
            (new.get("A"), new.text("B"), new.text("C")),
            (None, Some("2"), Some("3"))
        );
    }

    #[test]
    fn scrubbing_takes_names_and_prefixes() {
        let full: Environment = [("KEY", "s"), ("AWS_A", "s"), ("AWS_B", "s"), ("PATH", "/bin")]
            .into_iter()
            .collect();
        let left = full.scrubbed(&["KEY", "AWS_*"]);
        assert_eq!(left.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["PATH"]);
        assert_eq!(full.scrubbed::<&str>(&[]), full);
    }

    #[test]
    fn values_do_not_reach_debug_output() {
        let env: Environment = [("TOKEN", "hunter2")].into_iter().collect();
        let text = format!("{env:?}");
        assert!(text.contains("TOKEN") && !text.contains("hunter2"), "{text}");
    }
}
