//! Decoding of one event's payload: the members this room reads, borrowed from the payload, each still raw JSON.
//!
//! A whole answer (`message`) and a piece of one (`delta`) are the same to it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{Member, lenient_object};

lenient_object! {
    /// One event.
    struct Chunk {
        id: &'a RawValue = "id",
        model: &'a RawValue = "model",
        choices: Choices<'a> = "choices",
        usage: &'a RawValue = "usage",
        groq: Groq<'a> = "x_groq",
        timings: &'a RawValue = "timings",
        /// `error` in any of its shapes.
        error: &'a RawValue = "error" | "errors",
        error_type: &'a RawValue = "error_type",
        error_message: &'a RawValue = "error_message",
        /// `error` marks a flat error.
        object: &'a RawValue = "object",
        kind: &'a RawValue = "type",
        /// MiniMax's own status.
        base_resp: BaseResp<'a> = "base_resp",
        detail: &'a RawValue = "detail",
        message: &'a RawValue = "message" | "msg",
        code: &'a RawValue = "code" | "status" | "status_code",
    }
}

lenient_object! {
    /// Where Groq puts its counts.
    struct Groq {
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

lenient_object! {
    /// MiniMax's status: zero is success.
    struct BaseResp {
        status_code: &'a RawValue = "status_code",
    }
}

lenient_object! {
    /// One alternative of the answer.
    struct Choice {
        index: &'a RawValue = "index",
        delta: Delta<'a> = "delta",
        message: Delta<'a> = "message",
        /// The text of the older completions endpoint.
        text: &'a RawValue = "text",
        finish: &'a RawValue = "finish_reason",
        finish_camel: &'a RawValue = "finishReason",
        usage: &'a RawValue = "usage",
        error: &'a RawValue = "error",
    }
}

lenient_object! {
    /// A piece of the message, or all of it.
    struct Delta {
        content: &'a RawValue = "content",
        reasoning_content: &'a RawValue = "reasoning_content",
        reasoning: &'a RawValue = "reasoning",
        thinking: &'a RawValue = "thinking",
        reasoning_text: &'a RawValue = "reasoning_text",
        reasoning_details: &'a RawValue = "reasoning_details",
        refusal: &'a RawValue = "refusal",
        tool_calls: &'a RawValue = "tool_calls",
        function_call: &'a RawValue = "function_call",
        /// Members that go back unchanged.
        extra_content: &'a RawValue = "extra_content",
        thinking_blocks: &'a RawValue = "thinking_blocks",
        provider_specific_fields: &'a RawValue = "provider_specific_fields",
        reasoning_opaque: &'a RawValue = "reasoning_opaque",
    }
}

impl Chunk<'_> {
    /// Whether the payload says that something failed, in one of the ways servers say it.
    pub fn is_failure(&self) -> bool {
        let word = |raw: Option<&RawValue>, word: &str| raw.is_some_and(|raw| raw.get().trim_matches('"') == word);
        let answers = self.choices.as_ref().is_some_and(|choices| choices.first.is_some());
        let failed_status = self
            .base_resp
            .as_ref()
            .and_then(|status| status.status_code)
            .is_some_and(|code| code.get().trim_matches('"') != "0");
        // An empty object, list or string is a member that every event has; `false` says that all is well.
        let said = self
            .error
            .or_else(|| self.groq.as_ref().and_then(|groq| groq.error))
            .is_some_and(|error| !matches!(error.get(), "{}" | "[]" | "\"\"" | "false"));
        said || failed_status
            || word(self.object, "error")
            || word(self.kind, "error")
            || self.error_type.is_some() && !answers
            || self.error_message.is_some() && !answers
            || self.detail.is_some() && self.choices.is_none()
            || self.message.is_some() && self.code.is_some() && self.choices.is_none()
    }
}

/// The alternatives of an event. Only one is asked for, so only the first counts.
#[derive(Debug, Default)]
pub(crate) struct Choices<'a> {
    /// Whether there was a list at all.
    pub present: bool,
    /// The alternative with the lowest index.
    pub first: Option<Choice<'a>>,
}

impl Member for Choices<'_> {
    fn is_there(&self) -> bool {
        self.present
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoicesVisitor(std::marker::PhantomData))
    }
}

struct ChoicesVisitor<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ChoicesVisitor<'a> {
    type Value = Choices<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut choices = Choices {
            present: true,
            first: None,
        };
        while let Some(choice) = seq.next_element::<Choice<'a>>()? {
            let place = |choice: &Choice<'_>| choice.index.and_then(|raw| raw.get().parse::<u64>().ok()).unwrap_or(0);
            let better = choices.first.as_ref().is_none_or(|first| place(&choice) < place(first));
            if choice.present && better {
                choices.first = Some(choice);
            }
        }
        Ok(choices)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Choices::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Choices::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(json: &str) -> bool {
        serde_json::from_str::<Chunk<'_>>(json).unwrap().is_failure()
    }

    #[test]
    fn odd_types_cost_a_member_and_not_the_event() {
        let chunk: Chunk<'_> = serde_json::from_str(
            r#"{"id":7,"choices":[5,{"index":1,"delta":{"content":"b"}},{"index":0,"delta":"no","message":{"content":"a"}}],
                "usage":[],"base_resp":3,"model":null,"model":"m"}"#,
        )
        .unwrap();
        assert_eq!(chunk.model.unwrap().get(), "\"m\"");
        let choice = chunk.choices.unwrap().first.unwrap();
        assert!(choice.delta.is_none());
        assert_eq!(choice.message.unwrap().content.unwrap().get(), "\"a\"");
        for other in ["null", "3", "\"x\"", "[1,[]]", "true", "-1", "1.5"] {
            let json = format!("{{\"choices\":{other}}}");
            let chunk: Chunk<'_> = serde_json::from_str(&json).unwrap();
            assert!(chunk.choices.is_none_or(|choices| choices.first.is_none()), "{other}");
            assert!(!serde_json::from_str::<Chunk<'_>>(other).unwrap().present);
        }
    }

    #[test]
    fn failures_are_told_from_answers() {
        for json in [
            r#"{"error":{"message":"x"}}"#,
            r#"{"error":"x","choices":[{"delta":{}}]}"#,
            r#"{"object":"error","message":"x"}"#,
            r#"{"error_type":"x"}"#,
            r#"{"base_resp":{"status_code":1002},"choices":null}"#,
            r#"{"detail":"x"}"#,
            r#"{"message":"x","code":400}"#,
            r#"{"type":"error"}"#,
        ] {
            assert!(failure(json), "{json}");
        }
        for json in [
            r#"{"error":null,"choices":[]}"#,
            r#"{"error":{},"choices":[]}"#,
            r#"{"base_resp":{"status_code":0}}"#,
            r#"{"type":"ping"}"#,
            r#"{"choices":[],"message":"x","code":1}"#,
        ] {
            assert!(!failure(json), "{json}");
        }
    }
}
