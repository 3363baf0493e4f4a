//! Reads the tables of docs/CAPABILITIES.md.

use std::{collections::BTreeMap, path::Path};

/// The document's path in the repository.
const DOCUMENT: &str = "docs/CAPABILITIES.md";

/// One row: its name, and its cells by column.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The first cell, without its backticks.
    pub(super) name: String,
    cells: BTreeMap<String, String>,
}

impl Row {
    /// The text of a cell.
    #[track_caller]
    pub(super) fn cell(&self, column: &str) -> &str {
        self.cells.get(column).unwrap_or_else(|| panic!("{DOCUMENT} has no column {column:?} beside {}", self.name))
    }

    /// The texts in backticks in a cell, in order.
    #[track_caller]
    pub(super) fn named(&self, column: &str) -> Vec<String> {
        self.cell(column).split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
}

/// Reads the rows of the first table below a heading.
#[track_caller]
pub(super) fn read(heading: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENT);
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().skip_while(|line| *line != format!("## {heading}")).skip(1);
    let mut table = lines.by_ref().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let columns = cells(table.next().unwrap_or_else(|| panic!("{DOCUMENT} has no table below “## {heading}”")));
    let rows: Vec<Row> = table
        .skip(1)
        .map(|line| {
            let cells = cells(line);
            assert_eq!(cells.len(), columns.len(), "a row has as many cells as the table has columns: {line}");
            Row { name: cells[0].trim_matches('`').to_owned(), cells: columns.iter().cloned().zip(cells).collect() }
        })
        .collect();
    assert!(!rows.is_empty());
    rows
}

fn cells(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

/// Fails if there are differences, and lists them all.
#[track_caller]
pub(super) fn agree(differences: &[String]) {
    assert!(differences.is_empty(), "{DOCUMENT} differs from the product:\n{}", differences.join("\n"));
}
