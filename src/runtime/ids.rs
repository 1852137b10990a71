//! Ids of conversations, turns, messages, jobs and sessions: sortable by time, unique without a registry, free of `:`
//! (which separates the parts of a key in the store).

use crate::runtime::clock;

/// How many random characters a conversation's id ends with: 36^6, about two thousand million, within one millisecond.
const RANDOM_CHARS: usize = 6;

/// A new conversation's id.
#[must_use]
pub fn conversation() -> String {
    format!("c{}-{}", base36(clock::now_ms()), random(RANDOM_CHARS))
}

/// The id of the `number`th turn of a conversation. The number is for people; the rest makes it unique where two
/// processes continue one conversation.
#[must_use]
pub fn turn(number: u64) -> String {
    format!("t{number}-{}{}", base36(clock::now_ms()), random(3))
}

/// The number in the id of a turn.
#[must_use]
pub fn turn_number(id: &str) -> Option<u64> {
    id.strip_prefix('t')?.split('-').next()?.parse().ok()
}

/// A delegated job's id.
#[must_use]
pub fn job() -> String {
    format!("j{}-{}", base36(clock::now_ms()), random(RANDOM_CHARS))
}

/// A session's id.
#[must_use]
pub fn session() -> String {
    format!("s{}-{}", base36(clock::now_ms()), random(RANDOM_CHARS))
}

/// The conversation id of the child that works on `job_id` for `parent`.
#[must_use]
pub fn child_conversation(parent: &str, job_id: &str) -> String {
    format!("{parent}.child.{job_id}")
}

/// Whether `id` may be part of a key.
#[must_use]
pub fn is_valid(id: &str) -> bool {
    !id.is_empty() && id.len() <= 256 && !id.contains(':') && !id.chars().any(char::is_control)
}

fn base36(mut value: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(value % 36).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        value /= 36;
        if value == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

fn random(chars: usize) -> String {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // No source of randomness (a bare chroot): the address of a fresh hash state and the time still tell apart.
        use std::hash::{BuildHasher, Hasher};
        let hash = std::collections::hash_map::RandomState::new().build_hasher().finish();
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes[8..].copy_from_slice(&clock::now_ms().to_le_bytes());
    }
    let text = base36(u64::from_le_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ]));
    let text = format!("{text:0>13}");
    text.chars().rev().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_valid_and_in_order_of_time() {
        let ids: HashSet<_> = (0..2000).map(|_| conversation()).collect();
        assert_eq!(ids.len(), 2000);
        assert!(ids.iter().all(|id| is_valid(id)));
        assert!(is_valid(&child_conversation(&conversation(), &job())));
        assert!(!is_valid("a:b") && !is_valid("") && !is_valid("a\nb"));
        assert!(turn(7).starts_with("t7-"));
    }

    #[test]
    fn base36_counts() {
        assert_eq!(
            (base36(0), base36(35), base36(36)),
            ("0".into(), "z".into(), "10".into())
        );
    }
}
