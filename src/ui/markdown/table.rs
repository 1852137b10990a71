//! Tables: columns as wide as they need, narrower where the line is not wide enough.

use pulldown_cmark::Alignment;

use crate::ui::element::Element;
use crate::ui::line::Span;
use crate::ui::text;
use crate::ui::wrap::wrap;

/// A column is not made narrower than this as long as there is another way.
const MIN_COLUMN: usize = 3;

/// A table being read; its first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
    row: Vec<Vec<Span>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn push_cell(&mut self, cell: Vec<Span>) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The table's lines for `room` cells.
    pub(super) fn layout(&self, room: usize, unicode: bool) -> Vec<Vec<Span>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let borders = 3 * columns.saturating_sub(1);
        if columns == 0 || room < borders + columns * MIN_COLUMN {
            return self.as_records(room);
        }
        let widths = self.widths(columns, room - borders);
        let (bar, line, cross) = if unicode {
            (" │ ", "─", "─┼─")
        } else {
            (" | ", "-", "-+-")
        };
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, &widths, bar));
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| line.repeat(*width)).collect();
                lines.push(vec![Span::new(&rule.join(cross), Element::TableBorder)]);
            }
        }
        lines
    }

    /// Each column gets what it needs if that is no more than its fair share; the others divide the rest.
    fn widths(&self, columns: usize, room: usize) -> Vec<usize> {
        let need = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| natural_width(cell)).max().unwrap_or(0).max(1)
        };
        let needs: Vec<usize> = (0..columns).map(need).collect();
        let mut widths = vec![0; columns];
        let mut open: Vec<usize> = (0..columns).collect();
        let mut left = room;
        loop {
            let share = left / open.len().max(1);
            let (content, greedy): (Vec<usize>, Vec<usize>) = open.iter().partition(|column| needs[**column] <= share);
            if content.is_empty() || greedy.is_empty() {
                for (index, column) in open.iter().enumerate() {
                    let extra = usize::from(index < left % open.len().max(1));
                    widths[*column] = needs[*column].min(share + extra).max(1);
                }
                return widths;
            }
            for column in content {
                widths[column] = needs[column];
                left -= needs[column];
            }
            open = greedy;
        }
    }

    fn row_lines(&self, row: &[Vec<Span>], widths: &[usize], bar: &str) -> Vec<Vec<Span>> {
        let empty = Vec::new();
        let cells: Vec<Vec<Vec<Span>>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| wrap(row.get(column).unwrap_or(&empty), *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let lines = (0..height).map(|at| {
            let mut line = Vec::new();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    line.push(Span::new(bar, Element::TableBorder));
                }
                let spans = cells[column].get(at).cloned().unwrap_or_default();
                let used: usize = spans.iter().map(|span| text::width(&span.text)).sum();
                let blanks = width.saturating_sub(used);
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => blanks,
                    Some(Alignment::Center) => blanks / 2,
                    _ => 0,
                };
                line.extend((before > 0).then(|| Span::pad(before)));
                line.extend(spans);
                line.extend((blanks > before).then(|| Span::pad(blanks - before)));
            }
            line
        });
        lines.collect()
    }

    /// Where the line is too narrow for columns: each row as a list of its cells.
    fn as_records(&self, room: usize) -> Vec<Vec<Span>> {
        let mut lines = Vec::new();
        for row in &self.rows {
            for cell in row {
                lines.extend(wrap(cell, room));
            }
            lines.push(vec![Span::new(&"-".repeat(room.min(MIN_COLUMN)), Element::TableBorder)]);
        }
        lines
    }
}

/// The cells of the longest line of `cell`.
fn natural_width(cell: &[Span]) -> usize {
    let whole: String = cell.iter().map(|span| span.text.as_str()).collect();
    whole.split('\n').map(text::width).max().unwrap_or(0)
}
