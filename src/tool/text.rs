//! A file's bytes seen as lines of text, so that a change touches the bytes it means and no others.
//!
//! Nothing is decoded and encoded back as a whole: lines are ranges of bytes, a change replaces ranges. What is not
//! UTF-8 is shown as Latin-1, in which every byte is a character, line by line; UTF-16 is known by its byte order mark.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// How a file's characters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8 throughout.
    Utf8,
    /// One byte a character.
    Latin1,
    /// Lines of UTF-8 and lines that are not.
    Mixed,
    /// UTF-16, little end first.
    Utf16Le,
    /// UTF-16, big end first.
    Utf16Be,
}

impl Encoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Latin1 => "Latin-1",
            Self::Mixed => "partly UTF-8, partly Latin-1",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
        }
    }

    /// Bytes of the smallest unit.
    pub(super) fn unit(self) -> usize {
        match self {
            Self::Utf16Le | Self::Utf16Be => 2,
            _ => 1,
        }
    }
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eol {
    Lf,
    CrLf,
    Cr,
}

impl Eol {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// Bytes as lines.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(super) encoding: Encoding,
    /// Where each line starts; the first one after a byte order mark.
    starts: Vec<usize>,
    /// Where lines are separated by a lone carriage return.
    cr: bool,
}

/// A character that the file's encoding does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unencodable(pub(super) char);

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

impl Text {
    /// `None` for what is no text: it has NUL bytes and no byte order mark of UTF-16.
    pub(super) fn new(bytes: Vec<u8>) -> Option<Self> {
        let (encoding, bom) = if bytes.starts_with(b"\xff\xfe") {
            (Encoding::Utf16Le, 2)
        } else if bytes.starts_with(b"\xfe\xff") {
            (Encoding::Utf16Be, 2)
        } else if memchr(0, &bytes).is_some() {
            return None;
        } else {
            let bom = if bytes.starts_with(UTF8_BOM) { UTF8_BOM.len() } else { 0 };
            (byte_encoding(&bytes), bom)
        };
        let mut text = Self {
            starts: Vec::new(),
            cr: false,
            bytes,
            encoding,
        };
        let breaks = |text: &Self, separator: u8| -> Vec<usize> {
            match encoding.unit() {
                1 => memchr_iter(separator, &text.bytes[bom..])
                    .map(|at| bom + at + 1)
                    .collect(),
                _ => (bom..text.bytes.len().saturating_sub(1))
                    .step_by(2)
                    .filter(|at| text.unit_at(*at) == u16::from(separator))
                    .map(|at| at + 2)
                    .collect(),
            }
        };
        let mut starts = breaks(&text, b'\n');
        if starts.is_empty() {
            starts = breaks(&text, b'\r');
            text.cr = !starts.is_empty();
        }
        text.starts = Vec::with_capacity(starts.len() + 1);
        if bom < text.bytes.len() {
            text.starts.push(bom);
        }
        text.starts
            .extend(starts.into_iter().filter(|start| *start < text.bytes.len()));
        Some(text)
    }

    fn unit_at(&self, at: usize) -> u16 {
        let pair = [self.bytes[at], self.bytes[at + 1]];
        match self.encoding {
            Encoding::Utf16Be => u16::from_be_bytes(pair),
            _ => u16::from_le_bytes(pair),
        }
    }

    /// How many lines there are; an unfinished last one counts, what follows a final line end does not.
    pub(super) fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// Bytes of the byte order mark.
    pub(super) fn bom(&self) -> usize {
        match self.encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            _ if self.bytes.starts_with(UTF8_BOM) => UTF8_BOM.len(),
            _ => 0,
        }
    }

    /// Where line `number` (from 1) starts; one past the last line is the end.
    pub(super) fn start_of(&self, number: usize) -> usize {
        self.starts
            .get(number.saturating_sub(1))
            .copied()
            .unwrap_or(self.bytes.len())
    }

    /// The bytes of lines `first` to `last` (from 1, inclusive) with their ends.
    pub(super) fn range(&self, first: usize, last: usize) -> Range<usize> {
        self.start_of(first)..self.start_of(last + 1)
    }

    /// The number of the line that the byte at `at` is in.
    pub(super) fn line_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    /// How line `number` ends, if it does.
    pub(super) fn eol_of(&self, number: usize) -> Option<Eol> {
        let line = &self.bytes[self.range(number, number)];
        let ends = |text: &str| {
            let tail = self.encode_ascii(text);
            line.ends_with(&tail)
        };
        if self.cr {
            ends("\r").then_some(Eol::Cr)
        } else if ends("\r\n") {
            Some(Eol::CrLf)
        } else {
            ends("\n").then_some(Eol::Lf)
        }
    }

    /// How lines end around line `number`: there, before it, after it, else in a new file.
    pub(super) fn eol_near(&self, number: usize) -> Eol {
        [number, number.saturating_sub(1), number + 1]
            .into_iter()
            .filter(|number| (1..=self.line_count()).contains(number))
            .find_map(|number| self.eol_of(number))
            .unwrap_or(Eol::Lf)
    }

    fn encode_ascii(&self, text: &str) -> Vec<u8> {
        match self.encoding {
            Encoding::Utf16Le => text.bytes().flat_map(|byte| [byte, 0]).collect(),
            Encoding::Utf16Be => text.bytes().flat_map(|byte| [0, byte]).collect(),
            _ => text.as_bytes().to_vec(),
        }
    }

    /// Line `number` as text, without its end.
    pub(super) fn line(&self, number: usize) -> Cow<'_, str> {
        let range = self.range(number, number);
        let end = self
            .eol_of(number)
            .map_or(0, |eol| eol.text().len() * self.encoding.unit());
        self.decode(range.start..range.end - end)
    }

    /// A range of bytes as text.
    pub(super) fn decode(&self, range: Range<usize>) -> Cow<'_, str> {
        let bytes = &self.bytes[range];
        match self.encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => {
                let units = bytes.chunks(2).map(|pair| match (pair, self.encoding) {
                    ([a, b], Encoding::Utf16Le) => u16::from_le_bytes([*a, *b]),
                    ([a, b], _) => u16::from_be_bytes([*a, *b]),
                    // Half a unit at the end.
                    _ => 0xfffd,
                });
                char::decode_utf16(units)
                    .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect::<String>()
                    .into()
            }
            _ => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
            },
        }
    }

    /// `text` in the file's encoding, each `\n` of it as `eol`; a `\r\n` stays one.
    pub(super) fn encode(&self, text: &str, eol: Eol) -> Result<Vec<u8>, Unencodable> {
        let text = with_eol(text, eol);
        Ok(match self.encoding {
            Encoding::Utf8 | Encoding::Mixed => text.into_owned().into_bytes(),
            Encoding::Latin1 => text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).map_err(|_| Unencodable(c)))
                .collect::<Result<_, _>>()?,
            Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        })
    }

    /// Where `needle` (in the file's encoding) is, without overlaps.
    pub(super) fn find(&self, needle: &[u8]) -> Vec<usize> {
        let bom = self.bom();
        let unit = self.encoding.unit();
        if needle.is_empty() {
            return Vec::new();
        }
        let finder = memchr::memmem::Finder::new(needle);
        let mut found = Vec::new();
        let mut from = bom;
        while let Some(at) = finder.find(&self.bytes[from..]) {
            let at = from + at;
            if (at - bom).is_multiple_of(unit) {
                found.push(at);
                from = at + needle.len();
            } else {
                from = at + 1;
            }
        }
        found
    }

    /// The bytes with each range replaced. The ranges are in order and do not overlap.
    pub(super) fn spliced(&self, changes: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
        let mut result = Vec::with_capacity(self.bytes.len() + changes.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut from = 0;
        for (range, new) in changes {
            result.extend_from_slice(&self.bytes[from..range.start]);
            result.extend_from_slice(new);
            from = range.end;
        }
        result.extend_from_slice(&self.bytes[from..]);
        result
    }
}

fn byte_encoding(bytes: &[u8]) -> Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return Encoding::Utf8;
    }
    let mixed = bytes
        .split(|byte| *byte == b'\n')
        .any(|line| !line.is_ascii() && std::str::from_utf8(line).is_ok());
    if mixed { Encoding::Mixed } else { Encoding::Latin1 }
}

/// The beginning of `text`, at most `bytes` long, ending with a whole character.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `text` with each lone `\n` as `eol`.
pub(super) fn with_eol(text: &str, eol: Eol) -> Cow<'_, str> {
    if eol == Eol::Lf || !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + text.len() / 16);
    let mut previous = '\0';
    for c in text.chars() {
        match (c, previous, eol) {
            ('\n', '\r', Eol::CrLf) => result.push('\n'),
            // The `\r` of a `\r\n` is already there.
            ('\n', '\r', Eol::Cr) => {}
            ('\n', ..) => result.push_str(eol.text()),
            _ => result.push(c),
        }
        previous = c;
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utf16(text: &str) -> Vec<u8> {
        [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect()
    }

    #[test]
    fn lines_of_every_encoding() {
        let cases: [(&[u8], Encoding, &[&str]); 8] = [
            (b"", Encoding::Utf8, &[]),
            (b"one", Encoding::Utf8, &["one"]),
            (b"one\ntwo\n", Encoding::Utf8, &["one", "two"]),
            (b"\xef\xbb\xbfone\r\n\r\ntwo", Encoding::Utf8, &["one", "", "two"]),
            (b"old\rmac\r", Encoding::Utf8, &["old", "mac"]),
            (b"caf\xe9\nplain\n", Encoding::Latin1, &["café", "plain"]),
            (b"caf\xe9\nna\xc3\xafve\n", Encoding::Mixed, &["café", "naïve"]),
            (&utf16("é\r\nΩ"), Encoding::Utf16Le, &["é", "Ω"]),
        ];
        for (bytes, encoding, lines) in cases {
            let text = Text::new(bytes.to_vec()).unwrap();
            assert_eq!(text.encoding, encoding, "{bytes:?}");
            let shown: Vec<_> = (1..=text.line_count()).map(|number| text.line(number)).collect();
            assert_eq!(shown, lines, "{bytes:?}");
        }
        assert!(Text::new(b"ELF\0\0".to_vec()).is_none());
    }

    #[test]
    fn new_text_takes_the_line_ends_and_the_encoding_around_it() {
        let text = Text::new(b"a\r\nb\r\n".to_vec()).unwrap();
        assert_eq!(text.encode("x\ny\r\nz", text.eol_near(2)).unwrap(), b"x\r\ny\r\nz");
        let latin = Text::new(b"\xe9\n".to_vec()).unwrap();
        assert_eq!(latin.encode("ü", Eol::Lf).unwrap(), b"\xfc");
        assert_eq!(latin.encode("€", Eol::Lf), Err(Unencodable('€')));
        let wide = Text::new(utf16("a\nb")).unwrap();
        assert_eq!(wide.encode("ß", Eol::Lf).unwrap(), [0xdf, 0]);
        assert_eq!(with_eol("a\r\nb\n", Eol::Cr), "a\rb\r");
    }

    #[test]
    fn a_match_in_utf16_starts_at_a_whole_unit() {
        // The bytes of U+0101 also appear across the border of U+0100 U+0001 … shifted by one.
        let text = Text::new(utf16("\u{0100}\u{0001}\u{0101}")).unwrap();
        assert_eq!(text.find(&[0x01, 0x01]), [6]);
    }

    proptest! {
        #[test]
        fn lines_cover_the_bytes_exactly(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..80)) {
            if let Some(text) = Text::new(bytes.clone()) {
                let joined: Vec<u8> = (1..=text.line_count()).flat_map(|n| bytes[text.range(n, n)].to_vec()).collect();
                prop_assert_eq!(&bytes[text.bom()..], &joined);
                for number in 1..=text.line_count() {
                    prop_assert!(!text.range(number, number).is_empty());
                    prop_assert_eq!(text.line_at(text.start_of(number)), number);
                    let _ = text.line(number);
                }
            }
        }
    }
}
