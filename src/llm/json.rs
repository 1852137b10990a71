//! Reading JSON the way servers write it: members of any type, strings with half an emoji, numbers in quotes.
//!
//! Members are taken as raw JSON and looked at one by one, so that a member of an unexpected type costs that member
//! and not the whole event.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Declares a struct of optional members whose `Deserialize` never fails on their account: a value that is no object
/// is an empty one, unknown members are skipped, and of a member that comes twice the last that is not null counts.
macro_rules! lenient_object {
    ($(#[$doc:meta])* struct $name:ident { $($(#[$field_doc:meta])* $field:ident : $kind:ty = $wire:literal $(| $alias:literal)* ,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name<'a> {
            /// Whether it was an object at all.
            pub present: bool,
            $($(#[$field_doc])* pub $field: Option<$kind>,)*
            /// Keeps the lifetime where no member borrows.
            pub _input: std::marker::PhantomData<&'a ()>,
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types)]
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                enum Key { $(#[serde(rename = $wire $(, alias = $alias)*)] $field,)* #[serde(other)] Other }

                struct Lenient<'a>(std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> $crate::llm::json::LenientObject<'de> for Lenient<'a> {
                    type Value = $name<'a>;
                    fn read<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut object = $name { present: true, ..$name::default() };
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$field => {
                                    let value = map.next_value::<$kind>()?;
                                    if $crate::llm::json::Member::is_there(&value) {
                                        object.$field = Some(value);
                                    }
                                })*
                                Key::Other => { map.next_value::<serde::de::IgnoredAny>()?; }
                            }
                        }
                        Ok(object)
                    }
                }
                $crate::llm::json::read_object(deserializer, Lenient(std::marker::PhantomData))
            }
        }

        impl $crate::llm::json::Member for $name<'_> {
            fn is_there(&self) -> bool { self.present }
        }
    };
}
pub(crate) use lenient_object;

/// A member that may be null or of a useless type, which is the same as absent.
pub(crate) trait Member {
    /// Whether there is anything in it.
    fn is_there(&self) -> bool;
}

impl Member for &RawValue {
    fn is_there(&self) -> bool {
        self.get() != "null"
    }
}

/// The reading half of [`lenient_object!`].
pub(crate) trait LenientObject<'de> {
    /// What is read.
    type Value: Default;
    /// Reads the members.
    fn read<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error>;
}

/// Reads an object; a value of another type is the default.
pub(crate) fn read_object<'de, D: Deserializer<'de>, L: LenientObject<'de>>(
    deserializer: D,
    object: L,
) -> Result<L::Value, D::Error> {
    deserializer.deserialize_any(ObjectVisitor(object))
}

struct ObjectVisitor<L>(L);

impl<'de, L: LenientObject<'de>> Visitor<'de> for ObjectVisitor<L> {
    type Value = L::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.read(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(L::Value::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(L::Value::default())
    }
}

/// The text of a JSON string; `None` for a value of another type.
///
/// A string may begin or end with half of a character that two events share (an emoji is two escapes of UTF-16, and
/// gateways cut between them): `carry` keeps the half that is missing its partner until the next piece of the same
/// text comes. A half that finds none becomes U+FFFD.
pub(crate) fn text<'a>(raw: &'a RawValue, carry: &mut Carry) -> Option<Cow<'a, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if carry.0.is_none() && !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    if carry.0.is_none()
        && let Ok(text) = serde_json::from_str::<String>(raw.get())
    {
        return Some(Cow::Owned(text));
    }
    Some(Cow::Owned(unescape(inner, carry)))
}

/// The text of a JSON string that stands alone.
pub(crate) fn whole_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let mut carry = Carry::default();
    let text = text(raw, &mut carry)?;
    Some(match carry.flush() {
        Some(rest) => Cow::Owned(format!("{text}{rest}")),
        None => text,
    })
}

/// The first half of a character whose second half has not come yet.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Carry(Option<u16>);

impl Carry {
    /// What stands for a half that stays alone.
    pub fn flush(&mut self) -> Option<char> {
        self.0.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

/// Undoes the escapes of the inside of a JSON string, joining and replacing halves of characters.
fn unescape(inner: &str, carry: &mut Carry) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut high = carry.0.take();
    let mut rest = inner;
    while !rest.is_empty() {
        let plain = rest.find('\\').unwrap_or(rest.len());
        if plain > 0 {
            out.extend(high.take().map(|_| char::REPLACEMENT_CHARACTER));
            out.push_str(&rest[..plain]);
            rest = &rest[plain..];
            continue;
        }
        let unit = rest
            .get(2..6)
            .filter(|_| rest.as_bytes().get(1) == Some(&b'u'))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let Some(unit) = unit else {
            out.extend(high.take().map(|_| char::REPLACEMENT_CHARACTER));
            let escape = rest[1..].chars().next();
            out.push(match escape {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => '\\',
            });
            rest = &rest[1 + escape.map_or(0, char::len_utf8)..];
            continue;
        };
        rest = &rest[6..];
        match (high.take(), unit) {
            (Some(first), 0xDC00..=0xDFFF) => out.extend(char::decode_utf16([first, unit]).flatten()),
            (before, unit) => {
                out.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                if (0xD800..=0xDBFF).contains(&unit) {
                    high = Some(unit);
                } else {
                    out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
            }
        }
    }
    carry.0 = high;
    out
}

/// A whole number, whatever it is written as: `12`, `12.0`, `"12"`.
pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
        }
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a count just before"
)]
fn whole(number: f64) -> Option<u64> {
    (number.is_finite() && (0.0..=9.0e15).contains(&number)).then_some(number.round() as u64)
}

/// A number with a fraction, also in quotes.
pub(crate) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// Reads `text`; where half characters in its strings make it unreadable, reads it with those replaced.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| {
        let repaired = repair(text);
        if repaired == text {
            Err(error)
        } else {
            serde_json::from_str(&repaired)
        }
    })
}

/// A raw member as a value; null where not even the repaired text can be read.
pub(crate) fn value(raw: &RawValue) -> Value {
    parse(raw.get()).unwrap_or_default()
}

/// `json` with what strict readers refuse inside strings made harmless: halves of characters that have no partner become
/// U+FFFD, raw control characters become escapes. Anything else is left as it is.
pub(crate) fn repair(json: &str) -> Cow<'_, str> {
    let suspicious = json.bytes().any(|byte| byte < 0x20) || json.contains("\\u");
    if !suspicious {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut changed = false;
    let mut inside = false;
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => {
                let unit = escape_at(bytes, at);
                match unit {
                    Some(0xD800..=0xDBFF) if matches!(escape_at(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 11,
                    Some(0xD800..=0xDFFF) => {
                        out.push_str(&json[copied..at]);
                        out.push_str("\\ufffd");
                        changed = true;
                        at += 5;
                        copied = at + 1;
                    }
                    Some(_) => at += 5,
                    None => at += 1,
                }
            }
            0..0x20 if inside => {
                out.push_str(&json[copied..at]);
                out.push_str(&format!("\\u{byte:04x}"));
                changed = true;
                copied = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if !changed {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied.min(json.len())..]);
    Cow::Owned(out)
}

/// The unit of the escape `\uXXXX` at `at`, if there is one.
fn escape_at(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let hex = escape.strip_prefix(b"\\u")?;
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn halves_are_joined_over_pieces_or_replaced() {
        let mut carry = Carry::default();
        assert_eq!(text(&raw(r#""Wave \ud83d""#), &mut carry).unwrap(), "Wave ");
        assert_eq!(text(&raw(r#""\udc4b hi\n""#), &mut carry).unwrap(), "👋 hi\n");
        assert_eq!(carry.flush(), None);
        assert_eq!(
            text(&raw(r#""\ud83dx \udc4b y""#), &mut carry).unwrap(),
            "\u{fffd}x \u{fffd} y"
        );
        assert_eq!(whole_text(&raw(r#""a\ud83d""#)).unwrap(), "a\u{fffd}");
        assert_eq!(whole_text(&raw("7")), None);
    }

    #[test]
    fn repair_touches_only_what_is_refused() {
        assert_eq!(
            repair(r#"{"a":"\ud83d\udc4b \\ud83d"}"#),
            r#"{"a":"\ud83d\udc4b \\ud83d"}"#
        );
        assert_eq!(repair("{\"a\":\"x\ty\\udc4b\"}\n"), "{\"a\":\"x\\u0009y\\ufffd\"}\n");
        assert_eq!(parse::<Value>(r#"["\ud83d"]"#).unwrap(), json!(["\u{fffd}"]));
    }

    #[test]
    fn numbers_in_any_dress() {
        assert_eq!(number(&json!("7")), Some(7));
        assert_eq!(number(&json!(12.0)), Some(12));
        assert_eq!(number(&json!(-1)), None);
        assert_eq!(float(&json!("0.5")), Some(0.5));
    }

    proptest! {
        /// Repairing never breaks what was fine, and always ends.
        #[test]
        fn repair_keeps_good_json(value in "\\PC{0,30}", cut in 0usize..40) {
            let json = json!({"k": value}).to_string();
            prop_assert_eq!(repair(&json), json.as_str());
            let cut = json.char_indices().map(|(at, _)| at).rfind(|at| *at <= cut).unwrap_or(0);
            let _ = repair(&json[..cut]);
        }

        /// Taking any string apart into UTF-16 escapes, cut anywhere, gives the string again.
        #[test]
        fn escapes_cut_anywhere_join(whole in ".{0,12}", cut in 0usize..30) {
            let units: Vec<String> = whole.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let cut = cut.min(units.len());
            let mut carry = Carry::default();
            let mut out = String::new();
            for piece in [&units[..cut], &units[cut..]] {
                out.push_str(&text(&raw(&format!("\"{}\"", piece.concat())), &mut carry).unwrap());
            }
            out.extend(carry.flush());
            prop_assert_eq!(out, whole);
        }
    }
}
