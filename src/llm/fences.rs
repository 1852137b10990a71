//! Whether a place in Markdown text is inside code, where markup is quoted and not meant.

/// Follows a text as it comes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fences {
    fenced: bool,
    inline: bool,
    /// What came of the line so far was only a run of backticks or tildes after indentation.
    run: usize,
    /// Something else came in the line.
    line_has_text: bool,
    /// The last run of backticks inside a line is going on.
    ticks: bool,
}

impl Fences {
    /// Takes the next piece.
    pub fn feed(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some(at) = memchr::memchr3(b'\n', b'`', b'~', rest) {
            self.plain(&rest[..at]);
            self.special(rest[at]);
            rest = &rest[at + 1..];
        }
        self.plain(rest);
    }

    /// Takes bytes that end no line and are no mark.
    fn plain(&mut self, bytes: &[u8]) {
        let indentation = !self.line_has_text && self.run == 0;
        let is_text = if indentation {
            bytes.iter().any(|byte| !matches!(byte, b' ' | b'\t'))
        } else {
            !bytes.is_empty()
        };
        if is_text {
            self.line_has_text = true;
            self.ticks = false;
        }
    }

    fn special(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                *self = Self {
                    fenced: self.fenced,
                    ..Self::default()
                };
            }
            _ if !self.line_has_text => {
                self.run += 1;
                if self.run == 3 {
                    self.fenced = !self.fenced;
                }
                // One or two backticks at the start of a line open inline code.
                self.inline = byte == b'`' && self.run < 3;
                self.ticks = true;
            }
            b'`' => {
                if !self.ticks && !self.fenced {
                    self.inline = !self.inline;
                }
                self.ticks = true;
            }
            _ => self.ticks = false,
        }
    }

    /// Whether the next character is inside code.
    pub fn in_code(&self) -> bool {
        self.fenced || self.inline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_code(text: &str) -> bool {
        let mut fences = Fences::default();
        for c in text.chars() {
            fences.feed(c.encode_utf8(&mut [0; 4]));
        }
        fences.in_code()
    }

    #[test]
    fn code_in_fences_and_in_lines() {
        for inside in ["```\n", "x\n  ```json\nä", "a `b", "`", "~~~\n"] {
            assert!(in_code(inside), "{inside:?}");
        }
        for outside in ["", "a", "```\nx\n```\n", "a `b` c", "a `b\nc", "x ``` y ``` z"] {
            assert!(!in_code(outside), "{outside:?}");
        }
    }
}
