//! The steps of a file, one transaction each. The bot records fetches; its child process that transcribes, the listener (one at a
//! time, under a file lock of its own), records transcriptions. Wakes write none of this, because a wake claims a message only after its
//! files are settled; so these writes carry no fence. Each step requires the state it starts from, so a late or repeated step changes
//! nothing.

use chrono::{DateTime, Utc};

use reveille_base::clock::{LONGEST_WAIT, format_rfc3339};
use reveille_media::Transcript;

use super::{Attachment, SOUND, rewrite_message_text};
use crate::{
    NewOutgoing, Result, UpkeepKind,
    areas::{Attachments, ReadStore, WriteStore},
    messages::parts::may_change,
    outbox::planned,
    sql::{OptionalExtension as _, Transaction},
    upkeep::backoff,
};

/// The error, or its prefix, of a recording that arrived without a speech model. The recording is transcribed once a model is there.
pub const NO_SPEECH_MODEL: &str = "there is no speech model to listen with";
/// The prefix of the keys in `handled` for chats that were told about the missing speech model.
const TOLD: &str = "files/no-model/";

/// SQL condition for a step due at ?1. A time after ?2, the end of the longest wait, was written while the clock was wrong.
const IS_TIME: &str = "(a.not_before IS NULL OR a.not_before <= ?1 OR a.not_before > ?2)";

impl<S: ReadStore> Attachments<S> {
    /// The next file to fetch: the least often tried file of a waiting message. Among chats, the chat served longest ago goes first, so
    /// that one chat's many files never block the others.
    pub fn find_next_wanted_file(&self, now: DateTime<Utc>) -> Result<Option<Attachment>> {
        // A file that arrived during a rate limit has no wait of its own.
        if self.0.store().maintenance().read_upkeep(UpkeepKind::Files)?.may_try(now) {
            self.find_next_file("a.state = 'wanted'", "o.state <> 'wanted'", now)
        } else {
            Ok(None)
        }
    }

    /// The next recording to transcribe, in the same order as files to fetch.
    pub fn find_next_recording(&self, now: DateTime<Utc>) -> Result<Option<Attachment>> {
        let done = format!("o.state IN ('ready', 'failed') AND o.kind IN {SOUND}");
        self.find_next_file(&format!("a.state = 'kept' AND a.kind IN {SOUND}"), &done, now)
    }

    /// The time at which the next waiting step is due; `None` if no step waits.
    pub fn find_file_step_time(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        let sql = format!(
            "SELECT min(a.not_before) FROM attachments a JOIN incoming_messages m ON m.id = a.message_id
             WHERE m.processed = 0 AND a.not_before > ?1 AND (a.state = 'wanted' OR a.state = 'kept' AND a.kind IN {SOUND})"
        );
        let at: Option<String> = self.0.conn().prepare(&sql)?.query_row([format_rfc3339(now)], |row| row.get(0))?;
        Ok(at.as_deref().and_then(reveille_base::clock::parse_time))
    }

    /// Finds the next file: `step` is the condition for a file that waits for this step, `done` for a file that has passed it.
    fn find_next_file(&self, step: &str, done: &str, now: DateTime<Utc>) -> Result<Option<Attachment>> {
        let sql = format!(
            "WITH turns AS (
                 SELECT n.chat_id AS of_chat, max(o.changed_at) AS last
                 FROM attachments o JOIN incoming_messages n ON n.id = o.message_id WHERE {done} GROUP BY n.chat_id
             )
             {} LEFT JOIN turns ON turns.of_chat = m.chat_id WHERE {step} AND m.processed = 0 AND {IS_TIME}
             ORDER BY a.attempts, turns.last NULLS FIRST, a.id LIMIT 1",
            Attachment::SELECT
        );
        let found = self
            .0
            .conn()
            .prepare(&sql)?
            .query_row((format_rfc3339(now), format_rfc3339(now + LONGEST_WAIT)), Attachment::from_row)
            .optional()?;
        Ok(found)
    }
}

/// A fetch that failed for now.
#[derive(Debug, Clone, Copy)]
pub struct FailedFetch<'a> {
    /// The error.
    pub why: &'a str,
    /// The time of the next attempt.
    pub not_before: DateTime<Utc>,
    /// True if every other fetch waits until that time as well.
    pub delays_all: bool,
    /// True if the failure counts against the file.
    pub counts: bool,
}

impl<S: WriteStore> Attachments<S> {
    /// Records that a complete file is at this path below the workspace.
    pub fn record_kept_file(&mut self, id: i64, path: &str, bytes: u64, now: DateTime<Utc>) -> Result<()> {
        self.0.write(|tx| {
            tx.execute(
                "UPDATE attachments SET state = 'kept', path = ?2, bytes = ?3, attempts = 0, not_before = NULL, error = NULL,
                     changed_at = ?4 WHERE id = ?1 AND state = 'wanted'",
                (id, path, i64::try_from(bytes).unwrap_or(i64::MAX), format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// Records a failed fetch.
    pub fn record_failed_fetch(&mut self, id: i64, failed: &FailedFetch<'_>, now: DateTime<Utc>) -> Result<()> {
        let FailedFetch { why, not_before, delays_all, counts } = *failed;
        self.0.write(|tx| {
            tx.execute(
                "UPDATE attachments SET attempts = attempts + 1, faults = faults + ?5, not_before = ?2, error = ?3,
                     changed_at = ?4 WHERE id = ?1 AND state = 'wanted'",
                (id, format_rfc3339(not_before), why, format_rfc3339(now), counts),
            )?;
            if delays_all {
                tx.execute(
                    "UPDATE attachments SET not_before = CASE WHEN not_before > ?1 THEN not_before ELSE ?1 END
                     WHERE state = 'wanted'",
                    [format_rfc3339(not_before)],
                )?;
                tx.execute(
                    "INSERT INTO upkeep (name, not_before, error) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE
                     SET not_before = excluded.not_before, error = excluded.error",
                    (UpkeepKind::Files.as_str(), format_rfc3339(not_before), why),
                )?;
            }
            Ok(())
        })
    }

    /// Gives up a file: its message and a notice say why.
    pub fn give_up_file(
        &mut self,
        file: &Attachment,
        why: &str,
        notice: &NewOutgoing,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.0.write(|tx| fail_file(tx, file, "wanted", why, notice, now))
    }

    /// Records that the process `listener` is about to transcribe a recording. The attempt counts beforehand, so that a recording that
    /// crashes its listener is tried only a few times. Returns the attempts, including this one.
    pub fn begin_transcription(
        &mut self,
        id: i64,
        listener: u32,
        not_before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u32> {
        self.0.write(|tx| {
            let attempts = tx
                .query_row(
                    "UPDATE attachments SET attempts = attempts + 1, not_before = ?2, changed_at = ?3, listener = ?4,
                         error = 'it was cut off while it was listened to'
                     WHERE id = ?1 AND state = 'kept' RETURNING attempts",
                    (id, format_rfc3339(not_before), format_rfc3339(now), listener),
                    |row| row.get(0),
                )
                .optional()?;
            Ok(attempts.unwrap_or(0))
        })
    }

    /// Uncounts the attempt of the process `listener`, which was ended on purpose, and makes its recording due again. `false` if that
    /// process had no recording.
    pub fn undo_listener_attempt(&mut self, listener: u32, now: DateTime<Utc>) -> Result<bool> {
        self.0.write(|tx| {
            let n = tx.execute(
                "UPDATE attachments SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END, not_before = NULL, error = NULL, listener = NULL,
                     changed_at = ?2 WHERE listener = ?1 AND state = 'kept'",
                (listener, format_rfc3339(now)),
            )?;
            Ok(n > 0)
        })
    }

    /// Stores a transcript; its words become part of the message.
    pub fn save_transcript(&mut self, file: &Attachment, transcript: &Transcript, now: DateTime<Utc>) -> Result<()> {
        self.0.write(|tx| {
            let changed = tx.execute(
                "UPDATE attachments SET state = 'ready', transcript = ?2, attempts = 0, not_before = NULL, error = NULL,
                     listener = NULL, changed_at = ?3 WHERE id = ?1 AND state = 'kept'",
                (file.id, crate::to_json(transcript), format_rfc3339(now)),
            )?;
            if changed > 0 { rewrite_message_text(tx, file.message_id) } else { Ok(()) }
        })
    }

    /// Records a failed transcription. [`Attachments::begin_transcription`] has counted the attempt already.
    pub fn record_failed_transcription(&mut self, id: i64, why: &str, now: DateTime<Utc>) -> Result<()> {
        self.0.write(|tx| {
            tx.execute(
                "UPDATE attachments SET error = ?2, listener = NULL, changed_at = ?3 WHERE id = ?1 AND state = 'kept'",
                (id, why, format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// Gives up a recording: its message and a notice say why.
    pub fn give_up_recording(
        &mut self,
        file: &Attachment,
        why: &str,
        notice: &NewOutgoing,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.0.write(|tx| fail_file(tx, file, "kept", why, notice, now))
    }

    /// Gives up a recording for lack of a speech model, so that its message can be answered without it. Its chat is told only once, until
    /// [`Attachments::retry_unheard_recordings`] deletes the mark.
    pub fn give_up_without_speech_model(
        &mut self,
        file: &Attachment,
        why: Option<&str>,
        notice: &NewOutgoing,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let key = format!("{TOLD}{}", file.chat);
        let why = why.map_or_else(|| NO_SPEECH_MODEL.to_owned(), |why| format!("{NO_SPEECH_MODEL}: {why}"));
        self.0.write(|tx| {
            let is_told: bool =
                tx.query_row("SELECT EXISTS (SELECT 1 FROM handled WHERE key = ?1)", [&key], |row| row.get(0))?;
            give_up(tx, file, "kept", &why, now)?;
            if !is_told {
                backoff::save_handled_value(tx, &key, "", now)?;
                planned::insert(tx, notice, now)?;
            }
            Ok(())
        })
    }

    /// Retries the recordings that failed for lack of a speech model, if their message still waits and no open cycle has it. Returns
    /// their number.
    pub fn retry_unheard_recordings(&mut self, now: DateTime<Utc>) -> Result<usize> {
        let told: bool = self.0.conn().query_row(
            "SELECT EXISTS (SELECT 1 FROM handled WHERE substr(key, 1, length(?1)) = ?1)",
            [TOLD],
            |row| row.get(0),
        )?;
        if !told {
            return Ok(0);
        }
        self.0.write(|tx| {
            tx.execute("DELETE FROM handled WHERE substr(key, 1, length(?1)) = ?1", [TOLD])?;
            let sql = format!(
                "UPDATE attachments SET state = 'kept', attempts = 0, not_before = NULL, error = NULL, changed_at = ?2
                 WHERE state = 'failed' AND path IS NOT NULL AND substr(error, 1, length(?1)) = ?1 AND EXISTS (
                     SELECT 1 FROM incoming_messages m WHERE m.id = message_id AND {})",
                may_change()
            );
            Ok(tx.execute(&sql, (NO_SPEECH_MODEL, format_rfc3339(now)))?)
        })
    }
}

fn fail_file(
    tx: &Transaction<'_>,
    file: &Attachment,
    from: &str,
    why: &str,
    notice: &NewOutgoing,
    now: DateTime<Utc>,
) -> Result<()> {
    if give_up(tx, file, from, why, now)? {
        planned::insert(tx, notice, now)?;
    }
    Ok(())
}

/// Gives up a file. `false` if the state was no longer `from`.
fn give_up(tx: &Transaction<'_>, file: &Attachment, from: &str, why: &str, now: DateTime<Utc>) -> Result<bool> {
    let changed = tx.execute(
        "UPDATE attachments SET state = 'failed', not_before = NULL, error = ?2, listener = NULL, changed_at = ?3
         WHERE id = ?1 AND state = ?4",
        (file.id, why, format_rfc3339(now), from),
    )?;
    if changed > 0 {
        rewrite_message_text(tx, file.message_id)?;
    }
    Ok(changed > 0)
}
