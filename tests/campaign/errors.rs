//! Layer 3: a call that changes the world, or needs a descriptor, fails with EIO, ENOSPC or EMFILE, once or permanently from then on.
//! The run may fail, but in an orderly way; the next, undisturbed one recovers.

use rustix::io::Errno;

use super::{
    faults::{Faults, Mode, class},
    layer::{Layer, Recovery, Share, is_examined},
    world::{Story, World},
};

/// The errors, and the calls affected by each.
const ERRORS: [(Errno, u64); 3] = [
    (Errno::IO, class::DATA | class::NAME | class::SYNC | class::REMOVE),
    (Errno::NOSPC, class::DATA | class::NAME | class::SYNC),
    (Errno::MFILE, class::OPEN),
];

/// The errors of some stories.
pub(crate) struct Errors {
    /// Each with the calls of its undisturbed run, for each of [`ERRORS`].
    stories: Vec<(Story, [u64; 3])>,
    /// Trials in the suite's sample.
    sample: u64,
}

impl Errors {
    pub(crate) fn new(stories: impl IntoIterator<Item = Story>, sample: u64) -> Self {
        let counted = |story: Story| {
            let calls = ERRORS.map(|(error, classes)| {
                let (faults, code, said) = run(&story.open(), classes, Mode::Count);
                assert_eq!(code, Some(0), "the undisturbed run: {said}");
                assert!(faults.calls() > 20, "{error}: only {} calls were seen", faults.calls());
                faults.calls()
            });
            (story, calls)
        };
        Self { stories: stories.into_iter().map(counted).collect(), sample }
    }

    /// The trial's story, the error with its calls, and the number of the failing call, from 0.
    fn find(&self, id: u64) -> Option<(&Story, (Errno, u64), u64)> {
        let mut left = id / 2;
        for (story, calls) in &self.stories {
            for (error, calls) in ERRORS.iter().zip(calls) {
                match left.checked_sub(*calls) {
                    Some(rest) => left = rest,
                    None => return Some((story, *error, left)),
                }
            }
        }
        None
    }
}

impl Layer for Errors {
    fn space(&self) -> Option<u64> {
        Some(self.stories.iter().flat_map(|(_, calls)| calls).sum::<u64>() * 2)
    }

    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => self.sample,
            Share::Nightly => u64::MAX,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let (story, (error, classes), call) = self.find(id).ok_or("there is no such trial")?;
        let is_sticky = id % 2 == 1;
        let number = error.raw_os_error();
        let mode = if is_sticky { Mode::Sticky(call + 1, number) } else { Mode::Once(call + 1, number) };
        let mut world = story.open();
        let (faults, code, said) = run(&world, classes, mode);
        if !matches!(code, Some(0 | 1)) || said.contains("panicked") {
            return Err(format!("{error} at {mode:?}: exit code {code:?}: {said}"));
        }
        if let Some(pid) = faults.kill_survivors() {
            return Err(format!("{error} at {mode:?}: process {pid} has outlived it"));
        }
        let context = |why| format!("{error} at {mode:?}: {why}\nthe disturbed run said: {said}");
        if is_examined(id) {
            world.examine().map_err(context)?;
        }
        let took = world.recover().map_err(context)?;
        if world.asks_without_a_copy() {
            return world.check_given_back().map(|()| Recovery(Some(took))).map_err(context);
        }
        // Without a descriptor the model can't be reached.
        let is_notice = |text: &str| text.starts_with("I can't reach my AI model right now");
        story.check_with(&world, &is_notice).map_err(context)?;
        Ok(Recovery(Some(took)))
    }
}

/// Runs the world's program under a fault. Returns its exit code (`None` if it was killed) and its output.
fn run(world: &World, classes: u64, mode: Mode) -> (Faults, Option<i32>, String) {
    let mut faults = Faults::new(world.env.root(), world.env.root(), classes);
    faults.set_mode(mode);
    let (code, said) = world.run(&faults);
    (faults, code, said)
}
