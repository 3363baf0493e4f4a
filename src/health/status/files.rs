//! The status section about pending and failed files of waiting messages.

use chrono::{DateTime, Utc};

use reveille_base::words::format_relative_time;
use reveille_store::{Attachment, FileState};

use super::screen::shorten_line;

/// A pending or failed file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenFile {
    /// The file's number.
    pub id: i64,
    /// The message's number.
    pub message_id: i64,
    /// `voice`, `photo` and so on.
    pub kind: String,
    /// `wanted` (to be fetched), `kept` (to be transcribed) or `failed`.
    pub state: FileState,
    /// Tries of the present step.
    pub attempts: u32,
    /// Earliest time of the next try.
    pub not_before: Option<DateTime<Utc>>,
    /// The reason of the delay or failure.
    pub error: Option<String>,
    /// The path of the file, below the workspace.
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

/// Renders a file for a person.
pub(super) fn render_line(file: &OpenFile, now: DateTime<Utc>) -> String {
    let state = match (file.state, &file.path) {
        (FileState::Wanted, _) => "to be fetched",
        (FileState::Kept | FileState::Ready, _) => "to be transcribed",
        (FileState::Failed, Some(_)) => "not transcribed",
        (FileState::Failed, None) => "not fetched",
    };
    let why = file.error.as_deref().map(|why| format!(": {}", shorten_line(why))).unwrap_or_default();
    let next = file
        .not_before
        .filter(|at| *at > now)
        .map(|at| format!("; retry due {}", format_relative_time(at, now)))
        .unwrap_or_default();
    format!("{} ({} of message {}) {state}{why}{next}", file.id, file.kind.replace('_', " "), file.message_id)
}
