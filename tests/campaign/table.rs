//! The table of results at the end of a campaign.

use std::{fmt::Write as _, time::Duration};

use super::{layer::Row, variants::Tried};

/// Renders the layers, followed by each broken variant with the result that caught it.
pub(crate) fn render(rows: &[Row], tried: &[Tried]) -> String {
    let mut table = String::from("layer            trials      of  failures  recovery p99  slowest    took\n");
    for row in rows {
        table.push_str(&line(row));
        table.push('\n');
    }
    if rows.iter().any(|row| row.trials == 0 && row.missing.is_none()) || rows.is_empty() {
        table.push_str("A layer without a trial has shown nothing: that is a failure.\n");
    }
    if !tried.is_empty() {
        table.push_str("\nbroken variant                                          layer            caught by\n");
    }
    for Tried { name, layer, verdict } in tried {
        let _infallible = writeln!(table, "{name:<55} {layer:<16} {verdict}");
    }
    table
}

/// Renders a layer's line. It is also printed as soon as the layer ends, in case the run is stopped early.
pub(crate) fn line(row: &Row) -> String {
    let Row { layer, trials, failures, took, .. } = row;
    if let Some(missing) = row.missing {
        return format!("{layer:<16} NOT RUN: {missing}");
    }
    let space = row.space.map_or_else(|| "-".to_owned(), |space| space.to_string());
    let (p99, slowest) = (quantile(&row.recoveries, 99), quantile(&row.recoveries, 100));
    format!("{layer:<16} {trials:>6}  {space:>6}  {failures:>8}  {p99:>12}  {slowest:>7}  {:>4} s", took.as_secs())
}

/// Formats a quantile in milliseconds; a dash without times.
fn quantile(sorted: &[Duration], percent: usize) -> String {
    let at = (sorted.len() * percent).div_ceil(100).checked_sub(1);
    at.and_then(|at| sorted.get(at)).map_or_else(|| "-".to_owned(), |time| format!("{} ms", time.as_millis()))
}
