//! The chat with the terminal's assistant (`chat_id` 0), with live answers and progress.
//!
//! The page is another terminal. Its messages wait for their answers under a session of its own, so that other terminals don't show these
//! meanwhile. The session is open while somebody looks at the chat. Later answers are free for any terminal: `wake say` shows them, or the
//! owner's chat gets them. A text counts as shown once a browser reports it as seen, or with the next form.

mod file;
mod find;
mod hear;
mod line;
mod say;
mod talk;
mod upload;
mod view;

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
    extract::{Query, State},
    http::StatusCode,
    routing::{get, post},
};
use chrono::{DateTime, Utc};
use maud::Markup;
use serde::Deserialize;
use tokio::sync::Notify;

use reveille_base::{approval_text::hash_action, clock, process::Identity, random::NoRandomness};
use reveille_cycle as cycle;
use reveille_store::{Store, StoreError, TerminalSession};

pub(super) use hear::run as hear_recordings;
pub(super) use say::is_upload;

use super::{
    error::PageError,
    notes::NoteQuery,
    site::{PageContext, PageSite},
};

/// The view's path.
pub(super) const PATH: &str = "/chat";
/// Time after the last visit until the chat counts as abandoned.
const ATTENDED: Duration = Duration::from_secs(120);
/// Interval between checks for an abandoned chat.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Maximum remembered forms, which prevent a double submission.
const MAX_KEYS: usize = 64;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(PATH, get(show_chat))
        .route("/chat/seen", post(record_seen))
        .merge(say::routes())
        .merge(file::routes())
}

/// The chat's state while the page is served.
pub(super) struct ChatSession {
    session: TerminalSession,
    /// Time of the last visit, in milliseconds of [`clock::read_awake_time`].
    looked_at: AtomicU64,
    opened: Notify,
    /// A recording was stored.
    recorded: Notify,
    /// Accepted forms with the digest of their text.
    keys: Mutex<VecDeque<(String, String)>>,
}

impl ChatSession {
    pub(super) fn new() -> Result<Self, NoRandomness> {
        let session = TerminalSession::generate()?;
        Ok(Self {
            session,
            looked_at: AtomicU64::new(0),
            opened: Notify::new(),
            recorded: Notify::new(),
            keys: Mutex::default(),
        })
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

    /// Stores what a form sends, once. The same form waits while the first is being stored, so that it never counts as stored when it isn't.
    /// The same form with another text is new: the person went back and corrected it.
    ///
    /// # Errors
    /// The errors of `store`; the form can then be sent again.
    fn store_once<E>(&self, form: &FormMark, store: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if form.key.is_empty() {
            return store();
        }
        let form = (form.key.clone(), hash_action(&form.content));
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.contains(&form) {
            return Ok(());
        }
        store()?;
        if keys.len() >= MAX_KEYS {
            keys.pop_front();
        }
        keys.push_back(form);
        Ok(())
    }
}

/// A form's key and the identity of its content, by which a form that is sent twice is known.
struct FormMark {
    key: String,
    content: String,
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

/// The part of the conversation to show, as the query tells: at most one of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatQuery {
    /// The newest part from this place on, which keeps an open page from losing its beginning.
    since: String,
    /// An earlier part, which ends at this place.
    before: String,
    /// Words to search for.
    find: String,
}

async fn show_chat(
    State(site): State<Arc<PageSite>>,
    Query(query): Query<ChatQuery>,
    Query(note): Query<NoteQuery>,
) -> Result<Markup, PageError> {
    site.chat.record_visit();
    let note = site.render_note(&note);
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| match (query.find.trim(), talk::parse_mark(&query.before)) {
        ("", None) => {
            let since = talk::parse_mark(&query.since);
            view::render_page(desk, &of_site.chat.session, since, &view::Composer { note, ..Default::default() })
        }
        ("", Some(before)) => view::render_earlier(desk, before),
        (words, _) => find::render_found(desk, words),
    })
    .await
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a form, and says whether it was stored by this.
    fn is_stored_by(chat: &ChatSession, key: &str, content: &str) -> bool {
        let form = FormMark { key: key.to_owned(), content: content.to_owned() };
        let mut is_stored = false;
        chat.store_once(&form, || {
            is_stored = true;
            Ok::<_, ()>(())
        })
        .unwrap();
        is_stored
    }

    #[test]
    fn a_form_is_stored_once() {
        let chat = ChatSession::new().unwrap();
        assert!(is_stored_by(&chat, "a", "tea") && !is_stored_by(&chat, "a", "tea") && is_stored_by(&chat, "b", "tea"));
        assert!(is_stored_by(&chat, "a", "soup"), "it was mended");
        assert!(is_stored_by(&chat, "", "tea") && is_stored_by(&chat, "", "tea"), "it has no key");
        for n in 0..MAX_KEYS {
            assert!(is_stored_by(&chat, &n.to_string(), "tea"));
        }
        assert!(is_stored_by(&chat, "b", "tea"), "the oldest is forgotten");
    }

    #[test]
    fn a_second_click_waits_for_the_first_and_stores_what_that_could_not() {
        let chat = ChatSession::new().unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let form = FormMark { key: "a".to_owned(), content: "tea".to_owned() };
            let first = chat.store_once(&form, || {
                scope.spawn(|| begun.send(is_stored_by(&chat, "a", "tea")).unwrap());
                assert!(has_begun.try_recv().is_err(), "it has an answer before the first has one");
                Err("the disk is full")
            });
            assert_eq!(first, Err("the disk is full"));
            assert!(has_begun.recv().unwrap());
        });
    }

    #[test]
    fn a_chat_is_left_when_nobody_has_looked_for_a_while() {
        let chat = ChatSession::new().unwrap();
        chat.record_visit();
        assert!(!chat.is_abandoned());
    }
}
