//! Layer 5: the power fails. A run is recorded once, with everything that it writes, syncs and sends; each trial cuts the
//! record off somewhere, builds what a disk could show then (see [`super::disk`]), and has the next wake make it good.
//!
//! Other machines don't lose power: the remote finishes or drops the push that it was in the middle of, and Telegram has what
//! was sent until then.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
};

use super::{
    disk::{
        Disk, Model, Picture,
        record::{self, Entry, Kind},
    },
    faults::{Faults, Mode, class},
    layer::{Layer, Recovery, Share},
    world::{Story, World},
};

/// Directories of the world that are other machines.
const ELSEWHERE: [&str; 2] = ["remote.git", "laptop"];
/// The campaign's own files in the world.
const OURS: [&str; 2] = ["faults", "faults.record"];

/// The stories' recordings.
pub(crate) struct PowerLoss {
    recordings: Vec<Recording>,
}

/// A run, from a snapshot to its end.
struct Recording {
    story: Story,
    before: Disk<'static>,
    entries: Vec<Entry>,
    /// The product's own process; the others are git's.
    product: u32,
    /// Whether a remote was in the middle of something after so many entries.
    is_remote_busy: Vec<bool>,
}

impl PowerLoss {
    pub(crate) fn record() -> Self {
        Self { recordings: vec![Recording::of(Story::wake())] }
    }
}

impl Recording {
    fn of(story: Story) -> Self {
        let world = story.open();
        let root = world.env.root();
        let before = Disk::snapshot(root, &ELSEWHERE).unwrap();
        let mut faults = Faults::new(root, root, class::MUTATING);
        faults.order(Mode::Record);
        let mut command = world.wake();
        faults.apply(&mut command);
        let child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let product = child.id();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "the recorded run failed: {output:?}");
        let entries = record::read(&std::fs::read(faults.record().unwrap()).unwrap()).unwrap();
        let after = Disk::snapshot(root, &ELSEWHERE).unwrap().now();
        let is_remote_busy = checked(&before, &entries, &after);
        Self { story, before, entries, product, is_remote_busy }
    }

    /// What each process relies on.
    fn model(&self, entry: &Entry, chosen: Model) -> Model {
        if entry.pid == self.product { chosen } else { Model::Ordered }
    }

    /// The last entry that the remote takes part in: the one at which the power fails here, unless it was in the middle of
    /// something. Then it may drop that, as long as its branch hasn't moved; or go on to its end.
    fn remote_until(&self, cut: usize, random: &mut fastrand::Rng) -> usize {
        let is_quiet = |at: &usize| !self.is_remote_busy.get(*at).copied().unwrap_or(false);
        let dropped = (0..=cut).rev().find(is_quiet).unwrap_or(0);
        let finished = (cut..=self.entries.len()).find(is_quiet).unwrap_or(self.entries.len());
        let moved = |entry: &Entry| {
            entry.kind == Kind::Rename && self.before.happened_elsewhere(entry) && entry.path2.contains("/refs/")
        };
        let has_moved = self.entries.get(dropped..cut).is_some_and(|since| since.iter().any(moved));
        if has_moved || random.bool() { finished } else { dropped }
    }

    fn power_loss(&self, random: &mut fastrand::Rng) -> Result<(Picture, usize, String), String> {
        let cut = random.usize(0..=self.entries.len());
        let model = if random.bool() { Model::Ordered } else { Model::Strict };
        let remote_until = self.remote_until(cut, random);
        let mut disk: Disk<'_> = self.before.clone();
        for (at, entry) in self.entries.iter().enumerate() {
            let until = if disk.happened_elsewhere(entry) { remote_until } else { cut };
            if at < until {
                disk.play(entry, self.model(entry, model))?;
            }
        }
        let (picture, how) = disk.after_power_loss(random);
        let last = cut.checked_sub(1).and_then(|at| self.entries.get(at)).map(Entry::brief).unwrap_or_default();
        Ok((
            picture,
            cut,
            format!("power lost after {cut} of {} entries ({last}), {model:?}, {how}", self.entries.len()),
        ))
    }

    /// Sends to a world's Telegram what the recorded run sent to its own.
    fn send_again(&self, until: usize, world: &World) -> Result<(), String> {
        for entry in self.entries.iter().take(until).filter(|entry| entry.kind == Kind::Send) {
            let request = String::from_utf8_lossy(&entry.data);
            if !request.lines().next().is_some_and(|line| line.contains("/sendMessage")) {
                continue;
            }
            let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let length = request
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if length != Some(body.len()) {
                return Err(format!("a request wasn't recorded whole: {request}"));
            }
            let failed = |error: std::io::Error| format!("the trial's Telegram: {error}");
            let address = world.telegram.url();
            let mut stream = TcpStream::connect(address.trim_start_matches("http://")).map_err(failed)?;
            stream.write_all(&entry.data).map_err(failed)?;
            stream.shutdown(Shutdown::Write).map_err(failed)?;
            stream.read_to_end(&mut Vec::new()).map_err(failed)?;
        }
        Ok(())
    }
}

/// Plays the whole record and sees that it tells all: what it makes of the snapshot is what is there. Says when the remote was busy.
fn checked(before: &Disk<'static>, entries: &[Entry], after: &Picture) -> Vec<bool> {
    let mut disk: Disk<'_> = before.clone();
    let mut is_remote_busy = vec![false];
    for entry in entries {
        disk.play(entry, Model::Ordered).unwrap();
        is_remote_busy.push(disk.paths_elsewhere().any(|name| name.ends_with(".lock") || name.contains("incoming-")));
    }
    let differences = disk.now().differences(after, &OURS);
    assert!(differences.is_empty(), "the record doesn't tell all of {differences:#?}");
    is_remote_busy
}

impl Layer for PowerLoss {
    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 60,
            Share::Nightly => 2_000,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let mut random = fastrand::Rng::with_seed(id);
        let recording = random.choice(&self.recordings).ok_or("there is no recording")?;
        let (picture, cut, how) = recording.power_loss(&mut random)?;
        let mut world = recording.story.open();
        picture.write(world.env.root()).map_err(|error| format!("{how}: {error}"))?;
        recording.send_again(cut, &world).map_err(|why| format!("{how}: {why}"))?;
        let ended = world.recover().and_then(|took| recording.story.check(&world).map(|()| took));
        ended.map(|took| Recovery(Some(took))).map_err(|why| format!("{how}: {why}"))
    }
}
