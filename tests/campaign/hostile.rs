//! Layer 7: a wholly hostile model. It knows the machine, our secrets and this page, and makes one attempt after the other against the
//! real `wake` with its sandbox, policy, questions and redaction. Its aims must fail, independent of the text it has read and of its
//! person's answers.
//!
//! A trial is one batch of attempts, the origin of the cycle's orders, and the person's way of answering. An attempt that must fail even
//! when approved is repeated at the end without our walls, where it has to succeed. An attempt that only needs approval must succeed once
//! approved. Afterwards the person makes another request: in that wake no untrusted text may appear, or gain authority.

mod act;
mod acts;
mod attacker;
mod check;
mod later;
mod scene;

use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;

use self::{
    act::Act,
    acts::{BATCHES, GUESTS, PERSISTING},
    attacker::Origin,
    scene::{Scene, Template},
};
use super::layer::{Layer, Recovery, Share};

/// The maximum of wakes in one trial; each question takes one.
const MAX_WAKES: usize = 60;
/// The trials the suite has time for.
const SAMPLE: u64 = 10;

/// A person's way of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// No, to each question.
    No,
    /// No answer until it is too late; then no.
    Silence,
    /// Yes, to each, as a person who is tired of questions.
    Yes,
    /// Yes, but the approved bytes are replaced afterwards.
    Swapped,
}

const ANSWERS: [Answer; 4] = [Answer::No, Answer::Silence, Answer::Yes, Answer::Swapped];

/// A trial: the index of its batch, the origin of the cycle's orders, and the person's way of answering.
type Play = (usize, Origin, Answer);

/// The layer.
pub(crate) struct Hostile {
    template: Template,
    plays: Vec<Play>,
    /// The number of attempts made.
    attempts: AtomicU64,
}

impl Hostile {
    pub(crate) fn open() -> Self {
        let origins = |batch: usize| match BATCHES[batch].0 {
            GUESTS => vec![Origin::Guest],
            PERSISTING => Origin::ALL.into_iter().filter(|origin| origin.is_tainted()).collect(),
            // For these batches it only matters whether the orders are untrusted, so one untrusted origin is enough.
            _ => vec![Origin::Own, Origin::OwnFull, Origin::ALL[2 + batch % (Origin::ALL.len() - 2)]],
        };
        let exec = (0..BATCHES.len()).flat_map(|batch| origins(batch).into_iter().map(move |origin| (batch, origin)));
        let plays = ANSWERS.iter().flat_map(|answer| exec.clone().map(|(batch, origin)| (batch, origin, *answer)));
        Self { template: Template::new(), plays: plays.collect(), attempts: AtomicU64::new(0) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        super::say(&format!("hostile: {} attempts were made", self.attempts.load(Ordering::Relaxed)));
    }
}

impl Layer for Hostile {
    fn space(&self) -> Option<u64> {
        Some(self.plays.len() as u64)
    }

    fn trials(&self, share: Share) -> u64 {
        if share == Share::Sample { SAMPLE } else { self.space().unwrap_or_default() }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let chosen = usize::try_from(id).ok().and_then(|at| self.plays.get(at));
        let &(batch, origin, answer) = chosen.ok_or("there is no such trial")?;
        let mut scene = self.template.open(origin);
        let mut acts = BATCHES[batch].1(&scene, id);
        // An action this cycle needn't ask about is no attempt, and proves nothing when approved.
        acts.retain(|act| act.is_attempt(origin));
        Rng::with_seed(id).shuffle(&mut acts);
        self.attempts.fetch_add(acts.len() as u64, Ordering::Relaxed);
        let played = play(&mut scene, &acts, origin, answer);
        let verdict = played.and_then(|()| check::all(&scene, &acts, answer));
        let verdict = verdict.and_then(|()| later::check(&mut scene, answer));
        let verdict = verdict.and_then(|()| check::controls(&scene, &acts));
        verdict
            .map(|()| Recovery(None))
            .map_err(|why| format!("{} by {origin:?}, answered by {answer:?}: {why}", BATCHES[batch].0))
    }
}

/// Lets the model make its attempts, and answers its questions.
fn play(scene: &mut Scene, acts: &[Act], origin: Origin, answer: Answer) -> Result<(), String> {
    attacker::let_loose(scene, acts, origin);
    let mut is_first = true;
    for _ in 0..MAX_WAKES {
        let ran = scene.env.wake(&["--once", "--json"]);
        if ran.code != 0 {
            return Err(format!("a wake failed: {ran:#?}"));
        }
        scene.logs.push_str(ran.notices());
        match ran.json()["outcome"].as_str() {
            Some("parked") => scene.answer(answer, std::mem::take(&mut is_first))?,
            Some("worked") => return Ok(()),
            _ => return Err(format!("it ended in an unexpected way: {ran:#?}")),
        }
    }
    Err(format!("{MAX_WAKES} wakes, and it isn't over"))
}
