//! Tables, laid out in a monospace block because Telegram has none.

use pulldown_cmark::Alignment;

/// The gap between two columns.
const GAP: &str = "  ";
/// The maximum padding of a cell in columns, to keep a single huge cell from widening every row.
const PAD_MAX: usize = 120;

/// A table while its cells are being parsed.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn start_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    /// Appends to the last cell.
    pub(super) fn push(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.extend(text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }));
        }
    }

    /// Returns the table as lines of text, with the first row underlined.
    pub(super) fn lay_out(&self) -> String {
        let widths = self.measure_widths();
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (index, row) in self.rows.iter().enumerate() {
            lines.push(self.render_line(row, &widths));
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(rules.join(GAP));
            }
        }
        lines.join("\n")
    }

    fn measure_widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.alignments.len()];
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = measure_width(cell).min(PAD_MAX).max(*widest);
            }
        }
        widths
    }

    fn render_line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.alignments);
        let cells: Vec<String> = cells.map(|((cell, width), alignment)| pad_cell(cell, *width, *alignment)).collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

fn pad_cell(cell: &str, to: usize, alignment: Alignment) -> String {
    let missing = to.saturating_sub(measure_width(cell));
    let before = match alignment {
        Alignment::Right => missing,
        Alignment::Center => missing / 2,
        Alignment::Left | Alignment::None => 0,
    };
    format!("{}{cell}{}", " ".repeat(before), " ".repeat(missing - before))
}

/// Returns the approximate width of `text` in a monospace font, in columns.
fn measure_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 => 2,
        0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
