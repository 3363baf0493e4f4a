//! Reads the events of a watched cycle.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::{LiveEvent, WatchedCycle};

/// Maximum bytes read at once.
const MAX_READ_BYTES: u64 = 256 * 1024;

/// The preview of a cycle by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The watched cycle.
    pub watched: WatchedCycle,
    /// True if links must be shown as text.
    pub is_tainted: bool,
    /// What the model says between calls, in the present turn.
    pub narration: String,
    /// Its answer so far.
    pub answer: String,
    /// The last message that has joined the conversation since it began.
    pub joined: Option<String>,
    /// The calls of this wake, in order.
    pub steps: Vec<PreviewStep>,
    /// The length of the answer at the beginning of the turn.
    answer_before: usize,
}

/// A call in a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewStep {
    /// What it does, on one line.
    pub what: String,
    /// Whether it failed. `None` while it runs.
    pub is_error: Option<bool>,
    id: String,
}

impl Preview {
    fn new(watched: WatchedCycle) -> Self {
        let (narration, answer) = (String::new(), String::new());
        Self { watched, is_tainted: false, narration, answer, joined: None, steps: Vec::new(), answer_before: 0 }
    }

    /// Returns the words to show: the answer, or before it has begun, what the model says between calls.
    pub fn words(&self) -> &str {
        if self.answer.is_empty() { self.narration.trim() } else { self.answer.trim() }
    }

    /// Returns the call that runs now.
    pub fn running_step(&self) -> Option<&PreviewStep> {
        self.steps.last().filter(|step| step.is_error.is_none())
    }

    fn apply(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::Begin(watched) => *self = Self::new(watched),
            LiveEvent::Taint => self.is_tainted = true,
            LiveEvent::Turn => {
                self.narration.clear();
                self.answer_before = self.answer.len();
            }
            LiveEvent::Narration { text } => self.narration.push_str(&text),
            LiveEvent::Answer { text } => {
                if self.answer.len() == self.answer_before && self.answer_before > 0 {
                    self.answer.push_str("\n\n");
                }
                self.answer.push_str(&text);
            }
            LiveEvent::Withdraw => {
                self.narration.clear();
                self.answer.truncate(self.answer_before);
            }
            LiveEvent::Joined { text } => self.joined = Some(text),
            LiveEvent::Call { id, what } => self.steps.push(PreviewStep { what, is_error: None, id }),
            LiveEvent::Result { id, is_error } => {
                if let Some(step) = self.steps.iter_mut().rfind(|step| step.id == id) {
                    step.is_error = Some(is_error);
                }
            }
        }
    }
}

/// A preview that doesn't end yet; see [`LiveReader::hold`].
#[derive(Debug)]
pub struct HeldPreview(#[expect(dead_code, reason = "its lock is held")] File);

/// The feed that is read.
#[derive(Debug)]
struct OpenFeed {
    file: File,
    /// The device and the number of the file.
    id: (u64, u64),
}

impl OpenFeed {
    fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let found = file.metadata().ok()?;
        Some(Self { file, id: (found.dev(), found.ino()) })
    }
}

/// Follows the feed of a workspace. A look costs one call to the system while nothing is written.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    /// The file that is read. While it is open, no later feed can have its number.
    open: Option<OpenFeed>,
    /// The beginning of a line.
    begun: Vec<u8>,
    preview: Option<Preview>,
}

impl LiveReader {
    /// Follows the feed at this path.
    pub fn new(path: PathBuf) -> Self {
        Self { path, open: None, begun: Vec::new(), preview: None }
    }

    /// Returns the preview by now. `None` while no cycle is watched.
    pub fn preview(&self) -> Option<&Preview> {
        self.preview.as_ref()
    }

    /// Keeps the preview from ending while it is passed on, until the returned value is dropped. `None` if it has ended, or ends.
    pub fn hold(&self) -> Option<HeldPreview> {
        let file = File::open(&self.path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        // Removed since: the answer may be on its way.
        let is_there = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| self.open.as_ref().is_some_and(|open| open.id == (found.dev(), found.ino())));
        is_there.then_some(HeldPreview(file))
    }

    /// Reads what was written since, and returns `true` if the preview has changed.
    pub fn refresh(&mut self) -> bool {
        let Ok(found) = std::fs::symlink_metadata(&self.path) else {
            self.open = None;
            return self.preview.take().is_some();
        };
        let mut has_changed = false;
        if self.open.as_ref().is_none_or(|open| open.id != (found.dev(), found.ino())) {
            self.begun.clear();
            has_changed = self.preview.take().is_some();
            self.open = OpenFeed::open(&self.path);
        }
        let Some(OpenFeed { file, .. }) = &mut self.open else { return has_changed };
        let mut bytes = Vec::new();
        if file.take(MAX_READ_BYTES).read_to_end(&mut bytes).is_err() {
            return has_changed;
        }
        self.begun.extend(bytes);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            // A line of a later release is passed over.
            let Ok(event) = serde_json::from_slice(&line) else { continue };
            has_changed = true;
            match (&mut self.preview, event) {
                (Some(preview), event) => preview.apply(event),
                (None, LiveEvent::Begin(watched)) => self.preview = Some(Preview::new(watched)),
                (None, _) => {}
            }
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use reveille_base::{
        redact::{Redactor, Secret},
        types::ChatRef,
    };

    use super::*;
    use crate::LiveFeed;

    fn watched(cycle_id: &str) -> WatchedCycle {
        WatchedCycle { cycle_id: cycle_id.to_owned(), chat: ChatRef::TERMINAL, thread_id: None }
    }

    fn feed(path: &Path, cycle_id: &str) -> LiveFeed {
        LiveFeed::begin(path, Some(watched(cycle_id)), &Redactor::default())
    }

    fn seen(reader: &mut LiveReader) -> (String, String) {
        reader.refresh();
        let preview = reader.preview().unwrap();
        (preview.narration.clone(), preview.answer.clone())
    }

    #[test]
    fn an_answer_grows_and_a_discarded_turn_disappears() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut reader = LiveReader::new(path.clone());
        assert!(!reader.refresh() && reader.preview().is_none());
        let mut feed = feed(&path, "c1");
        feed.begin_turn();
        feed.add_text("I look into ");
        feed.add_text("it");
        assert_eq!(seen(&mut reader), ("I look into ".to_owned(), String::new()));
        assert!(!reader.refresh(), "nothing new");
        feed.begin_call("web_fetch");
        feed.add_arguments("{\"text\": \"no answer\"}");
        feed.end_turn();
        feed.note_call("k1", "Fetch a page");
        reader.refresh();
        assert_eq!(reader.preview().unwrap().running_step().unwrap().what, "Fetch a page");
        feed.note_result("k1", false);
        feed.begin_turn();
        feed.begin_call("reply");
        feed.add_arguments("{\"text\": \"It is sunny to");
        assert_eq!(seen(&mut reader), (String::new(), "It is sunny ".to_owned()));
        feed.withdraw_turn();
        assert_eq!(seen(&mut reader), (String::new(), String::new()));
        feed.begin_turn();
        feed.begin_call("reply");
        feed.add_arguments("{\"text\": \"It rains.\"}");
        feed.end_turn();
        assert_eq!(seen(&mut reader).1, "It rains.");
        assert_eq!(reader.preview().unwrap().steps[0].is_error, Some(false));
        drop(feed);
        assert!(reader.refresh() && reader.preview().is_none() && !path.exists());
    }

    #[test]
    fn a_feed_of_the_next_cycle_replaces_what_a_kill_has_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut reader = LiveReader::new(path.clone());
        let mut killed = feed(&path, "c1");
        killed.add_text("Half a ");
        std::mem::forget(killed);
        assert_eq!(seen(&mut reader).0, "Half a ");
        let mut next = feed(&path, "c2");
        next.add_text("Whole. ");
        assert_eq!(seen(&mut reader).0, "Whole. ");
        assert_eq!(reader.preview().unwrap().watched, watched("c2"));
    }

    #[test]
    fn no_part_of_a_secret_reaches_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let redactor = Redactor::new([&Secret::new("hunter2hunter2")]);
        let mut feed = LiveFeed::begin(&path, Some(watched("c1")), &redactor);
        feed.begin_turn();
        feed.begin_call("reply");
        for piece in ["{\"text\": \"The key is hun", "ter2", "hunter2", " by the", " way.\"}"] {
            feed.add_arguments(piece);
            assert!(!std::fs::read_to_string(&path).unwrap().contains("hun"));
        }
        feed.note_call("k", "Send hunter2hunter2 off");
        feed.end_turn();
        let mut reader = LiveReader::new(path);
        assert_eq!(seen(&mut reader).1, "The key is *** by the way.");
        assert_eq!(reader.preview().unwrap().steps[0].what, "Send *** off");
    }

    #[test]
    fn nothing_is_written_for_a_cycle_that_nobody_may_watch() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut feed = LiveFeed::begin(&path, None, &Redactor::default());
        feed.begin_turn();
        feed.add_text("Secret plans. ");
        assert!(!path.exists());
    }
}
