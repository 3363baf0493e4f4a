//! Measures the size of the programs on disk, stripped.

use super::table::{Bound, Row};

pub(crate) fn measure(_rounds: usize) -> Vec<Row> {
    let programs = [
        ("size of wake", env!("CARGO_BIN_EXE_wake")),
        ("size of bot", env!("CARGO_BIN_EXE_bot")),
        ("size of health", env!("CARGO_BIN_EXE_health")),
    ];
    let row = |(figure, path)| {
        let bytes = std::fs::metadata(path).map(|file| vec![file.len() as f64 / 1e6]);
        Row::alone(figure, "MB", bytes.map_err(|error| error.to_string()), Bound::None)
    };
    programs.map(row).into_iter().collect()
}
