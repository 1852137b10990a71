//! "Did you mean": the one of some names that is nearest to a mistyped one.

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
    use super::nearest;

    #[test]
    fn a_slip_or_a_beginning_is_near_and_anything_else_is_not() {
        let names = ["help", "config", "conversation"];
        for (typed, meant) in [
            ("hlep", Some("help")),
            ("Config", Some("config")),
            ("confi", Some("config")),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
        assert_eq!(nearest("zzzz", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
