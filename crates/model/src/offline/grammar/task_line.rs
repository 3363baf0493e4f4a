//! Parses a task that is typed as one line: "renew passport friday #home".
//!
//! A message to the assistant takes only "by friday" and "due friday" as a due date, since it may say anything. Somebody who types into a
//! field for tasks means one, so a day at the line's start or end counts as well.

use chrono::{DateTime, NaiveDate};

use reveille_base::{
    schedule::{When, parse_only_day, parse_only_time, parse_when, words::tokenize},
    words::{capitalize, one_line},
    zone::Tz,
};

use super::{
    OfflineCommand, Reading,
    sentence::as_one_sentence,
    tasks::{TaskPlace, build_task},
};

/// A task as read from one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskLine {
    /// The title.
    pub title: String,
    /// The due day.
    pub due: Option<NaiveDate>,
    /// The project, from `#home`.
    pub project: Option<String>,
    /// True for `#backlog`.
    pub is_for_backlog: bool,
    /// A time of day or a rhythm, as typed with its day. A task can't keep it, so it may be meant as a reminder.
    pub clock: Option<String>,
    /// Words about a time in the title, which weren't taken as the due day.
    pub kept_time: Option<String>,
}

/// The reason why a line isn't a task, for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskLineError {
    /// A line of only a day and tags.
    #[error("A task needs a title")]
    NoTitle,
    /// More than one project.
    #[error("A task belongs to one project: please write only one of {0}")]
    SeveralProjects(String),
    /// An ambiguous or impossible day.
    #[error("{0}")]
    Day(String),
}

/// Reads a task from a line.
///
/// # Errors
/// A line that could mean several things, or no task.
pub fn read_task_line(line: &str, now: DateTime<Tz>) -> Result<TaskLine, TaskLineError> {
    let line = one_line(line);
    let (tags, words): (Vec<&str>, Vec<&str>) = line.split(' ').partition(|word| read_tag(word).is_some());
    let tags: Vec<&str> = tags.into_iter().filter_map(read_tag).collect();
    let mut task = TaskLine {
        is_for_backlog: tags.iter().any(|tag| tag.eq_ignore_ascii_case(BACKLOG_TAG)),
        ..TaskLine::default()
    };
    let mut projects = tags.into_iter().filter(|tag| !tag.eq_ignore_ascii_case(BACKLOG_TAG));
    task.project = projects.next().map(str::to_owned);
    if let (Some(first), Some(second)) = (&task.project, projects.next()) {
        return Err(TaskLineError::SeveralProjects(format!("#{first} and #{second}")));
    }
    let text = words.join(" ");
    split_day(&text, now, &mut task)?;
    if !task.title.chars().any(char::is_alphanumeric) {
        return Err(TaskLineError::NoTitle);
    }
    // Names such as "iPhone" are written on purpose.
    let first = task.title.split(' ').next().unwrap_or_default();
    if !first.contains(char::is_uppercase) {
        task.title = capitalize(&task.title);
    }
    Ok(task)
}

/// The tag that puts a task into the backlog.
const BACKLOG_TAG: &str = "backlog";

/// Reads `#home`. A number, as in "fix issue #47", is no tag.
fn read_tag(word: &str) -> Option<&str> {
    let tag = word.strip_prefix('#')?.trim_end_matches([',', '.', ';', '!']);
    tag.starts_with(char::is_alphabetic).then_some(tag)
}

/// Splits a text into the title and its day.
fn split_day(text: &str, now: DateTime<Tz>, task: &mut TaskLine) -> Result<(), TaskLineError> {
    let Some(found) = parse_when(text, now) else {
        return split_stated_day(text, now, task);
    };
    let typed = text.get(found.span.clone()).unwrap_or_default();
    let (before, after) =
        (text.get(..found.span.start).unwrap_or_default(), text.get(found.span.end..).unwrap_or_default());
    let has_words = |part: &str| part.contains(char::is_alphanumeric);
    if has_words(before) && has_words(after) {
        // "Prepare friday meeting": the day may belong to the thing.
        split_stated_day(text, now, task)?;
        task.kept_time = task.due.is_none().then(|| typed.to_owned());
        return Ok(());
    }
    let title = before.trim().trim_end_matches(is_joint).trim_end();
    let title = [" due", " by", " until", " before"].iter().find_map(|lead| title.strip_suffix(lead)).unwrap_or(title);
    let title = format!("{title}{}", after.trim_start_matches(is_joint).trim());
    if let Ok(When::Every(_)) = found.when {
        (task.title, task.clock) = (title, Some(typed.to_owned()));
        return Ok(());
    }
    let day = match (parse_only_day(typed, now), found.when) {
        (Some(Ok(day)), _) => day,
        (Some(Err(trouble)), _) | (None, Err(trouble)) => {
            return Err(TaskLineError::Day(format!("“{typed}” {trouble}")));
        }
        (None, Ok(_)) => return split_stated_day(text, now, task),
    };
    (task.title, task.due) = (title, Some(day));
    task.clock = states_clock(typed, day, now).then(|| typed.to_owned());
    Ok(())
}

fn is_joint(c: char) -> bool {
    matches!(c, ',' | ':' | ';' | '-' | '–' | '—' | ' ')
}

/// Reads a line as a message to the assistant reads it: "return the books by friday".
fn split_stated_day(text: &str, now: DateTime<Tz>, task: &mut TaskLine) -> Result<(), TaskLineError> {
    let tokens = tokenize(text);
    match build_task(&as_one_sentence(text, &tokens), TaskPlace::Active, now) {
        Reading::Command(OfflineCommand::TaskAdd { title, due, .. }) => (task.title, task.due) = (title, due),
        Reading::Command(OfflineCommand::AskBack { question, .. }) => return Err(TaskLineError::Day(question)),
        _ => task.title = text.to_owned(),
    }
    Ok(())
}

/// Returns true if the words name a time of day as well: then another one can't be added to them.
fn states_clock(typed: &str, day: NaiveDate, now: DateTime<Tz>) -> bool {
    let last_minute = parse_only_time(&format!("{typed} at 23:59"), now);
    !matches!(last_minute, Some(Ok(When::At(slot))) if slot.civil.date() == day)
}
