//! Checks vectors before use.

use super::{EmbedError, MAX_DIMS};

/// The minimum length of a vector. A shorter one comes from damaged weights, not from a text.
const SHORTEST: f64 = 1e-6;

/// The vectors that a batch has to have.
#[derive(Clone, Copy)]
pub(super) struct WantedVectors<'a> {
    /// The embedder's id.
    pub(super) embedder: &'a str,
    /// The number of texts.
    pub(super) texts: usize,
    /// The number of dimensions of the stored vectors.
    pub(super) dims: Option<usize>,
}

/// Checks a batch: one vector per text, all with the same number of dimensions. Returns unit vectors.
///
/// # Errors
/// [`EmbedError::Unusable`]; the whole batch is refused.
pub(super) fn check_vectors(
    mut vectors: Vec<Vec<f32>>,
    wanted: &WantedVectors<'_>,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let WantedVectors { embedder, texts, dims } = *wanted;
    let unusable = |why: String| EmbedError::Unusable { embedder: embedder.to_owned(), why };
    if vectors.len() != texts {
        return Err(unusable(format!("{} of them for {texts} texts", vectors.len())));
    }
    let dims = dims.or(vectors.first().map(Vec::len)).unwrap_or(0);
    if !vectors.is_empty() && !(1..=MAX_DIMS).contains(&dims) {
        return Err(unusable(format!("{dims} numbers each, but 1 to {MAX_DIMS} are allowed")));
    }
    for (nth, vector) in (1..).zip(&mut vectors) {
        if vector.len() != dims {
            return Err(unusable(format!("number {nth} of {texts} has {} numbers instead of {dims}", vector.len())));
        }
        let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        if !length.is_finite() {
            return Err(unusable(format!("number {nth} of {texts} has a number that isn't finite")));
        }
        if length < SHORTEST {
            return Err(unusable(format!("number {nth} of {texts} is zero")));
        }
        for x in vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(texts: usize, dims: Option<usize>) -> WantedVectors<'static> {
        WantedVectors { embedder: "e", texts, dims }
    }

    fn refused(vectors: Vec<Vec<f32>>, dims: Option<usize>) -> String {
        check_vectors(vectors, &wanted(2, dims)).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_batch_is_refused_whole_with_the_reason() {
        let good = vec![3.0, 4.0];
        assert!(refused(vec![good.clone()], None).contains("1 of them for 2 texts"));
        assert!(refused(vec![good.clone(), vec![1.0]], None).contains("number 2 of 2 has 1 numbers instead of 2"));
        assert!(refused(vec![good.clone(), good.clone()], Some(3)).contains("has 2 numbers instead of 3"));
        for wrong in [f32::NAN, f32::INFINITY] {
            assert!(refused(vec![good.clone(), vec![wrong, 0.0]], None).contains("finite"), "{wrong}");
        }
        assert!(refused(vec![vec![0.0, 0.0], good.clone()], None).contains("number 1 of 2 is zero"));
        assert!(refused(vec![vec![], vec![]], None).contains("0 numbers"));
        assert!(refused(vec![vec![1.0; MAX_DIMS + 1], good], None).contains("4097"));
    }

    #[test]
    fn accepted_vectors_have_length_one() {
        let vectors = check_vectors(vec![vec![3.0, 4.0], vec![0.0, -2.0]], &wanted(2, Some(2))).unwrap();
        assert_eq!(vectors, [[0.6, 0.8], [0.0, -1.0]]);
        assert_eq!(check_vectors(Vec::new(), &wanted(0, None)).unwrap(), Vec::<Vec<f32>>::new());
    }
}
