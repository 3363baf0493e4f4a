//! A chart as SVG, with a table of the same values. Pure.
//!
//! Colour never carries information alone: stacked parts have an order and a legend, lines have dashes, and each mark names its value. The
//! guard forbids inline styles, so sizes are attributes and colours come from the style sheet.

use maud::{Markup, html};

/// The drawing's size in its own units, scaled to the available space.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 190.0;
/// Margins, for value labels on the left and day labels below.
const LEFT: f64 = 50.0;
const RIGHT: f64 = 6.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 22.0;
/// A bar's share of a day's width.
const BAR_SHARE: f64 = 0.8;
/// A limit beyond this multiple of the highest value isn't drawn, since the values would look flat.
const LIMIT_TIMES: f64 = 4.0;
/// Number of colours and dashes in the style sheet.
const STYLES: usize = 5;

/// The kind of drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Stacked bars.
    Stacked,
    /// A line for each series.
    Lines,
}

/// A series of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartSeries {
    /// The series' name.
    pub(super) name: String,
    /// A value per day. `None` for a missing one.
    pub(super) values: Vec<Option<f64>>,
}

/// A chart.
#[derive(Debug, Clone)]
pub(super) struct Chart<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    /// The heading.
    pub(super) title: &'a str,
    /// A summary in a sentence or two.
    pub(super) summary: String,
    /// Labels of the days.
    pub(super) days: Vec<String>,
    pub(super) series: Vec<ChartSeries>,
    pub(super) shape: Shape,
    /// A named horizontal line, such as a budget.
    pub(super) limit: Option<(&'a str, f64)>,
    /// Formats a value.
    pub(super) unit: fn(f64) -> String,
}

impl Chart<'_> {
    /// Renders the chart with heading, legend and table.
    pub(super) fn draw(&self) -> Markup {
        html! {
            figure .chart-box {
                h2 #{ (self.id) "-head" } { (self.title) }
                (self.render_svg())
                (self.render_legend())
                figcaption .meta { (self.summary) }
                (self.render_table())
            }
        }
    }

    fn render_svg(&self) -> Markup {
        let scale = Scale { days: self.days.len().max(1) as f64, top: self.scale_top() };
        let (title, desc) = (format!("{}-title", self.id), format!("{}-desc", self.id));
        html! {
            svg .chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-labelledby={ (title) " " (desc) } {
                title id=(title) { (self.title) }
                desc id=(desc) { (self.summary) }
                (self.render_axes(&scale))
                @match self.shape {
                    Shape::Stacked => (self.render_bars(&scale)),
                    Shape::Lines => (self.render_lines(&scale)),
                }
                @if let Some((name, limit)) = self.limit.filter(|(_, limit)| *limit <= scale.top) {
                    line .limit x1=(format_number(LEFT)) x2=(format_number(WIDTH - RIGHT)) y1=(format_number(scale.y(limit))) y2=(format_number(scale.y(limit))) {}
                    text .limit-name x=(format_number(WIDTH - RIGHT)) y=(format_number(scale.y(limit) - 3.0)) text-anchor="end" { (name) }
                }
            }
        }
    }

    fn render_axes(&self, scale: &Scale) -> Markup {
        let names = [0, self.days.len() / 2, self.days.len().saturating_sub(1)];
        let mut names = names.to_vec();
        names.dedup();
        html! {
            @for (value, name) in self.axis_values(scale.top) {
                line .axis x1=(format_number(LEFT)) x2=(format_number(WIDTH - RIGHT)) y1=(format_number(scale.y(value))) y2=(format_number(scale.y(value))) {}
                text x=(format_number(LEFT - 4.0)) y=(format_number(scale.y(value) + 4.0)) text-anchor="end" { (name) }
            }
            @for at in names {
                @let anchor = if at == 0 { "start" } else if at + 1 == self.days.len() { "end" } else { "middle" };
                @let x = match anchor { "start" => scale.x(at), "end" => scale.x(at + 1), _ => scale.middle_x(at) };
                text x=(format_number(x)) y=(format_number(HEIGHT - 6.0)) text-anchor=(anchor) { (self.days.get(at).map_or("", String::as_str)) }
            }
        }
    }

    /// Returns the labelled values of the axis. A middle value that would repeat another label stays unlabelled.
    fn axis_values(&self, top: f64) -> [(f64, String); 3] {
        let of = |value| (value, (self.unit)(value));
        let [none, (half, name), all] = [0.0, top / 2.0, top].map(of);
        let is_told = name != none.1 && name != all.1;
        [none, (half, if is_told { name } else { String::new() }), all]
    }

    fn render_bars(&self, scale: &Scale) -> Markup {
        let width = (scale.x(1) - scale.x(0)) * BAR_SHARE;
        html! {
            @for (at, day) in self.days.iter().enumerate() {
                @for StackedPart { place, name, from, value } in self.stack_day(at) {
                    rect .bar .{ "s" (style_index(place)) } x=(format_number(scale.middle_x(at) - width / 2.0)) width=(format_number(width))
                        y=(format_number(scale.y(from + value))) height=(format_number(scale.y(from) - scale.y(from + value))) {
                        title { (day) ", " (name) ": " ((self.unit)(value)) }
                    }
                }
            }
        }
    }

    /// Returns a day's parts from the bottom.
    fn stack_day(&self, at: usize) -> Vec<StackedPart<'_>> {
        let mut from = 0.0;
        let mut parts = Vec::new();
        for (place, series) in self.series.iter().enumerate() {
            let value = series.values.get(at).copied().flatten().unwrap_or_default().max(0.0);
            if value > 0.0 {
                parts.push(StackedPart { place, name: series.name.as_str(), from, value });
                from += value;
            }
        }
        parts
    }

    fn render_lines(&self, scale: &Scale) -> Markup {
        html! {
            @for (place, series) in self.series.iter().enumerate() {
                @for run in group_runs(&series.values) {
                    polyline .line .{ "s" (style_index(place)) }
                        points=(run.iter().map(|(at, value)| format!("{},{}", format_number(scale.middle_x(*at)), format_number(scale.y(*value)))).collect::<Vec<_>>().join(" ")) {}
                }
                @for (at, value) in series.values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))) {
                    circle .dot .{ "s" (style_index(place)) } cx=(format_number(scale.middle_x(at))) cy=(format_number(scale.y(value))) r="2" {
                        title { (self.days.get(at).map_or("", String::as_str)) ", " (series.name) ": " ((self.unit)(value)) }
                    }
                }
            }
        }
    }

    fn render_legend(&self) -> Markup {
        html! {
            @if self.series.len() > 1 {
                ul .legend {
                    @for (place, series) in self.series.iter().enumerate() {
                        li {
                            svg viewBox="0 0 20 10" width="20" height="10" aria-hidden="true" {
                                @match self.shape {
                                    Shape::Stacked => rect .bar .{ "s" (style_index(place)) } x="2" width="16" y="0" height="10" {},
                                    Shape::Lines => line .line .{ "s" (style_index(place)) } x1="0" x2="20" y1="5" y2="5" {},
                                }
                            }
                            " " (series.name)
                        }
                    }
                }
            }
        }
    }

    /// Renders the values as a table without empty days.
    fn render_table(&self) -> Markup {
        let has_values = |at: usize| {
            self.series
                .iter()
                .any(|series| series.values.get(at).is_some_and(|value| value.is_some_and(|value| value > 0.0)))
        };
        html! {
            details {
                summary { "Show as a table" }
                div .scroll tabindex="0" role="group" aria-labelledby={ (self.id) "-head" } {
                    table {
                        caption { (self.title) }
                        thead { tr { th scope="col" { "Day" } @for series in &self.series { th scope="col" { (series.name) } } } }
                        tbody {
                            @for (at, day) in self.days.iter().enumerate().rev().filter(|(at, _)| has_values(*at)) {
                                tr {
                                    th scope="row" { (day) }
                                    @for series in &self.series {
                                        td { (series.values.get(at).copied().flatten().map_or_else(|| "–".to_owned(), self.unit)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the end of the scale: a round number above everything drawn.
    fn scale_top(&self) -> f64 {
        let highest = match self.shape {
            Shape::Stacked => (0..self.days.len())
                .map(|at| self.stack_day(at).iter().map(|part| part.value).sum::<f64>())
                .fold(0.0, f64::max),
            Shape::Lines => {
                self.series.iter().flat_map(|series| series.values.iter().flatten()).copied().fold(0.0, f64::max)
            }
        };
        let limit = self.limit.map_or(0.0, |(_, limit)| limit);
        round_up(if limit <= highest * LIMIT_TIMES { highest.max(limit) } else { highest })
    }
}

/// A day's part of a stacked chart.
struct StackedPart<'a> {
    /// The index of the series.
    place: usize,
    /// The name of the series.
    name: &'a str,
    /// The lower edge.
    from: f64,
    value: f64,
}

/// Converts days and values to drawing units.
struct Scale {
    days: f64,
    top: f64,
}

impl Scale {
    fn x(&self, day: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * day as f64 / self.days
    }

    fn middle_x(&self, day: usize) -> f64 {
        f64::midpoint(self.x(day), self.x(day + 1))
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / self.top)
    }
}

/// Returns a series' style in the style sheet, from 1.
fn style_index(place: usize) -> usize {
    place % STYLES + 1
}

/// Formats a number for an attribute.
fn format_number(value: f64) -> String {
    format!("{value:.1}")
}

/// Groups consecutive days with values.
fn group_runs(values: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut runs: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut is_open = false;
    for (at, value) in values.iter().enumerate() {
        match (value, runs.last_mut()) {
            (None, _) => is_open = false,
            (Some(value), Some(run)) if is_open => run.push((at, *value)),
            (Some(value), _) => {
                runs.push(vec![(at, *value)]);
                is_open = true;
            }
        }
    }
    runs
}

/// Rounds up to a round number times a power of ten; 1 for zero.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = power_below(value);
    let steps = [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

/// Returns the greatest power of ten up to a positive number. Written by hand, since each start would otherwise load the maths library.
fn power_below(value: f64) -> f64 {
    let mut power = 1.0;
    while power * 10.0 <= value {
        power *= 10.0;
    }
    while power > value {
        power /= 10.0;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(shape: Shape, values: &[&[Option<f64>]], limit: Option<f64>) -> Chart<'static> {
        let series = values.iter().enumerate();
        let series = series.map(|(at, values)| ChartSeries { name: format!("m<{at}>"), values: values.to_vec() });
        Chart {
            id: "cost",
            title: "Cost per day",
            summary: "What it cost.".to_owned(),
            days: ["19 Nov", "20 Nov", "21 Nov"].map(str::to_owned).to_vec(),
            series: series.collect(),
            shape,
            limit: limit.map(|limit| ("budget", limit)),
            unit: |value| format!("${value:.2}"),
        }
    }

    #[test]
    fn parts_stand_on_each_other_and_name_their_values() {
        let values: [&[Option<f64>]; 2] = [&[Some(1.0), None, Some(2.0)], &[Some(3.0), Some(0.0), None]];
        let drawn = chart(Shape::Stacked, &values, Some(5.0)).draw().into_string();
        // The scale ends at five: a day of four takes four fifths of 154 units above 168.
        for part in [
            r#"<rect class="bar s1" x="60.1" width="81.1" y="137.2" height="30.8"><title>19 Nov, m&lt;0&gt;: $1.00</title>"#,
            r#"y="44.8" height="92.4"><title>19 Nov, m&lt;1&gt;: $3.00</title>"#,
            r#"<line class="limit" x1="50.0" x2="354.0" y1="14.0" y2="14.0">"#,
            r#"aria-labelledby="cost-title cost-desc"><title id="cost-title">Cost per day</title><desc id="cost-desc">"#,
            r#"<tr><th scope="row">21 Nov</th><td>$2.00</td><td>–</td></tr>"#,
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        assert!(
            !drawn.contains("20 Nov, m") && !drawn.contains(r#"row">20 Nov"#),
            "a day of nothing has no mark: {drawn}"
        );
        assert!(!drawn.contains("style="), "the guard forbids it: {drawn}");
    }

    #[test]
    fn a_limit_far_above_all_flattens_nothing() {
        let drawn = chart(Shape::Stacked, &[&[Some(0.1), None, None]], Some(5.0)).draw().into_string();
        assert!(!drawn.contains("limit") && drawn.contains("$0.10"), "{drawn}");
    }

    #[test]
    fn a_line_has_a_gap_where_there_is_no_value() {
        let values = [Some(1.0), None, Some(2.0), Some(2.0)];
        assert_eq!(group_runs(&values), [vec![(0, 1.0)], vec![(2, 2.0), (3, 2.0)]]);
        let drawn = chart(Shape::Lines, &[&[Some(1.0), None, Some(1.0)]], None).draw().into_string();
        assert_eq!((drawn.matches("<polyline").count(), drawn.matches("<circle").count()), (2, 2), "{drawn}");
    }

    #[test]
    fn a_scale_ends_at_a_round_number_and_nothing_has_a_scale_too() {
        let ends = [0.0, f64::NAN, 0.03, 0.1, 1.2, 3.0, 4.4, 5.0, 7.0, 4_321.0].map(round_up);
        let expected = [1.0, 1.0, 0.03, 0.1, 1.2, 3.0, 5.0, 5.0, 8.0, 5_000.0];
        assert!(ends.iter().zip(expected).all(|(end, expected)| (end - expected).abs() < 1e-9), "{ends:?}");
        let empty = chart(Shape::Lines, &[], None);
        let names =
            Chart { unit: |value| format!("{value:.0}"), ..empty.clone() }.axis_values(1.0).map(|(_, name)| name);
        assert_eq!(names, ["0", "", "1"], "no value is named twice");
        let drawn = empty.draw().into_string();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
