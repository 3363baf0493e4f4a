//! The chat with the terminal's assistant (`chat_id` 0), with live answers and progress.
//!
//! The page is another terminal. Its messages wait for their answers under a session of its own, so that other terminals don't show these
//! meanwhile. The session is open while somebody looks at the chat. Later answers are free for any terminal: `wake say` shows them, or the
//! owner's chat gets them. A text counts as shown once a browser reports it as seen, or with the next form.

use std::{
    collections::{BTreeSet, VecDeque},
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Form, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};
use serde::Deserialize;
use tokio::sync::Notify;

use reveille_base::{
    approval_text::{escape_hidden, hash_action},
    clock,
    process::Identity,
    random::NoRandomness,
    types::ChatRef,
    words::{format_near_time, one_line, truncate_text},
};
use reveille_config::OFFLINE_MODEL;
use reveille_cycle as cycle;
use reveille_cycle::stop;
use reveille_store::{
    Approval, Entry, Exchange, Incoming, Store, StoreError, TerminalSession, names_others, wake_lock,
};
use reveille_tools::Plan;

use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    markdown::{WrittenBy, render_markdown},
    notes::form_key,
    parts::render_untrusted_badge,
    questions::render_card,
    site::{PageContext, PageSite},
    undo::newest_step,
};
use crate::bot::{AfterPut, MAX_SAID_BYTES, progress_line, store_terminal_statement};

/// The view's path.
pub(super) const PATH: &str = "/chat";
/// Maximum statements shown.
const SHOWN: usize = 60;
/// Time after the last visit until the chat counts as abandoned.
const ATTENDED: Duration = Duration::from_secs(120);
/// Interval between checks for an abandoned chat.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Maximum remembered forms, which prevent a double submission.
const MAX_KEYS: usize = 64;
/// Maximum characters shown of a plan's step.
const STEP_CHARS: usize = 160;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(PATH, get(show_chat).post(receive_message)).route("/chat/seen", post(record_seen))
}

/// The chat's state while the page is served.
pub(super) struct ChatSession {
    session: TerminalSession,
    /// Time of the last visit, in milliseconds of [`clock::read_awake_time`].
    looked_at: AtomicU64,
    opened: Notify,
    /// Accepted forms with the digest of their text.
    keys: Mutex<VecDeque<(String, String)>>,
}

impl ChatSession {
    pub(super) fn new() -> Result<Self, NoRandomness> {
        let session = TerminalSession::generate()?;
        Ok(Self { session, looked_at: AtomicU64::new(0), opened: Notify::new(), keys: Mutex::default() })
    }

    /// Records a visit.
    pub(super) fn record_visit(&self) {
        let now = u64::try_from(clock::read_awake_time().as_millis()).unwrap_or(u64::MAX);
        self.looked_at.store(now, Ordering::Relaxed);
    }

    fn is_abandoned(&self) -> bool {
        let looked_at = Duration::from_millis(self.looked_at.load(Ordering::Relaxed));
        clock::read_awake_time().saturating_sub(looked_at) > ATTENDED
    }

    /// Records a form and returns true if it is new. The same form with another text is new: the person went back and corrected it.
    fn take_form(&self, key: &str, text: &str) -> bool {
        let form = (key.to_owned(), hash_action(text));
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.contains(&form) {
            return false;
        }
        if keys.len() >= MAX_KEYS {
            keys.pop_front();
        }
        keys.push_back(form);
        true
    }

    /// Forgets a form whose text couldn't be stored.
    fn gives_back(&self, key: &str, text: &str) {
        let form = (key.to_owned(), hash_action(text));
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).retain(|taken| *taken != form);
    }
}

/// Closes the session once the chat is abandoned. A new message or visit opens it again.
pub(super) async fn close_when_abandoned(site: &Arc<PageSite>) -> Infallible {
    loop {
        site.chat.opened.notified().await;
        while !site.chat.is_abandoned() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        close_session(site).await;
    }
}

/// Closes the session: later answers are free for any terminal.
pub(super) async fn close_session(site: &Arc<PageSite>) {
    let of_site = Arc::clone(site);
    let left = site.run_blocking(move |desk| match desk.open_store()? {
        Some(_) => Ok(open_store(desk)?.terminals_mut().close_session(&of_site.chat.session)?),
        None => Ok(()),
    });
    if let Err(error) = left.await {
        tracing::warn!(%error, "the page's chat could not be closed; it ends with this process");
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SayForm {
    text: String,
    key: String,
    /// Rows of the texts on the page with this form.
    seen: String,
}

async fn show_chat(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    site.chat.record_visit();
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| render_page(desk, &of_site.chat.session, "", None)).await
}

async fn receive_message(State(site): State<Arc<PageSite>>, Form(form): Form<SayForm>) -> Result<Response, PageError> {
    site.chat.record_visit();
    let text = form.text.replace("\r\n", "\n").trim().to_owned();
    let refused = match text.len() as u64 {
        0 => Some("There is nothing to send: the text is empty.".to_owned()),
        MAX_SAID_BYTES.. => Some(format!("That is longer than {MAX_SAID_BYTES} bytes, so it wasn't sent.")),
        _ => None,
    };
    if let Some(why) = refused {
        let of_site = Arc::clone(&site);
        let page = site.run_blocking(move |desk| render_page(desk, &of_site.chat.session, &text, Some(&why))).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }
    if form.key.is_empty() || site.chat.take_form(&form.key, &text) {
        let of_site = Arc::clone(&site);
        let typed = text.clone();
        let kept = site.run_blocking(move |desk| {
            // Done here rather than after the await, which a reloading browser would cancel.
            let kept = store_message(desk, &of_site.chat.session, &text, &form.seen);
            match &kept {
                Ok(after) => {
                    of_site.chat.opened.notify_one();
                    if *after == AfterPut::Wake {
                        of_site.nudge.notify_one();
                    }
                }
                Err(_) => of_site.chat.gives_back(&form.key, &text),
            }
            kept
        });
        if let Err(error) = kept.await {
            return show_failure(&site, typed, error).await;
        }
    }
    Ok(Redirect::to(PATH).into_response())
}

/// Stores a message under this session.
fn store_message(
    desk: &PageContext<'_>,
    session: &TerminalSession,
    text: &str,
    seen: &str,
) -> Result<AfterPut, PageError> {
    let mut store = open_store(desk)?;
    mark_seen(&mut store, session, seen, desk.now)?;
    store.terminals_mut().open_session(session, &Identity::current(), desk.now)?;
    let after = store_terminal_statement((desk.config, desk.redactor), &mut store, session, (text, &[]), desk.now)?
        .remaining_work();
    if after == AfterPut::EndPrograms {
        stop::end_children(&desk.config.lock_path());
    }
    Ok(after)
}

/// Shows the error and keeps the text in the field.
async fn show_failure(site: &Arc<PageSite>, typed: String, error: PageError) -> Result<Response, PageError> {
    let of_site = Arc::clone(site);
    let page = site.run_blocking(move |desk| {
        let why =
            format!("Your message wasn't saved: {}. The text is still below.", desk.clean_text(&error.to_string()));
        render_page(desk, &of_site.chat.session, &typed, Some(&why))
    });
    Ok((StatusCode::INTERNAL_SERVER_ERROR, page.await?).into_response())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SeenForm {
    seen: String,
}

/// Handles a browser's report of seen texts. This is also a visit, so a closed session opens again.
async fn record_seen(State(site): State<Arc<PageSite>>, Form(form): Form<SeenForm>) -> Result<StatusCode, PageError> {
    site.chat.record_visit();
    let of_site = Arc::clone(&site);
    let work = site.run_blocking(move |desk| {
        // A mere visit doesn't create a database.
        if desk.open_store()?.is_none() {
            return Ok(());
        }
        let (mut store, session) = (open_store(desk)?, &of_site.chat.session);
        mark_seen(&mut store, session, &form.seen, desk.now)?;
        store.terminals_mut().open_session(session, &Identity::current(), desk.now)?;
        of_site.chat.opened.notify_one();
        Ok(())
    });
    work.await?;
    Ok(StatusCode::NO_CONTENT)
}

fn open_store(desk: &PageContext<'_>) -> Result<Store, PageError> {
    cycle::open_store(desk.config).map_err(|error| PageError::Refused(desk.clean_text(&error.to_string())))
}

/// Marks those of the texts as shown that this session may show.
fn mark_seen(store: &mut Store, session: &TerminalSession, seen: &str, now: DateTime<Utc>) -> Result<(), StoreError> {
    let seen: BTreeSet<i64> = seen.split(',').filter_map(|id| id.parse().ok()).collect();
    if seen.is_empty() {
        return Ok(());
    }
    for (id, _) in store.terminals().console_unshown(Some(session))? {
        if seen.contains(&id) {
            store.terminals_mut().record_shown_text(id, now)?;
        }
    }
    Ok(())
}

/// The data of the chat view.
#[derive(Default)]
struct Talk {
    said: Vec<Exchange>,
    waiting: Vec<Incoming>,
    unshown: BTreeSet<i64>,
    /// Open questions at the terminal.
    questions: Vec<Approval>,
    /// Rows of the texts that ask these questions.
    asking: Vec<i64>,
    is_stopped: bool,
    /// The calls so far of the wake that works for the terminal.
    at_work: Option<Vec<Entry>>,
    /// The newest step with an undo button.
    newest: Markup,
}

/// A statement in the chat.
enum Line<'a> {
    Said(&'a Exchange),
    Waiting(&'a Incoming),
}

impl Talk {
    /// Returns the statements in order of time; the person's words come before the answer.
    fn list_lines(&self) -> Vec<Line<'_>> {
        let said = self.said.iter().map(|said| ((said.at, said.from.is_none()), Line::Said(said)));
        let waiting = self.waiting.iter().map(|message| ((message.received_at, false), Line::Waiting(message)));
        let mut lines: Vec<_> = said.chain(waiting).collect();
        lines.sort_by_key(|(key, _)| *key);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

fn read_talk(desk: &PageContext<'_>, session: &TerminalSession) -> Result<Option<Talk>, PageError> {
    let Some(store) = desk.open_store()? else { return Ok(None) };
    let holder = wake_lock::read_holder(&desk.config.lock_path())
        .filter(|holder| holder.chat == Some(ChatRef::TERMINAL) && holder.identity().is_alive());
    store.with_snapshot(|| {
        let (pending, open) =
            (store.approvals().pending_approvals(desk.now)?, store.approvals().open_question_messages(desk.now)?);
        let at_work = holder.and_then(|holder| holder.cycle_id);
        Ok(Some(Talk {
            // Open questions are shown below, with buttons.
            said: store
                .terminals()
                .list_terminal_exchanges(SHOWN)?
                .into_iter()
                .filter(|said| said.from.is_some() || !open.contains(&said.row))
                .collect(),
            waiting: store
                .inbox()
                .list_queued_messages()?
                .into_iter()
                .filter(|message| message.chat == ChatRef::TERMINAL)
                .collect(),
            unshown: store.terminals().console_unshown(Some(session))?.into_iter().map(|(id, _)| id).collect(),
            questions: pending.into_iter().filter(|approval| approval.chat == ChatRef::TERMINAL).collect(),
            asking: open,
            is_stopped: store.chats().is_work_stopped(Some(ChatRef::TERMINAL))?,
            at_work: at_work.map(|cycle| store.status_lines().list_cycle_calls(&cycle)).transpose()?,
            newest: newest_step(desk, &store, "chat")?,
        }))
    })
}

fn render_page(
    desk: &PageContext<'_>,
    session: &TerminalSession,
    typed: &str,
    why: Option<&str>,
) -> Result<Markup, PageError> {
    let read = read_talk(desk, session);
    // The typed text is shown again even if the chat is unreadable.
    let is_unread = why.is_some() && read.is_err();
    let talk = if is_unread { Talk::default() } else { read?.unwrap_or_default() };
    let key = form_key();
    let said = talk.said.iter().filter(|said| said.from.is_none()).map(|said| said.row);
    let shown = said.chain(talk.asking.iter().copied());
    let unseen: Vec<String> = shown.filter(|row| talk.unshown.contains(row)).map(|row| row.to_string()).collect();
    let content = html! {
        section #live-chat data-live {
            @if is_unread {
                p { "I can't read this conversation right now." }
            } @else if talk.said.is_empty() && talk.waiting.is_empty() {
                p { "No messages yet. I save what you write below first, then answer it here." }
                @if desk.config.effective_model() == OFFLINE_MODEL {
                    p .meta { "No AI model is set, so I understand only simple requests, such as “remind me to stretch at 5”." }
                }
            }
            ol .talk {
                @for line in talk.list_lines() {
                    @match line {
                        Line::Said(said) => (render_exchange(desk, said)),
                        Line::Waiting(message) => (render_waiting(desk, message, talk.at_work.is_some())),
                    }
                }
            }
            @if !unseen.is_empty() {
                input type="hidden" name="seen" value=(unseen.join(",")) form="say" data-unseen;
            }
        }
        div #preview .card hidden {}
        section #live-work data-live {
            @if let Some(calls) = &talk.at_work { (render_progress(desk, calls)) }
            (talk.newest)
            @for question in &talk.questions { (render_card(desk, question, "chat")) }
            @if talk.is_stopped {
                p .note { "Stopped. New messages will wait. Send " code { "/resume" } " to continue." }
            }
        }
        form #say method="post" action=(PATH) {
            @if let Some(why) = why { p .note .bad role="alert" { (why) } }
            input type="hidden" name="key" value=(key);
            div .field {
                label for="text" { "Your message" }
                textarea #text name="text" rows="2" required autofocus aria-describedby="say-how" { (typed) }
            }
            div .actions {
                button type="submit" { "Send" }
                span #say-how .meta {
                    code { "/help" } " lists the commands. "
                    span #enter-sends hidden { "Enter sends, Shift+Enter begins a new line." }
                }
            }
        }
    };
    Ok(render_frame(PagePlace::Chat, "Chat", &content))
}

/// Renders the speaker and the time.
fn render_speaker(desk: &PageContext<'_>, who: &str, at: Option<DateTime<Utc>>) -> Markup {
    html! {
        (who)
        @if let Some(at) = at {
            " " time datetime=(at.to_rfc3339_opts(SecondsFormat::Secs, true)) { (format_near_time(at, desk.now, desk.config.timezone)) }
        }
    }
}

fn render_exchange(desk: &PageContext<'_>, said: &Exchange) -> Markup {
    let by = if said.taint.is_some() { WrittenBy::Others } else { WrittenBy::Own };
    let text = desk.clean_text(&said.text);
    html! {
        @match said.from {
            Some(_) => li .you { p .meta { (render_speaker(desk, "You", said.at)) } p .words { (text) } },
            None => li .me {
                p .meta {
                    (render_speaker(desk, "Reveille", said.at))
                    @if said.taint.as_deref().is_some_and(names_others) { " " (render_untrusted_badge()) }
                }
                (render_markdown(&text, by))
            }
        }
    }
}

fn render_waiting(desk: &PageContext<'_>, message: &Incoming, is_at_work: bool) -> Markup {
    html! {
        li .you {
            p .meta {
                (render_speaker(desk, "You", message.received_at)) " "
                span .badge { @if is_at_work { "in hand" } @else { "waiting" } }
            }
            p .words { (desk.clean_text(&message.text)) }
        }
    }
}

/// Renders the progress of the running wake, with its plan.
fn render_progress(desk: &PageContext<'_>, calls: &[Entry]) -> Markup {
    let planned = calls.iter().rev().find_map(|entry| match entry {
        Entry::Called { name, input, .. } if name == "plan" => serde_json::from_str::<Plan>(input).ok(),
        _ => None,
    });
    let step = |what: &str| desk.clean_text(&escape_hidden(&truncate_text(&one_line(what), STEP_CHARS)));
    html! {
        div .card .idle[planned.is_none()] {
            p { (step(&progress_line(calls))) }
            @if let Some(plan) = planned.filter(|plan| !plan.steps.is_empty()) {
                details {
                    summary { "The plan" }
                    ol { @for planned in &plan.steps { li { (step(&planned.what)) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_taken_once() {
        let chat = ChatSession::new().unwrap();
        assert!(chat.take_form("a", "tea") && !chat.take_form("a", "tea") && chat.take_form("b", "tea"));
        assert!(chat.take_form("a", "soup"), "it was mended");
        chat.gives_back("a", "tea");
        assert!(chat.take_form("a", "tea") && !chat.take_form("a", "soup"));
        for n in 0..MAX_KEYS {
            assert!(chat.take_form(&n.to_string(), "tea"));
        }
        assert!(chat.take_form("b", "tea"), "the oldest is forgotten");
    }

    #[test]
    fn a_chat_is_left_when_nobody_has_looked_for_a_while() {
        let chat = ChatSession::new().unwrap();
        chat.record_visit();
        assert!(!chat.is_abandoned());
    }
}
