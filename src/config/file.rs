//! Reads the user's file: plain JSON, one table.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::ConfigError;

/// Far more than a configuration has, and little enough to read at once.
const MAX_BYTES: u64 = 1024 * 1024;

/// What the user's file says; an absent or empty file says nothing.
///
/// A byte order mark is skipped. A key that stands twice in a table is an error: one of the two would be lost without
/// a word.
///
/// # Errors
/// When the file is there and cannot be read, is no file or no JSON (with line and column), or holds no table. Whether
/// the schema allows it is not looked at here.
pub fn load_user_file(path: &Path) -> Result<Value, ConfigError> {
    let read = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let not_a_file = |problem: String| ConfigError::NotAFile {
        path: path.to_owned(),
        problem,
    };
    // The kind is asked before the file is opened: opening a named pipe would wait for a writer.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            // A link that leads nowhere is somebody's mistake, not an absent file.
            return match path.is_symlink() {
                true => Err(read(error)),
                false => Ok(Value::Object(Map::new())),
            };
        }
        Err(error) => return Err(read(error)),
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() {
            "a directory"
        } else {
            "no regular file"
        };
        return Err(not_a_file(format!("this is {what}, not a configuration")));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(read)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(not_a_file(format!(
            "this is larger than the {} KB a configuration may have",
            MAX_BYTES / 1024
        )));
    }
    parse(&bytes).map_err(|problem| ConfigError::Json {
        path: path.to_owned(),
        line: problem.line,
        column: problem.column,
        problem: problem.text,
    })
}

/// What is wrong with a text, and where.
struct Problem {
    line: usize,
    column: usize,
    text: String,
}

fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let last = before.rsplit('\n').next().unwrap_or_default();
        Problem {
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
            text: "the file is not UTF-8 here".to_owned(),
        }
    })?;
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(value @ Value::Object(_))) => Ok(value),
        Ok(_) => Err(Problem {
            line: 1,
            column: 1,
            text: "the configuration must be one table: { … }".to_owned(),
        }),
        Err(error) => {
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
            let mut message = error.to_string();
            // serde_json ends its message with the place in bytes; ours stands in front, in characters.
            if let Some(at) = message.rfind(" at line ") {
                message.truncate(at);
            }
            Err(Problem {
                line: error.line().max(1),
                column: line
                    .char_indices()
                    .take_while(|(at, _)| *at < error.column())
                    .count()
                    .max(1),
                text: message,
            })
        }
    }
}

/// A JSON value whose tables have no key twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_string<E>(self, value: String) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(Strict(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(Value::Array(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
                let mut map = Map::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format_args!(
                            "the key \"{key}\" stands twice in this table"
                        )));
                    }
                    let Strict(value) = entries.next_value()?;
                    map.insert(key, value);
                }
                Ok(Value::Object(map))
            }
        }
        deserializer.deserialize_any(Reader).map(Strict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(bytes: &[u8]) -> Result<Value, String> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("c.json");
        std::fs::write(&path, bytes).unwrap();
        load_user_file(&path).map_err(|error| error.to_string().replace(&format!("{}", path.display()), "c.json"))
    }

    #[test]
    fn a_file_that_is_no_json_is_told_with_line_and_column() {
        for (bytes, message) in [
            (&b"{\n  \"a\": 1,\n}"[..], "c.json:3:1: trailing comma"),
            (b"{\n  // hello\n}", "c.json:2:3: key must be a string"),
            (b"{\"a\": 1} x", "c.json:1:10: trailing characters"),
            (b"[1]", "c.json:1:1: the configuration must be one table: { … }"),
            (b"{\"a\":", "c.json:1:5: EOF while parsing a value"),
            (b"{\"\xc3\xa4\": x}", "c.json:1:7: expected value"),
            (b"{\n\"a\": \"\xff\"}", "c.json:2:7: the file is not UTF-8 here"),
            (
                b"{\"a\": {\"b\": 1,\n \"b\": 2}}",
                "c.json:2:4: the key \"b\" stands twice in this table",
            ),
        ] {
            assert_eq!(load(bytes).unwrap_err(), message);
        }
    }

    #[test]
    fn an_absent_or_empty_file_says_nothing() {
        let nothing = Value::Object(Map::new());
        assert_eq!(load(b" \n").unwrap(), nothing);
        assert_eq!(load(b"\xef\xbb\xbf{\"a\": 1.5}").unwrap()["a"], 1.5);
        let home = tempfile::tempdir().unwrap();
        assert_eq!(load_user_file(&home.path().join("none")).unwrap(), nothing);
        assert_eq!(load_user_file(&home.path().join("no/such/dir")).unwrap(), nothing);
        let link = home.path().join("link");
        std::os::unix::fs::symlink("gone", &link).unwrap();
        assert!(matches!(load_user_file(&link), Err(ConfigError::Read { .. })));
    }

    #[test]
    fn what_is_no_file_is_told() {
        let home = tempfile::tempdir().unwrap();
        let error = load_user_file(home.path()).unwrap_err();
        assert!(error.to_string().ends_with("this is a directory, not a configuration"));
        let pipe = home.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(
            load_user_file(&pipe)
                .unwrap_err()
                .to_string()
                .ends_with("not a configuration")
        );
        let large = load(&vec![b' '; 1024 * 1024 + 1]).unwrap_err();
        assert!(large.contains("larger than the 1024 KB"), "{large}");
    }
}
