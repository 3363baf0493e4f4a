//! The receiver: accepts Telegram's updates for all assistants of a fleet, behind a TLS proxy.
//!
//! Telegram gets its confirmation only once the update is in the assistant's inbox on disk and the assistant is due for a turn. The
//! receiver reads only the update's number: its sender and content are examined inside the assistant's box.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
};
use ring::digest::{SHA256, digest};
use tokio::{net::TcpListener, sync::Notify};

use reveille_base::{random, types::AssistantName};
use reveille_channels::telegram::{Inbox, InboxError};
use reveille_store::{FleetRegistry, StoreError};
use reveille_tools::loopback;

use super::{Fleet, bodies::OpenUpdates};

/// Telegram's header for an assistant's secret.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// The path to which Telegram posts updates; the assistant's name follows.
pub const PATH: &str = "/telegram/";
/// The longest update, in bytes. Telegram's updates have a few kilobytes.
const MAX_UPDATE_BYTES: usize = 1 << 20;
/// The time limit of an update's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The state shared by all requests.
pub struct Receiver {
    fleet: Fleet,
    registry: Mutex<FleetRegistry>,
    open: OpenUpdates,
    /// Notified of each stored update.
    pub arrived: Notify,
}

impl Receiver {
    /// Creates the receiver of a fleet.
    ///
    /// # Errors
    /// The fleet's list can't be opened.
    pub fn new(fleet: Fleet) -> Result<Self, StoreError> {
        let registry = Mutex::new(fleet.open_registry()?);
        Ok(Self { fleet, registry, open: OpenUpdates::default(), arrived: Notify::new() })
    }

    /// Answers requests until dropped.
    pub async fn serve(self: &Arc<Self>, listeners: &[TcpListener]) -> Infallible {
        let receiver = Arc::clone(self);
        loopback::serve(listeners, move |request| {
            let receiver = Arc::clone(&receiver);
            async move {
                let status = receiver.answer_request(request).await;
                let mut response = Response::new(Full::<Bytes>::default());
                *response.status_mut() = status;
                response
            }
        })
        .await
    }

    async fn answer_request(self: &Arc<Self>, request: Request<Incoming>) -> StatusCode {
        let name = request.uri().path().strip_prefix(PATH).and_then(|name| name.parse::<AssistantName>().ok());
        let secret_hash = request.headers().get(SECRET_HEADER).map(|secret| hash(secret.as_bytes()));
        // Without the secret, a request learns nothing about existing assistants.
        let (Some(name), Some(secret_hash)) = (name, secret_hash) else { return StatusCode::UNAUTHORIZED };
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let stored_hash = self.run_blocking({
            let name = name.clone();
            move |receiver| receiver.lock_registry().secret_hash(&name)
        });
        match stored_hash.await {
            // Both are hashes: the time of the comparison reveals nothing about the secret.
            Some(Ok(Some(hash))) if hash == secret_hash => {}
            Some(Ok(_)) => return StatusCode::UNAUTHORIZED,
            Some(Err(error)) => return answer_unavailable(&name, &error),
            None => return StatusCode::SERVICE_UNAVAILABLE,
        }
        // `_place` is held until the update is stored. Telegram sends refused updates again.
        let Some((_place, gives_way)) = self.open.admit(&name) else { return StatusCode::TOO_MANY_REQUESTS };
        let body = Limited::new(request.into_body(), MAX_UPDATE_BYTES).collect();
        let update = tokio::select! {
            body = tokio::time::timeout(BODY_TIMEOUT, body) => match body {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
                Err(_) => return StatusCode::REQUEST_TIMEOUT,
            },
            _ = gives_way => return StatusCode::SERVICE_UNAVAILABLE,
        };
        self.run_blocking(move |receiver| receiver.store_update(&name, &update))
            .await
            .unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Stores an update in its assistant's inbox and makes the assistant due for a turn.
    fn store_update(&self, name: &AssistantName, update: &[u8]) -> StatusCode {
        let (workspace, now) = (self.fleet.workspace(name), self.fleet.config().clock().now());
        match Inbox::at_path(workspace.join("inbox")).put(update, now) {
            Ok(()) => {}
            Err(InboxError::NoUpdate) => return StatusCode::BAD_REQUEST,
            Err(error) => return answer_unavailable(name, &error),
        }
        if let Err(error) = self.lock_registry().wake_assistant(name, now) {
            // The update is already stored, and Telegram will send it again. The repeat is recognised by its number.
            return answer_unavailable(name, &error);
        }
        self.arrived.notify_one();
        StatusCode::OK
    }

    fn lock_registry(&self) -> std::sync::MutexGuard<'_, FleetRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocking work on another thread; `None` if it panicked.
    async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let receiver = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&receiver)).await.ok()
    }
}

/// Answers so that Telegram tries again later.
fn answer_unavailable(name: &AssistantName, error: &dyn std::fmt::Display) -> StatusCode {
    tracing::warn!(assistant = name.as_str(), %error, "an update couldn't be stored; Telegram will send it again");
    StatusCode::SERVICE_UNAVAILABLE
}

/// Returns the stored form of a secret.
pub(super) fn hash(secret: &[u8]) -> String {
    random::format_hex(digest(&SHA256, secret).as_ref())
}
