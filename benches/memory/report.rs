//! Prints the Markdown tables of docs/BENCHMARKS.md, and writes the weights into the source.

use std::fmt::Write as _;

use reveille_index::weights::FEATURES;

use super::{
    evaluate::{OURS, OURS_BY_WORDS, Outcome, PLAIN, WAYS},
    measure::{Difference, Score, difference, mean},
    say,
    worlds::{Evidence, STYLES, World},
};

/// The source file that holds the weights.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/index/src/weights.rs");
/// The most by which the hybrid may fall short of the better plain way, in any style.
const MAX_WORSE: f64 = 0.02;

pub(crate) fn print(worlds: &[World], outcomes: &[Outcome<'_>]) {
    let mut text = String::new();
    writeln!(text, "\nThe set:\n").unwrap();
    row(&mut text, &["world", "turns", "lines of notes", "questions"].map(str::to_owned));
    row(&mut text, &["---", "---:", "---:", "---:"].map(str::to_owned));
    for world in worlds {
        let lines: usize = world.documents.values().map(|text| text.lines().count()).sum();
        row(
            &mut text,
            &[
                world.name.to_owned(),
                world.turns.len().to_string(),
                lines.to_string(),
                world.questions.len().to_string(),
            ],
        );
    }
    writeln!(text, "\nrecall@5 / @10 / @20 / mean reciprocal rank. Learned weights are tested on a world that they weren't learned on:\n").unwrap();
    let shown = &WAYS[..4];
    let head = ["questions", "n"].into_iter().chain(shown.iter().copied()).map(str::to_owned).collect::<Vec<_>>();
    row(&mut text, &head);
    row(
        &mut text,
        &head.iter().enumerate().map(|(at, _)| if at == 1 { "---:" } else { "---" }.to_owned()).collect::<Vec<_>>(),
    );
    for (name, group) in groups(worlds, outcomes) {
        let mut cells = vec![name, group.len().to_string()];
        for way in 0..shown.len() {
            let [five, ten, twenty, mrr] = mean_of(&group, way);
            cells.push(format!("{five:.3} / {ten:.3} / {twenty:.3} / {mrr:.3}"));
        }
        row(&mut text, &cells);
    }
    writeln!(text, "\nDifferences of recall@10 and of the reciprocal rank, in points, with the 95 % interval (paired bootstrap over scenes):\n").unwrap();
    row(&mut text, &["", "recall@10", "reciprocal rank"].map(str::to_owned));
    row(&mut text, &["---", "---", "---"].map(str::to_owned));
    for (ours, plain) in [(OURS, PLAIN[0]), (OURS, PLAIN[1]), (OURS_BY_WORDS, PLAIN[0])] {
        let cells = [1, 3].map(|figure| points(&compared(outcomes, ours, plain, figure)));
        let [recall, rank] = cells;
        row(&mut text, &[format!("{} against {}", WAYS[ours], WAYS[plain]), recall, rank]);
    }
    let in_source: Vec<String> = [4, 5]
        .map(|way| {
            let [five, ten, twenty, mrr] = mean_of(&outcomes.iter().collect::<Vec<_>>(), way);
            format!("{}: {five:.3} / {ten:.3} / {twenty:.3} / {mrr:.3}", WAYS[way])
        })
        .to_vec();
    writeln!(text, "\nWith the weights of the source (learned on all of this, so no test): {}\n", in_source.join("; "))
        .unwrap();
    super::print(&text);
}

fn groups<'a>(worlds: &[World], outcomes: &'a [Outcome<'a>]) -> Vec<(String, Vec<&'a Outcome<'a>>)> {
    let of = |holds: &dyn Fn(&Outcome<'_>) -> bool| outcomes.iter().filter(|outcome| holds(outcome)).collect();
    let styles = STYLES.iter().map(|style| ((*style).to_owned(), of(&|outcome| outcome.question.style == *style)));
    let whole = std::iter::once(("**all**".to_owned(), of(&|_| true)));
    let of_worlds =
        worlds.iter().map(|world| (format!("world: {}", world.name), of(&|outcome| outcome.world == world.name)));
    styles.chain(whole).chain(of_worlds).collect()
}

fn mean_of(group: &[&Outcome<'_>], way: usize) -> Score {
    mean(&group.iter().map(|outcome| outcome.scores[way]).collect::<Vec<_>>())
}

fn compared(outcomes: &[Outcome<'_>], one: usize, other: usize, figure: usize) -> Difference {
    let scenes: Vec<String> =
        outcomes.iter().map(|outcome| format!("{}/{}", outcome.world, outcome.question.scene)).collect();
    let pairs: Vec<(&str, f64, f64)> = scenes
        .iter()
        .zip(outcomes)
        .map(|(scene, outcome)| (scene.as_str(), outcome.scores[one][figure], outcome.scores[other][figure]))
        .collect();
    difference(&pairs)
}

fn points(difference: &Difference) -> String {
    let Difference { mean, low, high } = difference;
    format!("{:+.1} ({:+.1} to {:+.1})", mean * 100.0, low * 100.0, high * 100.0)
}

/// Returns whether the hybrid beats both plain ways on average, and stays within `MAX_WORSE` of the better one in every style.
pub(crate) fn is_reached(outcomes: &[Outcome<'_>]) -> bool {
    let all: Vec<&Outcome<'_>> = outcomes.iter().collect();
    let mut is_reached = true;
    for (at, figure) in ["recall@5", "recall@10", "recall@20"].into_iter().enumerate() {
        let ours = mean_of(&all, OURS)[at];
        for way in PLAIN {
            if ours <= mean_of(&all, way)[at] {
                is_reached = false;
                say(&format!("missed: {figure} of hybrid isn't above that of {}", WAYS[way]));
            }
        }
        for style in STYLES {
            let group: Vec<&Outcome<'_>> = outcomes.iter().filter(|outcome| outcome.question.style == style).collect();
            let best = PLAIN.map(|way| mean_of(&group, way)[at]).into_iter().fold(0.0, f64::max);
            let ours = mean_of(&group, OURS)[at];
            if ours < best - MAX_WORSE {
                is_reached = false;
                say(&format!("missed: {style}, {figure}: hybrid {ours:.3}, the better plain way {best:.3}"));
            }
        }
    }
    is_reached
}

/// Prints the weights beside the features' names.
pub(crate) fn weights(learned: &[Vec<f64>; 2]) {
    let mut text = "Weights, learned on all worlds:\n\n".to_owned();
    row(&mut text, &["feature", "keywords", "hybrid"].map(str::to_owned));
    row(&mut text, &["---", "---:", "---:"].map(str::to_owned));
    for (at, name) in FEATURES.iter().enumerate() {
        row(&mut text, &[(*name).to_owned(), format!("{:+.2}", learned[0][at]), format!("{:+.2}", learned[1][at])]);
    }
    super::print(&text);
}

/// Replaces the weights in the source.
pub(crate) fn write(learned: &[Vec<f64>; 2]) {
    let mut source = std::fs::read_to_string(WEIGHTS).unwrap();
    for (name, weights) in ["KEYWORDS", "HYBRID"].iter().zip(learned) {
        let head = format!("pub const {name}: Features =");
        let (before, rest) = source.split_once(&head).unwrap_or_else(|| panic!("{head} isn't in {WEIGHTS}"));
        let (kind, rest) = rest.split_once('[').unwrap();
        let (_, after) = rest.split_once("];").unwrap();
        let mut lines = "\n".to_owned();
        for row in weights.chunks(9) {
            let numbers: Vec<String> = row.iter().map(|weight| format!("{:.2}", weight + 0.0)).collect();
            writeln!(lines, "    {},", numbers.join(", ").replace("-0.00", "0.00")).unwrap();
        }
        source = format!("{before}{head}{kind}[{lines}];{after}");
    }
    std::fs::write(WEIGHTS, source).unwrap();
    say(&format!("{WEIGHTS} is written"));
}

/// Renders a world as readable text: every turn, document and question.
pub(crate) fn whole(world: &World) -> String {
    let mut text = String::new();
    for (at, turn) in world.turns.iter().enumerate() {
        let speaker = turn.speaker.as_deref().unwrap_or("(assistant)");
        writeln!(text, "turn {at} | {} | chat {} | {speaker}: {}", turn.at, turn.chat, turn.text).unwrap();
    }
    for (path, document) in &world.documents {
        writeln!(text, "\n==> {path}\n{document}").unwrap();
    }
    for question in &world.questions {
        writeln!(text, "question | {} | {} | {}", question.style, question.scene, question.text).unwrap();
        for evidence in &question.evidence {
            match evidence {
                Evidence::Turn(at) => writeln!(text, "    turn {at}: {}", world.turns[*at].text).unwrap(),
                Evidence::Line { path, text: line } => writeln!(text, "    {path}: {line}").unwrap(),
            }
        }
    }
    text
}

fn row(text: &mut String, cells: &[String]) {
    writeln!(text, "| {} |", cells.join(" | ")).unwrap();
}
