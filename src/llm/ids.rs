//! Ids for calls whose server gave none.
//!
//! They are made from what is on the wire, so that the same answer read again has the same ids; nine of `a-z A-Z 0-9`,
//! which also the pickiest server takes back.

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The length of an id; Mistral's servers take no other.
pub(crate) const LENGTH: usize = 9;

/// Makes the ids of one answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdMaker {
    seed: String,
}

impl IdMaker {
    /// For the answer `answer_id` to a request with `messages` messages: the count keeps ids of different rounds apart
    /// where a server gives its answers no ids either.
    pub fn new(answer_id: &str, messages: usize) -> Self {
        Self {
            seed: format!("{answer_id}\n{messages}"),
        }
    }

    /// The id of the call at `place`; another one for each `attempt`.
    pub fn make(&self, place: usize, attempt: usize) -> String {
        hashed(&format!("{}\n{place}\n{attempt}", self.seed))
    }
}

/// An id that is always the same for the same text.
pub(crate) fn hashed(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(LENGTH)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_has_the_same_id_and_no_other_has_it() {
        let ids = IdMaker::new("answer", 3);
        assert_eq!(ids.make(0, 0), IdMaker::new("answer", 3).make(0, 0));
        assert_ne!(ids.make(0, 0), ids.make(1, 0));
        assert_ne!(ids.make(0, 0), IdMaker::new("answer", 5).make(0, 0));
        let id = ids.make(7, 7);
        assert!(id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
