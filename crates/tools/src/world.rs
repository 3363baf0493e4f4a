//! What tools see: the time, the chat, the memory as this cycle has it so far, reminders, and what speaking unasked allows.

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
    is_disguised,
    reflect::PersonsDoing,
    skill::Skill,
    steers,
    view::{self, View},
};
use reveille_policy::Rules;
use reveille_sandbox::exec::Shelter;
use reveille_store::{Change, Exchange, Reminder, ShownTask, StagedFile};

use super::{Assignment, Attachments, Done, Undoable};
use crate::about::About;

/// A file larger than this is not read as memory, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// A skill's further file that is larger is not read, in bytes.
const MAX_SKILL_FILE_BYTES: u64 = 256 * 1024;
/// Folders of a skill within one another that are looked into.
const MAX_SKILL_DEPTH: usize = 3;
/// Entries of a skill's folder that are looked at.
const MAX_SKILL_ENTRIES: usize = 500;

/// Definitions of tools that are made once somebody looks for one: most cycles don't.
pub struct Catalogue(LazyCell<Vec<Value>, Box<dyn FnOnce() -> Vec<Value>>>);

impl Catalogue {
    /// Made by `make`, once.
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

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat {
    /// The chat.
    pub id: ChatRef,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The channel's id of the last question.
    pub reply_to: Option<i64>,
}

/// All that a tool may know.
pub struct World {
    /// The cycle's id.
    pub wake_id: String,
    /// The model's name.
    pub model: String,
    /// Whether models that think are configured: the offline one only stands in for them, and its chat knows.
    pub is_stand_in: bool,
    /// Whether the chat is kept on this machine (`/local`).
    pub is_local: bool,
    /// The other chats that are: what was said there isn't found here.
    pub other_local_chats: Vec<ChatRef>,
    /// What this build is, and how it is set up.
    pub about: About,
    /// How much may be done without asking.
    pub autonomy: Autonomy,
    /// The person's rules.
    pub rules: Rules,
    /// The own work that the cycle does; none: it does what somebody has asked for, or several things.
    pub assignment: Option<Assignment>,
    /// Whose bytes the cycle has read by now, besides its person's and the memory's.
    pub taint: Option<String>,
    /// Where programs would run.
    pub shelter: Rc<Shelter>,
    /// What `find_tools` looks through: the definitions of all tools.
    pub catalogue: Rc<Catalogue>,
    /// Now.
    pub now: DateTime<Utc>,
    /// The person's zone.
    pub tz: Tz,
    /// The one chat this cycle answers, if a message is among its reasons.
    pub chat: Option<Chat>,
    /// Messages of that chat that are in the conversation and not answered or kept yet.
    pub open_messages: Vec<i64>,
    /// Messages of the conversation that are their sender's own words alone; filled once the cycle has read untrusted text.
    pub own_words: Vec<String>,
    /// Texts sent to the chat in this cycle so far.
    pub replies: usize,
    /// Whom `tell` speaks to.
    pub owner_chat: ChatRef,
    /// Keys that were told before, and those of contradictions that were noted.
    pub told_keys: BTreeSet<String>,
    /// How often was spoken unasked today.
    pub told_today: u32,
    /// How often that may be.
    pub tell_per_day: u32,
    /// When nothing is said unasked.
    pub quiet_hours: Option<QuietHours>,
    /// Active reminders.
    pub reminders: Vec<Reminder>,
    /// What to say of what is set for a time, where nothing wakes for it.
    pub unwoken: Option<String>,
    /// The memory.
    pub documents: Documents,
    /// Where the memory and the conversations are searched.
    pub index: IndexPlace,
    /// What questions mean, for such a search.
    pub meaning: Meaning,
    /// Skills that can be read.
    pub skills: Vec<Skill>,
    /// Files that the asking chat has sent.
    pub attachments: Attachments,
    /// What was last said in the asking chat, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Wakes that this chat may take back.
    pub undoable: Vec<Undoable>,
    /// Of these, the one that it means by "undo that".
    pub last_undoable: Option<Undoable>,
    /// The tasks that the chat was shown last: a number, from 1, means one of these.
    pub shown_tasks: Vec<ShownTask>,
}

impl World {
    /// The world as settings have it: it belongs to no cycle and no chat, nothing was said, read or found yet, and all of the memory is
    /// seen as it stands.
    pub fn new(config: &Config, version: &str, now: DateTime<Utc>, rules: Rules, shelter: Rc<Shelter>) -> Self {
        Self {
            wake_id: String::new(),
            model: String::new(),
            is_stand_in: false,
            is_local: false,
            other_local_chats: Vec::new(),
            about: About::of(version, config),
            autonomy: config.autonomy,
            rules,
            assignment: None,
            taint: None,
            shelter,
            catalogue: Rc::default(),
            now,
            tz: config.timezone,
            chat: None,
            open_messages: Vec::new(),
            own_words: Vec::new(),
            replies: 0,
            owner_chat: config.owner_chat,
            told_keys: BTreeSet::new(),
            told_today: 0,
            tell_per_day: config.tell_per_day,
            quiet_hours: config.quiet_hours,
            reminders: Vec::new(),
            unwoken: None,
            documents: Documents::new(&config.repo_dir(), Vec::new()),
            index: IndexPlace::of(config),
            meaning: Meaning::default(),
            skills: Vec::new(),
            attachments: Attachments::default(),
            exchanges: Vec::new(),
            undoable: Vec::new(),
            last_undoable: None,
            shown_tasks: Vec::new(),
        }
    }

    /// A person's own doing in the facts, where the cycle looks back at some days.
    pub fn reflecting(&self) -> Option<&PersonsDoing> {
        match &self.assignment {
            Some(Assignment::Reflection(by_hand)) => Some(by_hand),
            _ => None,
        }
    }

    /// Whether nobody is asked for this work and nobody hears of its end: what would ask is refused, and what it may take is all.
    pub fn asks_nobody(&self) -> bool {
        matches!(self.assignment, Some(Assignment::Initiative { .. }))
    }

    /// Now, on the person's clock.
    pub fn local(&self) -> DateTime<Tz> {
        self.now.with_timezone(&self.tz)
    }

    /// The chat of this cycle, if it isn't the owner's: what is written for it says so.
    pub fn foreign_chat(&self) -> Option<ChatRef> {
        view::foreign_chat(self.chat.map(|chat| chat.id), self.owner_chat)
    }

    /// Whether all that is the owner's may be seen and used: not in another chat, unless the standing orders share.
    pub fn sees_all(&self) -> bool {
        self.documents.root().is_some()
    }

    /// Adds the word that nothing wakes for what was set, if there is one.
    pub(super) fn told_unwoken(&self, done: Done) -> Done {
        match &self.unwoken {
            Some(word) => Done { content: format!("{}\n\n{word}", done.content), ..done },
            None => done,
        }
    }

    /// Whether nothing may be said unasked now.
    pub fn is_quiet(&self) -> bool {
        self.quiet_hours.is_some_and(|hours| hours.contains(self.local().time()))
    }
}

/// The memory as this cycle has it: files as they were first read, and over them what it has staged.
///
/// It is the one way in which tools and prompts reach the memory. Limited to a [`View`], they see and edit what that shows.
pub struct Documents {
    dir: PathBuf,
    view: Option<View>,
    read: RefCell<BTreeMap<String, Option<String>>>,
    staged: BTreeMap<String, StagedFile>,
    /// The first reading that failed for reasons that aren't the file's own.
    trouble: RefCell<Option<(PathBuf, std::io::Error)>>,
}

impl Documents {
    /// The memory in a work tree, with what an interrupted cycle had staged.
    pub fn new(dir: &Path, staged: Vec<StagedFile>) -> Self {
        Self {
            dir: dir.to_owned(),
            view: None,
            read: RefCell::default(),
            staged: staged.into_iter().map(|file| (file.path.clone(), file)).collect(),
            trouble: RefCell::default(),
        }
    }

    /// The same as one chat may see it.
    #[must_use]
    pub fn seen_by(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// The work tree, where all of it may be seen; none where a [`View`] limits what is.
    pub fn root(&self) -> Option<&Path> {
        self.view.is_none().then_some(self.dir.as_path())
    }

    /// The work tree that it is kept in.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The chat that a [`View`] limits it to.
    pub(super) fn reader(&self) -> Option<ChatRef> {
        self.view.map(|view| view.chat())
    }

    /// Which line of what is shown of a document a line of the whole is, both counted from 1.
    pub(super) fn line_seen(&self, path: &str, line: usize) -> usize {
        let Some((view, kept_at)) = self.view.and_then(|view| Some((view, view.path(path)?))) else { return line };
        let whole = self.whole(&kept_at).unwrap_or_default();
        view.line_shown(path, &whole, line)
    }

    /// Where a document is kept; none for one that the [`View`] leaves out.
    pub fn place(&self, path: &str) -> Option<PathBuf> {
        match self.view {
            Some(view) => Some(self.dir.join(&*view.path(path)?)),
            None => Some(self.dir.join(path)),
        }
    }

    /// Where the files are kept that a commit of the memory changed: their paths alone, whoever may see what of them.
    ///
    /// # Errors
    /// The repository can't be read, or has no such commit.
    pub fn changed_by(&self, commit: &str) -> Result<Vec<PathBuf>, RepoError> {
        let commit = commit.parse().map_err(RepoError::from)?;
        let changed = Repo::open(&self.dir)?.changed_by(commit)?;
        Ok(changed.into_iter().map(|path| self.dir.join(path)).collect())
    }

    /// What kept a file from being read that may well be sound: no descriptor left, a disk that fails. What was given out since
    /// as missing or empty isn't to be trusted then: nothing may be built on it.
    pub fn take_trouble(&self) -> Option<(PathBuf, std::io::Error)> {
        self.trouble.take()
    }

    /// The value, or none; trouble that isn't the file's own is kept.
    fn found<T>(&self, path: &Path, result: std::io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if disk::is_the_machines(&error) {
                    self.trouble.borrow_mut().get_or_insert((path.to_owned(), error));
                }
                None
            }
        }
    }

    /// A document as it is now; `None` when it isn't there or isn't readable as text.
    pub fn get(&self, path: &str) -> Option<String> {
        let Some(view) = self.view else {
            return self.whole(path);
        };
        let text = self.whole(&view.path(path)?)?;
        view.seen(path, &text)
    }

    fn whole(&self, path: &str) -> Option<String> {
        self.staged.get(path).map(|file| file.content.clone()).or_else(|| self.base(path))
    }

    /// A document as it is now; empty when it isn't there.
    pub fn text(&self, path: &str) -> String {
        self.get(path).unwrap_or_default()
    }

    /// The change that makes a document say `content`. What isn't shown of it stays.
    pub fn stage(&self, path: &str, content: String) -> Change {
        let (path, content) = match self.view.and_then(|view| Some((view, view.path(path)?))) {
            Some((view, kept_at)) => {
                let whole = self.whole(&kept_at).unwrap_or_default();
                (kept_at, view.edited(path, &whole, content))
            }
            None => (Cow::Borrowed(path), content),
        };
        let base = self.staged.get(&*path).map_or_else(|| self.base(&path), |file| file.base.clone());
        Change::File(StagedFile { path: path.into_owned(), base, content })
    }

    /// Takes note of a change that was recorded.
    pub fn apply(&mut self, file: &StagedFile) {
        self.staged.insert(file.path.clone(), file.clone());
    }

    /// All that is staged.
    pub fn staged(&self) -> Vec<StagedFile> {
        self.staged.values().cloned().collect()
    }

    /// Markdown files below `memory/` and `skills/`, and `claude.md`, sorted. For a chat that a [`View`] limits those that show it
    /// something.
    pub fn list(&self) -> Vec<String> {
        let mut paths = BTreeSet::new();
        if self.is_plain(Path::new("claude.md")) {
            paths.insert("claude.md".to_owned());
        }
        let mut folders = vec![PathBuf::from("memory"), PathBuf::from("skills")];
        while let Some(folder) = folders.pop() {
            let full = self.dir.join(&folder);
            let Some(entries) = self.found(&full, std::fs::read_dir(&full)) else {
                continue;
            };
            for entry in entries.filter_map(|entry| self.found(&full, entry)) {
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
                let names = view.list(&paths).into_iter();
                names.filter(|name| steers(name) || self.get(name).is_some()).collect()
            }
            None => paths.into_iter().collect(),
        }
    }

    /// The further files of a skill, by their paths below its folder, sorted: none that is hidden, a link or deep down.
    pub fn skill_files(&self, folder: &str) -> Vec<String> {
        let root = Path::new("skills").join(folder);
        let mut found = BTreeSet::new();
        let mut folders = vec![(PathBuf::new(), 0)];
        while let Some((below, depth)) = folders.pop() {
            let full = self.dir.join(&root).join(&below);
            let Some(entries) = self.found(&full, std::fs::read_dir(&full)) else { continue };
            for entry in entries.filter_map(|entry| self.found(&full, entry)).take(MAX_SKILL_ENTRIES) {
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

    /// A further file of a skill, as text.
    ///
    /// # Errors
    /// Why it isn't shown, for the model: no plain file below the folder, too large, or not text.
    pub fn skill_file(&self, folder: &str, path: &str) -> Result<String, String> {
        let relative = Path::new("skills").join(folder).join(path);
        let is_below = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let no_such = || format!("This skill has no file {path:?}. Without a path its files are listed.");
        if !is_below || path.split('/').any(|part| part.starts_with('.')) || !self.is_plain(&relative) {
            return Err(no_such());
        }
        let full = self.dir.join(relative);
        let bytes = self.found(&full, std::fs::metadata(&full)).ok_or_else(no_such)?.len();
        if bytes > MAX_SKILL_FILE_BYTES {
            return Err(format!("{path} has {bytes} bytes; of a skill at most {MAX_SKILL_FILE_BYTES} are read."));
        }
        let bytes = self.found(&full, std::fs::read(&full)).ok_or_else(no_such)?;
        match String::from_utf8(bytes) {
            Ok(text) if text.is_empty() || content::is_text(text.as_bytes()) => Ok(text),
            _ => Err(format!("{path} isn't text in UTF-8, and can't be shown.")),
        }
    }

    fn base(&self, path: &str) -> Option<String> {
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
        // Another spelling of a document's path (`memory/./x.md`) would be no document to those that know it by its path: what others
        // may have had a hand in wouldn't be told apart.
        let is_canonical = relative.components().collect::<PathBuf>().as_os_str() == path;
        // fault: document-read-name-disk
        let is_another = !is_canonical || is_disguised(path);
        if !is_memory || !path.ends_with(".md") || is_another || !self.is_plain(relative) {
            return None;
        }
        let full = self.dir.join(relative);
        if self.found(&full, std::fs::metadata(&full))?.len() > MAX_FILE_BYTES {
            return None;
        }
        self.found(&full, std::fs::read_to_string(&full))
    }

    /// Whether a path leads to a plain file inside the work tree, through no symbolic link.
    fn is_plain(&self, relative: &Path) -> bool {
        let mut full = self.dir.clone();
        for component in relative.components() {
            let std::path::Component::Normal(name) = component else {
                return false;
            };
            full.push(name);
            match self.found(&full, std::fs::symlink_metadata(&full)) {
                Some(metadata) if !metadata.file_type().is_symlink() => {}
                _ => return false,
            }
        }
        full.is_file()
    }
}
