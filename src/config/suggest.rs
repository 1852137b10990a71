//! The nearest key to one that does not exist.

use super::path::join;
use super::schema;
use crate::nearest::nearest;

/// The key that was probably meant by `segments`, as a dotted path; `None` where nothing is near.
///
/// Looks first among what may stand in the same table, then for a key of that name in another table, then over all
/// keys as wholes.
#[must_use]
pub fn nearest_key<S: AsRef<str>>(segments: &[S]) -> Option<String> {
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    // The first segment that leads nowhere is the one that is wrong.
    let wrong = (0..segments.len()).find(|&at| matches!(schema::at(&segments[..=at]), schema::At::Unknown))?;
    let (parent, name, rest) = (&segments[..wrong], segments[wrong], &segments[wrong + 1..]);
    let siblings = schema::children(parent);
    if let Some(sibling) = nearest(
        name,
        siblings.iter().copied().filter(|sibling| !schema::is_wildcard(sibling)),
    ) {
        let mended: Vec<&str> = parent
            .iter()
            .copied()
            .chain([sibling])
            .chain(rest.iter().copied())
            .collect();
        return Some(match schema::at(&mended) {
            schema::At::Unknown if !rest.is_empty() => nearest_key(&mended).unwrap_or_else(|| join(&mended[..=wrong])),
            _ => join(&mended),
        });
    }
    let last = *segments.last()?;
    let elsewhere = schema::rows().filter(|row| !row.is_pattern() && row.segments().next_back() == Some(last));
    if let Some(row) = elsewhere.into_iter().next() {
        return Some(row.path.to_owned());
    }
    nearest(&join(&segments), schema::rows().map(|row| row.path)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_lead_to_the_key_that_was_meant() {
        for (typed, meant) in [
            ("llm_config.retry_max_retrys", Some("llm_config.retry_max_retries")),
            ("llm_confg.timeout", Some("llm_config.timeout")),
            ("llm_confg.timout", Some("llm_config.timeout")),
            ("llm_config.api_key", Some("llm_config.api_key_env")),
            ("timeout", Some("llm_config.timeout")),
            ("api_url", Some("llm_config.api_url")),
            ("defaultModel", Some("default_model")),
            ("default-model", Some("default_model")),
            ("context_management.enable", Some("context_management.enabled")),
            (
                "llm_config.models.x.temprature",
                Some("llm_config.models.x.temperature"),
            ),
            ("profiles.a.b/c.d", None),
            ("zzz", None),
            ("tools.bash.zzz", None),
        ] {
            let path: Vec<&str> = typed.split('.').collect();
            assert_eq!(nearest_key(&path).as_deref(), meant, "{typed}");
        }
    }
}
