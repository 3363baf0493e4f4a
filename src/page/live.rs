//! Refreshes open pages by server-sent events that announce a change, and shows the chat an answer while it is written. Without open pages,
//! nothing is checked.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use chrono::NaiveDate;
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use reveille_config::Config;
use reveille_store::{Store, database};

use super::{chat, error::render_status, preview::ChatPreview, site::PageSite};

/// Maximum pages refreshed at a time.
pub(super) const MAX_LISTENERS: usize = 16;
/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between looks at the preview.
const PREVIEW_INTERVAL: Duration = Duration::from_millis(80);
/// Number of checks without a change after which an empty event is sent, to detect a closed connection.
const SILENT_CHECKS: u32 = 15;
/// The first event: the wait before reconnecting, in milliseconds.
const HELLO: Bytes = Bytes::from_static(b"retry: 2000\n\n");
const CHANGED: Bytes = Bytes::from_static(b"event: changed\ndata:\n\n");
const STILL_HERE: Bytes = Bytes::from_static(b":\n\n");

/// The query of `/live`: the path of the page that listens.
#[derive(Debug, Default, serde::Deserialize)]
struct Listening {
    #[serde(default)]
    at: String,
}

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/live", get(stream_changes))
}

async fn stream_changes(State(site): State<Arc<PageSite>>, Query(Listening { at }): Query<Listening>) -> Response {
    let Ok(place) = Arc::clone(&site.listeners).try_acquire_owned() else {
        return render_status(StatusCode::SERVICE_UNAVAILABLE);
    };
    let (sender, receiver) = mpsc::channel(1);
    // Read before the browser learns that its stream has begun: a page fetched later then includes every change up to here.
    let seen = SeenState::read(&site).await;
    tokio::spawn(announce_changes(site, at == chat::PATH, seen, sender, place));
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
    (kind, Body::new(PieceBody(receiver))).into_response()
}

/// Announces changes while the page is open.
async fn announce_changes(
    site: Arc<PageSite>,
    is_chat: bool,
    mut seen: SeenState,
    events: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let mut silent = 0;
    let mut next = HELLO;
    let mut preview = is_chat.then(|| ChatPreview::new(&site));
    loop {
        if is_chat {
            site.chat.record_visit();
        }
        if !next.is_empty() && events.send(next).await.is_err() {
            return;
        }
        tokio::select! {
            () = events.closed() => return,
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = show_preview(&mut preview, &events) => return,
        }
        let has_changed = seen.has_changed(&site).await;
        silent = if has_changed { 0 } else { silent + 1 };
        next = match (has_changed, silent % SILENT_CHECKS) {
            (true, _) => CHANGED,
            (false, 0) => STILL_HERE,
            (false, _) => Bytes::new(),
        };
    }
}

/// Shows the preview as it grows, until nobody listens.
async fn show_preview(preview: &mut Option<ChatPreview>, events: &mpsc::Sender<Bytes>) {
    let Some(preview) = preview else { return std::future::pending().await };
    loop {
        // Nothing is read before there is room for it: this may be cut off while it waits.
        let Ok(room) = events.reserve().await else { return };
        if let Some(event) = preview.next_event() {
            room.send(event);
        }
        tokio::time::sleep(PREVIEW_INTERVAL).await;
    }
}

/// The state at the last check.
struct SeenState {
    paths: [PathBuf; 6],
    files: Vec<Option<FileSignature>>,
    shared: Option<String>,
    /// The person's date: a page that is left open says "today" and "tomorrow".
    day: NaiveDate,
    /// The open connection to a shared database.
    store: Option<Store>,
}

/// Modification time and size of a file.
type FileSignature = (Option<SystemTime>, u64);

impl SeenState {
    async fn read(site: &Arc<PageSite>) -> Self {
        let paths = list_watched_files(site.config());
        let (files, mut store) = (read_signatures(&paths), None);
        let shared = read_shared_signature(site, &mut store).await;
        Self { paths, files, shared, day: read_local_date(site.config()), store }
    }

    /// Checks again. Returns true if something has changed since the last check.
    async fn has_changed(&mut self, site: &Arc<PageSite>) -> bool {
        let files = read_signatures(&self.paths);
        let shared = read_shared_signature(site, &mut self.store).await;
        let day = read_local_date(site.config());
        let is_same = (&files, &shared, day) == (&self.files, &self.shared, self.day);
        (self.files, self.shared, self.day) = (files, shared, day);
        !is_same
    }
}

/// Reads the person's date.
fn read_local_date(config: &Config) -> NaiveDate {
    config.clock().now().with_timezone(&config.timezone).date_naive()
}

/// Lists the files that change with any event: the database with its log, the memory's history, the policy and the settings.
fn list_watched_files(config: &Config) -> [PathBuf; 6] {
    let (db, git) = (config.db_path(), config.repo_dir().join(".git"));
    let mut log = db.clone().into_os_string();
    log.push("-wal");
    [db, log.into(), git.join("logs/HEAD"), git.join("HEAD"), config.policy_path(), config.workspace_dir.join(".env")]
}

/// Returns each file's signature. Empty files are ignored, since opening a database may create and remove an empty log.
fn read_signatures(paths: &[PathBuf]) -> Vec<Option<FileSignature>> {
    let signature = |path: &PathBuf| -> Option<FileSignature> {
        let found = std::fs::metadata(path as &Path).ok().filter(|found| found.len() > 0)?;
        Some((found.modified().ok(), found.len()))
    };
    paths.iter().map(signature).collect()
}

/// Returns the change signature of a shared database. `None` without a shared database, or if it is unavailable.
async fn read_shared_signature(site: &Arc<PageSite>, store: &mut Option<Store>) -> Option<String> {
    site.config().database_url.as_ref()?;
    let (site, open) = (Arc::clone(site), store.take());
    let read = move || {
        let store = open.or_else(|| database::open_read_only(site.config()).ok().flatten())?;
        let signature = store.change_signature().ok()?;
        Some((store, signature))
    };
    let (open, signature) = tokio::task::spawn_blocking(read).await.ok().flatten()?;
    *store = Some(open);
    Some(signature)
}

/// A response body that lasts as long as its pieces come.
pub(super) struct PieceBody(pub(super) mpsc::Receiver<Bytes>);

impl hyper::body::Body for PieceBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use reveille_base::redact::Redactor;

    use super::*;

    #[tokio::test]
    async fn a_page_left_open_is_renewed_when_the_day_changes() {
        let work = tempfile::tempdir().unwrap();
        let env = [("WORKSPACE_DIR", work.path().to_str().unwrap()), ("REVEILLE_NOW", "2026-12-01T08:00:00Z")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let config = Config::from_sources(&env, None, Some("UTC")).unwrap();
        let site = Arc::new(PageSite::new(config, |_| Redactor::new([]), 1).unwrap());
        let mut seen = SeenState::read(&site).await;
        assert!(!seen.has_changed(&site).await);
        seen.day = seen.day - Days::new(1);
        assert!(seen.has_changed(&site).await);
        assert!(!seen.has_changed(&site).await);
    }
}
