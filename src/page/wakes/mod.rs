//! The history: lists wakes and people's commits, shows each with its records, and undoes wakes.

mod diff;
mod story;
mod undo;

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::{
    find::{self, FindError, FoundWake},
    log::{self, LogError, LogLine, LogQuery},
    since::{EXPECTED, parse_moment},
    units::format_usd,
    whole::{KeptRequests, WakeSources},
};
use reveille_base::{
    approval_text::escape_hidden,
    types::ChatRef,
    words::{capitalize, format_count, format_list, one_line, truncate_text},
};
use reveille_git::{Oid, Repo};
use reveille_store::{CycleRow, Spent, Store};

use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    notes::NoteQuery,
    parts::{render_moment, render_taint_badge},
    site::{PageContext, PageSite},
};

/// Entries per page of the list.
const LINES: usize = 20;
/// Maximum page number, given by the number of commits that the log searches.
const MAX_PAGE: usize = 500;
/// Characters shown of an entry's subject.
const SUBJECT_CHARS: usize = 200;
/// Characters quoted of a request.
const ASKED_CHARS: usize = 100;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/wakes", get(list_wakes))
        .route("/wakes/{id}", get(show_wake))
        .route("/wakes/{id}/raw", get(show_raw))
        .route("/wakes/{id}/undo", get(undo::show_undo).post(undo::order_undo))
}

/// The search form, as typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    grep: String,
    since: String,
    chat: String,
    page: String,
}

impl ListQuery {
    fn is_search(&self) -> bool {
        [&self.grep, &self.since, &self.chat].iter().any(|typed| !typed.trim().is_empty())
    }

    /// Returns the address of another page of the same list.
    fn page_address(&self, page: usize) -> String {
        let typed = [("grep", self.grep.trim()), ("since", self.since.trim()), ("chat", self.chat.trim())];
        let number = page.to_string();
        let parts = typed.into_iter().filter(|(_, typed)| !typed.is_empty()).chain([("page", number.as_str())]);
        // Only the query of this address is used; the host is a placeholder.
        let address = reqwest::Url::parse_with_params("http://localhost/", parts).ok();
        format!("/wakes?{}", address.as_ref().and_then(reqwest::Url::query).unwrap_or_default())
    }
}

/// An entry with its cost and changed files.
struct ListedWake {
    line: LogLine,
    spent: Option<Spent>,
    files: Vec<String>,
}

async fn list_wakes(State(site): State<Arc<PageSite>>, Query(query): Query<ListQuery>) -> Result<Response, PageError> {
    site.run_blocking(move |desk| {
        let (status, content) = match parse_query(desk, &query) {
            Ok((log_query, page)) => {
                let (wakes, has_more) = read_list(desk, log_query)?;
                (
                    StatusCode::OK,
                    html! {
                        section #live-wakes data-live { (render_list(desk, &query, &wakes)) }
                        (render_pages(&query, page, has_more))
                    },
                )
            }
            Err(why) => (StatusCode::UNPROCESSABLE_ENTITY, html! { p .note .bad role="alert" { (why) } }),
        };
        let content = html! { (render_search_form(desk, &query)) (content) };
        Ok((status, render_frame(PagePlace::Wakes, "What I did", &content)).into_response())
    })
    .await
}

/// Parses the search form, or explains the error.
fn parse_query<'a>(desk: &PageContext<'_>, typed: &'a ListQuery) -> Result<(LogQuery<'a>, usize), String> {
    let since = match typed.since.trim() {
        "" => None,
        text => match parse_moment(text, desk.now, desk.config.timezone) {
            Some(since) => Some(since),
            None => return Err(format!("I don't understand “{text}” as a time. Type {EXPECTED}.")),
        },
    };
    let chat = match typed.chat.trim() {
        "" => None,
        text => match text.parse::<ChatRef>() {
            Ok(chat) => Some(chat),
            Err(_) => return Err(format!("“{text}” isn't a chat: type its number; 0 is this machine.")),
        },
    };
    let page = typed.page.trim().parse::<usize>().unwrap_or(1).clamp(1, MAX_PAGE);
    let grep = Some(typed.grep.trim()).filter(|words| !words.is_empty());
    // The extra entry shows that there is another page.
    Ok((LogQuery { lines: LINES + 1, skip: (page - 1) * LINES, chat, since, grep }, page))
}

fn read_list(desk: &PageContext<'_>, query: LogQuery<'_>) -> Result<(Vec<ListedWake>, bool), PageError> {
    let (store, repo) = (desk.open_store()?, desk.open_repo()?);
    let shown = |text: &str| desk.clean_text(text);
    let mut lines = match (&store, &repo) {
        (store, Some(repo)) => {
            log::list_wakes_and_commits(store.as_ref(), repo, query, &shown).map_err(from_log_error)?
        }
        (Some(store), None) => log::list_wakes(store, query, |_| None, &shown)?,
        (None, None) => Vec::new(),
    };
    let has_more = lines.len() > LINES;
    lines.truncate(LINES);
    let ids: Vec<String> = lines.iter().filter_map(|line| line.wake_id.clone()).collect();
    let mut spent = match &store {
        Some(store) => store.history().spent_by_each(&ids)?,
        None => BTreeMap::new(),
    };
    let wakes = lines.into_iter().map(|line| ListedWake {
        spent: line.wake_id.as_ref().and_then(|id| spent.remove(id)),
        files: list_changed_files(repo.as_ref(), line.commit.as_deref(), &shown),
        line,
    });
    Ok((wakes.collect(), has_more))
}

/// Lists the names of the files that a commit changed, as far as readable.
fn list_changed_files(repo: Option<&Repo>, commit: Option<&str>, shown: &dyn Fn(&str) -> String) -> Vec<String> {
    let found = repo.zip(commit.and_then(|commit| Oid::from_str(commit).ok()));
    let paths = found.and_then(|(repo, commit)| repo.history().list_changed_paths(commit).ok()).unwrap_or_default();
    let name = |path: &std::path::Path| path.file_name().map(|name| escape_hidden(&shown(&name.to_string_lossy())));
    paths.iter().filter_map(|path| name(path)).collect()
}

fn from_log_error(error: LogError) -> PageError {
    match error {
        LogError::Store(error) => error.into(),
        LogError::Repo(error) => error.into(),
    }
}

fn from_find_error(error: FindError) -> PageError {
    match error {
        FindError::Store(error) => error.into(),
        FindError::Repo(error) => error.into(),
    }
}

fn render_search_form(desk: &PageContext<'_>, typed: &ListQuery) -> Markup {
    let chats = desk.config.allowed_chats.iter().map(|chat| (chat.to_string(), format!("chat {chat}")));
    let known: Vec<(String, String)> = [(String::new(), "all".to_owned()), ("0".to_owned(), "this machine".to_owned())]
        .into_iter()
        .chain(chats)
        .collect();
    html! {
        details .new open[typed.is_search()] {
            summary { "Search" }
            (render_search_fields(typed, &known))
        }
    }
}

fn render_search_fields(typed: &ListQuery, known: &[(String, String)]) -> Markup {
    let is_unknown = !known.iter().any(|(chat, _)| *chat == typed.chat.trim());
    html! {
        form method="get" action="/wakes" role="search" .search .forms {
            div .field {
                label for="grep" { "Words in what I did or what you asked" }
                input #grep type="search" name="grep" value=(typed.grep);
            }
            div .field {
                label for="since" { "Since" }
                input #since name="since" value=(typed.since) placeholder="yesterday, 7d, 2026-11-20" autocomplete="off";
            }
            div .field {
                label for="chat" { "Chat" }
                select #chat name="chat" {
                    @for (chat, name) in known {
                        option value=(chat) selected[*chat == typed.chat.trim()] { (name) }
                    }
                    @if is_unknown { option value=(typed.chat) selected { (typed.chat) } }
                }
            }
            div .actions {
                button type="submit" { "Search" }
                @if typed.is_search() { a href="/wakes" { "Show all" } }
            }
        }
    }
}

fn render_list(desk: &PageContext<'_>, query: &ListQuery, wakes: &[ListedWake]) -> Markup {
    html! {
        @if wakes.is_empty() && (query.is_search() || !query.page.is_empty()) {
            p { "I did nothing like that." }
        } @else if wakes.is_empty() {
            p { "Nothing yet. Each time I work, I list it here: why, what changed, and what it cost." }
        } @else {
            ol .list .wakes { @for wake in wakes { (render_item(desk, wake)) } }
        }
    }
}

fn render_item(desk: &PageContext<'_>, wake: &ListedWake) -> Markup {
    let line = &wake.line;
    let did = line.subject.strip_prefix("Wake: ").unwrap_or(&line.subject);
    let did = capitalize(&escape_hidden(&truncate_text(&one_line(did), SUBJECT_CHARS)));
    let did = if did.is_empty() { "(no words)".to_owned() } else { did };
    let id = line.wake_id.as_deref().filter(|_| line.state.is_some()).or(line.commit.as_deref());
    let first = line.asked.first();
    // What others wrote makes no title.
    let request =
        first.filter(|asked| asked.taint.is_none()).map(|asked| escape_hidden(&asked.first_words(ASKED_CHARS)));
    let title = request.as_ref().filter(|words| !words.is_empty()).unwrap_or(&did);
    html! {
        li {
            div {
                @match id {
                    Some(id) => a href={ "/wakes/" (id) } { (title) },
                    None => (title),
                }
                @if line.asked.len() > 1 { " and " (line.asked.len() - 1) " more" }
                " " (render_state_badge(line))
            }
            @if *title != did { div { (did) } }
            @if let Some(taint) = first.and_then(|asked| asked.taint.as_deref()) {
                div { (render_taint_badge(Some(&desk.clean_text(taint)))) }
            }
            div .meta {
                @match line.at {
                    Some(at) => (render_moment(at, desk.now, desk.config.timezone)),
                    None => "at an unknown time",
                }
                " · " (describe_author(line))
                @if let Some(spent) = wake.spent { " · " (format_usd(spent.cost_usd)) }
                @if !wake.files.is_empty() { " · changed " (format_list(&wake.files)) }
            }
        }
    }
}

/// Describes whom a wake answered, or who made a commit.
fn describe_author(line: &LogLine) -> String {
    let from = line.asked.first().and_then(|asked| asked.from.as_deref()).map(|from| escape_hidden(&one_line(from)));
    match (line.chat, from, &line.author) {
        (Some(chat), ..) if chat.is_terminal() => "answered here".to_owned(),
        (Some(chat), Some(from), _) => format!("answered {from} (chat {chat})"),
        (Some(chat), None, _) => format!("answered chat {chat}"),
        (None, _, Some(author)) if line.wake_id.is_none() => format!("commit by {}", escape_hidden(author)),
        (None, ..) => "on my own".to_owned(),
    }
}

fn render_state_badge(line: &LogLine) -> Markup {
    let (class, words) = match (line.undone, line.state) {
        (Some(true), _) => ("", "undone"),
        (Some(false), _) => ("warn", "about to be undone"),
        (None, Some("running")) => ("ok", "under way"),
        (None, Some("waiting")) => ("warn", "waiting for the AI model"),
        (None, Some("parked")) => ("warn", "waiting for your answer"),
        (None, Some("failed")) => ("bad", "failed"),
        (None, Some("abandoned")) => ("bad", "given up"),
        (None, _) => return html! {},
    };
    html! { span class={ "badge " (class) } { (words) } }
}

fn render_pages(query: &ListQuery, page: usize, has_more: bool) -> Markup {
    html! {
        @if page > 1 || has_more {
            nav .actions aria-label="Pages" {
                @if page > 1 { a href=(query.page_address(page - 1)) rel="prev" { "Newer" } }
                span .meta { "Page " (page) }
                @if has_more && page < MAX_PAGE { a href=(query.page_address(page + 1)) rel="next" { "Older" } }
            }
        }
    }
}

/// The target of an address below `/wakes`.
enum Found {
    Cycle(Box<CycleRow>),
    Commit(String),
}

fn find_wake(store: Option<&Store>, repo: Option<&Repo>, id: &str) -> Result<Found, PageError> {
    match find::find_wake(store, repo, Some(id)).map_err(from_find_error)? {
        FoundWake::Cycle(row) => Ok(Found::Cycle(row)),
        FoundWake::Commit(commit) => Ok(Found::Commit(commit)),
        FoundWake::Nothing(_) => {
            Err(PageError::Missing("There is no such wake or commit. “What I did” lists them.".to_owned()))
        }
    }
}

async fn show_wake(
    State(site): State<Arc<PageSite>>,
    Path(id): Path<String>,
    Query(query): Query<NoteQuery>,
) -> Result<Markup, PageError> {
    let note = site.render_note(&query);
    site.run_blocking(move |desk| {
        let (store, repo) = (desk.open_store()?, desk.open_repo()?);
        let sources = WakeSources { store: store.as_ref(), repo: repo.as_ref(), redactor: desk.redactor };
        match find_wake(sources.store, sources.repo, &id)? {
            Found::Cycle(row) => {
                let (story, commit) =
                    sources.read_wake(Some(&row), row.commit_id.as_deref()).map_err(from_find_error)?;
                let Some(story) = story else { return Err(PageError::Broken) };
                let can_be_undone = sources.store.is_some_and(|store| undo::is_possible(store, &row));
                Ok(story::render_page(desk, &note, &story, commit.as_ref(), can_be_undone))
            }
            Found::Commit(commit) => {
                let (_, commit) = sources.read_wake(None, Some(&commit)).map_err(from_find_error)?;
                let Some(commit) = commit else { return Err(PageError::Missing("That commit is gone.".to_owned())) };
                Ok(story::render_commit(desk, &commit))
            }
        }
    })
    .await
}

/// Returns the exact requests as text.
async fn show_raw(State(site): State<Arc<PageSite>>, Path(id): Path<String>) -> Result<Response, PageError> {
    site.run_blocking(move |desk| {
        let (store, repo) = (desk.open_store()?, desk.open_repo()?);
        let sources = WakeSources { store: store.as_ref(), repo: repo.as_ref(), redactor: desk.redactor };
        let row = match find_wake(sources.store, sources.repo, &id)? {
            Found::Cycle(row) => Some(row),
            Found::Commit(_) => None,
        };
        match sources.read_requests(row.as_deref())? {
            KeptRequests::Lines(lines) => {
                let text: String = lines.into_iter().map(|line| line + "\n").collect();
                Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
            }
            KeptRequests::None(why) => Err(PageError::Missing(why.to_owned())),
        }
    })
    .await
}

/// Formats the number of files and their names, as in `2 files: a.md and b.md`.
fn format_files(files: &[String]) -> String {
    format!("{}: {}", format_count(files.len(), "file"), format_list(files))
}
