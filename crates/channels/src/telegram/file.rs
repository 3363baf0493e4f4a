//! Downloads files: first the location (`getFile`), then the bytes in pieces, up to a limit. The result is a complete file or an error:
//! neither a dropped connection nor a wrong length counts as the end.

use std::{fmt, io, time::Duration};

use teloxide_core::{
    payloads::GetFile,
    types::{File, FileId, FileMeta},
};

use reveille_media::MAX_FILE_BYTES;

use super::{Telegram, api, error::TelegramError};

/// The maximum silence of the server during a download.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The time-out of a download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The location of a file, valid for about an hour.
#[derive(Clone)]
pub struct RemoteFile(File);

impl RemoteFile {
    /// The length in bytes, if Telegram states it.
    pub fn byte_count(&self) -> Option<u64> {
        known_bytes(&self.0).map(u64::from)
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFile").field("bytes", &self.byte_count()).finish_non_exhaustive()
    }
}

/// The reason for a failed download.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Telegram, or the connection to it, failed.
    #[error(transparent)]
    Telegram(#[from] TelegramError),
    /// The file is larger than a bot may download.
    #[error("it's larger than the {} MB that Telegram lets a bot download", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The file couldn't be written on our side.
    #[error("it couldn't be saved: {0}")]
    Write(#[from] io::Error),
}

impl Telegram {
    /// Asks for the location of a file.
    pub async fn get_file(&self, file_id: &str) -> Result<RemoteFile, FetchError> {
        let answer = self.call(&GetFile::new(FileId(file_id.to_owned()))).await;
        let file = answer.map(RemoteFile).map_err(|error| match error {
            TelegramError::Rejected { description, .. } if description.contains("file is too big") => {
                FetchError::TooLarge
            }
            error => FetchError::Telegram(error),
        })?;
        if file.byte_count().is_some_and(|bytes| bytes > MAX_FILE_BYTES) { Err(FetchError::TooLarge) } else { Ok(file) }
    }

    /// Downloads a file and passes its bytes to `write` piece by piece. Returns the length. On an error, the bytes written so far must
    /// be discarded.
    pub async fn download(
        &self,
        file: &RemoteFile,
        write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, FetchError> {
        let fetched = tokio::time::timeout(DOWNLOAD_TIMEOUT, self.stream_file(file, write)).await;
        let fetched = fetched.unwrap_or_else(|_| {
            Err(transfer_error(format!("the download took longer than {} s", DOWNLOAD_TIMEOUT.as_secs())))
        });
        fetched.map_err(|error| match error {
            FetchError::Telegram(error) => FetchError::Telegram(error.map_text(|text| self.token.scrub(text))),
            error => error,
        })
    }

    async fn stream_file(
        &self,
        file: &RemoteFile,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, FetchError> {
        let path = Some(&file.0.path).filter(|path| is_plain(path)).ok_or(TelegramError::Rejected {
            code: 200,
            description: "Telegram doesn't say where the file is".to_owned(),
        })?;
        let url = format!("{}/file/bot{}/{path}", self.base_url, self.token.0);
        let request = self.client()?.get(url).send();
        let response = tokio::time::timeout(SILENCE_MAX, request).await.map_err(|_| silence_error())?;
        let mut response = response.map_err(TelegramError::from_transport)?;
        let status = response.status().as_u16();
        if status != 200 {
            let body = api::read_body(response).await?;
            return Err(interpret_refusal(status, &body).into());
        }
        let announced = response.content_length().or(file.byte_count());
        let mut bytes = 0;
        while let Some(piece) = tokio::time::timeout(SILENCE_MAX, response.chunk())
            .await
            .map_err(|_| silence_error())?
            .map_err(TelegramError::from_transport)?
        {
            bytes += piece.len() as u64;
            if bytes > MAX_FILE_BYTES {
                return Err(FetchError::TooLarge);
            }
            write(&piece)?;
        }
        match (announced, file.byte_count()) {
            (Some(announced), _) if announced != bytes => {
                Err(transfer_error(format!("received {bytes} bytes of a file of {announced}")))
            }
            // fault: page-place-file-passes
            (_, Some(size)) if size != bytes => {
                Err(transfer_error(format!("received {bytes} bytes of a file of {size}")))
            }
            // fault end: page-place-file-passes
            _ => Ok(bytes),
        }
    }
}

/// Interprets an answer that isn't the file. The bot has just been told the location, so a 404 can't mean a wrong token, although the
/// Bot API words both alike.
fn interpret_refusal(status: u16, body: &[u8]) -> TelegramError {
    match api::read_answer::<serde::de::IgnoredAny>(status, body) {
        Err(TelegramError::Unauthorized(why)) if status == 404 => {
            TelegramError::Ambiguous { why: format!("the file isn't where it was a moment ago ({why})") }
        }
        Err(error) => error,
        Ok(_) => TelegramError::from_foreign_answer(status),
    }
}

/// The length of a file, if Telegram states it. The library uses the maximum number for a missing length.
pub(super) fn known_bytes(file: &FileMeta) -> Option<u32> {
    Some(file.size).filter(|size| *size != u32::MAX)
}

fn transfer_error(why: String) -> FetchError {
    FetchError::Telegram(TelegramError::Ambiguous { why })
}

fn silence_error() -> FetchError {
    transfer_error(format!("no data arrived for {} s", SILENCE_MAX.as_secs()))
}

/// Returns true if a path can't lead outside the base address to which it is appended.
fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '+' | ' ' | '%');
    !path.is_empty() && path.chars().all(plain) && path.split('/').all(|segment| !segment.contains(".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_below_its_address_or_nowhere() {
        for path in ["voice/file_7.oga", "documents/file_1", "photos/a b.jpg"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "../../bot1:x/getMe", "a/../b", "a?b", "a#b", "a\nb", "a@b"] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn a_missing_file_does_not_mean_a_wrong_token() {
        let not_found = br#"{"ok":false,"error_code":404,"description":"Not Found"}"#;
        assert!(matches!(interpret_refusal(404, not_found), TelegramError::Ambiguous { .. }));
        let unauthorized = br#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;
        assert!(matches!(interpret_refusal(401, unauthorized), TelegramError::Unauthorized(_)));
        let wait = br#"{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":7}}"#;
        assert_eq!(interpret_refusal(429, wait), TelegramError::RetryAfter(Duration::from_secs(7)));
        assert!(matches!(interpret_refusal(502, b"<html>"), TelegramError::Ambiguous { .. }));
    }
}
