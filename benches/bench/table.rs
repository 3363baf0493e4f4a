//! The table at the end of a run.

use super::measure::{Pair, Spread};

/// The requirement on a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// The median ratio is at most this.
    Ratio(f64),
    /// The largest value is at most this.
    Max(f64),
    /// The median is at least this.
    AtLeast(f64),
    /// Only reported.
    None,
}

/// The result for a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Missed,
    /// There was nothing to compare with a bound.
    Open,
}

/// One figure.
pub(crate) struct Row {
    pub(crate) figure: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) measured: Result<Spread, String>,
    /// The yardstick and its values.
    pub(crate) compared: Option<(String, Spread)>,
    /// The rounds' ratios.
    pub(crate) ratios: Option<Spread>,
    pub(crate) bound: Bound,
}

impl Row {
    /// A row for two things that took turns, in milliseconds.
    pub(crate) fn pair(figure: &'static str, yardstick: impl Into<String>, pair: Pair, bound: Bound) -> Self {
        Self {
            figure,
            unit: "ms",
            measured: Ok(pair.ours),
            compared: Some((yardstick.into(), pair.theirs)),
            ratios: Some(pair.ratios),
            bound,
        }
    }

    /// A row for one value by itself, or the reason for its absence.
    pub(crate) fn alone(
        figure: &'static str,
        unit: &'static str,
        measured: Result<Vec<f64>, String>,
        bound: Bound,
    ) -> Self {
        Self { figure, unit, measured: measured.map(Spread::new), compared: None, ratios: None, bound }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let Ok(measured) = &self.measured else {
            return Verdict::Open;
        };
        let is_kept = match self.bound {
            Bound::Ratio(most) => self.ratios.as_ref().is_some_and(|ratios| ratios.median() <= most),
            Bound::Max(most) => measured.max() <= most,
            Bound::AtLeast(least) => measured.median() >= least,
            Bound::None => return Verdict::Open,
        };
        if is_kept { Verdict::Kept } else { Verdict::Missed }
    }

    fn cells(&self) -> [String; 6] {
        let (compared, ratio) = match (&self.compared, &self.ratios) {
            (Some((yardstick, spread)), ratios) => (
                format!("{yardstick}: {}", show(spread, self.unit)),
                ratios.as_ref().map_or(String::new(), |ratios| format!("{:.2}", ratios.median())),
            ),
            (None, _) => Default::default(),
        };
        let bound = match self.bound {
            Bound::Ratio(most) => format!("ratio <= {most}"),
            Bound::Max(most) => format!("<= {} {}", number(most), self.unit),
            Bound::AtLeast(least) => format!(">= {} {}", number(least), self.unit),
            Bound::None => String::new(),
        };
        let verdict = match self.verdict() {
            Verdict::Kept => "ok",
            Verdict::Missed => "MISSED",
            Verdict::Open => "-",
        };
        let measured = match &self.measured {
            Ok(spread) => show(spread, self.unit),
            Err(why) => why.clone(),
        };
        [self.figure.to_owned(), measured, compared, ratio, bound, verdict.to_owned()]
    }
}

/// The rows as a Markdown table with aligned columns.
pub(crate) fn render(rows: &[Row]) -> String {
    let head = ["figure", "measured", "compared with", "ratio", "bound", "ok?"].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| {
        let widths = lines.iter().map(|cells| cells[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for (n, cells) in lines.iter().enumerate() {
        for (cell, width) in cells.iter().zip(widths) {
            text.push_str(&format!("| {cell:<width$} "));
        }
        text.push_str("|\n");
        if n == 0 {
            for width in widths {
                text.push_str(&format!("|{:-<1$}", "", width + 2));
            }
            text.push_str("|\n");
        }
    }
    text.push_str(
        "\nmin / median / max of the rounds; a ratio is the median of the rounds' ratios. 1 MB is 1,000,000 bytes.\n",
    );
    text
}

fn show(spread: &Spread, unit: &str) -> String {
    if spread.min() == spread.max() {
        return format!("{} {unit}", number(spread.median()));
    }
    let [min, median, max] = [spread.min(), spread.median(), spread.max()].map(number);
    format!("{min} / {median} / {max} {unit}")
}

/// Formats a number with at least three digits and grouped thousands.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 | 1000.0.. => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.trim_end_matches('0').is_empty() { grouped } else { format!("{grouped}.{rest}") }
}
