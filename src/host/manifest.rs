//! The package's description, `lilpack.json`: what it holds and which modes it brings.
//!
//! One file serves both generations of the host: the current one reads it from an installed package, the first one
//! reads a file of its own for each mode, which is a mode's description from here word for word.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// Our own `lilpack.json`.
const OURS: &str = include_str!("../../lilpack.json");
/// The convention of the manifest this reads.
const CONVENTION: u32 = 1;
/// Keys the first generation keeps for its own modes.
const RESERVED: [&str; 3] = ["F1", "F2", "F3"];

/// What is wrong with a manifest.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It is no JSON of this form.
    #[error("lilpack.json cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It contradicts itself or the convention.
    #[error("lilpack.json is not in order: {0}")]
    Invalid(String),
}

/// A package's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The convention it follows.
    pub version: u32,
    /// The package's name.
    pub name: String,
    /// The package's own version, in semantic versioning.
    pub pkg_version: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// Its licence, as an SPDX expression.
    pub license: String,
    /// The dotted names of its Lua modules.
    pub modules: Vec<String>,
    /// Packages it needs.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// Shell commands it brings.
    #[serde(default)]
    pub builtins: Vec<Value>,
    /// Its modes by name.
    #[serde(default)]
    pub modes: BTreeMap<String, ModeDescription>,
    /// Programs it brings.
    #[serde(default)]
    pub cli: Vec<Value>,
    /// What it adds to themes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeDescription>,
    /// Added when the package is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Added when the package is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pubkey: Option<String>,
}

/// A mode: which modules make it, and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeDescription {
    /// The module with the constructor.
    pub path: String,
    /// The module of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The modules of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionDescription>,
    /// Whether the host keeps a history of its lines.
    #[serde(default)]
    pub history: bool,
    /// The key that switches to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortcut: Option<String>,
}

/// The modules of a completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionDescription {
    /// The module that searches.
    pub path: String,
    /// The modules it asks; each is known to it by its last part.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// What a package adds to themes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThemeDescription {
    /// By section, the module that builds it from a palette.
    pub sections: BTreeMap<String, String>,
}

impl Manifest {
    /// Our own.
    ///
    /// # Errors
    /// Where it is not in order.
    pub fn ours() -> Result<Self, ManifestError> {
        Self::parse(OURS)
    }

    /// Reads a manifest and checks it.
    ///
    /// # Errors
    /// Where it is unreadable, of another convention, or names what it does not hold.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_str(text)?;
        manifest.check().map_err(ManifestError::Invalid)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != CONVENTION {
            return Err(format!(
                "it follows convention {}, this program knows {CONVENTION}",
                self.version
            ));
        }
        if !is_semver(&self.pkg_version) {
            return Err(format!("pkg_version {:?} is no semantic version", self.pkg_version));
        }
        if let Some(module) = self.modules.iter().find(|module| !is_module_name(module)) {
            return Err(format!("{module:?} is no module name"));
        }
        let mut named = Vec::new();
        for (name, mode) in &self.modes {
            named.extend([(name, &mode.path)]);
            named.extend(mode.prompt.iter().map(|module| (name, module)));
            if let Some(completion) = &mode.completion {
                named.push((name, &completion.path));
                named.extend(completion.sources.iter().map(|module| (name, module)));
            }
            if let Some(key) = &mode.shortcut
                && (!is_function_key(key) || RESERVED.contains(&key.as_str()))
            {
                return Err(format!("the mode {name} wants the key {key}; free ones are F4 to F12"));
            }
        }
        if let Some(theme) = &self.theme {
            named.extend(&theme.sections);
        }
        match named.iter().find(|(_, module)| !self.modules.contains(module)) {
            Some((owner, module)) => Err(format!("{owner} needs {module}, which is not among the modules")),
            None => Ok(()),
        }
    }

    /// What stands in the first generation's file for a mode (`~/.config/lilush/modes/<name>.json`).
    #[must_use]
    pub fn mode_file(&self, name: &str) -> Option<String> {
        let text = serde_json::to_string_pretty(self.modes.get(name)?).ok()?;
        Some(text + "\n")
    }

    /// What stands in the current generation's list of modes (`~/.config/lilush/modes.json`): the mode of each key.
    #[must_use]
    pub fn mode_keys(&self) -> BTreeMap<String, String> {
        let with_key = |(name, mode): (&String, &ModeDescription)| Some((mode.shortcut.clone()?, name.clone()));
        self.modes.iter().filter_map(with_key).collect()
    }
}

fn is_module_name(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut chars = part.chars();
        chars
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn is_semver(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

fn is_function_key(key: &str) -> bool {
    key.strip_prefix('F')
        .and_then(|number| number.parse().ok())
        .is_some_and(|number: u8| (1..=12).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ours_is_in_order_and_of_the_version_of_the_program() {
        let manifest = Manifest::ours().unwrap();
        assert_eq!(manifest.pkg_version, env!("CARGO_PKG_VERSION"));
        assert_eq!(manifest.license, env!("CARGO_PKG_LICENSE"));
        assert_eq!(manifest.name, "agent_smith");
        assert_eq!(
            manifest.mode_keys(),
            BTreeMap::from([("F4".into(), "agent_smith".into())])
        );
    }

    #[test]
    fn a_mode_file_of_the_first_generation_is_the_modes_description() {
        let file = Manifest::ours().unwrap().mode_file("agent_smith").unwrap();
        let value: Value = serde_json::from_str(&file).unwrap();
        assert_eq!(
            value,
            json!({
                "path": "agent_smith",
                "prompt": "agent_smith.prompt",
                "completion": {"path": "agent_smith.completion", "sources": ["agent_smith.source"]},
                "history": true,
                "shortcut": "F4",
            })
        );
        assert!(file.ends_with("}\n"));
        assert_eq!(Manifest::ours().unwrap().mode_file("other"), None);
    }

    #[test]
    fn what_is_not_in_order_is_said() {
        let problem = |change: fn(&mut Value)| {
            let mut value: Value = serde_json::from_str(OURS).unwrap();
            change(&mut value);
            Manifest::parse(&value.to_string()).unwrap_err().to_string()
        };
        for (change, part) in [
            ((|m| m["version"] = json!(2)) as fn(&mut Value), "follows convention 2"),
            (|m| m["pkg_version"] = json!("1.0"), "no semantic version"),
            (|m| m["modules"] = json!(["agent-smith"]), "no module name"),
            (
                |m| m["modes"]["agent_smith"]["path"] = json!("gone"),
                "agent_smith needs gone",
            ),
            (
                |m| m["modes"]["agent_smith"]["completion"]["sources"] = json!(["a.b"]),
                "needs a.b",
            ),
            (|m| m["modes"]["agent_smith"]["shortcut"] = json!("F2"), "the key F2"),
            (|m| m["modes"]["agent_smith"]["shortcut"] = json!("F13"), "the key F13"),
            (|m| m["theme"]["sections"] = json!({"x": "gone"}), "x needs gone"),
            (|m| m["modul"] = json!([]), "unknown field `modul`"),
            (|m| m["name"] = json!(7), "cannot be read"),
        ] {
            let text = problem(change);
            assert!(text.contains(part), "{text}");
        }
    }
}
