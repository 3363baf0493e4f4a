//! The receiver: takes Telegram's updates for all assistants of a fleet, behind a proxy that speaks TLS.
//!
//! An update is in its assistant's inbox, on the disk, and the assistant is due, before Telegram is told that it arrived. Nothing of it
//! is read here but its number: whose words it holds, and what they mean, is found out within that assistant's box.

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

/// What Telegram puts an assistant's secret in.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// The path of an assistant's updates, before its name.
pub const PATH: &str = "/telegram/";
/// The longest update, in bytes. Telegram's are some kilobytes.
const MAX_UPDATE_BYTES: usize = 1 << 20;
/// How long an update's body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// What all requests share.
pub struct Receiver {
    fleet: Fleet,
    registry: Mutex<FleetRegistry>,
    open: OpenUpdates,
    /// Told of each update that was stored.
    pub arrived: Notify,
}

impl Receiver {
    /// For this fleet.
    ///
    /// # Errors
    /// Its list can't be opened.
    pub fn new(fleet: Fleet) -> Result<Self, StoreError> {
        let registry = Mutex::new(fleet.registry()?);
        Ok(Self { fleet, registry, open: OpenUpdates::default(), arrived: Notify::new() })
    }

    /// Answers until it is dropped.
    pub async fn serve(self: &Arc<Self>, listeners: &[TcpListener]) -> Infallible {
        let receiver = Arc::clone(self);
        loopback::serve(listeners, move |request| {
            let receiver = Arc::clone(&receiver);
            async move {
                let status = receiver.answer(request).await;
                let mut response = Response::new(Full::<Bytes>::default());
                *response.status_mut() = status;
                response
            }
        })
        .await
    }

    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> StatusCode {
        let name = request.uri().path().strip_prefix(PATH).and_then(|name| name.parse::<AssistantName>().ok());
        let secret = request.headers().get(SECRET_HEADER).map(|secret| hash(secret.as_bytes()));
        // Who is there is nobody's business who doesn't know the secret.
        let (Some(name), Some(secret)) = (name, secret) else { return StatusCode::UNAUTHORIZED };
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let known = self.aside({
            let name = name.clone();
            move |receiver| receiver.registry().secret_hash(&name)
        });
        match known.await {
            // Both are hashes: how long they take to compare tells nothing of the secret.
            Some(Ok(Some(known))) if known == secret => {}
            Some(Ok(_)) => return StatusCode::UNAUTHORIZED,
            Some(Err(error)) => return unavailable(&name, &error),
            None => return StatusCode::SERVICE_UNAVAILABLE,
        }
        // Kept until the update is: Telegram brings again what is refused.
        let Some((_place, gives_way)) = self.open.enter(&name) else { return StatusCode::TOO_MANY_REQUESTS };
        let body = Limited::new(request.into_body(), MAX_UPDATE_BYTES).collect();
        let update = tokio::select! {
            body = tokio::time::timeout(BODY_TIMEOUT, body) => match body {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
                Err(_) => return StatusCode::REQUEST_TIMEOUT,
            },
            _ = gives_way => return StatusCode::SERVICE_UNAVAILABLE,
        };
        self.aside(move |receiver| receiver.keep(&name, &update)).await.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Puts an update in the inbox and makes its assistant due.
    fn keep(&self, name: &AssistantName, update: &[u8]) -> StatusCode {
        let (workspace, now) = (self.fleet.workspace(name), self.fleet.config().clock().now());
        match Inbox::at(workspace.join("inbox")).put(update, now) {
            Ok(()) => {}
            Err(InboxError::NoUpdate) => return StatusCode::BAD_REQUEST,
            Err(error) => return unavailable(name, &error),
        }
        if let Err(error) = self.registry().wake(name, now) {
            // It is kept, and Telegram brings it once more: the second is known for the first by its number.
            return unavailable(name, &error);
        }
        self.arrived.notify_one();
        StatusCode::OK
    }

    fn registry(&self) -> std::sync::MutexGuard<'_, FleetRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works where waiting for a disk is allowed; none if that broke.
    async fn aside<T: Send + 'static>(self: &Arc<Self>, work: impl FnOnce(&Self) -> T + Send + 'static) -> Option<T> {
        let receiver = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&receiver)).await.ok()
    }
}

/// Telegram tries again later.
fn unavailable(name: &AssistantName, error: &dyn std::fmt::Display) -> StatusCode {
    tracing::warn!(assistant = name.as_str(), %error, "an update couldn't be kept; Telegram will bring it again");
    StatusCode::SERVICE_UNAVAILABLE
}

/// What is kept of a secret.
pub(super) fn hash(secret: &[u8]) -> String {
    random::hex(digest(&SHA256, secret).as_ref())
}
