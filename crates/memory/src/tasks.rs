//! Tasks: `## Title`, then `- key: value` lines, then free text. `active.md` and `backlog.md` share this shape.
//!
//! A [`TaskList`] is parsed once; each edit returns a new text that differs only in the edit's own lines. Titles, values and bodies from a
//! model are first reduced to one line or escaped, to keep newlines from forging a key or a heading.

mod order;
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
    text::{detect_line_ending, ends_line, escape_start, fold_text, one_line, slice, splice, split_lines},
};

/// The maximum number of active tasks, without done ones.
pub const MAX_ACTIVE_TASKS: usize = 7;
/// The maximum length of a title, in characters.
pub const MAX_TITLE_CHARS: usize = 120;
/// The maximum length of a value, in characters.
pub const MAX_VALUE_CHARS: usize = 500;
/// The maximum length of a new task's free text, in characters.
pub const MAX_BODY_CHARS: usize = 8_000;
/// The maximum length of a key, in characters.
const MAX_KEY_CHARS: usize = 40;

/// The reason an edit wasn't made. The variants are divided by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Nothing matches: ask for a similar task, or add a new one.
    #[error("there is no task “{query}”{}", format_names("; similar: ", similar))]
    NotFound {
        /// The words asked for.
        query: String,
        /// Titles sharing a word with the query, nearest first.
        similar: Vec<String>,
    },
    /// More than one task matches: ask with the whole title.
    #[error("“{query}” could be any of these tasks{}", format_names(": ", candidates))]
    Ambiguous {
        /// The words asked for.
        query: String,
        /// The matching titles.
        candidates: Vec<String>,
    },
    /// A task with this title exists: change that task.
    #[error("there is already a task “{title}”")]
    Exists {
        /// The title.
        title: String,
    },
    /// Too many tasks are active: finish or move one first.
    #[error("{MAX_ACTIVE_TASKS} tasks are active already: first finish or drop one, or move one to the backlog")]
    Full,
    /// The title has no letter or digit: give another.
    #[error("a task needs a title")]
    NoTitle,
    /// An open code block or comment holds the task in its place: close it first.
    #[error("“{title}” can't be moved: a code block or comment in the file isn't closed")]
    Unmovable {
        /// The title.
        title: String,
    },
    /// The key has invalid characters: use letters, digits, `-` and `_`.
    #[error("“{key}” can't be a key: use one word of letters, digits, - and _")]
    BadKey {
        /// The key as given.
        key: String,
    },
}

/// Describes a due date as people say it: "due tomorrow", "was due Thu 26 Nov".
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

fn format_names(lead: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{lead}“{}”", names.join("”, “")) }
}

/// The tasks of one document.
#[derive(Debug, Clone)]
pub struct TaskList {
    text: String,
    tasks: Vec<Task>,
}

/// A task in the document.
#[derive(Debug, Clone)]
pub struct Task {
    /// The heading's text.
    pub title: String,
    /// The heading's line, counted from 1.
    pub line: usize,
    /// The `- key: value` lines in order, including unknown keys.
    pub keys: Vec<Key>,
    /// The day of the last work, if the value is a date such as `2026-11-20`.
    pub touched: Option<NaiveDate>,
    /// The treatment of a missed time, from the key `missed`; the default without that key.
    pub missed: Missed,
    /// The free text under the keys, without surrounding blank lines.
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
    /// The line number, counted from 1.
    pub line: usize,
    range: Range<usize>,
    value_range: Range<usize>,
}

/// A task to be added. All texts are made safe when written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskDraft {
    /// The title.
    pub title: String,
    /// The status: `active`, `waiting`, `paused`, `done` or a custom word.
    pub status: Option<String>,
    /// The day of the last work.
    pub touched: Option<NaiveDate>,
    /// The next step.
    pub next: Option<String>,
    /// The time of the next step, if the assistant does it.
    pub at: Option<String>,
    /// The due date.
    pub due: Option<NaiveDate>,
    /// The reason the task matters.
    pub why: Option<String>,
    /// The project the task belongs to.
    pub project: Option<String>,
    /// Free text.
    pub body: String,
}

impl Task {
    /// Returns the value of a key, ignoring case; the first if the key repeats.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.find_key(key).map(|found| found.value.as_str())
    }

    /// Returns the status, as written.
    pub fn status(&self) -> Option<&str> {
        self.get("status")
    }

    /// Returns the time of the assistant's own next step, as written.
    pub fn step_time(&self) -> Option<&str> {
        self.get("at")
    }

    /// Returns the due date, if it has the form `2026-11-20`.
    pub fn due_date(&self) -> Option<NaiveDate> {
        self.get("due")?.split_whitespace().next()?.parse().ok()
    }

    /// Returns the name of the steps' document, if this is a long task: see [`super::steps`].
    pub fn steps_name(&self) -> Option<&str> {
        self.get("steps").map(str::trim).filter(|name| !name.is_empty())
    }

    /// Returns whether the task is being worked on: it has no status other than `active`.
    pub fn is_in_hand(&self) -> bool {
        self.status().is_none_or(|status| status.trim().is_empty() || status.trim().eq_ignore_ascii_case("active"))
    }

    /// Returns the chat the task belongs to. `None` for the owner's tasks.
    pub fn chat(&self) -> Option<ChatRef> {
        self.get("chat")?.trim().parse().ok()
    }

    /// Returns the project the task belongs to, by the name of its document.
    pub fn project(&self) -> Option<String> {
        project_name(self.get("project")?).ok()
    }

    /// Returns whether the task was imported and isn't confirmed yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.keys.iter().any(|key| imported::is_mark(&format!("- {}: {}", key.name, key.value)))
    }

    /// Returns whether the status is `done`.
    pub fn is_done(&self) -> bool {
        self.status().is_some_and(|status| status.eq_ignore_ascii_case("done"))
    }

    fn find_key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name.eq_ignore_ascii_case(name))
    }
}

impl TaskList {
    /// Parses a document. Everything that isn't a task survives every edit unchanged.
    pub fn parse(text: &str) -> (Self, Vec<Problem>) {
        let document = Document::split(text);
        let mut problems = document.find_problems();
        let mut tasks: Vec<Task> = Vec::new();
        let mut first_lines: HashMap<String, usize> = HashMap::new();
        for part in document.sections() {
            let task = read_task(&document, part, &mut problems);
            let first = *first_lines.entry(fold_text(&task.title)).or_insert(task.line);
            if first != task.line {
                let what = format!("a second task “{}”; the first is in line {first}", task.title);
                problems.push(Problem::new(task.line, what));
            }
            tasks.push(task);
        }
        problems.sort_by_key(|problem| problem.line);
        (Self { text: text.to_owned(), tasks }, problems)
    }

    /// Returns the document's text, as parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the tasks in document order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Finds the task meant by a query: the exact title, else the only title starting with it, else the only title with all its words.
    /// Ignores case. A query in quotation marks, “like this”, must be the whole title.
    ///
    /// # Errors
    /// [`TaskError::NotFound`] and [`TaskError::Ambiguous`], with titles to choose from.
    pub fn find(&self, query: &str) -> Result<&Task, TaskError> {
        if let Some(title) = query.trim().strip_prefix('“').and_then(|rest| rest.strip_suffix('”')) {
            let not_found = || TaskError::NotFound { query: one_line(title, MAX_TITLE_CHARS), similar: Vec::new() };
            return self.find_titled(title).ok_or_else(not_found);
        }
        let titles: Vec<&str> = self.tasks.iter().map(|task| task.title.as_str()).collect();
        let query_text = || one_line(query, MAX_TITLE_CHARS);
        let at = pick(query, &titles).map_err(|miss| match miss {
            Miss::NotFound { similar } => TaskError::NotFound { query: query_text(), similar },
            Miss::Ambiguous { candidates } => TaskError::Ambiguous { query: query_text(), candidates },
        })?;
        self.tasks.get(at).ok_or_else(|| TaskError::NotFound { query: query_text(), similar: Vec::new() })
    }

    /// Returns whether the task with this title was imported and isn't confirmed yet.
    pub fn is_unconfirmed(&self, title: &str) -> bool {
        self.find_titled(title).is_some_and(Task::is_unconfirmed)
    }

    /// Returns the first task with exactly this title, ignoring case and a leading article.
    pub fn find_titled(&self, title: &str) -> Option<&Task> {
        let plain = |text: &str| {
            let text = fold_text(text);
            let bare = ["the ", "my ", "a ", "an "].iter().find_map(|article| text.strip_prefix(article));
            bare.map_or_else(|| text.clone(), str::to_owned)
        };
        let wanted = plain(title);
        self.tasks.iter().find(|task| task.title == title).or_else(|| {
            let mut fits = self.tasks.iter().filter(|task| plain(&task.title) == wanted);
            fits.next().filter(|_| !wanted.is_empty())
        })
    }

    /// Checks the room for one more task in `active.md` under [`MAX_ACTIVE_TASKS`], before adding or moving one there. Each chat other than
    /// the owner's (named by `chat:`) has its own limit.
    ///
    /// # Errors
    /// [`TaskError::Full`].
    pub fn check_room(&self, chat: Option<ChatRef>) -> Result<(), TaskError> {
        let chat = chat.map(|id| id.to_string());
        if self.list_open_tasks(chat.as_deref()).count() < MAX_ACTIVE_TASKS { Ok(()) } else { Err(TaskError::Full) }
    }

    /// Returns the problems that matter only in `active.md`: too many tasks, and open tasks without a `touched` date, whose neglect would
    /// go unnoticed.
    pub fn active_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let open = || self.tasks.iter().filter(|task| !task.is_done());
        for chat in open().map(|task| task.get("chat")).collect::<BTreeSet<_>>() {
            if let Some(first_extra) = self.list_open_tasks(chat).nth(MAX_ACTIVE_TASKS) {
                let count = self.list_open_tasks(chat).count();
                let what = format!("{count} tasks are active; at most {MAX_ACTIVE_TASKS} should be");
                problems.push(Problem::new(first_extra.line, what));
            }
        }
        for task in open().filter(|task| task.get("touched").is_none()) {
            let what = format!("“{}” has no `touched` date, so I can't remind you of it", task.title);
            problems.push(Problem::new(task.line, what));
        }
        problems.extend(self.find_unheaded_lines().into_iter().map(|prose| {
            let Prose { line, text } = prose;
            Problem::new(line, format!("“{text}” isn't read as a task: that takes a heading, `## {text}`"))
        }));
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// Returns the open tasks of the owner, or of the chat named by `chat:`.
    fn list_open_tasks(&self, chat: Option<&str>) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| !task.is_done() && task.get("chat") == chat)
    }

    /// Appends a task.
    ///
    /// # Errors
    /// [`TaskError::NoTitle`], or [`TaskError::Exists`] if a task has the same title.
    pub fn add(&self, draft: &TaskDraft) -> Result<String, TaskError> {
        let title = safe_title(&draft.title)?;
        if self.tasks.iter().any(|task| fold_text(&task.title) == fold_text(&title)) {
            return Err(TaskError::Exists { title });
        }
        let eol = detect_line_ending(&self.text);
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

    /// Sets or adds one key of one task, or removes the key with its indented lines if `value` is `None`. Setting the present value returns
    /// the same text.
    ///
    /// # Errors
    /// As [`TaskList::find`], and [`TaskError::BadKey`].
    pub fn set(&self, query: &str, key: &str, value: Option<&str>) -> Result<String, TaskError> {
        let task = self.find(query)?;
        if !is_key(key) {
            return Err(TaskError::BadKey { key: one_line(key, MAX_KEY_CHARS) });
        }
        Ok(match (task.find_key(key), value) {
            (None, None) => self.text.clone(),
            (Some(found), None) => Document::split(&self.text).splice(found.range.clone(), ""),
            (Some(found), Some(value)) => self.set_value(found, value),
            (None, Some(value)) => self.add_key(task, key, value),
        })
    }

    /// Marks a task as worked on that day.
    ///
    /// # Errors
    /// As [`TaskList::find`].
    pub fn touch(&self, query: &str, day: NaiveDate) -> Result<String, TaskError> {
        self.set(query, "touched", Some(&day.to_string()))
    }

    /// Changes a task's heading and keeps everything below.
    ///
    /// # Errors
    /// As [`TaskList::find`], [`TaskError::NoTitle`], and [`TaskError::Exists`] if another task has that title.
    pub fn rename(&self, query: &str, title: &str) -> Result<String, TaskError> {
        let task = self.find(query)?;
        let title = safe_title(title)?;
        let is_taken = |other: &&Task| other.line != task.line && fold_text(&other.title) == fold_text(&title);
        if self.tasks.iter().any(|other| is_taken(&other)) {
            return Err(TaskError::Exists { title });
        }
        let heading = split_lines(slice(&self.text, task.range.clone())).next().unwrap_or_default();
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
        let eol = detect_line_ending(&self.text);
        let lead = if ends_line(slice(&self.text, 0..task.keys_end)) { "" } else { eol };
        let line = format!("{lead}{}{eol}", key_line(key, value).trim_end());
        Document::split(&self.text).splice(task.keys_end..task.keys_end, &line)
    }

    /// Removes a task. Returns the text without it, and its bytes for [`TaskList::put`] into the other document.
    ///
    /// # Errors
    /// As [`TaskList::find`].
    pub fn take(&self, query: &str) -> Result<(String, String), TaskError> {
        let range = self.find(query)?.range.clone();
        let rest = Document::split(&self.text).splice(range.clone(), "");
        Ok((rest, slice(&self.text, range).to_owned()))
    }

    /// Appends a task's bytes from [`TaskList::take`].
    ///
    /// # Errors
    /// [`TaskError::Exists`] if a task has the same title, and [`TaskError::NoTitle`] if the bytes have no heading.
    pub fn put(&self, block: &str) -> Result<String, TaskError> {
        let document = Document::split(block);
        let title = document.sections().next().map(|part| part.title.clone()).ok_or(TaskError::NoTitle)?;
        if self.tasks.iter().any(|task| fold_text(&task.title) == fold_text(&title)) {
            return Err(TaskError::Exists { title });
        }
        Ok(Document::split(&self.text).append(block.trim_start_matches([' ', '\t'])))
    }
}

fn key_line(key: &str, value: &str) -> String {
    format!("- {key}: {}", one_line(value, MAX_VALUE_CHARS))
}

/// Makes a title that parses back unchanged: one line, without trailing `#` marks, which the parser would cut off.
fn safe_title(title: &str) -> Result<String, TaskError> {
    let mut title = one_line(title, MAX_TITLE_CHARS);
    while let Some(read) = hash_title(&format!("## {title}"), 2).filter(|read| *read != title) {
        title = read;
    }
    if title.chars().any(char::is_alphanumeric) { Ok(title) } else { Err(TaskError::NoTitle) }
}

/// Returns the lines of a new task's free text, made safe, with a blank line first. No line opens a section, the first isn't a key, and no
/// fence or comment stays open. Heading marks are escaped even in code, because a later edit or merge could remove the fence around them.
pub(super) fn safe_body(body: &str) -> Vec<String> {
    let body = body.replace('\u{feff}', "").replace("<!--", "<! --");
    let body = words::truncate_text(body.trim(), MAX_BODY_CHARS);
    if body.is_empty() {
        return Vec::new();
    }
    let mut safe = vec![String::new()];
    for line in split_lines(&body).map(str::trim_end) {
        let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        let first = safe.len() == 1;
        let bare = line.trim();
        let heading = bare.starts_with('#') || bare.chars().all(|c| c == '-') || bare.chars().all(|c| c == '=');
        safe.push(if first || heading { escape_start(line.trim_start()) } else { line });
    }
    // Appending another task shows the lines that `append` needs to close an open fence or comment.
    let joined = format!("## x\n{}\n", safe.join("\n"));
    let closed = Document::split(&joined).append("## x\n");
    let closing_lines = closed.strip_prefix(joined.as_str()).and_then(|rest| rest.strip_suffix("## x\n"));
    safe.extend(
        closing_lines
            .into_iter()
            .flat_map(split_lines)
            .map(|line| line.trim_end().to_owned())
            .filter(|line| !line.is_empty()),
    );
    safe
}

#[cfg(test)]
mod tests;
