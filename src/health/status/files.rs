//! The part of the status that tells of files: which are on their way, and which were given up, of messages that wait.

use chrono::{DateTime, Utc};

use reveille_base::words::ago;
use reveille_store::{Attachment, FileState};

use super::screen::short;

/// A file that waits or was given up.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenFile {
    /// Its number.
    pub id: i64,
    /// Its message.
    pub message_id: i64,
    /// `voice`, `photo` and so on.
    pub kind: String,
    /// `wanted`: to be fetched; `kept`: to be listened to; `failed`: given up.
    pub state: FileState,
    /// Tries of the present step.
    pub attempts: u32,
    /// Not tried before.
    pub not_before: Option<DateTime<Utc>>,
    /// Why it is late, or was given up.
    pub error: Option<String>,
    /// Where it is kept, below the workspace.
    pub path: Option<String>,
}

impl From<Attachment> for OpenFile {
    fn from(file: Attachment) -> Self {
        Self {
            id: file.id,
            message_id: file.message_id,
            kind: file.file.kind,
            state: file.state,
            attempts: file.attempts,
            not_before: file.not_before,
            error: file.error,
            path: file.path,
        }
    }
}

/// One file for a person.
pub(super) fn line(file: &OpenFile, now: DateTime<Utc>) -> String {
    let state = match (file.state, &file.path) {
        (FileState::Wanted, _) => "to be fetched",
        (FileState::Kept | FileState::Ready, _) => "to be listened to",
        (FileState::Failed, Some(_)) => "not listened to",
        (FileState::Failed, None) => "not fetched",
    };
    let why = file.error.as_deref().map(|why| format!(": {}", short(why))).unwrap_or_default();
    let next = file.not_before.filter(|at| *at > now).map(|at| format!("; next {}", ago(at, now))).unwrap_or_default();
    format!("{} ({} of message {}) {state}{why}{next}", file.id, file.kind.replace('_', " "), file.message_id)
}
