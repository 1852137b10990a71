//! `/model`: which model answers and why, or another one.

use serde_json::json;

use crate::command::host::CommandHost;
use crate::command::line::CommandLine;
use crate::command::registry::{Command, CommandOutput, Completer};
use crate::config::join;
use crate::error::AgentError;

pub(super) static COMMAND: Command = Command {
    name: "model",
    args: "[MODEL] [--save | --reset]",
    help: "Show the model in use and what chose it, or choose one for this conversation",
    details: "A model named here holds for this conversation. With `--save` it becomes the model of the role in use, for all \
              conversations (as `/config set models.ROLE MODEL`). `--reset` goes back to what the configuration says.",
    during_turn: true,
    completer: Completer::Models(&["--save", "--reset"]),
    run: |call, host| Box::pin(run(call, host)),
};

async fn run(call: CommandLine<'_>, host: &mut dyn CommandHost) -> Result<CommandOutput, AgentError> {
    let (flags, names): (Vec<&str>, Vec<&str>) = call
        .arguments
        .split_whitespace()
        .partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| !matches!(**flag, "--save" | "--reset")) {
        return Err(COMMAND.misused(format!("`{unknown}` is no option of /model")));
    }
    let (save, reset) = (flags.contains(&"--save"), flags.contains(&"--reset"));
    let mut note = String::new();
    match names.as_slice() {
        [] if save && !reset => {
            let model = host.model().model;
            note = self::save(host, &model).await?;
        }
        [] if reset && !save => host.set_model(None),
        [] if !reset => {}
        [model] if save && !reset => note = self::save(host, model).await?,
        [model] if !reset => host.set_model(Some((*model).to_owned())),
        _ => return Err(COMMAND.misused("/model takes one model, and either --save or --reset")),
    }
    let selected = host.model();
    let mut text = format!(
        "`{}` answers as {}: {} (step {} of 8).\n",
        selected.model,
        host.role().spec().label,
        selected.step_words(),
        selected.step
    );
    text.push_str(&note);
    if host.config().opt_str("llm_config.api_url").is_none() {
        text.push_str("No model server is set up; `/setup` connects one.\n");
    }
    if let Some(list) = host.known_models().filter(|list| !list.models.is_empty())
        && names.first() == Some(&selected.model.as_str())
        && list.models.iter().all(|row| row.id != selected.model)
    {
        text.push_str("The server did not list a model of that name; `/models` asks it again.\n");
    }
    let value = json!({
        "model": selected.model, "source": selected.source, "step": selected.step, "key": selected.key,
        "context_window": selected.context_window,
    });
    Ok(CommandOutput::text(text).with_value(value))
}

async fn save(host: &mut dyn CommandHost, model: &str) -> Result<String, AgentError> {
    let path = join(&["models", host.role().name()]);
    // As JSON text, so that a model called `80` stays a text.
    let value = serde_json::Value::from(model).to_string();
    let changed = host.change_config(&path, Some(&value)).await?;
    host.set_model(None);
    Ok(if changed.session_only {
        format!("`{path}` is set until this session ends.\n")
    } else {
        format!("Kept as `{path}`.\n")
    })
}
