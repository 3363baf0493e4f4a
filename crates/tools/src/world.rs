//! The tools' view of the world: the time, the chat, the cycle's version of the memory, reminders, and the limits for unasked messages.

use std::{
    borrow::Cow,
    cell::{LazyCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    path::{Path, PathBuf},
    rc::Rc,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use reveille_base::{disk, types::ChatRef, zone::Tz};
use reveille_config::{Autonomy, Config, QuietHours};
use reveille_git::{Repo, RepoError};
use reveille_index::{IndexPlace, embed::Meaning};
use reveille_media::content;
use reveille_memory::{
    is_disguised, is_steering,
    reflect::PersonMemoryEdits,
    skill::Skill,
    view::{self, View},
};
use reveille_policy::Rules;
use reveille_sandbox::exec::Shelter;
use reveille_store::{Change, Exchange, Reminder, ShownTask, StagedFile};

use super::{Assignment, Attachments, Done, ToolView, Undoable};
use crate::about::About;

/// Maximum size of a memory file, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum size of a skill's further file, in bytes.
const MAX_SKILL_FILE_BYTES: u64 = 256 * 1024;
/// Maximum nesting of a skill's folders.
const MAX_SKILL_DEPTH: usize = 3;
/// Maximum number of entries examined in a skill's folder.
const MAX_SKILL_ENTRIES: usize = 500;

/// Tool definitions, created on the first search because most cycles never search.
pub struct Catalogue(LazyCell<Vec<Value>, Box<dyn FnOnce() -> Vec<Value>>>);

impl Catalogue {
    /// Creates the definitions lazily by `make`.
    pub fn new(make: impl FnOnce() -> Vec<Value> + 'static) -> Self {
        Self(LazyCell::new(Box::new(make)))
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

impl Deref for Catalogue {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

/// The destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat {
    /// The chat.
    pub id: ChatRef,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The channel's id of the last question.
    pub reply_to: Option<i64>,
}

/// Everything that a tool may know.
pub struct World {
    /// The cycle that calls the tools.
    pub cycle: CycleFacts,
    /// The time of the cycle's last observation, and the person's zone.
    pub clock: LocalClock,
    /// The chat that the cycle answers, as read at its start.
    pub conversation: ChatSnapshot,
    /// The memory as this cycle sees and changes it, its index and the reminders.
    pub memory: MemorySnapshot,
    /// The abilities and their limits: rules, tools, and the place where programs run.
    pub means: Capabilities,
    /// The limits of unasked messages to the owner.
    pub unasked: UnaskedLimits,
}

/// The cycle that calls the tools.
pub struct CycleFacts {
    /// The cycle's id.
    pub id: String,
    /// The model's name.
    pub model: String,
    /// Set if the offline model only replaces a configured AI model, and the chat knows.
    pub is_stand_in: bool,
    /// The cycle's background job; `None` for a request of somebody, or for several jobs.
    pub assignment: Option<Assignment>,
    /// The source of untrusted text that the cycle has read, if any.
    pub taint: Option<String>,
    /// The number of texts sent to the chat in this cycle.
    pub replies: usize,
}

/// The time of the cycle's last observation, and the person's zone.
pub struct LocalClock {
    /// The current time.
    pub now: DateTime<Utc>,
    /// The person's time zone.
    pub tz: Tz,
}

/// The chat that the cycle answers, as read at its start.
pub struct ChatSnapshot {
    /// The chat that this cycle answers, if a message is among its reasons.
    pub chat: Option<Chat>,
    /// Set if the chat is kept on this machine (`/local`).
    pub is_local: bool,
    /// Other local chats, whose messages can't be found here.
    pub other_local_chats: Vec<ChatRef>,
    /// Unanswered messages of that chat in the conversation.
    pub open_messages: Vec<i64>,
    /// Messages of the conversation in only their sender's own words; filled once the cycle is tainted.
    pub own_words: Vec<String>,
    /// The last messages of the asking chat, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Files sent by the asking chat.
    pub attachments: Attachments,
    /// Wakes that this chat may undo.
    pub undoable: Vec<Undoable>,
    /// The wake meant by "undo that".
    pub last_undoable: Option<Undoable>,
    /// The tasks shown to the chat last, for references by number from 1.
    pub shown_tasks: Vec<ShownTask>,
}

/// The memory as this cycle sees and changes it, its index and the reminders.
pub struct MemorySnapshot {
    /// The memory.
    pub documents: Documents,
    /// The place of the search index for memory and conversations.
    pub index: IndexPlace,
    /// The meaning of search queries.
    pub meaning: Meaning,
    /// The readable skills.
    pub skills: Vec<Skill>,
    /// Active reminders.
    pub reminders: Vec<Reminder>,
}

/// The abilities and their limits: rules, tools, and the place where programs run.
pub struct Capabilities {
    /// This build and its setup.
    pub about: About,
    /// The autonomy setting.
    pub autonomy: Autonomy,
    /// The person's rules.
    pub rules: Rules,
    /// The place where programs run.
    pub shelter: Rc<Shelter>,
    /// All tool definitions, searched by `find_tools`.
    pub catalogue: Rc<Catalogue>,
}

/// The limits of unasked messages to the owner.
pub struct UnaskedLimits {
    /// The chat that `tell` writes to.
    pub owner_chat: ChatRef,
    /// Keys of earlier unasked messages and of noted contradictions.
    pub told_keys: BTreeSet<String>,
    /// The number of unasked messages today.
    pub told_today: u32,
    /// The daily limit of unasked messages.
    pub tell_per_day: u32,
    /// The time without unasked messages.
    pub quiet_hours: Option<QuietHours>,
    /// The warning for scheduled things if nothing starts a wake.
    pub unwoken: Option<String>,
}

impl World {
    /// Creates the world from the settings, without cycle, chat or messages. All of the memory is visible, unchanged.
    pub fn new(config: &Config, version: &str, now: DateTime<Utc>, rules: Rules, shelter: Rc<Shelter>) -> Self {
        Self {
            cycle: CycleFacts {
                id: String::new(),
                model: String::new(),
                is_stand_in: false,
                assignment: None,
                taint: None,
                replies: 0,
            },
            clock: LocalClock { now, tz: config.timezone },
            conversation: ChatSnapshot {
                chat: None,
                is_local: false,
                other_local_chats: Vec::new(),
                open_messages: Vec::new(),
                own_words: Vec::new(),
                exchanges: Vec::new(),
                attachments: Attachments::default(),
                undoable: Vec::new(),
                last_undoable: None,
                shown_tasks: Vec::new(),
            },
            memory: MemorySnapshot {
                documents: Documents::new(&config.repo_dir(), Vec::new()),
                index: IndexPlace::from_config(config),
                meaning: Meaning::default(),
                skills: Vec::new(),
                reminders: Vec::new(),
            },
            means: Capabilities {
                about: About::new(version, config),
                autonomy: config.autonomy,
                rules,
                shelter,
                catalogue: Rc::default(),
            },
            unasked: UnaskedLimits {
                owner_chat: config.owner_chat,
                told_keys: BTreeSet::new(),
                told_today: 0,
                tell_per_day: config.tell_per_day,
                quiet_hours: config.quiet_hours,
                unwoken: None,
            },
        }
    }

    /// Returns the person's own edits to the facts, in a cycle of reflection.
    pub fn person_edits(&self) -> Option<&PersonMemoryEdits> {
        match &self.cycle.assignment {
            Some(Assignment::Reflection(by_hand)) => Some(by_hand),
            _ => None,
        }
    }

    /// Returns true if the work has no one to approve or to notify. Calls that would ask are then refused, and its
    /// allowance is all that it may spend.
    pub fn asks_nobody(&self) -> bool {
        matches!(self.cycle.assignment, Some(Assignment::Initiative { .. }))
    }

    /// Returns the current time on the person's clock.
    pub fn local_time(&self) -> DateTime<Tz> {
        self.clock.now.with_timezone(&self.clock.tz)
    }

    /// Returns this cycle's chat unless it is the owner's. Entries for another chat are marked.
    pub fn foreign_chat(&self) -> Option<ChatRef> {
        view::foreign_chat(self.conversation.chat.map(|chat| chat.id), self.unasked.owner_chat)
    }

    /// Returns true if everything of the owner's may be seen and used. False in other chats unless the standing orders share.
    pub fn sees_all(&self) -> bool {
        self.memory.documents.root().is_some()
    }

    /// Returns the tools that this cycle's chat may see.
    pub fn tool_view(&self) -> ToolView {
        if self.sees_all() { ToolView::Owner } else { ToolView::Guest }
    }

    /// Appends the warning that nothing starts a wake, if set.
    pub(super) fn append_wake_warning(&self, done: Done) -> Done {
        match &self.unasked.unwoken {
            Some(word) => Done { content: format!("{}\n\n{word}", done.content), ..done },
            None => done,
        }
    }

    /// Returns true in quiet hours.
    pub fn is_quiet(&self) -> bool {
        self.unasked.quiet_hours.is_some_and(|hours| hours.contains(self.local_time().time()))
    }
}

/// The memory of this cycle: files as first read, overlaid by staged changes.
///
/// Tools and prompts reach the memory only through this type. With a [`View`] they see and edit only the visible part.
pub struct Documents {
    dir: PathBuf,
    view: Option<View>,
    read: RefCell<BTreeMap<String, Option<String>>>,
    staged: BTreeMap<String, StagedFile>,
    /// The first failure to read a file for reasons outside of the file.
    trouble: RefCell<Option<(PathBuf, std::io::Error)>>,
}

impl Documents {
    /// Opens the memory in a work tree, with the staged files of an interrupted cycle.
    pub fn new(dir: &Path, staged: Vec<StagedFile>) -> Self {
        Self {
            dir: dir.to_owned(),
            view: None,
            read: RefCell::default(),
            staged: staged.into_iter().map(|file| (file.path.clone(), file)).collect(),
            trouble: RefCell::default(),
        }
    }

    /// Limits the memory to a chat's view.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// Returns the work tree; `None` if a [`View`] limits the memory.
    pub fn root(&self) -> Option<&Path> {
        self.view.is_none().then_some(self.dir.as_path())
    }

    /// Returns the work tree.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the chat of the [`View`], if any.
    pub(super) fn reader(&self) -> Option<ChatRef> {
        self.view.map(|view| view.chat())
    }

    /// Converts a line of the whole document to a line of the visible part, both counted from 1.
    pub(super) fn to_visible_line(&self, path: &str, line: usize) -> usize {
        let Some((view, kept_at)) = self.view.and_then(|view| Some((view, view.find_path(path)?))) else { return line };
        let whole = self.read_whole(&kept_at).unwrap_or_default();
        view.find_visible_line(path, &whole, line)
    }

    /// Returns the path of a document on disk; `None` if the [`View`] hides the document.
    pub fn find_path(&self, path: &str) -> Option<PathBuf> {
        match self.view {
            Some(view) => Some(self.dir.join(&*view.find_path(path)?)),
            None => Some(self.dir.join(path)),
        }
    }

    /// Returns the paths of the files changed by a commit of the memory, regardless of the view.
    ///
    /// # Errors
    /// The repository can't be read, or has no such commit.
    pub fn list_changed_files(&self, commit: &str) -> Result<Vec<PathBuf>, RepoError> {
        let commit = commit.parse().map_err(RepoError::from)?;
        let changed = Repo::open(&self.dir)?.history().list_changed_paths(commit)?;
        Ok(changed.into_iter().map(|path| self.dir.join(path)).collect())
    }

    /// Takes the first read failure caused by the machine: no free descriptor, a failing disk. Files may then have
    /// appeared missing or empty, so nothing may be based on them.
    pub fn take_trouble(&self) -> Option<(PathBuf, std::io::Error)> {
        self.trouble.take()
    }

    /// Returns the value; on an error `None`, after recording a failure of the machine.
    fn record_trouble<T>(&self, path: &Path, result: std::io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if disk::is_machine_fault(&error) {
                    self.trouble.borrow_mut().get_or_insert((path.to_owned(), error));
                }
                None
            }
        }
    }

    /// Returns a document's current text; `None` if missing or not readable as text.
    pub fn get(&self, path: &str) -> Option<String> {
        let Some(view) = self.view else {
            return self.read_whole(path);
        };
        let text = self.read_whole(&view.find_path(path)?)?;
        view.find_visible_text(path, &text)
    }

    fn read_whole(&self, path: &str) -> Option<String> {
        self.staged.get(path).map(|file| file.content.clone()).or_else(|| self.read_base(path))
    }

    /// Returns a document's current text; empty if missing.
    pub fn text(&self, path: &str) -> String {
        self.get(path).unwrap_or_default()
    }

    /// Creates the change to new content. Invisible parts of the document stay.
    pub fn stage(&self, path: &str, content: String) -> Change {
        let (path, content) = match self.view.and_then(|view| Some((view, view.find_path(path)?))) {
            Some((view, kept_at)) => {
                let whole = self.read_whole(&kept_at).unwrap_or_default();
                (kept_at, view.apply_edit(path, &whole, content))
            }
            None => (Cow::Borrowed(path), content),
        };
        let base = self.staged.get(&*path).map_or_else(|| self.read_base(&path), |file| file.base.clone());
        Change::File(StagedFile { path: path.into_owned(), base, content })
    }

    /// Adds a recorded change.
    pub fn apply(&mut self, file: &StagedFile) {
        self.staged.insert(file.path.clone(), file.clone());
    }

    /// Returns all staged files.
    pub fn list_staged_files(&self) -> Vec<StagedFile> {
        self.staged.values().cloned().collect()
    }

    /// Lists the Markdown files below `memory/` and `skills/`, and `claude.md`, sorted. With a [`View`], only files with visible content.
    pub fn list(&self) -> Vec<String> {
        let mut paths = BTreeSet::new();
        if self.is_plain(Path::new("claude.md")) {
            paths.insert("claude.md".to_owned());
        }
        let mut folders = vec![PathBuf::from("memory"), PathBuf::from("skills")];
        while let Some(folder) = folders.pop() {
            let full = self.dir.join(&folder);
            let Some(entries) = self.record_trouble(&full, std::fs::read_dir(&full)) else {
                continue;
            };
            for entry in entries.filter_map(|entry| self.record_trouble(&full, entry)) {
                let path = folder.join(entry.file_name());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") => {
                        paths.extend(path.to_str().map(str::to_owned));
                    }
                    _ => {}
                }
            }
        }
        paths.extend(self.staged.keys().cloned());
        match self.view {
            Some(view) => {
                let names = view.list_documents(&paths).into_iter();
                names.filter(|name| is_steering(name) || self.get(name).is_some()).collect()
            }
            None => paths.into_iter().collect(),
        }
    }

    /// Lists a skill's further files by their sorted relative paths, without hidden files, links and deeply nested files.
    pub fn skill_files(&self, folder: &str) -> Vec<String> {
        let root = Path::new("skills").join(folder);
        let mut found = BTreeSet::new();
        let mut folders = vec![(PathBuf::new(), 0)];
        while let Some((below, depth)) = folders.pop() {
            let full = self.dir.join(&root).join(&below);
            let Some(entries) = self.record_trouble(&full, std::fs::read_dir(&full)) else { continue };
            for entry in entries.filter_map(|entry| self.record_trouble(&full, entry)).take(MAX_SKILL_ENTRIES) {
                let path = below.join(entry.file_name());
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && !is_hidden && depth < MAX_SKILL_DEPTH => {
                        folders.push((path, depth + 1));
                    }
                    Ok(kind) if kind.is_file() && !is_hidden && path != Path::new("SKILL.md") => {
                        found.extend(path.to_str().map(str::to_owned));
                    }
                    _ => {}
                }
            }
        }
        found.into_iter().take(MAX_SKILL_ENTRIES).collect()
    }

    /// Reads a further file of a skill as text.
    ///
    /// # Errors
    /// The reason for the model: not a plain file below the folder, too large, or not text.
    pub fn skill_file(&self, folder: &str, path: &str) -> Result<String, String> {
        let relative = Path::new("skills").join(folder).join(path);
        let is_below = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let no_such = || format!("This skill has no file {path:?}. Without a path its files are listed.");
        if !is_below || path.split('/').any(|part| part.starts_with('.')) || !self.is_plain(&relative) {
            return Err(no_such());
        }
        let full = self.dir.join(relative);
        let bytes = self.record_trouble(&full, std::fs::metadata(&full)).ok_or_else(no_such)?.len();
        if bytes > MAX_SKILL_FILE_BYTES {
            return Err(format!("{path} has {bytes} bytes; of a skill at most {MAX_SKILL_FILE_BYTES} are read."));
        }
        let bytes = self.record_trouble(&full, std::fs::read(&full)).ok_or_else(no_such)?;
        match String::from_utf8(bytes) {
            Ok(text) if text.is_empty() || content::is_text(text.as_bytes()) => Ok(text),
            _ => Err(format!("{path} isn't text in UTF-8, and can't be shown.")),
        }
    }

    fn read_base(&self, path: &str) -> Option<String> {
        if let Some(text) = self.read.borrow().get(path) {
            return text.clone();
        }
        let text = self.read_file(path);
        self.read.borrow_mut().insert(path.to_owned(), text.clone());
        text
    }

    fn read_file(&self, path: &str) -> Option<String> {
        let relative = Path::new(path);
        let is_memory = path == "claude.md" || path.starts_with("memory/") || path.starts_with("skills/");
        // Another spelling of a document's path (`memory/./x.md`) would escape checks by path, such as the one for untrusted text.
        let is_canonical = relative.components().collect::<PathBuf>().as_os_str() == path;
        // fault: document-read-name-disk
        let is_another = !is_canonical || is_disguised(path);
        if !is_memory || !path.ends_with(".md") || is_another || !self.is_plain(relative) {
            return None;
        }
        let full = self.dir.join(relative);
        if self.record_trouble(&full, std::fs::metadata(&full))?.len() > MAX_FILE_BYTES {
            return None;
        }
        self.record_trouble(&full, std::fs::read_to_string(&full))
    }

    /// Returns true for a plain file inside the work tree without symbolic links in its path.
    fn is_plain(&self, relative: &Path) -> bool {
        let mut full = self.dir.clone();
        for component in relative.components() {
            let std::path::Component::Normal(name) = component else {
                return false;
            };
            full.push(name);
            match self.record_trouble(&full, std::fs::symlink_metadata(&full)) {
                Some(metadata) if !metadata.file_type().is_symlink() => {}
                _ => return false,
            }
        }
        full.is_file()
    }
}
