//! Fetches the files of messages, one after the other. Waits are stored in columns, so a restart keeps them. A rate
//! limit holds for every file, in full. [`decide_reaction`] decides the reaction to a failure.

use chrono::TimeDelta;

use reveille_base::disk;
use reveille_channels::telegram::{FetchError, TelegramError};
use reveille_media as media;
use reveille_media::MAX_FILE_BYTES;
use reveille_store::{Attachment, FailedFetch, StoreError, compute_retry_wait};

use super::{
    LOOK_EVERY, Shared,
    landing::{self, Landing},
    words,
};

/// Maximum tries, about a day, for a file that Telegram delivers in an unusable way.
const MAX_TRIES: u32 = 30;
/// Maximum tries for a file that Telegram reports in one sentence as either temporarily unavailable or gone.
const MAX_TRIES_UNAVAILABLE: u32 = 3;

/// The reaction to a failure.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Try again after at least this long; with `all`, no file is tried before.
    Later { at_least: TimeDelta, all: bool },
    /// The file can't be fetched.
    Never,
}

/// Returns `true` if the file itself may be at fault, rather than this machine, the network or the token.
fn is_fault(error: &FetchError) -> bool {
    match error {
        FetchError::Telegram(TelegramError::Ambiguous { .. }) => true,
        FetchError::Telegram(TelegramError::Rejected { description, .. }) => is_unavailable(description),
        _ => false,
    }
}

fn is_unavailable(description: &str) -> bool {
    description.contains("temporarily unavailable")
}

/// Decides the reaction to a failure. `faults` is the number of failures that count against the file; others are
/// retried for ever.
fn decide_reaction(error: &FetchError, faults: u32) -> Next {
    let later = Next::Later { at_least: TimeDelta::zero(), all: false };
    let few = |most: u32| {
        if faults < most { Next::Later { at_least: TimeDelta::zero(), all: false } } else { Next::Never }
    };
    match error {
        FetchError::Write(_) => later,
        FetchError::TooLarge => Next::Never,
        FetchError::Telegram(error) => match error {
            TelegramError::RetryAfter(wait) => {
                // fault: rate-limit-holds-file
                Next::Later { at_least: TimeDelta::from_std(*wait).unwrap_or(TimeDelta::MAX), all: true }
            }
            TelegramError::NotSent { .. } | TelegramError::Conflict(_) | TelegramError::Unauthorized(_) => later,
            // fault: file-doesnt-come-once
            TelegramError::Ambiguous { .. } => few(MAX_TRIES),
            TelegramError::Rejected { description, .. } if is_unavailable(description) => few(MAX_TRIES_UNAVAILABLE),
            TelegramError::Rejected { .. } | TelegramError::ChatGone(_) | TelegramError::MigratedTo(_) => Next::Never,
        },
    }
}

/// Fetches the due files for as long as the bot runs.
pub(super) async fn run(shared: Shared<'_>) {
    let config = shared.outside.config;
    for folder in [config.voice_dir(), config.files_dir()] {
        match landing::remove_partial_files(&folder) {
            Ok(0) => {}
            Ok(n) => tracing::info!(n, "removed partial files; they are fetched again"),
            Err(error) => tracing::warn!(%error, "the partial files in {} can't be removed", folder.display()),
        }
    }
    let mut lacks_room = false;
    let mut has_complained = false;
    loop {
        let wait = match fetch_next(shared, &mut lacks_room).await {
            Ok(true) => continue,
            Ok(false) => {
                has_complained = false;
                if lacks_room { LOOK_EVERY } else { shared.compute_wait() }
            }
            Err(error) => {
                if !std::mem::replace(&mut has_complained, true) {
                    tracing::warn!(%error, "files can't be fetched now; it is tried again until it works");
                }
                LOOK_EVERY
            }
        };
        tokio::select! {
            () = shared.bells.arrived.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Tries the next due file. Returns `false` if no file is due or the disk is full.
async fn fetch_next(shared: Shared<'_>, lacks_room: &mut bool) -> Result<bool, StoreError> {
    let config = shared.outside.config;
    let Some(file) = shared.store.borrow().attachments().find_next_wanted_file(shared.outside.clock.now())? else {
        *lacks_room = false;
        return Ok(false);
    };
    let bytes = file.file.bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let has_room = disk::free_bytes(&config.media_dir)
        .map_or(true, |free| !config.disk_reserve.is_undercut_by(free.saturating_sub(bytes.min(MAX_FILE_BYTES))));
    if !has_room {
        if !std::mem::replace(lacks_room, true) {
            tracing::warn!("no room on the disk for the files of messages; they are fetched as soon as there is");
        }
        return Ok(false);
    }
    *lacks_room = false;
    match fetch_file(shared, &file).await {
        Ok((path, bytes)) => {
            shared.store.borrow_mut().attachments_mut().record_kept_file(
                file.id,
                &path,
                bytes,
                shared.outside.clock.now(),
            )?;
            tracing::info!(file = file.id, bytes, "a file was fetched");
            shared.bells.kept.notify_one();
            shared.bells.settled.notify_one();
        }
        Err(error) => record_failure(shared, &file, &error)?,
    }
    Ok(true)
}

/// Fetches a whole file. Returns its path below the workspace and its length.
async fn fetch_file(shared: Shared<'_>, file: &Attachment) -> Result<(String, u64), FetchError> {
    if file.file.bytes.is_some_and(|bytes| u64::try_from(bytes).is_ok_and(|bytes| bytes > MAX_FILE_BYTES)) {
        return Err(FetchError::TooLarge);
    }
    let telegram = shared.outside.telegram;
    let remote = telegram.get_file(&file.file.file_id).await?;
    let path = media::build_path(file.id, &file.file.kind, file.file.mime.as_deref());
    let mut landing = Landing::begin(&shared.outside.config.media_dir.join(&path))?;
    let bytes = telegram.download(&remote, |piece| landing.write(piece)).await?;
    landing.move_into_place()?;
    Ok((path, bytes))
}

/// Records the reaction to a failure.
fn record_failure(shared: Shared<'_>, file: &Attachment, error: &FetchError) -> Result<(), StoreError> {
    let now = shared.outside.clock.now();
    let tries = file.attempts.saturating_add(1);
    let counts = is_fault(error);
    let why = shared.outside.redactor.redact(&error.to_string());
    tracing::warn!(file = file.id, tries, why, "a file could not be fetched");
    let mut store = shared.store.borrow_mut();
    match decide_reaction(error, file.faults.saturating_add(u32::from(counts))) {
        Next::Later { at_least, all } => {
            let not_before = now
                .checked_add_signed(compute_retry_wait(tries).max(at_least))
                .unwrap_or(now + compute_retry_wait(tries));
            store.attachments_mut().record_failed_fetch(
                file.id,
                &FailedFetch { why: &why, not_before, delays_all: all, counts },
                now,
            )
        }
        Next::Never => {
            let notice = words::build_unfetched_notice(file, &why, shared.outside.config.timezone);
            store.attachments_mut().give_up_file(file, &why, &notice, now)?;
            shared.bells.settled.notify_one();
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn react_to(error: TelegramError, faults: u32) -> Next {
        decide_reaction(&FetchError::Telegram(error), faults)
    }

    fn rejected(description: &str) -> TelegramError {
        TelegramError::Rejected { code: 400, description: description.to_owned() }
    }

    #[test]
    fn temporary_failures_are_retried_for_ever_and_final_ones_never() {
        let later = || Next::Later { at_least: TimeDelta::zero(), all: false };
        for error in [
            TelegramError::NotSent { why: String::new() },
            TelegramError::Unauthorized(String::new()),
            TelegramError::Conflict(String::new()),
        ] {
            assert_eq!(react_to(error, 10_000), later());
        }
        assert_eq!(
            decide_reaction(&FetchError::Write(std::io::Error::from(std::io::ErrorKind::StorageFull)), 10_000),
            later()
        );
        assert_eq!(decide_reaction(&FetchError::TooLarge, 1), Next::Never);
        assert_eq!(react_to(rejected("Bad Request: invalid file_id"), 1), Next::Never);
    }

    #[test]
    fn a_file_that_may_be_gone_is_tried_a_few_times() {
        let offline = FetchError::Telegram(TelegramError::NotSent { why: String::new() });
        assert!(!is_fault(&offline) && !is_fault(&FetchError::TooLarge));
        let unavailable = || rejected("Bad Request: wrong file_id or the file is temporarily unavailable");
        let cut = || TelegramError::Ambiguous { why: String::new() };
        assert!(is_fault(&FetchError::Telegram(unavailable())) && is_fault(&FetchError::Telegram(cut())));
        assert!(matches!(react_to(unavailable(), 2), Next::Later { .. }));
        assert_eq!(react_to(unavailable(), 3), Next::Never);
        assert!(matches!(react_to(cut(), MAX_TRIES - 1), Next::Later { .. }));
        assert_eq!(react_to(cut(), MAX_TRIES), Next::Never);
    }

    #[test]
    fn a_rate_limit_holds_in_full_and_for_every_file() {
        let wait = TelegramError::RetryAfter(Duration::from_secs(4_000));
        assert_eq!(react_to(wait, 1), Next::Later { at_least: TimeDelta::seconds(4_000), all: true });
    }
}
