//! The DevTools protocol over two pipes: JSON objects, each ending with NUL. Unknown messages and fields are ignored.

use std::{
    collections::HashMap,
    process::{ChildStdin, ChildStdout},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe,
    sync::{mpsc, oneshot},
};

use crate::fields::MessageFields as _;

/// Maximum length of one message, in bytes. A larger one ends the connection.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// No answer came before the deadline: the page hangs.
    #[error("the page did not answer in time")]
    Deadline,
    /// A dialog opened and holds the page.
    #[error("a dialog holds the page")]
    Dialog,
    /// The session has ended: the tab or the frame is gone.
    #[error("the page is gone")]
    Detached,
    /// The browser has ended.
    #[error("the browser has ended")]
    Closed,
    /// The browser refused the call.
    #[error("the browser refused: {0}")]
    Refused(String),
}

/// An event of the browser or of one session.
#[derive(Debug, Clone)]
pub(crate) struct ProtocolEvent {
    pub(crate) method: String,
    /// The session; empty for the browser itself.
    pub(crate) session: String,
    pub(crate) params: Value,
}

/// A message from the browser, as far as it is understood.
#[derive(Debug, Deserialize)]
struct Incoming {
    id: Option<u64>,
    method: Option<String>,
    #[serde(rename = "sessionId", default)]
    session: String,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Refused>,
}

#[derive(Debug, Deserialize)]
struct Refused {
    #[serde(default)]
    message: String,
}

/// A call without an answer yet.
struct Waiting {
    session: String,
    reply: oneshot::Sender<Result<Value, CallError>>,
}

#[derive(Default)]
struct Pending {
    calls: HashMap<u64, Waiting>,
    is_closed: bool,
}

/// The sending half of a connection, cheap to clone.
#[derive(Clone)]
pub(crate) struct CdpClient {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    pending: Arc<Mutex<Pending>>,
    next_id: Arc<AtomicU64>,
}

impl CdpClient {
    /// Connects to a browser's pipes. Events end when the browser ends.
    pub(crate) fn connect(
        stdin: ChildStdin,
        stdout: ChildStdout,
    ) -> std::io::Result<(Self, mpsc::UnboundedReceiver<ProtocolEvent>)> {
        let writer = pipe::Sender::from_owned_fd(stdin.into())?;
        let reader = pipe::Receiver::from_owned_fd(stdout.into())?;
        let (outgoing, messages) = mpsc::unbounded_channel();
        let (events, received) = mpsc::unbounded_channel();
        let pending = Arc::new(Mutex::new(Pending::default()));
        let client = Self { outgoing, pending: Arc::clone(&pending), next_id: Arc::new(AtomicU64::new(1)) };
        tokio::spawn(write_messages(writer, messages));
        tokio::spawn(async move {
            read_messages(reader, &pending, &events).await;
            let mut pending = lock(&pending);
            pending.is_closed = true;
            for (_, waiting) in pending.calls.drain() {
                waiting.reply.send(Err(CallError::Closed)).ok();
            }
        });
        Ok((client, received))
    }

    /// Calls a method and waits for its result until the deadline. An empty session is the browser itself.
    pub(crate) async fn call(
        &self,
        session: &str,
        method: &str,
        params: Value,
        deadline: Duration,
    ) -> Result<Value, CallError> {
        let (id, answer) = self.send(session, method, &params)?;
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CallError::Closed),
            Err(_) => {
                lock(&self.pending).calls.remove(&id);
                Err(CallError::Deadline)
            }
        }
    }

    fn send(
        &self,
        session: &str,
        method: &str,
        params: &Value,
    ) -> Result<(u64, oneshot::Receiver<Result<Value, CallError>>), CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"id": id, "method": method, "params": params});
        if !session.is_empty() {
            message.set("sessionId", session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let (reply, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.pending);
            if pending.is_closed {
                return Err(CallError::Closed);
            }
            pending.calls.insert(id, Waiting { session: session.to_owned(), reply });
        }
        self.outgoing.send(bytes).map_err(|_| CallError::Closed)?;
        Ok((id, answer))
    }
}

/// Locks a mutex. A panic elsewhere leaves the data usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_messages(mut writer: pipe::Sender, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if writer.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn read_messages(
    mut reader: pipe::Receiver,
    pending: &Mutex<Pending>,
    events: &mpsc::UnboundedSender<ProtocolEvent>,
) {
    let (mut message, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let mut rest = buffer.get(..count).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let (last, after) = rest.split_at(end);
            message.extend_from_slice(last);
            deliver(&message, pending, events);
            message.clear();
            rest = after.get(1..).unwrap_or_default();
        }
        message.extend_from_slice(rest);
        if message.len() > MAX_MESSAGE_BYTES {
            tracing::warn!("the browser sent a message that is too long");
            return;
        }
    }
}

/// Passes a message to the waiting call, or on as an event. A message that isn't understood is dropped.
fn deliver(message: &[u8], pending: &Mutex<Pending>, events: &mpsc::UnboundedSender<ProtocolEvent>) {
    let Ok(incoming) = serde_json::from_slice::<Incoming>(message) else {
        tracing::debug!(bytes = message.len(), "a message of the browser isn't understood");
        return;
    };
    if let Some(id) = incoming.id {
        if let Some(waiting) = lock(pending).calls.remove(&id) {
            let result = match incoming.error {
                Some(error) if is_gone(&error.message) => Err(CallError::Detached),
                Some(error) => Err(CallError::Refused(error.message)),
                None => Ok(incoming.result),
            };
            waiting.reply.send(result).ok();
        }
    } else if let Some(method) = incoming.method {
        if method == "Target.detachedFromTarget" {
            let session = incoming.params.text("sessionId");
            fail_calls_of(session, pending);
        }
        events.send(ProtocolEvent { method, session: incoming.session, params: incoming.params }).ok();
    }
}

fn is_gone(message: &str) -> bool {
    const GONE: [&str; 6] = [
        "Session with given id not found",
        "Target closed",
        "Inspected target navigated or closed",
        "Cannot find context",
        "Execution context was destroyed",
        "No frame for given id",
    ];
    GONE.iter().any(|gone| message.contains(gone))
}

fn fail_calls_of(session: &str, pending: &Mutex<Pending>) {
    let mut pending = lock(pending);
    let ids: Vec<u64> =
        pending.calls.iter().filter(|(_, waiting)| waiting.session == session).map(|(id, _)| *id).collect();
    for id in ids {
        if let Some(waiting) = pending.calls.remove(&id) {
            waiting.reply.send(Err(CallError::Detached)).ok();
        }
    }
}
