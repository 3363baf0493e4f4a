//! Tasks: `## Title`, then `- key: value` lines, then free text. `active.md` and `backlog.md` share the shape.
//!
//! A [`TaskList`] is read once; each edit gives a new text in which only the edit's own lines differ. What a model
//! gives (titles, values, bodies) is made one line or escaped first, so that no newline in it can forge a key or a
//! heading.

mod prose;
mod read;

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use chrono::{Datelike as _, NaiveDate};

use reveille_base::{schedule::Missed, types::ChatRef, words};

pub use self::prose::Prose;
pub(super) use self::read::{RawKey, RawTask, raw_task};
use self::read::{is_key, read_task};
use super::{
    Problem, imported,
    lookup::{Miss, pick},
    project::project_name,
    sections::{Document, hash_title},
    text::{ends_line, eol, escape_start, folded, lines, one_line, slice, splice},
};

/// At most this many tasks are active at once; done ones don't count.
pub const MAX_ACTIVE_TASKS: usize = 7;
/// A title's length, in characters.
pub const MAX_TITLE_CHARS: usize = 120;
/// The length of a value, in characters.
pub const MAX_VALUE_CHARS: usize = 500;
/// The length of a new task's free text, in characters.
pub const MAX_BODY_CHARS: usize = 8_000;
/// The length of a key, in characters.
const MAX_KEY_CHARS: usize = 40;

/// Why an edit wasn't made, by what the asker should do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Nothing matches: ask for one of the similar ones, or add it.
    #[error("there is no task “{query}”{}", list("; near it: ", similar))]
    NotFound {
        /// What was asked for.
        query: String,
        /// Titles that share a word with it, the nearest first.
        similar: Vec<String>,
    },
    /// More than one task matches: ask for one by its whole title.
    #[error("“{query}” could be any of these tasks{}", list(": ", candidates))]
    Ambiguous {
        /// What was asked for.
        query: String,
        /// The titles that match.
        candidates: Vec<String>,
    },
    /// A task of that title is there already: change that one.
    #[error("there is a task “{title}” already")]
    Exists {
        /// Its title.
        title: String,
    },
    /// Finish or move a task first.
    #[error("{MAX_ACTIVE_TASKS} tasks are active already: finish or drop one, or move one to the backlog, first")]
    Full,
    /// Give a title with a letter or digit in it.
    #[error("a task needs a title")]
    NoTitle,
    /// Use letters, digits, `-` and `_`.
    #[error("“{key}” can't be a key: use one word of letters, digits, - and _")]
    BadKey {
        /// The key as given.
        key: String,
    },
}

/// A day until which something is to be done, as people say it: "due tomorrow", "was due Thu 26 Nov".
pub fn due_in_words(due: NaiveDate, today: NaiveDate) -> String {
    let far = if due.year() == today.year() { "%a %-d %b" } else { "%a %-d %b %Y" };
    match due.signed_duration_since(today).num_days() {
        0 => "due today".to_owned(),
        1 => "due tomorrow".to_owned(),
        -1 => "was due yesterday".to_owned(),
        ..-1 => format!("was due {}", due.format(far)),
        _ => format!("due {}", due.format(far)),
    }
}

fn list(lead: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{lead}“{}”", names.join("”, “")) }
}

/// The tasks of one document.
#[derive(Debug, Clone)]
pub struct TaskList {
    text: String,
    tasks: Vec<Task>,
}

/// One task as it stands in the document.
#[derive(Debug, Clone)]
pub struct Task {
    /// The heading's text.
    pub title: String,
    /// The heading's line, counted from 1.
    pub line: usize,
    /// The `- key: value` lines in order, unknown keys too.
    pub keys: Vec<Key>,
    /// When it was last worked on, if the value is a date such as `2026-11-20`.
    pub touched: Option<NaiveDate>,
    /// What to do about a time that was missed, if `missed` names one of the ways; else the default.
    pub missed: Missed,
    /// The free text under the keys, without blank lines around it.
    pub body: String,
    range: Range<usize>,
    keys_end: usize,
}

/// One `- key: value` line, with the indented lines that continue it.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key as written.
    pub name: String,
    /// The value as one line, without a trailing HTML comment.
    pub value: String,
    /// Its line, counted from 1.
    pub line: usize,
    range: Range<usize>,
    value_range: Range<usize>,
}

/// A task to be added. Everything is made safe when it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskDraft {
    /// The title.
    pub title: String,
    /// `active`, `waiting`, `paused`, `done` or a word of one's own.
    pub status: Option<String>,
    /// The day it was last worked on.
    pub touched: Option<NaiveDate>,
    /// The next step.
    pub next: Option<String>,
    /// When the next step is the assistant's own: the time of it.
    pub at: Option<String>,
    /// The day until which it is to be done.
    pub due: Option<NaiveDate>,
    /// Why it matters.
    pub why: Option<String>,
    /// The project that it is a part of.
    pub project: Option<String>,
    /// Free text.
    pub body: String,
}

impl Task {
    /// The value of a key; its case doesn't matter. Of a key given twice, the first.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.key(key).map(|found| found.value.as_str())
    }

    /// The status, as written.
    pub fn status(&self) -> Option<&str> {
        self.get("status")
    }

    /// When the assistant's own next step is due, as written.
    pub fn at(&self) -> Option<&str> {
        self.get("at")
    }

    /// The day until which it is to be done, where it says one such as `2026-11-20`.
    pub fn due(&self) -> Option<NaiveDate> {
        self.get("due")?.split_whitespace().next()?.parse().ok()
    }

    /// The name of its steps' document, where it is a long task: see [`super::steps`].
    pub fn steps(&self) -> Option<&str> {
        self.get("steps").map(str::trim).filter(|name| !name.is_empty())
    }

    /// Whether it is worked at: it says nothing else.
    pub fn is_in_hand(&self) -> bool {
        self.status().is_none_or(|status| status.trim().is_empty() || status.trim().eq_ignore_ascii_case("active"))
    }

    /// The chat it belongs to, where it says so: the owner's don't.
    pub fn chat(&self) -> Option<ChatRef> {
        self.get("chat")?.trim().parse().ok()
    }

    /// The project that it is a part of, by the name that its document has.
    pub fn project(&self) -> Option<String> {
        project_name(self.get("project")?).ok()
    }

    /// Whether it came in from another program and nobody has confirmed it.
    pub fn is_unconfirmed(&self) -> bool {
        self.keys.iter().any(|key| imported::is_mark(&format!("- {}: {}", key.name, key.value)))
    }

    /// Whether its status is `done`.
    pub fn is_done(&self) -> bool {
        self.status().is_some_and(|status| status.eq_ignore_ascii_case("done"))
    }

    fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name.eq_ignore_ascii_case(name))
    }
}

impl TaskList {
    /// Reads a document. Whatever isn't a task stays as it is and is carried through every edit.
    pub fn parse(text: &str) -> (Self, Vec<Problem>) {
        let document = Document::split(text);
        let mut problems = document.problems();
        let mut tasks: Vec<Task> = Vec::new();
        let mut first_lines: HashMap<String, usize> = HashMap::new();
        for part in document.sections() {
            let task = read_task(&document, part, &mut problems);
            let first = *first_lines.entry(folded(&task.title)).or_insert(task.line);
            if first != task.line {
                let what = format!("a second task “{}”; the first is in line {first}", task.title);
                problems.push(Problem::new(task.line, what));
            }
            tasks.push(task);
        }
        problems.sort_by_key(|problem| problem.line);
        (Self { text: text.to_owned(), tasks }, problems)
    }

    /// The document's text, as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tasks in the document's order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The task that a query means: the exact title, else the only one that starts with it, else the only one that
    /// has all its words. Case doesn't matter. In quotation marks, “so”, it is the whole title.
    ///
    /// # Errors
    /// [`TaskError::NotFound`] and [`TaskError::Ambiguous`], with titles to choose from.
    pub fn find(&self, query: &str) -> Result<&Task, TaskError> {
        if let Some(title) = query.trim().strip_prefix('“').and_then(|rest| rest.strip_suffix('”')) {
            let not_found = || TaskError::NotFound { query: one_line(title, MAX_TITLE_CHARS), similar: Vec::new() };
            return self.titled(title).ok_or_else(not_found);
        }
        let titles: Vec<&str> = self.tasks.iter().map(|task| task.title.as_str()).collect();
        let query_text = || one_line(query, MAX_TITLE_CHARS);
        let at = pick(query, &titles).map_err(|miss| match miss {
            Miss::NotFound { similar } => TaskError::NotFound { query: query_text(), similar },
            Miss::Ambiguous { candidates } => TaskError::Ambiguous { query: query_text(), candidates },
        })?;
        self.tasks.get(at).ok_or_else(|| TaskError::NotFound { query: query_text(), similar: Vec::new() })
    }

    /// Whether the task of this title came in from another program and nobody has confirmed it.
    pub fn is_unconfirmed(&self, title: &str) -> bool {
        self.titled(title).is_some_and(Task::is_unconfirmed)
    }

    /// The first task of just this title. Case and an article before it don't matter.
    pub fn titled(&self, title: &str) -> Option<&Task> {
        let plain = |text: &str| {
            let text = folded(text);
            let bare = ["the ", "my ", "a ", "an "].iter().find_map(|article| text.strip_prefix(article));
            bare.map_or_else(|| text.clone(), str::to_owned)
        };
        let wanted = plain(title);
        self.tasks.iter().find(|task| task.title == title).or_else(|| {
            let mut fits = self.tasks.iter().filter(|task| plain(&task.title) == wanted);
            fits.next().filter(|_| !wanted.is_empty())
        })
    }

    /// For `active.md`: whether one more task fits under [`MAX_ACTIVE_TASKS`]. Ask before adding or moving one there. Each chat
    /// that isn't the owner's (`chat:` names it) has its own room.
    ///
    /// # Errors
    /// [`TaskError::Full`].
    pub fn check_room(&self, chat: Option<ChatRef>) -> Result<(), TaskError> {
        let chat = chat.map(|id| id.to_string());
        if self.open_of(chat.as_deref()).count() < MAX_ACTIVE_TASKS { Ok(()) } else { Err(TaskError::Full) }
    }

    /// For `active.md`: what is wrong there though it would be fine in the backlog: too many tasks at once, and open
    /// tasks without a `touched` date, which nothing can tell to have gone quiet.
    pub fn active_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let open = || self.tasks.iter().filter(|task| !task.is_done());
        for chat in open().map(|task| task.get("chat")).collect::<BTreeSet<_>>() {
            if let Some(eighth) = self.open_of(chat).nth(MAX_ACTIVE_TASKS) {
                let count = self.open_of(chat).count();
                let what = format!("{count} tasks are active; at most {MAX_ACTIVE_TASKS} should be");
                problems.push(Problem::new(eighth.line, what));
            }
        }
        for task in open().filter(|task| task.get("touched").is_none()) {
            let what = format!("“{}” has no `touched` date, so no one is reminded of it", task.title);
            problems.push(Problem::new(task.line, what));
        }
        problems.extend(self.prose().into_iter().map(|prose| {
            let Prose { line, text } = prose;
            Problem::new(line, format!("“{text}” isn't read as a task: that takes a heading, `## {text}`"))
        }));
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// The open tasks of the owner, or of the chat that their `chat:` names.
    fn open_of(&self, chat: Option<&str>) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| !task.is_done() && task.get("chat") == chat)
    }

    /// The text with a task added at its end.
    ///
    /// # Errors
    /// [`TaskError::NoTitle`], or [`TaskError::Exists`] when a task of the same title is there.
    pub fn add(&self, draft: &TaskDraft) -> Result<String, TaskError> {
        let title = safe_title(&draft.title)?;
        if self.tasks.iter().any(|task| folded(&task.title) == folded(&title)) {
            return Err(TaskError::Exists { title });
        }
        let eol = eol(&self.text);
        let touched = draft.touched.map(|day| day.to_string());
        let due = draft.due.map(|day| day.to_string());
        let values = [
            ("status", &draft.status),
            ("touched", &touched),
            ("next", &draft.next),
            ("at", &draft.at),
            ("due", &due),
            ("why", &draft.why),
            ("project", &draft.project),
        ];
        let mut block = format!("## {title}{eol}");
        for (key, value) in values {
            if let Some(value) = value {
                block.push_str(key_line(key, value).trim_end());
                block.push_str(eol);
            }
        }
        for line in safe_body(&draft.body) {
            block.push_str(&line);
            block.push_str(eol);
        }
        Ok(Document::split(&self.text).append(&block))
    }

    /// The text with one key of one task set, added, or (with `None`) removed together with its indented lines. The
    /// value already there gives the same text back.
    ///
    /// # Errors
    /// As [`TaskList::find`], and [`TaskError::BadKey`].
    pub fn set(&self, query: &str, key: &str, value: Option<&str>) -> Result<String, TaskError> {
        let task = self.find(query)?;
        if !is_key(key) {
            return Err(TaskError::BadKey { key: one_line(key, MAX_KEY_CHARS) });
        }
        Ok(match (task.key(key), value) {
            (None, None) => self.text.clone(),
            (Some(found), None) => Document::split(&self.text).splice(found.range.clone(), ""),
            (Some(found), Some(value)) => self.set_value(found, value),
            (None, Some(value)) => self.add_key(task, key, value),
        })
    }

    /// The text with a task marked as worked on at a day.
    ///
    /// # Errors
    /// As [`TaskList::find`].
    pub fn touch(&self, query: &str, day: NaiveDate) -> Result<String, TaskError> {
        self.set(query, "touched", Some(&day.to_string()))
    }

    /// The text with a task's heading changed. All that stands under it stays.
    ///
    /// # Errors
    /// As [`TaskList::find`], [`TaskError::NoTitle`], and [`TaskError::Exists`] when another task has that title.
    pub fn rename(&self, query: &str, title: &str) -> Result<String, TaskError> {
        let task = self.find(query)?;
        let title = safe_title(title)?;
        let is_taken = |other: &&Task| other.line != task.line && folded(&other.title) == folded(&title);
        if self.tasks.iter().any(|other| is_taken(&other)) {
            return Err(TaskError::Exists { title });
        }
        let heading = lines(slice(&self.text, task.range.clone())).next().unwrap_or_default();
        let end = task.range.start + heading.trim_end_matches(['\n', '\r']).len();
        Ok(Document::split(&self.text).splice(task.range.start..end, &format!("## {title}")))
    }

    fn set_value(&self, key: &Key, value: &str) -> String {
        let value = one_line(value, MAX_VALUE_CHARS);
        if value == key.value {
            return self.text.clone();
        }
        let after_colon = slice(&self.text, 0..key.value_range.start).ends_with(':');
        let gap = if after_colon && !value.is_empty() { " " } else { "" };
        splice(&self.text, key.value_range.clone(), &format!("{gap}{value}"))
    }

    fn add_key(&self, task: &Task, key: &str, value: &str) -> String {
        let eol = eol(&self.text);
        let lead = if ends_line(slice(&self.text, 0..task.keys_end)) { "" } else { eol };
        let line = format!("{lead}{}{eol}", key_line(key, value).trim_end());
        Document::split(&self.text).splice(task.keys_end..task.keys_end, &line)
    }

    /// Takes a task out: the text without it, and its bytes for [`TaskList::put`] into the other document.
    ///
    /// # Errors
    /// As [`TaskList::find`].
    pub fn take(&self, query: &str) -> Result<(String, String), TaskError> {
        let range = self.find(query)?.range.clone();
        let rest = Document::split(&self.text).splice(range.clone(), "");
        Ok((rest, slice(&self.text, range).to_owned()))
    }

    /// The text with a task's bytes, from [`TaskList::take`], at its end.
    ///
    /// # Errors
    /// [`TaskError::Exists`] when a task of the same title is there.
    pub fn put(&self, block: &str) -> Result<String, TaskError> {
        let document = Document::split(block);
        let title = document.sections().next().map(|part| part.title.clone()).ok_or(TaskError::NoTitle)?;
        if self.tasks.iter().any(|task| folded(&task.title) == folded(&title)) {
            return Err(TaskError::Exists { title });
        }
        Ok(Document::split(&self.text).append(block.trim_start_matches([' ', '\t'])))
    }
}

fn key_line(key: &str, value: &str) -> String {
    format!("- {key}: {}", one_line(value, MAX_VALUE_CHARS))
}

/// A title that reads back as itself: one line, and no closing marks that the parser would cut off.
fn safe_title(title: &str) -> Result<String, TaskError> {
    let mut title = one_line(title, MAX_TITLE_CHARS);
    while let Some(read) = hash_title(&format!("## {title}"), 2).filter(|read| *read != title) {
        title = read;
    }
    if title.chars().any(char::is_alphanumeric) { Ok(title) } else { Err(TaskError::NoTitle) }
}

/// The lines of a new task's free text, with a blank one before them: no line opens a section, the first is no key,
/// and nothing stays open at the end. Marks of headings are escaped wherever they stand, in code as well: a Markdown parser would leave
/// those in a fence, which a later edit or a merge may open.
pub(super) fn safe_body(body: &str) -> Vec<String> {
    let body = body.replace('\u{feff}', "").replace("<!--", "<! --");
    let body = words::shortened(body.trim(), MAX_BODY_CHARS);
    if body.is_empty() {
        return Vec::new();
    }
    let mut safe = vec![String::new()];
    for line in lines(&body).map(str::trim_end) {
        let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        let first = safe.len() == 1;
        let bare = line.trim();
        let heading = bare.starts_with('#') || bare.chars().all(|c| c == '-') || bare.chars().all(|c| c == '=');
        safe.push(if first || heading { escape_start(line.trim_start()) } else { line });
    }
    let joined = format!("## x\n{}\n", safe.join("\n"));
    let closed = Document::split(&joined).append("## x\n");
    let bridge = closed.strip_prefix(joined.as_str()).and_then(|rest| rest.strip_suffix("## x\n"));
    safe.extend(
        bridge.into_iter().flat_map(lines).map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()),
    );
    safe
}

#[cfg(test)]
mod tests;
