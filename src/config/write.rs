//! Writes into the user's file: lays changes over what is there, and never loses what it does not understand.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::{ConfigError, Origin};
use super::file::load_user_file;
use super::validate::validate;
use super::value::merge;

/// Lays `changes` over the user's file and gives what it then says. A `null` in `changes` removes a key. Everything
/// else in the file, and its order, stays.
///
/// The new file takes the old one's place in one step, so a crash leaves the one or the other. A link to the file stays
/// a link.
///
/// # Errors
/// Where the file is there and cannot be read (it is then left alone), the changes are not allowed by the schema, or
/// the new file cannot be written.
pub fn write_user_file(path: &Path, changes: &Value) -> Result<Value, ConfigError> {
    let mut value = load_user_file(path)?;
    let wanted = without_nulls(changes);
    let violations = validate(&wanted, &|_| Origin::Candidate);
    if !violations.is_empty() {
        return Err(ConfigError::Invalid(violations));
    }
    remove_nulls(&mut value, changes);
    merge(&mut value, &wanted);
    replace(path, &value).map_err(|source| ConfigError::Write {
        path: path.to_owned(),
        source,
    })?;
    Ok(value)
}

/// The changes that set something.
fn without_nulls(changes: &Value) -> Value {
    match changes {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

/// Takes out what `changes` has a `null` for.
fn remove_nulls(value: &mut Value, changes: &Value) {
    let (Value::Object(map), Value::Object(changes)) = (value, changes) else {
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            map.shift_remove(key);
        } else if let Some(inner) = map.get_mut(key) {
            remove_nulls(inner, change);
        }
    }
}

fn replace(path: &Path, value: &Value) -> io::Result<()> {
    // Where the name is a link (people keep their settings elsewhere), the file it leads to is the one to replace.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let permissions = std::fs::metadata(&target).map(|metadata| metadata.permissions()).ok();
    let beside = beside(&target);
    let written = write_new(&beside, value, permissions).and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    // The new name itself is durable only with its directory; a file system that cannot do that does without.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}

fn write_new(path: &Path, value: &Value, permissions: Option<Permissions>) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    let mut file = File::create(path)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn changes() -> Value {
        json!({"default_model": "m", "llm_config": {"api_url": "http://127.0.0.1:8080/v1", "api_key_env": null}})
    }

    #[test]
    fn a_home_without_a_file_gets_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep/er/agent_smith.json");
        let value = write_user_file(&path, &changes()).unwrap();
        assert_eq!(
            value,
            json!({"default_model": "m", "llm_config": {"api_url": "http://127.0.0.1:8080/v1"}})
        );
        assert_eq!(load_user_file(&path).unwrap(), value);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_else_is_in_the_file_stays_in_its_order_with_its_rights_and_behind_its_link() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("dotfiles.json");
        let before = "{\"mine\": {\"z\": 1, \"a\": 2}, \"llm_config\": {\"api_key_env\": \"K\", \"timeout\": 9}, \"index_file\": \"I.md\"}";
        std::fs::write(&real, before).unwrap();
        std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        let link = home.path().join("agent_smith.json");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_user_file(&link, &changes()).unwrap();
        assert!(link.is_symlink());
        let after = std::fs::read_to_string(&real).unwrap();
        let places: Vec<_> = [
            "mine",
            "\"z\"",
            "\"a\"",
            "llm_config",
            "timeout",
            "index_file",
            "default_model",
        ]
        .iter()
        .map(|word| after.find(word).unwrap())
        .collect();
        assert!(places.is_sorted(), "{after}");
        assert!(!after.contains("api_key_env") && after.contains("8080"), "{after}");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone_and_a_wrong_change_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("agent_smith.json");
        std::fs::write(&path, "{ // mine\n}").unwrap();
        assert!(matches!(
            write_user_file(&path, &changes()),
            Err(ConfigError::Json { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ // mine\n}");
        std::fs::write(&path, "{}").unwrap();
        let wrong = json!({"llm_config": {"api_url": "no url"}});
        assert!(matches!(write_user_file(&path, &wrong), Err(ConfigError::Invalid(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told() {
        let home = tempfile::tempdir().unwrap();
        let blocked = home.path().join("file");
        std::fs::write(&blocked, "x").unwrap();
        let error = write_user_file(&blocked.join("agent_smith.json"), &changes()).unwrap_err();
        assert!(
            matches!(error, ConfigError::Write { .. } | ConfigError::Read { .. }),
            "{error}"
        );
    }
}
