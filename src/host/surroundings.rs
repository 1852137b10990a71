//! Where the user is and with which variables: what `cd` and `export` change.
//!
//! The process's own directory and environment are never changed; commands, the mode and its sessions are given these.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The user's directory and environment. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Surroundings(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    cwd: PathBuf,
    previous: Option<PathBuf>,
    env: BTreeMap<OsString, OsString>,
}

impl Surroundings {
    pub(super) fn new(cwd: PathBuf, env: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let env = env.into_iter().collect();
        Self(Rc::new(RefCell::new(Inner {
            cwd,
            previous: None,
            env,
        })))
    }

    pub(super) fn cwd(&self) -> PathBuf {
        self.0.borrow().cwd.clone()
    }

    /// The directory before the last change.
    pub(super) fn previous(&self) -> Option<PathBuf> {
        self.0.borrow().previous.clone()
    }

    pub(super) fn env(&self) -> BTreeMap<OsString, OsString> {
        self.0.borrow().env.clone()
    }

    pub(super) fn var(&self, name: impl AsRef<OsStr>) -> Option<OsString> {
        self.0.borrow().env.get(name.as_ref()).cloned()
    }

    /// A variable's value where it is one and not empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = self.var(name)?.into_string().ok()?;
        (!value.is_empty()).then_some(value)
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.text("HOME").map(PathBuf::from)
    }

    pub(super) fn set_var(&self, name: &str, value: Option<&str>) {
        let env = &mut self.0.borrow_mut().env;
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }

    pub(super) fn set_cwd(&self, cwd: PathBuf) {
        {
            let mut inner = self.0.borrow_mut();
            let before = std::mem::replace(&mut inner.cwd, cwd.clone());
            inner.previous = Some(before);
        }
        self.set_var("PWD", Some(&cwd.to_string_lossy()));
    }

    /// The directory for a prompt: the home directory is `~`.
    pub(super) fn short_cwd(&self) -> String {
        let cwd = self.cwd();
        match self.home().as_deref().and_then(|home| cwd.strip_prefix(home).ok()) {
            Some(below) if below == Path::new("") => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => cwd.display().to_string(),
        }
    }
}
