//! Lines out of a stream of bytes, none longer than a bound.

/// One line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The whole line.
    Whole(Vec<u8>),
    /// A line that was longer than the bound: its length; the line itself was not kept.
    TooLong(usize),
}

/// Collects lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// How much of a line that is too long was left out.
    skipped: usize,
}

impl Lines {
    /// How long a line may be. An op holds a line the user typed or pasted and an environment; neither comes near.
    pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;

    /// Takes the next bytes and gives the lines they complete. Blank lines are left out.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.push(&bytes[..end]);
            lines.extend(self.rest());
            bytes = &bytes[end + 1..];
        }
        self.push(bytes);
        lines
    }

    /// What stands after the last line break.
    pub(super) fn rest(&mut self) -> Option<Line> {
        let skipped = std::mem::take(&mut self.skipped);
        let line = std::mem::take(&mut self.partial);
        if skipped > 0 {
            Some(Line::TooLong(skipped))
        } else if line.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(Line::Whole(line))
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len();
        } else if self.partial.len() + bytes.len() > Self::MAX_BYTES {
            self.skipped = self.partial.len() + bytes.len();
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_that_is_too_long_is_counted_and_the_next_one_read() {
        let mut lines = Lines::default();
        let part = vec![b'x'; Lines::MAX_BYTES / 2 + 1];
        assert_eq!(lines.feed(&part), []);
        assert_eq!(lines.feed(&part), []);
        assert_eq!(lines.partial.capacity(), 0);
        assert_eq!(
            lines.feed(b"yy\n{}\n \r\nz"),
            [Line::TooLong(Lines::MAX_BYTES + 4), Line::Whole(b"{}".to_vec())]
        );
        assert_eq!(lines.rest(), Some(Line::Whole(b"z".to_vec())));
        assert_eq!(lines.rest(), None);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_the_reads_end(text in "[a-c\n]{0,60}", cuts in proptest::collection::vec(1usize..8, 1..20)) {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                found.extend(lines.feed(now));
                rest = later;
            }
            found.extend(lines.rest());
            let expected: Vec<_> = text.split('\n').filter(|line| !line.is_empty())
                .map(|line| Line::Whole(line.as_bytes().to_vec())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
