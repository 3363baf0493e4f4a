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
    disk::format_size,
    words::{first_chars, format_count, truncate_text},
};
use reveille_git::Repo;
use reveille_index::SearchHit;
use reveille_memory as memory;
use reveille_memory::is_log;

use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    parts::{build_address, render_taint_badge, wake_link},
    site::{PageContext, PageSite},
};
use crate::orders::search::{self, IndexWait, MemoryFound, MemoryQuestion};

/// Maximum number of hits shown.
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
    (memory::CONTEXT, "About you and your preferences"),
    (memory::ACTIVE, "Tasks in hand"),
    (memory::BACKLOG, "Tasks in the backlog"),
    (memory::SEMANTIC_MEMORY, "Facts"),
    (memory::WORKING_MEMORY, "Current work"),
    (memory::EPISODIC_MEMORY, "The log"),
];

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/memory", get(show_memory))
        .merge(file::routes())
        .merge(edit::routes())
        .merge(restore::routes())
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    q: String,
}

async fn show_memory(State(site): State<Arc<PageSite>>, Query(asked): Query<Asked>) -> Result<Markup, PageError> {
    let content = site.run_blocking(move |desk| render_overview(desk, asked.q.trim())).await?;
    Ok(render_frame(PagePlace::Memory, "Memory", &content))
}

fn render_overview(desk: &PageContext<'_>, query: &str) -> Result<Markup, PageError> {
    let Some(repo) = desk.open_repo()? else {
        return Ok(html! {
            p { "I don't remember anything yet. My first wake creates the memory: say something in the " a href="/chat" { "chat" } "." }
        });
    };
    let query = first_chars(query, MAX_QUERY_CHARS);
    let found = if query.is_empty() { None } else { Some(run_search(desk, query)?) };
    let documents = list_documents(&repo)?;
    Ok(html! {
        form action="/memory" method="get" role="search" {
            p .field {
                label for="q" { "Search what I know and what we said" }
                input #q type="search" name="q" value=(query) maxlength=(MAX_QUERY_CHARS) autocomplete="off";
            }
            p .actions { button type="submit" { "Search" } }
        }
        @if let Some(found) = &found {
            (render_results(desk, query, found, &documents))
        }
        (render_documents(&repo, &documents))
    })
}

fn run_search(desk: &PageContext<'_>, query: &str) -> Result<MemoryFound, PageError> {
    let question = MemoryQuestion { text: query, limit: HITS, as_of: None, within: None, tells_of_keywords: false };
    let mut found = search::search_memory(desk.config, desk.redactor, &question, IndexWait::Briefly)
        .map_err(|error| PageError::Refused(format!("The memory can't be searched now: {error}.")))?;
    found.hits.retain(SearchHit::speaks_for_itself);
    Ok(found)
}

/// Lists the paths of all documents, sorted.
fn list_documents(repo: &Repo) -> Result<Vec<String>, PageError> {
    Ok(repo.history().all_markdown()?.into_iter().collect())
}

/// Finds a document by its path.
fn find_document(repo: &Repo, path: &str) -> Result<String, PageError> {
    let known = repo.history().all_markdown()?.take(path);
    known.ok_or_else(|| {
        PageError::Missing("The memory has no document with that name. It may have been moved.".to_owned())
    })
}

/// Returns a document's display name: a permanent document's own name, else the path.
fn display_name(path: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == path).map_or(path, |(_, name)| name)
}

fn file_address(path: &str) -> String {
    build_address("/memory/file", &[("path", path)])
}

fn render_results(desk: &PageContext<'_>, query: &str, found: &MemoryFound, documents: &[String]) -> Markup {
    html! {
        section aria-labelledby="found" {
            h2 #found { "Found" }
            @for note in &found.notes { p .meta { (desk.clean_text(note)) } }
            @if found.hits.is_empty() {
                p { "I have no notes about “" (query) "”." }
            } @else {
                p .meta { (format_count(found.hits.len(), "place")) ", best first." }
                ol .list { @for hit in &found.hits { li { (render_result(desk, hit, documents)) } } }
            }
        }
    }
}

fn render_result(desk: &PageContext<'_>, hit: &SearchHit, documents: &[String]) -> Markup {
    let is_document = documents.contains(&hit.path);
    let place = format!("{}, line {}", display_name(&hit.path), hit.line);
    let mut about = Vec::new();
    about.extend(hit.date.map(|day| day.format("%a %Y-%m-%d").to_string()));
    about.extend((!hit.heading.is_empty()).then(|| truncate_text(&desk.clean_text(&hit.heading), 80)));
    about.extend((!hit.speaker.is_empty()).then(|| format!("said by {}", desk.clean_text(&hit.speaker))));
    html! {
        p { (truncate_text(&desk.clean_text(&hit.text), MAX_HIT_CHARS)) }
        p .meta {
            @if is_document {
                a href={ (file_address(&hit.path)) "#L" (hit.line) } { (place) }
            } @else {
                (name_statement(&hit.path))
            }
            @for part in &about { " · " (part) }
            @if let Some(wake) = &hit.origin.wake { " · " (wake_link(wake, "the wake")) }
        }
        @if hit.taint.is_some() { p { (render_taint_badge(hit.taint.as_deref().map(|taint| desk.clean_text(taint)).as_deref())) } }
        details {
            summary { "Why it was found" }
            (render_ranking(hit))
        }
    }
}

/// Names a statement of the conversation, by its path in the index.
fn name_statement(path: &str) -> String {
    match path.split_once('/') {
        Some(("messages", id)) => format!("message {id}"),
        Some(("answers", id)) => format!("my answer {id}"),
        _ => path.to_owned(),
    }
}

fn render_ranking(hit: &SearchHit) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="How it was ranked" {
            table {
                caption { "How it was ranked: " (format!("{:.2}", hit.score)) " in all" }
                thead { tr { th scope="col" { "Feature" } th scope="col" { "Points" } } }
                tbody {
                    @for (name, part) in hit.explain_score() {
                        tr { th scope="row" { (name_feature(name)) } td { (format!("{part:+.2}")) } }
                    }
                }
            }
        }
    }
}

/// Names a ranking feature.
fn name_feature(name: &str) -> &str {
    match name {
        "bm25" => "its words",
        "trigram" => "similar spelling",
        "dense" => "its meaning",
        "product" => "words and meaning together",
        "near_bm25" => "words of nearby lines",
        "near_dense" => "meaning of nearby lines",
        "coverage" => "how many of your words it has",
        "exact" => "the exact word forms",
        "in_order" => "the words in the same order",
        "heading" => "words in its headings",
        "speaker" => "who says it",
        "date" => "its day",
        "recency" => "how new it is",
        "importance" => "what kind of thing it is",
        "length" => "how long it is",
        "asks" => "it is a question itself",
        "answers" => "it follows a matching question",
        "passage" => "the surrounding passage",
        other => other,
    }
}

fn render_documents(repo: &Repo, documents: &[String]) -> Markup {
    let known = NAMES.iter().filter(|(path, _)| documents.iter().any(|known| known == path));
    let others: Vec<&String> = documents.iter().filter(|path| NAMES.iter().all(|(known, _)| path != known)).collect();
    html! {
        section aria-labelledby="documents" {
            h2 #documents { "Documents" }
            p .meta { "Everything is in " code { (repo.root().display()) } ", as text files that any editor can open." }
            ul .list { @for (path, name) in known { (render_entry(repo, path, name)) } }
        }
        @if !others.is_empty() {
            section aria-labelledby="others" {
                h2 #others { "Skills, days and the rest" }
                ul .list { @for path in others.iter().take(MAX_LISTED) { (render_entry(repo, path, path)) } }
                @if others.len() > MAX_LISTED { p .meta { (format_count(others.len() - MAX_LISTED, "document")) " more; search finds them." } }
            }
        }
    }
}

fn render_entry(repo: &Repo, path: &str, name: &str) -> Markup {
    let bytes = std::fs::symlink_metadata(repo.root().join(path)).map_or(0, |file| file.len());
    html! {
        li {
            a href=(file_address(path)) { (name) }
            span .meta {
                @if name != path { " " (path) }
                " · " (format_size(bytes))
                @if is_log(path) { " · append-only" }
            }
        }
    }
}
