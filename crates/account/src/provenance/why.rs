//! `wake memory why`: traces a line of the memory to the commit that wrote it (as `git blame` does), and to the message behind it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, zone::Tz};
use reveille_git::{Commit, Repo, find_trailer};
use reveille_index::{IndexPlace, SearchQuery};
use reveille_memory::{
    DocKind,
    forgetting::SoughtWords,
    origin::{LineOrigin, parse_origin, strip_mark_and_comment},
    sections::Document,
};
use reveille_store::{Incoming, Store};

use super::ProvenanceError;

/// The maximum number of lines in an answer.
pub const MAX_LINES: usize = 8;
/// The maximum number of similar lines in an answer, if no line contains the words.
const MAX_NEAR: usize = 3;
/// The number of search hits considered. Some of them are messages rather than lines.
const NEAR_HITS: usize = 50;

/// The origin of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineStory {
    /// The path of the document.
    pub path: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The text without list mark and comment.
    pub text: String,
    /// The heading above the line.
    pub heading: String,
    /// The origin stated in the line's comment.
    pub origin: Option<LineOrigin>,
    /// The commit that gave the line its present form; `None` if uncommitted.
    pub commit: Option<Commit>,
    /// The commit of the wake in the line's comment, if different.
    pub wake_commit: Option<Commit>,
    /// The author of the present form.
    pub writer: LineWriter,
    /// The messages that stated the fact, or that the wake handled.
    pub messages: Vec<SaidMessage>,
    /// The sources of untrusted text that the wake had read.
    pub taint: Option<String>,
}

/// The author of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineWriter {
    /// A wake.
    Wake,
    /// A person.
    Person,
    /// A person, uncommitted.
    Uncommitted,
    /// This program outside a wake: a template or a merge.
    Program,
}

/// A message behind a line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SaidMessage {
    /// The number of the message.
    pub id: i64,
    /// The time of receipt.
    pub at: Option<DateTime<Utc>>,
    /// The chat of the message.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The sender.
    pub from: Option<String>,
    /// The text.
    pub text: String,
    /// The origin of the text, if other than the sender.
    pub taint: Option<String>,
}

/// The lines found for a question, with their origins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stories {
    /// The lines with their origins.
    pub lines: Vec<LineStory>,
    /// True if no line contains the words, so that `lines` holds the most similar ones.
    pub are_near: bool,
    /// The number of further lines with the words.
    pub more: usize,
}

/// A line before its origin is known.
struct FoundLine {
    path: String,
    line: usize,
    raw: String,
    heading: String,
    origin: Option<LineOrigin>,
}

/// Traces one line of a document in the work tree; `None` if the document or line is missing.
///
/// # Errors
/// Fails if the memory or the database can't be read.
pub fn why_line(
    repo: &Repo,
    store: Option<&Store>,
    path: &str,
    line: usize,
) -> Result<Option<LineStory>, ProvenanceError> {
    let text = repo.read_work_tree(path)?.unwrap_or_default();
    let Some(found) = find_line(path, &text, line) else { return Ok(None) };
    let commit = repo.history().find_line_commits(path, &text, &BTreeSet::from([line]))?.remove(&line);
    build_story(repo, store, found, commit).map(Some)
}

/// Traces the lines that contain these words, or else the most similar lines.
pub fn trace_lines(
    repo: &Repo,
    store: Option<&Store>,
    (index, zone): (&IndexPlace, Tz),
    words: &str,
) -> Result<Stories, ProvenanceError> {
    let mut documents: Vec<(String, String)> = Vec::new();
    for path in repo.history().all_markdown()? {
        // Binary files aren't memory.
        if let Ok(Some(text)) = repo.read_work_tree(&path) {
            documents.push((path, text));
        }
    }
    // Facts first, logs last.
    documents.sort_by_key(|(path, _)| {
        (DocKind::from_path(path) == DocKind::Log, DocKind::from_path(path) != DocKind::Facts)
    });
    let mut found: Vec<FoundLine> = match SoughtWords::new(words) {
        Some(sought) => documents.iter().flat_map(|(path, text)| find_lines(path, text, &sought)).collect(),
        None => Vec::new(),
    };
    let are_near = found.is_empty();
    if are_near {
        let query = SearchQuery { text: words, limit: NEAR_HITS, ..SearchQuery::default() };
        let (hits, _) = index.ask_all(repo.root(), zone, &mut |_| {}, |index| index.search(&query))?;
        let near = hits.into_iter().filter(|hit| hit.speaks_for_itself()).filter_map(|hit| {
            let (_, text) = documents.iter().find(|(path, _)| *path == hit.path)?;
            find_line(&hit.path, text, hit.line)
        });
        found.extend(near.take(MAX_NEAR));
    }
    let more = found.len().saturating_sub(MAX_LINES);
    found.truncate(MAX_LINES);
    let mut lines = Vec::new();
    let mut by_file: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for line in &found {
        by_file.entry(line.path.clone()).or_default().insert(line.line);
    }
    let mut commits: BTreeMap<(String, usize), Commit> = BTreeMap::new();
    for (path, wanted) in by_file {
        let text = documents.iter().find(|(known, _)| *known == path).map_or("", |(_, text)| text.as_str());
        let of_file = repo.history().find_line_commits(&path, text, &wanted)?;
        commits.extend(of_file.into_iter().map(|(line, commit)| ((path.clone(), line), commit)));
    }
    for line in found {
        let commit = commits.remove(&(line.path.clone(), line.line));
        lines.push(build_story(repo, store, line, commit)?);
    }
    Ok(Stories { lines, are_near, more })
}

fn find_lines(path: &str, text: &str, sought: &SoughtWords) -> Vec<FoundLine> {
    if !sought.is_found_in(text) {
        return Vec::new();
    }
    let numbers = (1..)
        .zip(text.lines())
        .filter(|(_, line)| sought.is_found_in(strip_mark_and_comment(line)))
        .map(|(number, _)| number);
    numbers.filter_map(|number| find_line(path, text, number)).collect()
}

/// Finds a line by number, with its heading and the origin of its list item.
fn find_line(path: &str, text: &str, number: usize) -> Option<FoundLine> {
    let raw = text.lines().nth(number.checked_sub(1)?)?.to_owned();
    let document = Document::split(text);
    let part = document.parts.iter().rev().find(|part| part.line <= number);
    let item = part.and_then(|part| {
        let of_item = |item: &&std::ops::Range<usize>| {
            let first = document.line_number(item.start);
            (first..first + document.slice(item).lines().count()).contains(&number)
        };
        part.items.iter().find(of_item)
    });
    let origin = parse_origin(&raw).or_else(|| document.slice(item?).lines().find_map(parse_origin));
    let heading = part.map(|part| part.title.clone()).unwrap_or_default();
    Some(FoundLine { path: path.to_owned(), line: number, raw, heading, origin })
}

fn build_story(
    repo: &Repo,
    store: Option<&Store>,
    found: FoundLine,
    commit: Option<Commit>,
) -> Result<LineStory, ProvenanceError> {
    let FoundLine { path, line, raw, heading, origin } = found;
    let writer = match &commit {
        None => LineWriter::Uncommitted,
        Some(commit) if !commit.is_ours() => LineWriter::Person,
        Some(commit) if commit.is_wake() => LineWriter::Wake,
        Some(_) => LineWriter::Program,
    };
    let stated_wake = origin.as_ref().map(|origin| origin.wake.as_str());
    let committing_wake =
        commit.as_ref().filter(|_| writer == LineWriter::Wake).and_then(|commit| commit.wake_id.as_deref());
    // An archived line, or one edited by a person, still names the wake that first wrote it.
    let wake_commit = match stated_wake.filter(|stated| committing_wake != Some(stated)) {
        Some(wake) => repo.history().find_wake_commit(wake)?,
        None => None,
    };
    let wake = stated_wake.or(committing_wake);
    let ids = match origin.as_ref().and_then(|origin| origin.message) {
        Some(message) => vec![message],
        // A person's line has no message.
        None if wake.is_none() => Vec::new(),
        None => match wake_commit.as_ref().or(commit.as_ref()) {
            Some(commit) => parse_message_numbers(&repo.history().read_message(commit.id)?),
            None => Vec::new(),
        },
    };
    let (mut messages, mut wake_taint) = (Vec::new(), None);
    if let Some(store) = store {
        messages = store.inbox().list_messages(&ids)?.into_iter().map(to_said_message).collect();
        wake_taint = wake.map(|wake| store.outbox().find_cycle_taints(wake)).transpose()?.flatten();
    }
    let taint = origin.as_ref().and_then(|origin| origin.after.clone()).or(wake_taint);
    Ok(LineStory {
        path,
        line,
        text: strip_mark_and_comment(&raw).to_owned(),
        heading,
        origin,
        commit,
        wake_commit,
        writer,
        messages,
        taint,
    })
}

/// Parses the message numbers in the `Messages` trailer of a wake's commit.
fn parse_message_numbers(message: &str) -> Vec<i64> {
    let named = find_trailer(message, "Messages").unwrap_or_default();
    named.split(',').filter_map(|id| id.trim().parse().ok()).collect()
}

fn to_said_message(message: Incoming) -> SaidMessage {
    let quoted = message.quoted.is_some() && !message.quotes_own;
    let taint = message.words_of_others().or_else(|| quoted.then(|| "it quotes somebody".to_owned()));
    let Incoming { id, received_at, chat, sender_name, text, .. } = message;
    SaidMessage { id, at: received_at, chat, from: sender_name, text, taint }
}
