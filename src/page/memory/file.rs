//! A document as rendered text, line by line with the origin of each line, and with its history.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::why::{LineStory, LineWriter, why_line};
use reveille_base::{
    approval_text::escape_hidden,
    words::{first_bytes, format_count, one_line, truncate_text},
};
use reveille_git::{Commit, Repo};
use reveille_memory::{
    changes::list_changed_lines,
    is_log,
    origin::{parse_origin, strip_mark_and_comment},
    others,
    sections::Document,
};

use super::{display_name, file_address, find_document};
use crate::page::{
    error::PageError,
    frame::{PagePlace, render_frame},
    markdown::{WrittenBy, render_markdown},
    parts::{
        build_address, changed_lines, render_outcome, render_taint_badge, render_time, render_untrusted_badge,
        wake_link,
    },
    site::{PageContext, PageSite},
    undo::newest_step,
};

/// Maximum commits shown of a document's history.
const MAX_VERSIONS: usize = 20;
/// Bytes shown of a larger document.
const MAX_SHOWN_BYTES: usize = 400_000;
/// Characters shown of a message.
const MAX_SAID_CHARS: usize = 300;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/memory/file", get(show_document)).route("/memory/why", get(show_why))
}

#[derive(Deserialize)]
struct AskedFile {
    path: String,
    /// The outcome of a form that led here.
    #[serde(default)]
    done: String,
}

#[derive(Deserialize)]
struct AskedLine {
    path: String,
    line: usize,
}

async fn show_document(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedFile>) -> Result<Markup, PageError> {
    let (title, content) = site
        .run_blocking(move |desk| {
            let repo = open_repo(desk)?;
            let path = find_document(&repo, &asked.path)?;
            let content = render_document(desk, &repo, &path, &asked.done)?;
            Ok((display_name(&path).to_owned(), content))
        })
        .await?;
    Ok(render_frame(PagePlace::Memory, &title, &content))
}

async fn show_why(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedLine>) -> Result<Markup, PageError> {
    let content = site
        .run_blocking(move |desk| {
            let repo = open_repo(desk)?;
            let path = find_document(&repo, &asked.path)?;
            let story = why_line(&repo, desk.open_store()?.as_ref(), &path, asked.line)?;
            let missing = || PageError::Missing(format!("{path} no longer has a line {}.", asked.line));
            Ok(render_origin(desk, &story.ok_or_else(missing)?))
        })
        .await?;
    Ok(render_frame(PagePlace::Memory, "Where this comes from", &content))
}

/// Opens the memory's repository, or answers that there is no memory yet.
pub(super) fn open_repo(desk: &PageContext<'_>) -> Result<Repo, PageError> {
    desk.open_repo()?.ok_or_else(|| PageError::Missing("I don't remember anything yet.".to_owned()))
}

fn render_document(desk: &PageContext<'_>, repo: &Repo, path: &str, what_was_done: &str) -> Result<Markup, PageError> {
    let text = repo.read_work_tree(path)?.unwrap_or_default();
    let (shown, is_cut) = cut_beginning(&text);
    let untrusted_lines = others::line_ranges(path, shown, None);
    let is_untrusted =
        |first: usize, last: usize| untrusted_lines.iter().any(|(from, to)| *from <= last && first <= *to);
    let head = repo.head()?.map(|head| repo.history().read_text_at(head, path)).transpose()?.flatten();
    Ok(html! {
        @if let Some(text) = describe_outcome(what_was_done) {
            (render_outcome(&html! { (text) }))
            @if let Some(store) = desk.open_store()? { (newest_step(desk, &store, "")?) }
        }
        p .meta { (path) }
        @if head.as_deref() != Some(&text) {
            p { span .badge.warn { "not committed yet" } " Somebody has edited this file. I'll commit that as yours when I next wake; saving here does the same." }
        }
        div .actions {
            @if is_log(path) {
                p .meta { "The log can only be added to." }
            } @else {
                a .button href=(build_address("/memory/edit", &[("path", path)])) { "Edit" }
            }
            a href="#lines" { "Line by line" }
            a href="#history" { "History" }
        }
        h2 { "Content" }
        article {
            @if text.trim().is_empty() { p .meta { "It is empty." } }
            @for FileSection { first, last, text } in split_sections(shown) {
                @let by = if is_untrusted(first, last) { WrittenBy::Others } else { WrittenBy::Own };
                section {
                    @if by == WrittenBy::Others { p { (render_untrusted_badge()) } }
                    (render_markdown(&desk.clean_text(&without_origins(text)), by))
                }
            }
            @if is_cut { p .meta { "This is only the beginning: the document is too long for one page." } }
        }
        details #lines {
            summary { "Line by line, with the origin of each" }
            ol .lines {
                @for (number, line) in (1..).zip(shown.lines()) {
                    li id={ "L" (number) } {
                        code { (desk.clean_text(&escape_hidden(line))) }
                        @if !line.trim().is_empty() {
                            " " a .meta href=(build_address("/memory/why", &[("path", path), ("line", &number.to_string())]))
                                aria-label={ "Why line " (number) " is here" } { "why" }
                        }
                        @if is_untrusted(number, number) { " " span .badge.warn { "untrusted" } }
                    }
                }
            }
        }
        (render_history(desk, repo, path)?)
    })
}

/// Describes the outcome of a form that led here.
fn describe_outcome(done: &str) -> Option<&'static str> {
    match done {
        "saved" => Some("Saved as a commit in your name."),
        "same" => Some("Nothing changed: the document already has this text."),
        "uncommitted" => Some("Saved but not committed: git is set up to pass this file through another program."),
        "restored" => Some("Restored as a commit in your name. The previous text is in the history below."),
        "restored-same" => Some("Nothing changed: the document is already as it was then."),
        _ => None,
    }
}

/// Returns the displayed beginning of a text, up to the end of a line, and true if the text is cut.
fn cut_beginning(text: &str) -> (&str, bool) {
    if text.len() <= MAX_SHOWN_BYTES {
        return (text, false);
    }
    let cut = first_bytes(text, MAX_SHOWN_BYTES);
    (cut.rfind('\n').and_then(|end| cut.get(..=end)).unwrap_or(cut), true)
}

/// A section of a document, with the numbers of its first and last lines, counted from 1.
struct FileSection<'a> {
    first: usize,
    last: usize,
    text: &'a str,
}

/// Splits a text into sections, without empty ones.
fn split_sections(text: &str) -> Vec<FileSection<'_>> {
    let document = Document::split(text);
    let parts = document.parts.iter().map(|part| {
        let text = document.slice(&part.range);
        FileSection { first: part.line, last: part.line + text.lines().count().saturating_sub(1), text }
    });
    parts.filter(|section| !section.text.trim().is_empty()).collect()
}

/// Removes the comments in which wakes note a line's origin. “Line by line” shows the origins instead.
fn without_origins(text: &str) -> String {
    let line = |line: &str| match parse_origin(line) {
        Some(_) => line.rfind("<!--").and_then(|at| line.get(..at)).unwrap_or(line).trim_end().to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn render_history(desk: &PageContext<'_>, repo: &Repo, path: &str) -> Result<Markup, PageError> {
    let commits = repo.history().commits_changing(path, MAX_VERSIONS)?;
    let mut versions = Vec::new();
    for commit in &commits {
        let new = repo.history().read_text_at(commit.id, path)?;
        let old = repo
            .history()
            .find_parent(commit.id)?
            .map(|before| repo.history().read_text_at(before, path))
            .transpose()?
            .flatten();
        let lines = list_changed_lines(old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
        let added = lines.iter().filter(|line| line.is_added).count();
        versions.push((commit, new.is_none(), added, lines));
    }
    Ok(html! {
        section aria-labelledby="history" {
            h2 #history { "History" }
            @if versions.is_empty() { p .meta { "Not committed yet. Committed changes appear here." } }
            ol .list {
                @for (at, (commit, is_gone, added, lines)) in versions.iter().enumerate() {
                    li {
                        p {
                            (render_time(desk, commit.at)) " · " (render_author(desk, commit)) " · "
                            span .meta {
                                @if *is_gone { "deleted" } @else { "+" (added) " −" (lines.len() - added) " lines" }
                            }
                        }
                        p { (desk.clean_text(&commit.subject)) }
                        details {
                            summary { "What changed" }
                            (changed_lines(desk, lines))
                        }
                        @if at > 0 && !is_gone && !is_log(path) {
                            p .actions {
                                a href=(build_address("/memory/restore", &[("path", path), ("at", &commit.id.to_string())])) {
                                    "Restore this version…"
                                }
                            }
                        }
                    }
                }
            }
            @if versions.len() == MAX_VERSIONS {
                p .meta { "These are the last " (format_count(MAX_VERSIONS, "change")) ". `git log` in the memory's folder shows all." }
            }
        }
    })
}

/// Names the author of a commit.
fn render_author(desk: &PageContext<'_>, commit: &Commit) -> Markup {
    html! {
        @if let Some(wake) = &commit.wake_id {
            (wake_link(wake, "a wake"))
        } @else if commit.is_ours() {
            "Reveille"
        } @else {
            (desk.clean_text(&commit.author))
        }
    }
}

/// Describes a line's origin.
fn render_origin(desk: &PageContext<'_>, story: &LineStory) -> Markup {
    let wake = story.origin.as_ref().map(|origin| origin.wake.as_str());
    let wake = wake.or_else(|| story.commit.as_ref().and_then(|commit| commit.wake_id.as_deref()));
    html! {
        p { a href={ (file_address(&story.path)) "#L" (story.line) } { (display_name(&story.path)) ", line " (story.line) } }
        blockquote { p { (desk.clean_text(strip_mark_and_comment(&story.text))) } }
        @if !story.heading.is_empty() { p .meta { "It is under the heading “" (desk.clean_text(&story.heading)) "”." } }
        @if let Some(taint) = &story.taint {
            p { (render_untrusted_badge()) " Before that I had read: " (desk.clean_text(taint)) }
        }
        h2 { "Who wrote it" }
        @match (story.writer, &story.commit) {
            (LineWriter::Uncommitted, _) | (_, None) => p { "A person; not committed yet." },
            (writer, Some(commit)) => {
                p {
                    @match writer {
                        LineWriter::Wake => { "I, " }
                        LineWriter::Person => { (desk.clean_text(&commit.author)) ", " }
                        _ => { "It came with Reveille, " }
                    }
                    (render_time(desk, commit.at)) ": “" (desk.clean_text(&commit.subject)) "”"
                }
            }
        }
        @if let Some(commit) = &story.wake_commit {
            p { "I first wrote it " (render_time(desk, commit.at)) ": “" (desk.clean_text(&commit.subject)) "”" }
        }
        @if let Some(wake) = wake { p { (wake_link(wake, "What I did then")) } }
        h2 { "Where it was said" }
        @if story.messages.is_empty() { p { "I know of no message that said it." } }
        ul .list {
            @for message in &story.messages {
                li {
                    p { "“" (truncate_text(&desk.clean_text(&one_line(&message.text)), MAX_SAID_CHARS)) "”" }
                    p .meta {
                        "Message " (message.id) ", " (desk.clean_text(message.from.as_deref().unwrap_or("you")))
                        @if let Some(at) = message.at { ", " (render_time(desk, at)) }
                    }
                    @if let Some(taint) = &message.taint { p { (render_taint_badge(Some(&desk.clean_text(taint)))) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_comments_are_removed_and_other_comments_stay() {
        let text = "# A\n- fact <!-- wake 1 message 4 -->\n- mine <!-- for: all -->\n";
        assert_eq!(without_origins(text), "# A\n- fact\n- mine <!-- for: all -->\n");
    }

    #[test]
    fn sections_come_with_their_line_numbers() {
        let text = "# A\n\nx\n## B\ny\n## C\n";
        let parts: Vec<_> = split_sections(text).into_iter().map(|section| (section.first, section.last)).collect();
        assert_eq!(parts, [(1, 3), (4, 5), (6, 6)]);
    }

    #[test]
    fn a_long_text_is_cut_at_the_end_of_a_line() {
        let text = "ö\n".repeat(MAX_SHOWN_BYTES / 2);
        let (shown, is_cut) = cut_beginning(&text);
        assert!(is_cut && shown.ends_with("ö\n") && shown.len() <= MAX_SHOWN_BYTES);
        assert_eq!(cut_beginning("a"), ("a", false));
    }
}
