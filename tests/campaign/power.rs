//! Layer 5: the power fails. A run is recorded once, with all its writes, syncs and sends. Each trial cuts the record off
//! somewhere, builds a possible state of the disk (see [`super::disk`]), and lets the next wake recover.
//!
//! Other machines don't lose power: the remote finishes or drops an unfinished push, and Telegram has everything sent before the cut.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use serde_json::Value;

use super::{
    disk::{
        Disk, Model, Picture,
        record::{self, Entry, Kind},
    },
    faults::{Faults, Mode, class},
    layer::{Layer, Recovery, Share, is_examined},
    world::{Story, World},
};
use crate::support::{claude::API_KEY, telegram::TOKEN};

/// Directories that keep their state: those of other machines, and the effects of an allowed command.
const ELSEWHERE: [&str; 3] = ["remote.git", "laptop", DONE_OUTSIDE];
const DONE_OUTSIDE: &str = "workspace/scratch";
/// The maximum distance of a cut after a send, in entries.
const SOON: usize = 4;
/// The maximum distance of a cut after a rename by the product, in entries.
const LATER: usize = 16;
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
    /// The ids of the product's own processes; all others belong to git.
    product: BTreeSet<u32>,
    /// For each number of entries, whether a remote was in the middle of an action after them.
    is_remote_busy: Vec<bool>,
}

impl PowerLoss {
    pub(crate) fn new(stories: impl IntoIterator<Item = Story>) -> Self {
        Self { recordings: stories.into_iter().map(Recording::record).collect() }
    }
}

impl Recording {
    fn record(story: Story) -> Self {
        let world = story.open();
        let root = world.env.root();
        let before = Disk::snapshot(root, &ELSEWHERE).unwrap();
        let mut faults = Faults::new(root, root, class::MUTATING);
        faults.set_mode(Mode::Record);
        let (code, said) = world.run(&faults);
        assert_eq!(code, Some(0), "the recorded run: {said}");
        let mut entries = record::read(&fs::read(faults.record().unwrap()).unwrap()).unwrap();
        if let Some(trace) = world.trace() {
            insert_command_effect(&trace, &mut entries);
        }
        let after = Disk::snapshot(root, &ELSEWHERE).unwrap().now();
        let is_remote_busy = check_record(&before, &entries, &after);
        // Git's children never touch the database.
        let of_product = |entry: &&Entry| entry.path.contains("/messages.db") || entry.path.ends_with("/.wake-lock");
        let product = entries.iter().filter(of_product).map(|entry| entry.pid).collect();
        Self { story, before, entries, product, is_remote_busy }
    }

    /// The guarantees of the file system that an entry's process relies on.
    fn model(&self, entry: &Entry, chosen: Model) -> Model {
        if self.product.contains(&entry.pid) { chosen } else { Model::Ordered }
    }

    /// The number of entries that the remote carries out: as many as before the cut if it is idle then. A busy remote finishes its
    /// action, or drops it unless a branch has already moved.
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

    /// Draws the number of entries before the power fails: anywhere; right before a sync, when the most data is at risk; soon after a
    /// send or an outside effect, when the promised data has to be safe; or after a rename by the product, which later steps rely on.
    fn cut(&self, random: &mut fastrand::Rng) -> usize {
        let is_sync = |entry: &Entry| matches!(entry.kind, Kind::SyncFile | Kind::SyncDirectory | Kind::SyncAll);
        let is_named = |entry: &Entry| entry.kind == Kind::Rename && self.product.contains(&entry.pid);
        let is_outside = |entry: &Entry| entry.kind == Kind::Send || entry.path.contains(DONE_OUTSIDE);
        let of_kind = |is_it: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
            self.entries.iter().enumerate().filter(|(_, entry)| is_it(entry)).map(|(at, _)| at).collect()
        };
        let chosen = match random.u8(0..4) {
            0 => random.choice(of_kind(&is_sync)),
            1 => random.choice(of_kind(&is_outside)).map(|at| at + random.usize(1..=SOON)),
            2 => random.choice(of_kind(&is_named)).map(|at| at + random.usize(1..=LATER)),
            _ => None,
        };
        chosen.unwrap_or_else(|| random.usize(0..=self.entries.len())).min(self.entries.len())
    }

    /// Draws a cut. Returns the disk's content, the cut, and a description.
    fn power_loss(&self, random: &mut fastrand::Rng) -> Result<(Picture, usize, String), String> {
        let cut = self.cut(random);
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

    /// Repeats the recorded requests to the trial's own Telegram and model, so that both know them.
    fn replay_requests(&self, until: usize, world: &World) -> Result<(), String> {
        let sent = self.entries.iter().take(until).filter(|entry| entry.kind == Kind::Send);
        for request in requests(sent) {
            let (url, request) = match (request.method(), &world.claude) {
                (Some("sendMessage" | "deleteMessage"), _) => (world.telegram.url(), request),
                // A poll confirms earlier updates, which counts; there is no need to wait for new ones.
                (Some("getUpdates"), _) => (world.telegram.url(), request.without_waiting()?),
                (None, Some(claude)) if request.head.contains(API_KEY) => (claude.url(), request),
                _ => continue,
            };
            request.post(&url).map_err(|error| format!("the trial's {url}: {error}"))?;
        }
        Ok(())
    }

    fn recover_and_check(&self, picture: &Picture, cut: usize) -> Result<Duration, String> {
        let mut world = self.story.open();
        picture.write(world.env.root()).map_err(|error| error.to_string())?;
        self.replay_requests(cut, &world)?;
        if is_examined(cut as u64) {
            world.examine()?;
        }
        let took = world.recover()?;
        self.story.check(&world)?;
        Ok(took)
    }
}

/// One HTTP request.
struct Request {
    head: String,
    body: String,
}

impl Request {
    /// The Telegram method of a request; `None` for other servers.
    fn method(&self) -> Option<&str> {
        let path = self.head.split(' ').nth(1).filter(|path| path.contains(TOKEN))?;
        path.rsplit('/').next()
    }

    /// Turns a poll into one that doesn't wait.
    fn without_waiting(self) -> Result<Self, String> {
        let mut body: Value = serde_json::from_str(&self.body).map_err(|error| error.to_string())?;
        body["timeout"] = 0.into();
        Ok(Self { body: body.to_string(), ..self })
    }

    /// Sends the request to another server and waits for the answer.
    fn post(&self, url: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
        let fields = self.head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("content-length:"));
        for line in fields {
            write!(stream, "{line}\r\n")?;
        }
        write!(stream, "content-length: {}\r\n\r\n{}", self.body.len(), self.body)?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

/// The complete HTTP requests, oldest first; one request may consist of several entries of one connection.
fn requests<'a>(sent: impl Iterator<Item = &'a Entry>) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut begun: BTreeMap<(u32, u64), Vec<u8>> = BTreeMap::new();
    for entry in sent {
        let bytes = begun.entry((entry.pid, entry.ino)).or_default();
        bytes.extend_from_slice(&entry.data);
        let text = String::from_utf8_lossy(bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            requests.push(Request { head: head.to_owned(), body: body.to_owned() });
            bytes.clear();
        }
    }
    requests
}

/// Inserts the effect of a sandboxed command into the record, just before the command's outcome. The effect itself isn't recorded.
fn insert_command_effect(trace: &Path, entries: &mut Vec<Entry>) {
    let text = fs::read(trace).unwrap();
    let tells = |entry: &Entry| {
        let receipt = "Ran “".as_bytes();
        entry.path.ends_with("/messages.db-wal") && entry.data.windows(receipt.len()).any(|bytes| bytes == receipt)
    };
    let at = entries.iter().position(tells).expect("the command's outcome is in the record");
    let ino = fs::metadata(trace).unwrap().ino();
    let entry = |kind, data| Entry {
        kind,
        flags: 0,
        pid: 0,
        ino,
        offset: 0,
        path: trace.display().to_string(),
        path2: String::new(),
        data,
    };
    entries.splice(at..at, [entry(Kind::Create, Vec::new()), entry(Kind::Write, text)]);
}

/// Plays the whole record and compares the result with the actual files. Returns for each number of entries whether a remote was busy.
fn check_record(before: &Disk<'static>, entries: &[Entry], after: &Picture) -> Vec<bool> {
    let mut disk: Disk<'_> = before.clone();
    let mut is_remote_busy = vec![false];
    for entry in entries {
        disk.play(entry, Model::Ordered).unwrap();
        is_remote_busy.push(disk.paths_elsewhere().any(|name| name.ends_with(".lock") || name.contains("incoming-")));
    }
    let differences = disk.now().differences(after, &OURS);
    assert!(differences.is_empty(), "the record doesn't explain {differences:#?}");
    is_remote_busy
}

impl Layer for PowerLoss {
    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 36,
            Share::Nightly => 2_000,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let mut random = fastrand::Rng::with_seed(id);
        let recording = random.choice(&self.recordings).ok_or("there is no recording")?;
        let (picture, cut, how) = recording.power_loss(&mut random)?;
        match catch_unwind(AssertUnwindSafe(|| recording.recover_and_check(&picture, cut))) {
            Ok(ended) => ended.map(|took| Recovery(Some(took))).map_err(|why| format!("{how}: {why}")),
            Err(panic) => {
                let why = panic.downcast_ref::<String>().map_or("a check panicked", String::as_str);
                Err(format!("{how}: {why}"))
            }
        }
    }
}
