//! The nearest key to one that does not exist.

use super::path::join;
use super::schema;

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

/// The one of `names` nearest to `name` by spelling, if it is near enough to be meant: a slip or two, or one is the
/// beginning of the other.
#[must_use]
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase().replace('-', "_");
    let allowed = (folded.chars().count() / 3).clamp(1, 4);
    names
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_lowercase().replace('-', "_");
            let distance = strsim::damerau_levenshtein(&folded, &other);
            let begins =
                distance <= 5 && folded.len() >= 4 && (other.starts_with(&folded) || folded.starts_with(&other));
            (distance <= allowed || begins).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
