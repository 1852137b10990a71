//! The four roles and what is fixed about each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A role of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The full coding assistant the user talks to by default.
    Direct,
    /// Plans and delegates; changes no file itself.
    Orchestrator,
    /// A delegated child that implements.
    Worker,
    /// A delegated child that investigates.
    Explorer,
}

/// What the catalogue says of a role.
#[derive(Debug, PartialEq, Eq)]
pub struct RoleSpec {
    /// The role.
    pub role: Role,
    /// Its name in configuration, records and events.
    pub name: &'static str,
    /// The name shown on the screen.
    pub label: &'static str,
    /// Whether a user may switch to it.
    pub user_facing: bool,
    /// The roles it may delegate to.
    pub dispatch_targets: &'static [Role],
    /// Which role frame opens its system prompt.
    pub prompt_profile: &'static str,
    /// The key of `models` tried after the role's own name.
    pub default_model_key: &'static str,
}

impl RoleSpec {
    /// Whether it may delegate at all.
    #[must_use]
    pub fn can_dispatch(&self) -> bool {
        !self.dispatch_targets.is_empty()
    }
}

/// The catalogue.
pub static ROLES: [RoleSpec; 4] = [
    RoleSpec {
        role: Role::Direct,
        name: "direct",
        label: "Smith",
        user_facing: true,
        dispatch_targets: &[Role::Worker, Role::Explorer],
        prompt_profile: "direct",
        default_model_key: "default",
    },
    RoleSpec {
        role: Role::Orchestrator,
        name: "orchestrator",
        label: "Tank",
        user_facing: true,
        dispatch_targets: &[Role::Worker, Role::Explorer],
        prompt_profile: "orchestrator",
        default_model_key: "default",
    },
    RoleSpec {
        role: Role::Worker,
        name: "worker",
        label: "Niobe",
        user_facing: false,
        dispatch_targets: &[Role::Explorer],
        prompt_profile: "worker",
        default_model_key: "default",
    },
    RoleSpec {
        role: Role::Explorer,
        name: "explorer",
        label: "Link",
        user_facing: false,
        dispatch_targets: &[],
        prompt_profile: "explorer",
        default_model_key: "default",
    },
];

impl Role {
    /// Its row of the catalogue.
    #[must_use]
    pub fn spec(self) -> &'static RoleSpec {
        match self {
            Self::Direct => &ROLES[0],
            Self::Orchestrator => &ROLES[1],
            Self::Worker => &ROLES[2],
            Self::Explorer => &ROLES[3],
        }
    }

    /// The name used in configuration, records and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The role called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        ROLES.iter().find(|spec| spec.name == name).map(|spec| spec.role)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_says_what_the_table_says() {
        let table = "direct Smith yes direct worker,explorer
            orchestrator Tank yes orchestrator worker,explorer
            worker Niobe no worker explorer
            explorer Link no explorer -";
        assert_eq!(table.lines().count(), ROLES.len());
        for (row, spec) in table.lines().zip(&ROLES) {
            let targets: Vec<&str> = spec.dispatch_targets.iter().map(|role| role.name()).collect();
            let targets = if spec.can_dispatch() {
                targets.join(",")
            } else {
                "-".into()
            };
            let facing = if spec.user_facing { "yes" } else { "no" };
            let found = [spec.name, spec.label, facing, spec.prompt_profile, &targets].join(" ");
            assert_eq!(found, row.trim());
            assert_eq!(spec.default_model_key, "default");
        }
    }

    #[test]
    fn every_role_is_its_own_row_and_found_by_its_name() {
        for spec in &ROLES {
            assert_eq!(spec.role.spec(), spec);
            assert_eq!(Role::from_name(spec.name), Some(spec.role));
            assert_eq!(serde_json::to_value(spec.role).unwrap(), spec.name);
        }
        assert_eq!(Role::from_name("root"), None);
    }
}
