//! The memory: search, documents with their history, and editing.
//!
//! A document's path in a request is looked up in the list of existing documents, so that no request's path reaches the disk unchecked.

mod edit;
mod file;
mod restore;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::{
    disk::size,
    words::{count, first_chars, shortened},
};
use reveille_git::Repo;
use reveille_index::Recalled;
use reveille_memory as memory;
use reveille_memory::is_log;

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    parts::{address, others_in, wake_link},
    site::{PageDesk, PageSite},
};
use crate::orders::search::{self, IndexWait, MemoryFound, MemoryQuestion};

/// Maximum hits.
const HITS: usize = 20;
/// Maximum characters of a query.
const MAX_QUERY_CHARS: usize = 500;
/// Characters shown of a hit's text.
const MAX_HIT_CHARS: usize = 600;
/// Maximum documents listed.
const MAX_LISTED: usize = 1_000;

/// Names of the permanent documents.
const NAMES: [(&str, &str); 7] = [
    (memory::CLAUDE, "Standing orders"),
    (memory::CONTEXT, "How you are and what you prefer"),
    (memory::ACTIVE, "Tasks in hand"),
    (memory::BACKLOG, "Tasks that wait"),
    (memory::SEMANTIC_MEMORY, "Facts"),
    (memory::WORKING_MEMORY, "What is going on"),
    (memory::EPISODIC_MEMORY, "The log"),
];

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/memory", get(show)).merge(file::routes()).merge(edit::routes()).merge(restore::routes())
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    q: String,
}

async fn show(State(site): State<Arc<PageSite>>, Query(asked): Query<Asked>) -> Result<Markup, PageError> {
    let content = site.at_desk(move |desk| overview(desk, asked.q.trim())).await?;
    Ok(frame(PagePlace::Memory, "Memory", &content))
}

fn overview(desk: &PageDesk<'_>, query: &str) -> Result<Markup, PageError> {
    let Some(repo) = desk.repo()? else {
        return Ok(html! {
            p { "Nothing is remembered yet. The first wake makes the memory: say something in the " a href="/chat" { "chat" } "." }
        });
    };
    let query = first_chars(query, MAX_QUERY_CHARS);
    let found = if query.is_empty() { None } else { Some(find(desk, query)?) };
    let documents = documents(&repo)?;
    Ok(html! {
        form action="/memory" method="get" role="search" {
            p .field {
                label for="q" { "Search what I know and what we said" }
                input #q type="search" name="q" value=(query) maxlength=(MAX_QUERY_CHARS) autocomplete="off";
            }
            p .actions { button type="submit" { "Search" } }
        }
        @if let Some(found) = &found {
            (results(desk, query, found, &documents))
        }
        (listed(&repo, &documents))
    })
}

fn find(desk: &PageDesk<'_>, query: &str) -> Result<MemoryFound, PageError> {
    let question = MemoryQuestion { text: query, limit: HITS, as_of: None, within: None, tells_of_keywords: false };
    let mut found = search::search(desk.config, desk.redactor, &question, IndexWait::Briefly)
        .map_err(|error| PageError::Refused(format!("The memory can't be searched now: {error}.")))?;
    found.hits.retain(Recalled::speaks_for_itself);
    Ok(found)
}

/// Lists the paths of all documents, sorted.
fn documents(repo: &Repo) -> Result<Vec<String>, PageError> {
    Ok(repo.all_markdown()?.into_iter().collect())
}

/// Finds a document by its path.
fn document(repo: &Repo, path: &str) -> Result<String, PageError> {
    let known = repo.all_markdown()?.take(path);
    known.ok_or_else(|| {
        PageError::Missing("The memory has no document of that name. It may have been moved.".to_owned())
    })
}

/// Returns a document's display name: a permanent document's own name, else the path.
fn called(path: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == path).map_or(path, |(_, name)| name)
}

fn file_address(path: &str) -> String {
    address("/memory/file", &[("path", path)])
}

fn results(desk: &PageDesk<'_>, query: &str, found: &MemoryFound, documents: &[String]) -> Markup {
    html! {
        section aria-labelledby="found" {
            h2 #found { "Found" }
            @for note in &found.notes { p .meta { (desk.shown(note)) } }
            @if found.hits.is_empty() {
                p { "I have no notes about “" (query) "”." }
            } @else {
                p .meta { (count(found.hits.len(), "place")) ", the best first." }
                ol .list { @for hit in &found.hits { li { (result(desk, hit, documents)) } } }
            }
        }
    }
}

fn result(desk: &PageDesk<'_>, hit: &Recalled, documents: &[String]) -> Markup {
    let is_document = documents.contains(&hit.path);
    let place = format!("{}, line {}", called(&hit.path), hit.line);
    let mut about = Vec::new();
    about.extend(hit.date.map(|day| day.format("%a %Y-%m-%d").to_string()));
    about.extend((!hit.heading.is_empty()).then(|| shortened(&desk.shown(&hit.heading), 80)));
    about.extend((!hit.speaker.is_empty()).then(|| format!("said by {}", desk.shown(&hit.speaker))));
    html! {
        p { (shortened(&desk.shown(&hit.text), MAX_HIT_CHARS)) }
        p .meta {
            @if is_document {
                a href={ (file_address(&hit.path)) "#L" (hit.line) } { (place) }
            } @else {
                (said(&hit.path))
            }
            @for part in &about { " · " (part) }
            @if let Some(wake) = &hit.origin.wake { " · " (wake_link(wake, "the wake")) }
        }
        @if hit.taint.is_some() { p { (others_in(hit.taint.as_deref().map(|taint| desk.shown(taint)).as_deref())) } }
        details {
            summary { "Why it was found" }
            (why(hit))
        }
    }
}

/// Names the place of a statement.
fn said(path: &str) -> String {
    match path.split_once('/') {
        Some(("messages", id)) => format!("message {id}"),
        Some(("answers", id)) => format!("my answer {id}"),
        _ => path.to_owned(),
    }
}

fn why(hit: &Recalled) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="What it was ranked by" {
            table {
                caption { "What it was ranked by: " (format!("{:.2}", hit.score)) " in all" }
                thead { tr { th scope="col" { "Sign" } th scope="col" { "Counts" } } }
                tbody {
                    @for (name, part) in hit.why() {
                        tr { th scope="row" { (sign(name)) } td { (format!("{part:+.2}")) } }
                    }
                }
            }
        }
    }
}

/// Names a ranking feature.
fn sign(name: &str) -> &str {
    match name {
        "bm25" => "its words",
        "trigram" => "words spelt alike",
        "dense" => "its meaning",
        "product" => "words and meaning together",
        "near_bm25" => "words of the lines around",
        "near_dense" => "meaning of the lines around",
        "coverage" => "how many of the words it has",
        "exact" => "the very same forms",
        "in_order" => "the words in this order",
        "heading" => "words in its headings",
        "speaker" => "who says it",
        "date" => "its day",
        "recency" => "how new it is",
        "importance" => "what kind of thing it is",
        "length" => "how long it is",
        "asks" => "it asks itself",
        "answers" => "it follows such a question",
        "passage" => "the passage around",
        other => other,
    }
}

fn listed(repo: &Repo, documents: &[String]) -> Markup {
    let known = NAMES.iter().filter(|(path, _)| documents.iter().any(|known| known == path));
    let others: Vec<&String> = documents.iter().filter(|path| NAMES.iter().all(|(known, _)| path != known)).collect();
    html! {
        section aria-labelledby="documents" {
            h2 #documents { "Documents" }
            p .meta { "All of it is in " code { (repo.root().display()) } ": text files that any editor opens." }
            ul .list { @for (path, name) in known { (entry(repo, path, name)) } }
        }
        @if !others.is_empty() {
            section aria-labelledby="others" {
                h2 #others { "Skills, days and the rest" }
                ul .list { @for path in others.iter().take(MAX_LISTED) { (entry(repo, path, path)) } }
                @if others.len() > MAX_LISTED { p .meta { (count(others.len() - MAX_LISTED, "document")) " more; search finds them." } }
            }
        }
    }
}

fn entry(repo: &Repo, path: &str, name: &str) -> Markup {
    let bytes = std::fs::symlink_metadata(repo.root().join(path)).map_or(0, |file| file.len());
    html! {
        li {
            a href=(file_address(path)) { (name) }
            span .meta {
                @if name != path { " " (path) }
                " · " (size(bytes))
                @if is_log(path) { " · only ever added to" }
            }
        }
    }
}
