//! Writes the events of a watched cycle.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use reveille_base::{
    file,
    growing_json::GrowingField,
    redact::{GrowingText, Redactor},
    words::{one_line, truncate_text},
};

use crate::{LiveEvent, WatchedCycle};

/// The name of the answering tool.
const REPLY: &str = "reply";
/// The field of its arguments that holds the text.
const ANSWER_FIELD: &str = "text";
/// Maximum bytes of a feed. What comes after isn't previewed.
const MAX_FEED_BYTES: usize = 1024 * 1024;
/// Maximum wait for whoever passes the preview on.
const READERS_TIMEOUT: Duration = Duration::from_secs(2);
const READERS_PAUSE: Duration = Duration::from_millis(5);
/// Maximum length of a call's description, in characters.
const MAX_WHAT_CHARS: usize = 120;

/// The feed of one cycle. Dropping it removes the file.
///
/// A file that can't be written ends the preview, and nothing else.
#[derive(Debug)]
pub struct LiveFeed {
    path: PathBuf,
    redactor: Redactor,
    file: Option<File>,
    written: usize,
    is_tainted: bool,
    narration: GrowingText,
    answer: GrowingText,
    /// The arguments of the answering call that is being written.
    arguments: Option<GrowingField>,
}

impl LiveFeed {
    /// Returns the feed of a cycle that nobody watches.
    pub fn unwatched() -> Self {
        Self::begin(Path::new(""), None, &Redactor::default())
    }

    /// Begins the feed of a cycle, in place of an earlier one. `None` writes nothing.
    pub fn begin(path: &Path, watched: Option<WatchedCycle>, redactor: &Redactor) -> Self {
        let new = |_: &WatchedCycle| {
            remove_stale(path);
            file::create_private(path).ok()
        };
        let mut feed = Self {
            path: path.to_owned(),
            redactor: redactor.clone(),
            file: watched.as_ref().and_then(new),
            written: 0,
            is_tainted: false,
            narration: GrowingText::new(redactor.clone()),
            answer: GrowingText::new(redactor.clone()),
            arguments: None,
        };
        if let Some(watched) = watched {
            feed.write(&LiveEvent::Begin(watched));
        }
        feed
    }

    /// Notes that the cycle has read untrusted text.
    pub fn taint(&mut self) {
        if !self.is_tainted {
            self.is_tainted = true;
            self.write(&LiveEvent::Taint);
        }
    }

    /// Begins a turn.
    pub fn begin_turn(&mut self) {
        self.forget_held();
        self.write(&LiveEvent::Turn);
    }

    /// Adds to what the model says outside of calls.
    pub fn add_text(&mut self, more: &str) {
        let text = self.narration.push(more);
        self.write_narration(text);
    }

    /// Begins a call that the model writes.
    pub fn begin_call(&mut self, tool: &str) {
        self.arguments = (tool == REPLY).then(|| GrowingField::new(ANSWER_FIELD));
        // Two answers of a turn are two paragraphs.
        let text = self.narration.finish();
        self.write_narration(text);
    }

    /// Adds to the arguments of the last call that the model has begun.
    pub fn add_arguments(&mut self, more: &str) {
        let Some(arguments) = &mut self.arguments else { return };
        let gained = arguments.push(more);
        let text = self.answer.push(&gained);
        self.write_answer(text);
    }

    /// Ends a turn that is kept: nothing is held back any more.
    pub fn end_turn(&mut self) {
        let text = self.narration.finish();
        self.write_narration(text);
        let text = self.answer.finish();
        self.write_answer(text);
        self.arguments = None;
    }

    /// Takes back the text of a turn that is discarded.
    pub fn withdraw_turn(&mut self) {
        self.forget_held();
        self.write(&LiveEvent::Withdraw);
    }

    /// Notes that a message of the person has joined the conversation.
    pub fn note_joined(&mut self, text: &str) {
        // Before anything is cut: half a key is no longer known as one.
        let text = truncate_text(&one_line(&self.redactor.redact(text)), MAX_WHAT_CHARS);
        self.write(&LiveEvent::Joined { text });
    }

    /// Notes that a call is carried out.
    pub fn note_call(&mut self, id: &str, what: &str) {
        let what = truncate_text(&one_line(&self.redactor.redact(what)), MAX_WHAT_CHARS);
        self.write(&LiveEvent::Call { id: id.to_owned(), what });
    }

    /// Notes the end of a call.
    pub fn note_result(&mut self, id: &str, is_error: bool) {
        self.write(&LiveEvent::Result { id: id.to_owned(), is_error });
    }

    fn forget_held(&mut self) {
        self.narration = GrowingText::new(self.redactor.clone());
        self.answer = GrowingText::new(self.redactor.clone());
        self.arguments = None;
    }

    fn write_narration(&mut self, text: String) {
        if !text.is_empty() {
            self.write(&LiveEvent::Narration { text });
        }
    }

    fn write_answer(&mut self, text: String) {
        if !text.is_empty() {
            self.write(&LiveEvent::Answer { text });
        }
    }

    fn write(&mut self, event: &LiveEvent) {
        let Some(file) = &mut self.file else { return };
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        self.written += line.len();
        if self.written > MAX_FEED_BYTES || file.write_all(&line).is_err() {
            self.file = None;
        }
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        if self.written > 0 {
            let locked = wait_for_readers(&self.path);
            remove_stale(&self.path);
            drop(locked);
        }
    }
}

/// Waits until nobody passes the preview on, such as to Telegram: what comes after the answer would be shown beside it.
///
/// Returns the locked file: until it is removed, no reader may begin anew.
fn wait_for_readers(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    let begun = Instant::now();
    while begun.elapsed() < READERS_TIMEOUT {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(READERS_PAUSE),
            _ => break,
        }
    }
    Some(file)
}

/// Removes the feed that a killed wake has left. For the holder of the wake lock.
pub fn remove_stale(path: &Path) {
    fs::remove_file(path).ok();
}
