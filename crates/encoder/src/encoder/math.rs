//! The elementwise functions between the matrix products. They work on whole slices and have no branches, so that the compiler can
//! vectorize them.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LOG2_E};

/// Numerator and denominator of `erf(x) / x` in powers of `x²`, lowest first: an approximation to the last bits of an `f32` within the
/// bound.
const ERF_NUMERATOR: [f32; 5] = [FRAC_2_SQRT_PI, 0.185_208_32, 0.050_955_694, 0.003_408_291, 0.000_229_050_65];
const ERF_DENOMINATOR: [f32; 7] =
    [1.0, 0.497_469_25, 0.110_985_05, 0.014_070_47, 0.001_017_962_5, 0.000_023_547_966, -0.000_000_117_916_03];
/// The value beyond which `erf` is 1 in an `f32`.
const ERF_BOUND: f32 = 3.832_507;

/// Coefficients of `2^x` in powers of `x`, for `x` between -½ and ½.
const EXP2: [f32; 7] = [1.0, LN_2, 0.240_226_5, 0.055_504_11, 0.009_618_129, 0.001_333_355_8, 0.000_154_035_3];
/// A number that rounds an `f32` to an integer when added and subtracted again.
const ROUNDING: f32 = 12_582_912.0;

fn evaluate_polynomial(x: f32, factors: &[f32]) -> f32 {
    factors.iter().rev().fold(0.0, |sum, factor| sum * x + factor)
}

fn erf(x: f32) -> f32 {
    let x = x.clamp(-ERF_BOUND, ERF_BOUND);
    let square = x * x;
    x * evaluate_polynomial(square, &ERF_NUMERATOR) / evaluate_polynomial(square, &ERF_DENOMINATOR)
}

/// Computes `e^x` for `x` up to 0.
fn exp(x: f32) -> f32 {
    let x = (x * LOG2_E).max(-126.0);
    let shifted = x + ROUNDING;
    let whole = shifted - ROUNDING;
    // The integer is in the lowest bits of the shifted number; moved up it becomes an exponent.
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(ROUNDING.to_bits()).wrapping_add(127) << 23);
    evaluate_polynomial(x - whole, &EXP2) * scale
}

/// Applies the exact GELU: `x · Φ(x)`.
pub(super) fn apply_gelu(values: &mut [f32]) {
    for x in values {
        *x *= 0.5 * (1.0 + erf(*x * FRAC_1_SQRT_2));
    }
}

/// Scales a row to mean 0 and variance 1, then stretches and shifts it.
pub(super) fn normalise_row(row: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = sum(row, |x| x) / count;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
    let factor = 1.0 / (variance + epsilon).sqrt();
    for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
        *x = (*x - mean) * factor * scale + shift;
    }
}

/// Turns scores into positive weights with the sum 1.
pub(super) fn apply_softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for x in row.iter_mut() {
        *x = exp(*x - most);
    }
    let factor = 1.0 / sum(row, |x| x);
    for x in row {
        *x *= factor;
    }
}

/// Sums in eight lanes: with one lane, each addition would wait for the one before.
pub(super) fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (lanes, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for lane in lanes {
        for (sum, x) in sums.iter_mut().zip(lane) {
            *sum += of(*x);
        }
    }
    sums.into_iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_right_to_an_f32() {
        // From published tables of the error function.
        for (x, right) in [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (5.0, 1.0)] {
            assert!((erf(x) - right).abs() < 1e-6 && (erf(-x) + right).abs() < 1e-6, "{x}: {}", erf(x));
        }
    }

    #[test]
    fn the_exponential_is_right_to_five_digits() {
        for step in 0..8_000 {
            let x = -(step as f32) / 100.0;
            assert!((exp(x) - x.exp()).abs() <= 1e-5 * x.exp(), "{x}: {} is not {}", exp(x), x.exp());
        }
        assert!((exp(0.0) - 1.0).abs() < 1e-7 && exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn scores_become_weights() {
        let mut row = [1.0, 2.0, 3.0, -200.0];
        apply_softmax(&mut row);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6 && (row[2] - 0.665_240_9).abs() < 1e-6, "{row:?}");
        let mut row: Vec<f32> = (0..11).map(|n| n as f32).collect();
        normalise_row(&mut row, &[1.0; 11], &[0.5; 11], 1e-12);
        assert!((row[0] - (0.5 - 5.0 / 10.0_f32.sqrt())).abs() < 1e-5 && (row[5] - 0.5).abs() < 1e-6, "{row:?}");
    }
}
