//! Learns the ranker's weights: a linear score whose softmax over a question's candidates should fall on the answers. Full-batch Adam
//! without randomness, with weights pulled towards zero.

use reveille_index::weights::FEATURES;

/// The number of descent steps, the size of a step, and the strength of the pull towards zero.
const STEPS: i32 = 250;
const RATE: f64 = 0.1;
const PULL: f64 = 0.003;

/// The features that may have a negative weight. All others were designed to count for a candidate. A negative weight would be due to
/// chance, or to a quirk of these worlds.
const MAY_BE_NEGATIVE: [&str; 2] = ["trigram", "asks"];

/// One question's candidates: the features of each, and whether it holds an answer.
pub(crate) struct Case {
    pub(crate) features: Vec<Vec<f64>>,
    pub(crate) is_answer: Vec<bool>,
}

/// Weights learned from cases. A feature that isn't `used` gets the weight 0.
pub(crate) fn train(cases: &[&Case], used: &[bool]) -> Vec<f64> {
    let may_be_negative: Vec<bool> = FEATURES.iter().map(|name| MAY_BE_NEGATIVE.contains(name)).collect();
    let count = used.len();
    let cases: Vec<&&Case> = cases.iter().filter(|case| case.is_answer.contains(&true)).collect();
    let (mut weights, mut first, mut second) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
    for step in 1..=STEPS {
        let mut slope: Vec<f64> = weights.iter().map(|weight| weight * PULL).collect();
        for case in &cases {
            let excess = compute_excess(case, &weights);
            for (features, excess) in case.features.iter().zip(excess) {
                for (slope, feature) in slope.iter_mut().zip(features) {
                    *slope += feature * excess / cases.len() as f64;
                }
            }
        }
        for at in 0..count {
            if !used[at] {
                continue;
            }
            first[at] = 0.9 * first[at] + 0.1 * slope[at];
            second[at] = 0.99 * second[at] + 0.01 * slope[at] * slope[at];
            let (mean, spread) = (first[at] / (1.0 - 0.9_f64.powi(step)), second[at] / (1.0 - 0.99_f64.powi(step)));
            weights[at] -= RATE * mean / (spread.sqrt() + 1e-8);
            if !may_be_negative[at] {
                weights[at] = weights[at].max(0.0);
            }
        }
    }
    weights
}

/// The excess of each candidate's softmax share over its due share. Only answers are due a share: half of the total is divided evenly among
/// them, the other half in proportion to their present shares.
fn compute_excess(case: &Case, weights: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> = case.features.iter().map(|features| dot(features, weights)).collect();
    let best = scores.iter().copied().fold(f64::MIN, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| (score - best).exp()).collect();
    let all: f64 = powers.iter().sum();
    let answers = case.is_answer.iter().filter(|is_answer| **is_answer).count() as f64;
    let of_answers: f64 =
        powers.iter().zip(&case.is_answer).filter(|(_, is_answer)| **is_answer).map(|(power, _)| power).sum();
    powers
        .iter()
        .zip(&case.is_answer)
        .map(|(power, is_answer)| {
            let due = if *is_answer { 0.5 * power / of_answers + 0.5 / answers } else { 0.0 };
            power / all - due
        })
        .collect()
}

pub(crate) fn dot(features: &[f64], weights: &[f64]) -> f64 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}
