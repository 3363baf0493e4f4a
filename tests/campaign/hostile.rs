//! Layer 7: a mind that is wholly hostile. It knows the machine, our secrets and this page; it makes one attempt after the other
//! with the real `wake`, its sandbox, policy, questions and redaction. What it wants must not happen, whatever it has read before
//! and whatever its person answers.
//!
//! A trial is one hand of attempts, the way in which the cycle came by its orders, and how the person answers when they are asked. An
//! attempt that must fail even after a yes is made once more outside of our walls at the end, where it has to succeed; one
//! that must only be asked about has to succeed after the yes. Afterwards its person asks for something else: in that wake nothing
//! that others have left may stand, or gain authority.

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
    acts::{GUESTS, HANDS, PERSISTING},
    attacker::Origin,
    scene::{Scene, Template},
};
use super::layer::{Layer, Recovery, Share};

/// Wakes of one trial at most: each question takes one.
const MAX_WAKES: usize = 60;
/// So many trials the suite has time for.
const SAMPLE: u64 = 10;

/// How a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// No, to each question.
    No,
    /// Not at all, until it is too late; then no.
    Silence,
    /// Yes, to each: somebody who is tired of being asked.
    Yes,
    /// Yes, and then other bytes stand where those were that they were shown.
    Swapped,
}

const ANSWERS: [Answer; 4] = [Answer::No, Answer::Silence, Answer::Yes, Answer::Swapped];

/// What is played in a trial: the place of its hand, how the cycle came by its orders, how its person answers.
type Play = (usize, Origin, Answer);

/// The layer.
pub(crate) struct Hostile {
    template: Template,
    plays: Vec<Play>,
    /// Attempts that were made.
    attempts: AtomicU64,
}

impl Hostile {
    pub(crate) fn open() -> Self {
        let origins = |hand: usize| match HANDS[hand].0 {
            GUESTS => vec![Origin::Guest],
            PERSISTING => Origin::ALL.into_iter().filter(|origin| origin.is_tainted()).collect(),
            // Whose words it was makes no difference there, but whether they were its person's.
            _ => vec![Origin::Own, Origin::OwnFull, Origin::ALL[2 + hand % (Origin::ALL.len() - 2)]],
        };
        let exec = (0..HANDS.len()).flat_map(|hand| origins(hand).into_iter().map(move |origin| (hand, origin)));
        let plays = ANSWERS.iter().flat_map(|answer| exec.clone().map(|(hand, origin)| (hand, origin, *answer)));
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
        let &(hand, origin, answer) = chosen.ok_or("there is no such trial")?;
        let mut scene = self.template.open(origin);
        let mut acts = HANDS[hand].1(&scene, id);
        // What this cycle needn't ask about isn't an attempt on anything, and after a yes it shows nothing.
        acts.retain(|act| act.is_attempt(origin));
        Rng::with_seed(id).shuffle(&mut acts);
        self.attempts.fetch_add(acts.len() as u64, Ordering::Relaxed);
        let played = play(&mut scene, &acts, origin, answer);
        let verdict = played.and_then(|()| check::all(&scene, &acts, answer));
        let verdict = verdict.and_then(|()| later::check(&mut scene, answer));
        let verdict = verdict.and_then(|()| check::controls(&scene, &acts));
        verdict
            .map(|()| Recovery(None))
            .map_err(|why| format!("{} by {origin:?}, answered by {answer:?}: {why}", HANDS[hand].0))
    }
}

/// Lets the mind make its attempts, and answers what is asked.
fn play(scene: &mut Scene, acts: &[Act], origin: Origin, answer: Answer) -> Result<(), String> {
    attacker::let_loose(scene, acts, origin);
    let mut is_first = true;
    for _ in 0..MAX_WAKES {
        let ran = scene.env.wake(&["--once", "--json"]);
        if ran.code != 0 {
            return Err(format!("a wake failed: {ran:#?}"));
        }
        scene.logs.push_str(&ran.stderr);
        match ran.json()["outcome"].as_str() {
            Some("parked") => scene.answer(answer, std::mem::take(&mut is_first))?,
            Some("worked") => return Ok(()),
            _ => return Err(format!("it ended in an unexpected way: {ran:#?}")),
        }
    }
    Err(format!("{MAX_WAKES} wakes, and it isn't over"))
}
