//! The layers of a configuration and what they add up to.
//!
//! Lowest first: the built-in JSON, the user's file, the patch that `/config set` keeps, and what only this session
//! sets. Tables merge key by key, everything else replaces. A profile in use lies over the result. [`Config`] is the
//! immutable sum; every turn holds its own clone, so that a change never shows in the middle of one.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::error::{ConfigError, Origin};
use super::path::DottedPath;
use super::profile;
use super::schema::{self, Fallback, Row};
use super::validate::validate;
use super::value;

/// What a configuration is made of, above the built-in defaults. Each value is a table or null (nothing set).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    /// Where the user's file is, for messages.
    pub user_file: Option<PathBuf>,
    /// What the user's file says.
    pub user: Value,
    /// What `/config set` keeps: the persisted `runtime_overrides`.
    pub patch: Value,
    /// What this session sets and nobody keeps.
    pub ephemeral: Value,
}

/// The layer a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Nothing is set and nothing holds by default.
    Unset,
    /// A default: of the built-in JSON, or applied at use.
    Default,
    /// The user's file.
    User,
    /// `/config set`.
    Override,
    /// This session only.
    Ephemeral,
    /// The profile in use.
    Profile,
}

impl Layer {
    /// The word shown to the user.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Default => "default",
            Self::User => "user file",
            Self::Override => "/config set",
            Self::Ephemeral => "session",
            Self::Profile => "profile",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The effective configuration: immutable, cheap to clone.
#[derive(Clone)]
pub struct Config(Arc<Inner>);

struct Inner {
    layers: Layers,
    /// The name and the content of the profile that lies over the layers.
    profile: Option<(String, Value)>,
    effective: Value,
}

impl fmt::Debug for Config {
    /// Without the values, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("profile", &self.profile_name())
            .finish_non_exhaustive()
    }
}

/// Whether a layer sets nothing at all.
fn is_blank(layer: &Value) -> bool {
    layer.is_null() || layer.as_object().is_some_and(Map::is_empty)
}

impl Config {
    /// The built-in configuration.
    #[must_use]
    pub fn defaults() -> Self {
        static DEFAULTS: LazyLock<Config> = LazyLock::new(|| {
            Config(Arc::new(Inner {
                layers: Layers::default(),
                profile: None,
                effective: schema::built_in().clone(),
            }))
        });
        DEFAULTS.clone()
    }

    /// The sum of the layers. Which profile is in use is not looked at: see [`Config::with_profile`].
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] when the sum violates the schema, with every violation and the layer it comes from.
    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let mut effective = schema::built_in().clone();
        for layer in [&layers.user, &layers.patch, &layers.ephemeral] {
            if !is_blank(layer) {
                value::merge(&mut effective, layer);
            }
        }
        let violations = validate(&effective, &|path| layers.origin(path));
        if !violations.is_empty() {
            return Err(ConfigError::Invalid(violations));
        }
        Ok(Self(Arc::new(Inner {
            layers: layers.clone(),
            profile: None,
            effective,
        })))
    }

    /// The same layers under the profile `name`, or under none. A profile that was in use no longer is.
    ///
    /// # Errors
    /// [`ConfigError::NoSuchProfile`], with the nearest name or the names there are.
    pub fn with_profile(&self, name: Option<&str>) -> Result<Self, ConfigError> {
        let base = match &self.0.profile {
            None => self.clone(),
            Some(_) => Self::from_layers(&self.0.layers)?,
        };
        let Some(name) = name else { return Ok(base) };
        let overlay = profile::overlay(&base, name)?;
        let effective = profile::apply(base.snapshot(), &overlay);
        Ok(Self(Arc::new(Inner {
            layers: base.0.layers.clone(),
            profile: Some((name.to_owned(), overlay)),
            effective,
        })))
    }

    /// The whole of what is set, as one table; a stable snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &Value {
        &self.0.effective
    }

    /// The layers it is the sum of.
    #[must_use]
    pub fn layers(&self) -> &Layers {
        &self.0.layers
    }

    /// The name of the profile that lies over the layers.
    #[must_use]
    pub fn profile_name(&self) -> Option<&str> {
        self.0.profile.as_ref().map(|(name, _)| name.as_str())
    }

    /// What a layer or the built-in JSON sets at a dotted path; `None` too where `path` is no path.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.value_at(DottedPath::parse(path).ok()?.segments())
    }

    /// What a layer or the built-in JSON sets at a path.
    #[must_use]
    pub fn value_at<S: AsRef<str>>(&self, path: &[S]) -> Option<&Value> {
        value::get(&self.0.effective, path)
    }

    /// What holds at a path: what is set, else the default applied at use.
    #[must_use]
    pub fn effective(&self, path: &DottedPath) -> Option<Value> {
        let set = self.value_at(path.segments()).cloned();
        set.or_else(|| Some(schema::row_at(path.segments())?.fallback.at_use()?.to_value()))
    }

    /// The layer that what holds at a dotted path comes from. For a table: the highest layer with something in it.
    #[must_use]
    pub fn layer_of(&self, path: &str) -> Layer {
        match DottedPath::parse(path) {
            Ok(path) => self.layer_at(path.segments()),
            Err(_) => Layer::Unset,
        }
    }

    /// The layer that what holds at a path comes from.
    #[must_use]
    pub fn layer_at<S: AsRef<str>>(&self, path: &[S]) -> Layer {
        let in_profile = |(_, overlay): &(String, Value)| value::get(overlay, path).is_some();
        if self.0.profile.as_ref().is_some_and(in_profile) {
            return Layer::Profile;
        }
        if self.value_at(path).is_some() {
            return self.0.layers.layer(path);
        }
        match schema::row_at(path).map(|row| row.fallback) {
            Some(Fallback::AtUse(_)) => Layer::Default,
            _ => Layer::Unset,
        }
    }

    /// What holds for a key that has a default: what is set, or the default.
    fn holds<'a, T>(&'a self, path: &str, read: impl Fn(&'a Value) -> Option<T>) -> Held<T> {
        let row = known(path);
        match self.value(path).and_then(read) {
            Some(value) => Held::Set(value),
            None => match row.and_then(|row| row.fallback.at_use()) {
                Some(literal) => Held::Default(literal),
                None => Held::Nothing,
            },
        }
    }
}

/// What a typed accessor found.
enum Held<T> {
    Set(T),
    Default(schema::Literal),
    Nothing,
}

/// The row of `path`. Asking for a path that has none is a mistake in our own code; a test over the sources finds it.
fn known(path: &str) -> Option<&'static Row> {
    let row = schema::rows().find(|row| row.path == path).or_else(|| {
        let path = DottedPath::parse(path).ok()?;
        schema::row_at(path.segments())
    });
    debug_assert!(row.is_some(), "`{path}` has no row in the schema");
    row
}

/// Typed access to what holds. Those without `opt_` are for keys with a default.
impl Config {
    /// A whole number; fractions are dropped.
    #[must_use]
    pub fn u64(&self, path: &str) -> u64 {
        let number = self.opt_u64(path);
        debug_assert!(number.is_some(), "`{path}` has no default");
        number.unwrap_or_default()
    }

    /// A whole number, where one is set or holds by default; fractions are dropped.
    #[must_use]
    pub fn opt_u64(&self, path: &str) -> Option<u64> {
        match self.holds(path, as_u64) {
            Held::Set(number) => Some(number),
            Held::Default(literal) => as_u64(&literal.to_value()),
            Held::Nothing => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn f64(&self, path: &str) -> f64 {
        let number = self.opt_f64(path);
        debug_assert!(number.is_some(), "`{path}` has no default");
        number.unwrap_or_default()
    }

    /// A number, where one is set or holds by default.
    #[must_use]
    pub fn opt_f64(&self, path: &str) -> Option<f64> {
        match self.holds(path, Value::as_f64) {
            Held::Set(number) => Some(number),
            Held::Default(literal) => literal.to_value().as_f64(),
            Held::Nothing => None,
        }
    }

    /// `true` or `false`.
    #[must_use]
    pub fn bool(&self, path: &str) -> bool {
        match self.holds(path, Value::as_bool) {
            Held::Set(value) | Held::Default(schema::Literal::Bool(value)) => value,
            _ => {
                debug_assert!(false, "`{path}` has no default");
                false
            }
        }
    }

    /// A text.
    #[must_use]
    pub fn str(&self, path: &str) -> &str {
        let text = self.opt_str(path);
        debug_assert!(text.is_some(), "`{path}` has no default");
        text.unwrap_or_default()
    }

    /// A text, where one is set or holds by default.
    #[must_use]
    pub fn opt_str(&self, path: &str) -> Option<&str> {
        match self.holds(path, Value::as_str) {
            Held::Set(text) | Held::Default(schema::Literal::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A list of whole numbers; fractions are dropped.
    #[must_use]
    pub fn numbers(&self, path: &str) -> Vec<u64> {
        match self.holds(path, Value::as_array) {
            Held::Set(items) => items.iter().filter_map(as_u64).collect(),
            Held::Default(schema::Literal::Ints(items)) => items.to_vec(),
            _ => Vec::new(),
        }
    }

    /// A list of texts.
    #[must_use]
    pub fn texts(&self, path: &str) -> Vec<&str> {
        match self.holds(path, Value::as_array) {
            Held::Set(items) => items.iter().filter_map(Value::as_str).collect(),
            Held::Default(schema::Literal::Texts(items)) => items.to_vec(),
            _ => Vec::new(),
        }
    }

    /// A table, where one is set.
    #[must_use]
    pub fn table(&self, path: &str) -> Option<&Map<String, Value>> {
        self.value(path)?.as_object()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is below zero was refused"
)]
fn as_u64(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
}

impl Layers {
    /// The highest layer that has something at `path`.
    fn layer<S: AsRef<str>>(&self, path: &[S]) -> Layer {
        let has = |layer: &Value| value::get(layer, path).is_some();
        if has(&self.ephemeral) {
            Layer::Ephemeral
        } else if has(&self.patch) {
            Layer::Override
        } else if has(&self.user) {
            Layer::User
        } else {
            Layer::Default
        }
    }

    /// Where what stands at `path` came from, for a message.
    fn origin(&self, path: &[&str]) -> Origin {
        match self.layer(path) {
            Layer::Ephemeral => Origin::Session,
            Layer::Override => Origin::Overrides,
            _ => Origin::File(
                self.user_file
                    .clone()
                    .unwrap_or_else(|| PathBuf::from("agent_smith.json")),
            ),
        }
    }
}
