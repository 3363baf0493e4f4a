//! `files`: finds files of messages that are late or missing on disk, and leftovers of a killed bot. A missing file is
//! fetched again if its message waits for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_config::Config;
use reveille_media::words::name;
use reveille_store::{Attachment, FileOnDisk, FileState, NO_SPEECH_MODEL, Store};

use crate::{
    bot::media::PART,
    health::{
        finding::{Finding, Trouble},
        repair::RepairTools,
        scene::Scene,
        words::format_relative_time,
    },
};

/// Age of a partial file after which it counts as abandoned.
const LEFT_OVER: TimeDelta = TimeDelta::hours(1);
/// Maximum number of files listed of one kind.
const MAX_NAMED: usize = 5;

struct Facts {
    /// Pending and failed files of waiting messages.
    open: Vec<Attachment>,
    missing: Vec<FileOnDisk>,
    left_over: Vec<PathBuf>,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let late = TimeDelta::from_std(scene.config.stale_lock).unwrap_or(TimeDelta::MAX);
    Ok(judge_facts(&read_facts(scene.config, store, scene.now)?, late, scene.now))
}

fn read_facts(config: &Config, store: &Store, now: DateTime<Utc>) -> Result<Facts, Trouble> {
    let mut missing = store.attachments().files_on_disk()?;
    // A file that can't be inspected may well exist.
    missing.retain(|file| {
        let found = fs::symlink_metadata(config.media_dir.join(&file.path));
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    let folders = [config.voice_dir(), config.files_dir()];
    let left_over = folders.iter().flat_map(|folder| left_over(folder, now)).collect();
    Ok(Facts { open: store.attachments().open_files()?, missing, left_over })
}

fn left_over(folder: &Path, now: DateTime<Utc>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_left = |entry: &fs::DirEntry| {
        let changed_at = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|found| found.modified().ok());
        entry.file_name().to_string_lossy().ends_with(PART)
            && changed_at.is_some_and(|at| DateTime::<Utc>::from(at) + LEFT_OVER < now)
    };
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

fn judge_facts(facts: &Facts, late: TimeDelta, now: DateTime<Utc>) -> Finding {
    let mut findings = Vec::new();
    let (failed, waiting): (Vec<_>, Vec<_>) = facts.open.iter().partition(|file| file.state == FileState::Failed);
    let is_late = |file: &&&Attachment| file.received_at.is_some_and(|at| now.signed_duration_since(at) > late);
    for file in waiting.iter().filter(is_late).take(MAX_NAMED) {
        let what = if file.state == FileState::Wanted { "hasn't been fetched" } else { "hasn't been transcribed" };
        let came =
            file.received_at.map(|at| format!(" (which came {})", format_relative_time(at, now))).unwrap_or_default();
        let why = file.error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        findings.push(Finding::warn(
            format!(
                "the {} of message {}{came} {what} after {} tries{why}",
                name(&file.file.kind),
                file.message_id,
                file.attempts
            ),
            "check that the bot runs: it fetches and transcribes files",
        ));
    }
    let untranscribed =
        failed.iter().filter(|file| file.error.as_deref().is_some_and(|why| why.starts_with(NO_SPEECH_MODEL))).count();
    if untranscribed > 0 {
        findings.push(Finding::warn(
            format!("recordings that I couldn't transcribe: {untranscribed}; {NO_SPEECH_MODEL}"),
            "scripts/fetch-model downloads one; name it in WHISPER_MODEL and restart the bot",
        ));
    }
    for file in facts.missing.iter().take(MAX_NAMED) {
        let repair = if file.is_wanted { "it is fetched again" } else { "it is marked as gone" };
        findings.push(Finding::repairable(format!("file {} isn't at {}", file.id, file.path), repair));
    }
    if !facts.left_over.is_empty() {
        let n = facts.left_over.len();
        findings.push(Finding::repairable(format!("abandoned partial downloads: {n}"), "they are removed"));
    }
    let detail = match (waiting.len(), failed.len()) {
        (0, 0) => "none waiting".to_owned(),
        (waiting, failed) => format!("files of waiting messages: {waiting} on their way, {failed} given up"),
    };
    Finding::merge_all(findings, Finding::ok(detail))
}

pub(super) fn repair(tools: &mut RepairTools<'_>) -> Result<Vec<String>, Trouble> {
    let (config, now) = (tools.scene.config, tools.scene.now);
    let Some(mut store) = tools.store() else {
        return Ok(Vec::new());
    };
    let facts = read_facts(config, &store, now)?;
    let mut done = Vec::new();
    for file in &facts.missing {
        store.attachments_mut().record_missing_file(file.id)?;
        let what = if file.is_wanted { "it is fetched again if its message waits" } else { "nobody waits for it" };
        done.push(format!("File {} was not at {}: {what}.", file.id, file.path));
    }
    for path in &facts.left_over {
        fs::remove_file(path).map_err(Trouble::io("removing", path))?;
    }
    if !facts.left_over.is_empty() {
        done.push(format!("Removed half fetched files: {}.", facts.left_over.len()));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;
    use reveille_base::types::ChatRef;
    use reveille_store::NewAttachment;

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T12:00:00Z").unwrap()
    }

    fn file(state: FileState, minutes: i64, error: Option<&str>) -> Attachment {
        Attachment {
            id: 3,
            file: NewAttachment { kind: "voice".to_owned(), ..NewAttachment::default() },
            state,
            path: None,
            attempts: 2,
            faults: 0,
            not_before: None,
            error: error.map(str::to_owned),
            transcript: None,
            message_id: 9,
            chat: ChatRef::from_telegram(7),
            thread_id: None,
            channel_message_id: None,
            received_at: Some(now() - TimeDelta::minutes(minutes)),
        }
    }

    fn judged(open: Vec<Attachment>, missing: Vec<FileOnDisk>) -> Finding {
        judge_facts(&Facts { open, missing, left_over: Vec::new() }, TimeDelta::minutes(15), now())
    }

    #[test]
    fn a_late_file_is_reported_with_the_reason() {
        assert_eq!(judged(Vec::new(), Vec::new()).status, Status::Ok);
        assert_eq!(judged(vec![file(FileState::Wanted, 15, None)], Vec::new()).status, Status::Ok);
        let late = judged(vec![file(FileState::Wanted, 16, Some("no network"))], Vec::new());
        assert_eq!(late.status, Status::Warn);
        assert_eq!(
            late.detail,
            "the voice note of message 9 (which came 16 min ago) hasn't been fetched after 2 tries: no network"
        );
        assert_eq!(judged(vec![file(FileState::Failed, 99, Some("gone"))], Vec::new()).status, Status::Ok);
        let untranscribed = judged(vec![file(FileState::Failed, 1, Some(NO_SPEECH_MODEL))], Vec::new());
        assert!(untranscribed.fix.unwrap().contains("WHISPER_MODEL"));
    }

    #[test]
    fn a_missing_file_can_be_repaired() {
        let missing = FileOnDisk { id: 3, path: "voice/3.ogg".to_owned(), is_wanted: true };
        assert!(judged(Vec::new(), vec![missing]).repair.is_some());
    }
}
