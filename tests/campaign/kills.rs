//! Layer 2: every process of a run is killed at one of its calls that change the world, before the call or with half of it done.
//! Sometimes the recovering run is killed as well. In another form only the program is killed, and its children have to die with it.
//! The result must be as if nothing had happened.

use super::{
    faults::{Faults, Mode, class},
    layer::{Layer, Recovery, Share, is_examined},
    world::{Story, World},
};

/// Every nth trial kills the recovery as well.
const TWICE_EVERY: u64 = 3;

/// A way to kill at a call.
type Way = fn(u64) -> Mode;
/// Every process at once.
const ALL: &[Way] = &[Mode::Kill, Mode::Tear];
/// The program alone.
const FIRST: &[Way] = &[Mode::KillFirst];

/// The kills of some stories.
pub(crate) struct Kills {
    stories: Vec<(Story, Calls)>,
    ways: &'static [Way],
    /// Trials in the suite's sample.
    sample: u64,
}

/// The number of calls in an undisturbed run.
type Calls = u64;

impl Kills {
    pub(crate) fn new(stories: impl IntoIterator<Item = Story>, sample: u64) -> Self {
        Self::by(ALL, stories, sample)
    }

    /// Kills only the program itself.
    pub(crate) fn alone(stories: impl IntoIterator<Item = Story>, sample: u64) -> Self {
        Self::by(FIRST, stories, sample)
    }

    fn by(ways: &'static [Way], stories: impl IntoIterator<Item = Story>, sample: u64) -> Self {
        let counted = |story: Story| {
            let (faults, code, said) = run(&story.open(), Mode::Count);
            assert_eq!(code, Some(0), "the undisturbed run: {said}");
            let calls = faults.calls();
            assert!(calls > 100, "only {calls} calls were seen: the library doesn't see the program");
            (story, calls)
        };
        Self { stories: stories.into_iter().map(counted).collect(), ways, sample }
    }

    /// The trial's story, the story's calls, and the trial's number within the story.
    fn find(&self, id: u64) -> Option<(&Story, Calls, u64)> {
        let mut left = id;
        for (story, calls) in &self.stories {
            match left.checked_sub(self.space_of(*calls)) {
                Some(rest) => left = rest,
                None => return Some((story, *calls, left)),
            }
        }
        None
    }

    /// Each call in each way, with the recovery left alone or killed at one of its calls.
    fn space_of(&self, calls: Calls) -> u64 {
        (calls + 1) * self.ways.len() as u64 * TWICE_EVERY
    }
}

impl Layer for Kills {
    fn space(&self) -> Option<u64> {
        Some(self.stories.iter().map(|(_, calls)| self.space_of(*calls)).sum())
    }

    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => self.sample,
            Share::Nightly => u64::MAX,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let (story, calls, id) = self.find(id).ok_or("there is no such trial")?;
        let (call, how) = (id % (calls + 1) + 1, id / (calls + 1));
        let way = self.ways.get((how % self.ways.len() as u64) as usize).ok_or("there is no such way")?;
        let mut world = story.open();
        run_to_its_end(&world, way(call))?;
        let mut random = fastrand::Rng::with_seed(id);
        let again = random.u64(1..=calls);
        if how % TWICE_EVERY == 0 {
            run_to_its_end(&world, Mode::Kill(again))?;
        }
        if is_examined(id) {
            world.examine()?;
        }
        let took = world.recover()?;
        story.check(&world)?;
        Ok(Recovery(Some(took)))
    }
}

/// Runs the world's program under a fault. Returns its exit code (`None` if it was killed) and its output.
fn run(world: &World, mode: Mode) -> (Faults, Option<i32>, String) {
    let mut faults = Faults::new(world.env.root(), world.env.root(), class::MUTATING);
    faults.set_mode(mode);
    let (code, said) = world.run(&faults);
    (faults, code, said)
}

/// As [`run`], but fails if a process survives, or if the program ends by itself although the call came.
fn run_to_its_end(world: &World, mode: Mode) -> Result<(), String> {
    let (faults, code, said) = run(world, mode);
    match (faults.has_fired(), code) {
        (true, None) | (false, Some(0)) => {}
        (fired, code) => return Err(format!("{mode:?}: fault {fired}, exit code {code:?}: {said}")),
    }
    match faults.kill_survivors() {
        Some(pid) => Err(format!("{mode:?}: process {pid} has outlived it: {said}")),
        None => Ok(()),
    }
}
