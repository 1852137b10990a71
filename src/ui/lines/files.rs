//! The files a turn changed, on as few lines as they need.

use crate::protocol::ChangedFile;
use crate::ui::element::Element;
use crate::ui::line::{Line, Span};

use super::Page;

/// Files named; of the others the number is told.
const NAMED: usize = 12;

/// The files a turn changed, with the lines that came and went.
#[must_use]
pub fn changed_files(page: &Page, files: &[ChangedFile]) -> Vec<Line> {
    let mut spans = vec![Span::new("changed: ", Element::NoticeInfo)];
    for (index, file) in files.iter().take(NAMED).enumerate() {
        if index > 0 {
            spans.push(Span::new(", ", Element::NoticeText));
        }
        spans.push(Span::new(file.path.as_str(), Element::NoticeText));
        if file.new {
            spans.push(Span::new(" (new)", Element::NoticeHint));
        }
        let counts = [
            ("+", file.added, Element::DiffAdded),
            ("-", file.removed, Element::DiffRemoved),
        ];
        for (sign, lines, element) in counts {
            if let Some(lines) = lines.filter(|lines| *lines > 0) {
                spans.push(Span::pad(1));
                spans.push(Span::new(&format!("{sign}{lines}"), element));
            }
        }
    }
    if files.len() > NAMED {
        let more = format!(", and {} more", files.len() - NAMED);
        spans.push(Span::new(&more, Element::NoticeText));
    }
    page.wrapped(&spans, 0)
}
