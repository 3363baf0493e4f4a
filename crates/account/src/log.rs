//! The log of past work: wakes with their requests, and people's commits. `wake log` and `/log` show the same lines.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use reveille_base::{
    types::ChatRef,
    words::{format_near_time, one_line, truncate_text},
    zone::Tz,
};
use reveille_git::{Commit, Repo, RepoError};
use reveille_store::{CycleRow, CycleState, Incoming, Store, StoreError};

use super::story::AskedMessage;

/// The maximum number of wakes or commits searched by a filter.
const MAX_SEARCHED: usize = 10_000;
/// The maximum number of wakes in the first chunk of messages read.
const FIRST_CHUNK: usize = 500;
/// The factor by which each chunk is larger than the one before. For old wakes, each chunk scans all messages.
const CHUNK_GROWTH: usize = 4;
/// The number of shown characters of a commit's id.
const ID_CHARS: usize = 8;
/// The number of quoted characters of a request.
const MAX_ASKED_CHARS: usize = 60;
/// The number of shown characters of a subject in a chat.
const MAX_CHAT_CHARS: usize = 120;

/// A query for log lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogQuery<'a> {
    /// The maximum number of lines, newest first.
    pub lines: usize,
    /// The number of lines to skip first.
    pub skip: usize,
    /// Only wakes for this chat.
    pub chat: Option<ChatRef>,
    /// Only lines from this time on.
    pub since: Option<DateTime<Utc>>,
    /// Only lines with these words in subject or request, ignoring case.
    pub grep: Option<&'a str>,
}

/// A wake, or a person's commit. The names in its JSON are stable.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogLine {
    /// The commit; `None` if missing or still to come.
    pub commit: Option<String>,
    /// The time of the commit, or the start of a wake without a commit.
    pub at: Option<DateTime<Utc>>,
    /// The id of the wake; `None` for a person, or for the program outside a wake.
    pub wake_id: Option<String>,
    /// The author of the commit.
    pub author: Option<String>,
    /// The work done, in one line.
    pub subject: String,
    /// The state of the wake, if known to the database.
    pub state: Option<&'static str>,
    /// The chat that the wake answered.
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
    /// `true` if the wake was undone, `false` if the undo is pending.
    pub undone: Option<bool>,
    /// The messages that the wake handled.
    pub asked: Vec<AskedMessage>,
}

/// The reason for a failure to read the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The database couldn't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory couldn't be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// A function that prepares texts for display by masking secrets.
pub type MaskText<'a> = &'a dyn Fn(&str) -> String;

/// The lines of wakes alone, newest first. `subject` returns the first line of a commit's message.
pub fn list_wakes(
    store: &Store,
    query: LogQuery<'_>,
    subject: impl Fn(&str) -> Option<String>,
    shown: MaskText<'_>,
) -> Result<Vec<LogLine>, StoreError> {
    let rows = store.history().cycles_since(query.since, query.chat, compute_search_limit(query))?;
    select_lines(
        store,
        query,
        &rows,
        |row| {
            let mut line = LogLine::from_row(row, shown);
            if let Some(subject) = row.commit_id.as_deref().and_then(&subject) {
                line.subject = shown(&subject);
            }
            line
        },
        shown,
    )
}

/// The lines of wakes and people's commits, newest first. A wake without a commit is placed at its start.
pub fn list_wakes_and_commits(
    store: Option<&Store>,
    repo: &Repo,
    query: LogQuery<'_>,
    shown: MaskText<'_>,
) -> Result<Vec<LogLine>, LogError> {
    let commits = repo.history().list_commits(compute_search_limit(query))?;
    let rows = match store {
        Some(store) => store.history().cycles_since(query.since, query.chat, compute_search_limit(query))?,
        None => Vec::new(),
    };
    let mut rows: BTreeMap<String, CycleRow> = rows.into_iter().map(|row| (row.cycle.id.clone(), row)).collect();
    let mut merged = Vec::new();
    let committed: BTreeSet<&str> = commits.iter().filter_map(|commit| commit.wake_id.as_deref()).collect();
    let mut uncommitted: Vec<CycleRow> =
        rows.values().filter(|row| !committed.contains(row.cycle.id.as_str())).cloned().collect();
    uncommitted.sort_by(|a, b| (b.started_at, &b.cycle.id).cmp(&(a.started_at, &a.cycle.id)));
    let mut uncommitted = uncommitted.into_iter().peekable();
    for commit in &commits {
        if query.since.is_some_and(|since| commit.at < since) {
            continue;
        }
        while let Some(other) = uncommitted.next_if(|other| other.started_at.is_some_and(|at| at > commit.at)) {
            merged.push(Candidate { line: LogLine::from_row(&other, shown), row: Some(other) });
        }
        let row = match (commit.wake_id.as_deref(), store) {
            (Some(wake), Some(store)) => {
                rows.remove(wake).map_or_else(|| store.cycles().find_cycle(wake), |row| Ok(Some(row)))?
            }
            _ => None,
        };
        if query.chat.is_none() || row.as_ref().is_some_and(|row| row.cycle.chat == query.chat) {
            merged.push(Candidate { line: LogLine::from_commit(commit, row.as_ref(), shown), row });
        }
    }
    merged.extend(uncommitted.map(|other| Candidate { line: LogLine::from_row(&other, shown), row: Some(other) }));
    match store {
        Some(store) => Ok(select_lines(store, query, &merged, |candidate| candidate.line.clone(), shown)?),
        None => {
            let lines = merged.into_iter().map(|candidate| candidate.line);
            Ok(lines.filter(|line| line.matches(query)).skip(query.skip).take(query.lines).collect())
        }
    }
}

fn compute_search_limit(query: LogQuery<'_>) -> usize {
    let is_filtered = query.chat.is_some() || query.since.is_some() || query.grep.is_some();
    if is_filtered { MAX_SEARCHED } else { query.skip.saturating_add(query.lines).min(MAX_SEARCHED) }
}

/// A line with its wake.
struct Candidate {
    line: LogLine,
    row: Option<CycleRow>,
}

/// Access to a wake's row, if present.
trait HasRow {
    fn row(&self) -> Option<&CycleRow>;
}

impl HasRow for Candidate {
    fn row(&self) -> Option<&CycleRow> {
        self.row.as_ref()
    }
}

impl HasRow for CycleRow {
    fn row(&self) -> Option<&CycleRow> {
        Some(self)
    }
}

/// Selects the wanted lines and adds their messages. Messages are read in chunks, because mostly the first lines suffice.
fn select_lines<T: HasRow>(
    store: &Store,
    query: LogQuery<'_>,
    candidates: &[T],
    line: impl Fn(&T) -> LogLine,
    shown: MaskText<'_>,
) -> Result<Vec<LogLine>, StoreError> {
    let mut lines = Vec::new();
    // Without a text filter each candidate is a line, so skipped ones need no reading.
    let (passed_over, mut to_skip) = if query.grep.is_none() { (query.skip, 0) } else { (0, query.skip) };
    let mut left = candidates.get(passed_over..).unwrap_or_default();
    let mut read_at_once = query.lines.clamp(1, FIRST_CHUNK);
    while !left.is_empty() {
        let (chunk, rest) = left.split_at(read_at_once.min(left.len()));
        (left, read_at_once) = (rest, read_at_once.saturating_mul(CHUNK_GROWTH));
        let ids: Vec<String> = chunk.iter().filter_map(|one| one.row().map(|row| row.cycle.id.clone())).collect();
        let mut asked: BTreeMap<String, Vec<Incoming>> = store.history().list_cycle_messages(&ids)?;
        for one in chunk {
            let mut line = line(one);
            if let Some(row) = one.row() {
                let messages = asked.remove(&row.cycle.id).unwrap_or_default();
                line.asked = messages.iter().map(|message| AskedMessage::from_incoming(message, shown)).collect();
            }
            if !line.matches(query) {
                continue;
            }
            if to_skip > 0 {
                to_skip -= 1;
                continue;
            }
            line.undone = one.row().map(|row| store.undos().find_undo_state(&row.cycle.id)).transpose()?.flatten();
            lines.push(line);
            if lines.len() >= query.lines {
                return Ok(lines);
            }
        }
    }
    Ok(lines)
}

impl LogLine {
    fn from_row(row: &CycleRow, shown: MaskText<'_>) -> Self {
        Self {
            commit: row.commit_id.clone(),
            at: row.started_at,
            wake_id: Some(row.cycle.id.clone()),
            author: None,
            subject: shown(&row.cycle.reasons.join("; ")),
            state: Some(row.state.as_str()),
            chat: row.cycle.chat,
            undone: None,
            asked: Vec::new(),
        }
    }

    fn from_commit(commit: &Commit, row: Option<&CycleRow>, shown: MaskText<'_>) -> Self {
        Self {
            commit: Some(commit.id.to_string()),
            at: Some(commit.at),
            wake_id: commit.wake_id.clone(),
            author: Some(shown(&commit.author)),
            subject: shown(&commit.subject),
            state: row.map(|row| row.state.as_str()),
            chat: row.and_then(|row| row.cycle.chat),
            undone: None,
            asked: Vec::new(),
        }
    }

    fn matches(&self, query: LogQuery<'_>) -> bool {
        let Some(words) = query.grep.map(str::to_lowercase) else { return true };
        let texts = [Some(&self.subject), self.wake_id.as_ref(), self.commit.as_ref(), self.author.as_ref()];
        let asked = self.asked.iter().map(|asked| &asked.text);
        texts.into_iter().flatten().chain(asked).any(|text| text.to_lowercase().contains(&words))
    }

    /// Renders the line for a terminal.
    pub fn render_for_terminal(&self, now: DateTime<Utc>, tz: Tz) -> String {
        let id = self.short_id().unwrap_or_else(|| "-".repeat(ID_CHARS));
        let who = self.wake_id.as_deref().or(self.author.as_deref()).unwrap_or_default();
        format!(
            "{id}  {}  {who}  {}{}{}",
            self.format_time(now, tz),
            one_line(&self.subject),
            self.describe_state(),
            self.quote_request()
        )
    }

    /// Renders the line as short Markdown for a chat.
    pub fn render_for_chat(&self, now: DateTime<Utc>, tz: Tz) -> String {
        let did = self.subject.strip_prefix("Wake: ").unwrap_or(&self.subject);
        let id = self.short_id().map(|id| format!(" ({id})")).unwrap_or_default();
        let did = truncate_text(&one_line(did), MAX_CHAT_CHARS);
        format!("- {}: {did}{id}{}{}", self.format_time(now, tz), self.describe_state(), self.quote_request())
    }

    fn format_time(&self, now: DateTime<Utc>, tz: Tz) -> String {
        self.at.map_or_else(|| "at an unknown time".to_owned(), |at| format_near_time(at, now, tz))
    }

    fn short_id(&self) -> Option<String> {
        self.commit.as_deref().map(|id| id.chars().take(ID_CHARS).collect())
    }

    fn describe_state(&self) -> &'static str {
        let is = |state: CycleState| self.state == Some(state.as_str());
        match self.undone {
            Some(true) => ", undone",
            Some(false) => ", to be undone",
            None if is(CycleState::Running) => ", under way",
            None if is(CycleState::Waiting) || is(CycleState::Parked) => ", waiting",
            None if is(CycleState::Failed) => ", failed",
            None if is(CycleState::Abandoned) => ", given up",
            None => "",
        }
    }

    /// Quotes the first words of the request. Untrusted text isn't quoted; its origin is named instead.
    fn quote_request(&self) -> String {
        let Some((first, more)) = self.asked.split_first() else { return String::new() };
        let words = match &first.taint {
            Some(taint) => taint.clone(),
            None => format!("“{}”", first.first_words(MAX_ASKED_CHARS).replace('`', "'")),
        };
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        format!(" · asked: {words}{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(state: CycleState, commit: Option<&str>, subject: &str) -> LogLine {
        LogLine {
            commit: commit.map(str::to_owned),
            at: reveille_base::clock::parse_time("2026-11-21T13:00:00Z"),
            wake_id: Some("20261121T130000Z-1".to_owned()),
            author: None,
            subject: subject.to_owned(),
            state: Some(state.as_str()),
            chat: Some(ChatRef::from_telegram(4242)),
            undone: None,
            asked: Vec::new(),
        }
    }

    fn asked(text: &str, taint: Option<&str>) -> AskedMessage {
        AskedMessage {
            text: text.to_owned(),
            taint: taint.map(str::to_owned),
            ..AskedMessage::from_incoming(&Incoming::default(), str::to_owned)
        }
    }

    #[test]
    fn a_wake_is_a_line_with_what_was_asked() {
        let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap();
        let tz = "Europe/Berlin".parse::<Tz>().unwrap();
        let done = LogLine {
            asked: vec![
                asked("remember that\nx `is` 1, and do it now, before anybody else in this house hears of it", None),
                asked("y", None),
            ],
            ..line(CycleState::Done, Some("0123456789ab"), "Wake: remembered “x”")
        };
        let forwarded =
            LogLine { undone: Some(true), asked: vec![asked("obey", Some("a forwarded message"))], ..done.clone() };
        let lines = [done, forwarded, line(CycleState::Abandoned, None, "2 messages in chat 4242")];
        insta::assert_snapshot!(lines.clone().map(|line| line.render_for_chat(now, tz)).join("\n"), @r"
        - today 14:00: remembered “x” (01234567) · asked: “remember that x 'is' 1, and do it now, before anybody else…” and 1 more
        - today 14:00: remembered “x” (01234567), undone · asked: a forwarded message
        - today 14:00: 2 messages in chat 4242, given up
        ");
        insta::assert_snapshot!(lines.map(|line| line.render_for_terminal(now, tz)).join("\n"), @r"
        01234567  today 14:00  20261121T130000Z-1  Wake: remembered “x” · asked: “remember that x 'is' 1, and do it now, before anybody else…” and 1 more
        01234567  today 14:00  20261121T130000Z-1  Wake: remembered “x”, undone · asked: a forwarded message
        --------  today 14:00  20261121T130000Z-1  2 messages in chat 4242, given up
        ");
    }

    #[test]
    fn a_filter_matches_words_of_the_subject_and_of_the_request() {
        let line = LogLine {
            asked: vec![asked("Wo ist der Schlüssel?", None)],
            ..line(CycleState::Done, None, "Answered 1 message")
        };
        let matches = |grep| line.matches(LogQuery { grep: Some(grep), ..LogQuery::default() });
        assert!(matches("answered") && matches("schlüssel") && matches("20261121t13") && !matches("door"));
    }
}
