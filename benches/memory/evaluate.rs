//! Scores the product and its yardsticks on the questions, and learns the ranker's weights. Each world is tested with weights learned on
//! the other worlds.

use std::collections::BTreeMap;

use reveille_encoder::Encoder;
use reveille_index::{Index, QueryVector, SearchHit, SearchQuery, weights};

use super::{
    Orders,
    fill::{Filled, fill, holds},
    measure::{Score, score},
    plain::{Bm25, DEPTH, nearest},
    report, say,
    train::{Case, dot, train},
    vectors::Vectors,
    worlds::{Question, World, worlds},
};

/// The name that vectors are stored under.
const MODEL: &str = "all-MiniLM-L6-v2";
const DIMS: usize = 384;
/// The number of texts embedded at once.
const AT_ONCE: usize = 256;
/// A limit high enough for all candidates of a search.
const ALL: usize = 5_000;

/// The ways to search, in the order of the table's columns.
pub(crate) const WAYS: [&str; 6] =
    ["plain BM25", "plain dense", "keywords", "hybrid", "keywords, as in the source", "hybrid, as in the source"];
const BM25: usize = 0;
const DENSE: usize = 1;
const KEYWORDS: usize = 2;
const HYBRID: usize = 3;

/// A question with the score of each way.
pub(crate) struct Outcome<'a> {
    pub(crate) world: &'static str,
    pub(crate) question: &'a Question,
    pub(crate) scores: [Score; WAYS.len()],
}

/// One question's candidates, as one of the two rankers sees them.
struct Asked {
    world: usize,
    question: usize,
    case: Case,
    /// For each piece of evidence, the candidates that contain it.
    answers: Vec<Vec<usize>>,
}

/// Evaluates everything, and returns whether the targets were reached.
pub(crate) fn run(orders: &Orders) -> bool {
    let worlds = worlds(orders.seed);
    let mut vectors = Vectors::open(&orders.files.join(format!("{MODEL}.vectors")), DIMS);
    let encoder = orders.encoder.as_deref().map(|folder| Encoder::open(folder).unwrap());
    let mut outcomes: Vec<Outcome<'_>> = Vec::new();
    let mut asked: [Vec<Asked>; 2] = [Vec::new(), Vec::new()];
    for (at, world) in worlds.iter().enumerate() {
        say(&format!("world: {}", world.name));
        let dir = tempfile::tempdir_in(&orders.files).unwrap();
        let mut filled = fill(&[world], dir.path());
        embed_all(&mut vectors, encoder.as_ref(), &filled, world);
        let bm25 = Bm25::new(&filled.pieces);
        let exact: Vec<&[f32]> = filled.pieces.iter().map(|piece| vectors.of(&piece.embedded)).collect();
        store_missing_vectors(&mut filled.index, &vectors);
        for question in &world.questions {
            let vector = vectors.of(&question.text);
            let plain = |hits: &[usize]| {
                score(&places(
                    &filled,
                    question,
                    hits.iter().map(|hit| {
                        let piece = &filled.pieces[*hit];
                        (piece.path.as_str(), piece.text.as_str())
                    }),
                ))
            };
            let mut scores = [[0.0; 4]; WAYS.len()];
            scores[BM25] = plain(&bm25.search(&question.text));
            scores[DENSE] = plain(&nearest(&exact, vector));
            for (way, asked) in asked.iter_mut().enumerate() {
                let found = search(&mut filled.index, world, question, (way == 1).then_some(vector));
                let answers = places(&filled, question, found.iter().map(|hit| (hit.path.as_str(), hit.text.as_str())));
                scores[4 + way] = score(&answers);
                asked.push(Asked { world: at, question: outcomes.len(), case: case(&found, &answers), answers });
            }
            outcomes.push(Outcome { world: world.name, question, scores });
        }
    }
    say("learning: weights for each world from the others");
    for (way, asked) in asked.iter().enumerate() {
        cross_validate(asked, way, worlds.len(), &mut outcomes);
    }
    let learned = asked.each_ref().map(|asked| {
        let cases: Vec<&Case> = asked.iter().map(|asked| &asked.case).collect();
        scaled(&train(&cases, &used(asked)))
    });
    report::print(&worlds, &outcomes);
    report::weights(&learned);
    if orders.writes {
        report::write(&learned);
    }
    report::is_reached(&outcomes)
}

fn embed_all(vectors: &mut Vectors, encoder: Option<&Encoder>, filled: &Filled, world: &World) {
    let texts: Vec<String> = filled
        .pieces
        .iter()
        .map(|piece| piece.embedded.clone())
        .chain(world.questions.iter().map(|question| question.text.clone()))
        .collect();
    let missing = vectors.missing(&texts);
    if missing.is_empty() {
        return;
    }
    let encoder = encoder.unwrap_or_else(|| panic!("{} texts have no vector, and there is no encoder", missing.len()));
    say(&format!("embedding {} texts", missing.len()));
    for texts in missing.chunks(AT_ONCE) {
        vectors.add(texts, encoder.embed(texts).unwrap());
    }
}

/// Stores the missing vectors in the index.
fn store_missing_vectors(index: &mut Index, vectors: &Vectors) {
    loop {
        let missing = index.list_unembedded(MODEL, 1_000).unwrap();
        if missing.is_empty() {
            return;
        }
        let made: Vec<_> = missing.iter().map(|(key, text)| (*key, vectors.of(text).to_vec())).collect();
        index.put_vectors(MODEL, DIMS, &made).unwrap();
    }
}

fn search(index: &mut Index, world: &World, question: &Question, vector: Option<&[f32]>) -> Vec<SearchHit> {
    let query = SearchQuery {
        text: &question.text,
        limit: ALL,
        today: world.asked_on,
        vector: vector.map(|values| QueryVector { model: MODEL, values }),
        ..SearchQuery::default()
    };
    index.search(&query).unwrap()
}

/// For each piece of evidence, the ranks of the hits that contain it.
fn places<'a>(filled: &Filled, question: &Question, hits: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Vec<usize>> {
    let mut places = vec![Vec::new(); question.evidence.len()];
    for (rank, (path, text)) in hits.enumerate() {
        for (place, evidence) in places.iter_mut().zip(&question.evidence) {
            if holds(filled, evidence, path, text) {
                place.push(rank);
            }
        }
    }
    places
}

fn case(found: &[SearchHit], answers: &[Vec<usize>]) -> Case {
    Case {
        features: found.iter().map(|hit| hit.features.iter().map(|value| f64::from(*value)).collect()).collect(),
        is_answer: (0..found.len()).map(|at| answers.iter().any(|place| place.contains(&at))).collect(),
    }
}

/// For each feature, whether it occurs at all: without vectors, some never do.
fn used(asked: &[Asked]) -> Vec<bool> {
    (0..weights::COUNT)
        .map(|at| asked.iter().any(|asked| asked.case.features.iter().any(|features| features[at] != 0.0)))
        .collect()
}

/// Ranks each world's candidates by weights that were learned on the others.
fn cross_validate(asked: &[Asked], way: usize, worlds: usize, outcomes: &mut [Outcome<'_>]) {
    let used = used(asked);
    for tested in 0..worlds {
        let cases: Vec<&Case> = asked.iter().filter(|asked| asked.world != tested).map(|asked| &asked.case).collect();
        let weights = train(&cases, &used);
        for asked in asked.iter().filter(|asked| asked.world == tested) {
            let scores: Vec<f64> = asked.case.features.iter().map(|features| dot(features, &weights)).collect();
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
            let rank: BTreeMap<usize, usize> =
                order.iter().take(DEPTH).enumerate().map(|(rank, at)| (*at, rank)).collect();
            let answers: Vec<Vec<usize>> = asked
                .answers
                .iter()
                .map(|place| place.iter().filter_map(|at| rank.get(at).copied()).collect())
                .collect();
            outcomes[asked.question].scores[KEYWORDS + way] = score(&answers);
        }
    }
}

/// Scales the weights so that the largest is 1; the order of hits stays the same.
fn scaled(weights: &[f64]) -> Vec<f64> {
    let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    weights.iter().map(|weight| weight / most).collect()
}

/// The yardsticks and our own ways, as positions in `WAYS`.
pub(crate) const PLAIN: [usize; 2] = [BM25, DENSE];
pub(crate) const OURS: usize = HYBRID;
pub(crate) const OURS_BY_WORDS: usize = KEYWORDS;
