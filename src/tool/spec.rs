//! What a tool says of itself, and its schema from the type of its arguments.

use std::borrow::Cow;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::ToolDefinition;
use crate::role::Role;

/// How a screen shows a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Renderer {
    /// Plain text.
    Text,
    /// Part of a file: `path`, `first_line`, `last_line`, `lines` in the metadata.
    File,
    /// A change of a file: `path` and `diff` (unified) in the metadata.
    Diff,
    /// A command's output: `command`, `exit_code` or `signal`, `duration_ms` in the metadata.
    Shell,
    /// Places in files: `path:line: text` lines.
    Matches,
    /// A list of files or symbols.
    Listing,
    /// A delegated role's report.
    Report,
}

/// What a tool is.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: Cow<'static, str>,
    /// What it does and when to use it, for the model: the text of `x.md`.
    pub description: Cow<'static, str>,
    /// JSON Schema of its arguments: an object schema without anything a server may refuse.
    pub schema: Value,
    /// The roles that may use it; `None` leaves that to the role matrix alone.
    pub role_allow: Option<&'static [Role]>,
    /// The roles that may not use it, whatever the matrix says.
    pub role_deny: &'static [Role],
    /// How a screen shows its result.
    pub result_renderer: Renderer,
    /// Whether a successful call ends the turn.
    pub is_terminal: bool,
    /// Whether it may change something.
    pub mutating: bool,
    /// Whether calls of it may run at the same time as others in one batch.
    pub parallel_safe: bool,
}

impl ToolSpec {
    /// A tool that only reads, may run beside others, and takes `Args`.
    #[must_use]
    pub fn reading<Args: JsonSchema>(name: &'static str, description: &'static str, renderer: Renderer) -> Self {
        Self {
            name: Cow::Borrowed(name),
            description: Cow::Borrowed(description.trim()),
            schema: schema_of::<Args>(),
            role_allow: None,
            role_deny: &[],
            result_renderer: renderer,
            is_terminal: false,
            mutating: false,
            parallel_safe: true,
        }
    }

    /// A tool that may change something, runs alone, and takes `Args`.
    #[must_use]
    pub fn mutating<Args: JsonSchema>(name: &'static str, description: &'static str, renderer: Renderer) -> Self {
        Self {
            mutating: true,
            parallel_safe: false,
            ..Self::reading::<Args>(name, description, renderer)
        }
    }

    /// Whether the tool's own lists let `role` use it.
    #[must_use]
    pub fn allows(&self, role: Role) -> bool {
        self.role_allow.is_none_or(|roles| roles.contains(&role)) && !self.role_deny.contains(&role)
    }

    /// The tool as it is offered to a model.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone().into_owned(),
            description: self.description.clone().into_owned(),
            parameters: self.schema.clone(),
        }
    }
}

/// The schema of `Args`, with everything inline, and only what tells a model something.
///
/// Servers differ in what they accept and small models in what they stand: no `$schema`, `title`, `format`, `default`,
/// no `null` among the types (leave it out instead), no members beyond those declared.
#[must_use]
pub fn schema_of<Args: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Args>().to_value();
    clean(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

fn clean(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for noise in ["title", "format", "default", "minimum", "maximum"] {
        object.remove(noise);
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    // An optional type that is not a simple one: `anyOf` of itself and null.
    if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        match choices.pop() {
            Some(Value::Object(only)) if choices.is_empty() => {
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
                return clean(schema);
            }
            Some(last) => {
                choices.push(last);
                object.insert("anyOf".to_owned(), Value::Array(choices));
            }
            None => {}
        }
    }
    if object.get("type").is_some_and(|name| name == "object") && object.contains_key("properties") {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(members)) => members.values_mut().for_each(clean),
            ("items", items) => clean(items),
            ("anyOf", Value::Array(choices)) => choices.iter_mut().for_each(clean),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Args {
        /// Which file.
        path: String,
        count: Option<u32>,
        op: Option<Op>,
        #[serde(default)]
        names: Vec<String>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Op {
        Replace,
        ReplaceText,
    }

    #[test]
    fn a_schema_holds_only_what_tells_a_model_something() {
        insta::assert_json_snapshot!(schema_of::<Args>(), @r#"
        {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "path": {
              "type": "string",
              "description": "Which file."
            },
            "count": {
              "type": "integer"
            },
            "op": {
              "type": "string",
              "enum": [
                "replace",
                "replace_text"
              ]
            },
            "names": {
              "type": "array",
              "items": {
                "type": "string"
              }
            }
          },
          "required": [
            "path"
          ]
        }
        "#);
    }
}
