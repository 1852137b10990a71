//! `/profile`: another server with its models.

use crate::command::host::ProfileChoice;
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::config::profile_names;

pub(super) static COMMAND: Command = Command {
    name: "profile",
    args: "[NAME | --off | --reset]",
    help: "Show the profiles, or use another in this session",
    details: "A profile is a server with its key and its models, under `profiles` in your configuration. `--off` uses none, \
              `--reset` the one that the configuration names. To keep a choice for all sessions: `/config set profile NAME`.",
    during_turn: true,
    completer: Completer::Profiles(&["--off", "--reset"]),
    run: |call, host| {
        Box::pin(async move {
            let choice = match call.arguments {
                "" => None,
                "--off" => Some(ProfileChoice::Off),
                "--reset" => Some(ProfileChoice::Configured),
                name if name.starts_with("--") => {
                    return Err(COMMAND.misused(format!("`{name}` is no option of /profile")));
                }
                name => Some(ProfileChoice::Named(name.to_owned())),
            };
            let current = match choice {
                Some(choice) => host.set_profile(choice)?,
                None => host.config().profile_name().map(str::to_owned),
            };
            let config = host.config();
            let names = profile_names(&config);
            let mut text = match &current {
                Some(name) => format!("The profile `{name}` is in use; `{}` answers.\n", host.model().model),
                None => format!("No profile is in use; `{}` answers.\n", host.model().model),
            };
            if names.is_empty() {
                text.push_str("None is defined: docs/CONFIG.md says how.\n");
            } else if call.arguments.is_empty() {
                text.push_str("There are: ");
                text.push_str(
                    &names
                        .iter()
                        .map(|name| format!("`{name}`"))
                        .collect::<Vec<_>>()
                        .join(", "),
                );
                text.push_str(".\n");
            }
            let value = serde_json::json!({"profile": current, "profiles": names, "model": host.model().model});
            Ok(CommandOutput::text(text).with_value(value))
        })
    },
};
