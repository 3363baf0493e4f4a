//! Scores a ranking, and compares two of them beyond chance.

use std::collections::BTreeMap;

use super::draw::Draw;

/// Ranks within which answers are counted.
pub(crate) const WITHIN: [usize; 3] = [5, 10, 20];
const RESAMPLES: usize = 10_000;

/// recall@5, @10, @20, and the reciprocal rank of the first answer.
pub(crate) type Score = [f64; 4];

/// Scores a ranking. `answers`: for each place of an answer, the ranks (from 0) of the hits that hold it.
pub(crate) fn score(answers: &[Vec<usize>]) -> Score {
    let mut score = [0.0; 4];
    for (at, within) in WITHIN.iter().enumerate() {
        let found = answers.iter().filter(|ranks| ranks.iter().any(|rank| rank < within)).count();
        score[at] = found as f64 / answers.len() as f64;
    }
    score[3] = answers.iter().flatten().min().map_or(0.0, |first| 1.0 / (first + 1) as f64);
    score
}

pub(crate) fn mean(scores: &[Score]) -> Score {
    let mut mean = [0.0; 4];
    for (at, value) in mean.iter_mut().enumerate() {
        *value = scores.iter().map(|score| score[at]).sum::<f64>() / scores.len().max(1) as f64;
    }
    mean
}

/// The mean difference and its 95 % interval over the resamples.
pub(crate) struct Difference {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Paired bootstrap. Questions about one scene are alike, so scenes are drawn, each with all its questions.
pub(crate) fn difference(pairs: &[(&str, f64, f64)]) -> Difference {
    let mut scenes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (scene, one, other) in pairs {
        let sum = scenes.entry(scene).or_default();
        *sum = (sum.0 + one - other, sum.1 + 1.0);
    }
    let scenes: Vec<(f64, f64)> = scenes.into_values().collect();
    let mut draw = Draw::new(4);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut count) = (0.0, 0.0);
            for _ in 0..scenes.len() {
                let scene = draw.one(&scenes);
                (sum, count) = (sum + scene.0, count + scene.1);
            }
            sum / count
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let all = scenes.iter().fold((0.0, 0.0), |all, scene| (all.0 + scene.0, all.1 + scene.1));
    Difference { mean: all.0 / all.1, low: means[RESAMPLES / 40], high: means[RESAMPLES - 1 - RESAMPLES / 40] }
}
