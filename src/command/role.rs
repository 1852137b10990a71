//! `/role`: who answers.

use std::fmt::Write as _;

use serde_json::json;

use crate::command::registry::{Command, CommandOutput, Completer};
use crate::role::ROLES;

pub(super) static COMMAND: Command = Command {
    name: "role",
    args: "[NAME]",
    help: "Show the roles, or go on in another one",
    details: "The system prompt is built anew with the next turn, and the role's own model and tools hold. For the role that new \
              shells start in: `/config set active_role NAME`.",
    during_turn: false,
    completer: Completer::Roles,
    run: |call, host| {
        Box::pin(async move {
            if !call.arguments.is_empty() {
                let role = host.set_role(call.arguments)?;
                let text = format!(
                    "{} ({role}) answers from now on, with `{}`.",
                    role.spec().label,
                    host.model().model
                );
                return Ok(CommandOutput::text(text).with_value(json!({"role": role})));
            }
            let current = host.role();
            let mut text = String::new();
            for spec in ROLES.iter().filter(|spec| spec.user_facing) {
                let mark = if spec.role == current { " (in use)" } else { "" };
                let targets: Vec<&str> = spec.dispatch_targets.iter().map(|target| target.name()).collect();
                let _ = writeln!(
                    text,
                    "- `{}` {}{mark}; may delegate to {}",
                    spec.name,
                    spec.label,
                    targets.join(", ")
                );
            }
            Ok(CommandOutput::text(text).with_value(json!({"role": current})))
        })
    },
};
