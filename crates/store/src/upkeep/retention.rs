//! Deletes old data that nothing needs any more, so that the database file stays small. The messages of people and of the assistant
//! stay, as do costs, commits, the keys that prevent duplicates, and all unfinished work.
//!
//! | deleted                                                  | kept while |
//! |---------------------------------------------------------|------------------|
//! | a cycle's journal, `system` and `tools`                 | it is open, or a message it claimed is queued or on hold |
//! | an original update (`raw`)                              | its message isn't answered or refused |
//! | a sent part (`html`, `plain`)                           | its message isn't delivered in full |
//! | a repair                                                | no cycle has reported it |
//! | a fired slot                                            | it is among the newest [`FIRINGS_KEPT`] of an active reminder |
//! | an answer to a reminder                                 | the reminder's message doesn't show it yet, or one of its slots is kept |
//! | an answer to a nudge                                    | the nudge's message doesn't show it yet, or a wake still has to act on it |
//! | a run of a deleted job                                  | it hasn't ended, or its message is on hold |
//! | a proposal                                              | it was agreed to, or its branch exists |
//!
//! SQLite reuses the freed pages; the file itself doesn't shrink.

use chrono::{DateTime, Utc};

use reveille_base::clock::format_rfc3339;

use crate::{
    FencedStore, Result,
    areas::{ReadStore, Retention, WriteStore},
    outcome::PUT_ASIDE,
    sql::{self, OptionalExtension as _, Transaction},
};

/// The number of fired slots kept for each active reminder, regardless of age. After a clock error they must not fire again.
pub const FIRINGS_KEPT: u32 = 1_000;

/// SQL condition for a cycle that ended before `?1` and will never be needed again. The journal of a given-up cycle is needed if its
/// message is retried.
fn old_cycle() -> String {
    format!(
        "c.has_journal = 1 AND c.ended_at < ?1 AND c.state IN ('done', 'failed', 'abandoned')
         AND NOT EXISTS (SELECT 1 FROM taken_up t JOIN incoming_messages m ON m.id = t.message_id WHERE t.cycle_id = c.id
                         AND (m.processed = 0 OR m.outcome IN {PUT_ASIDE}))"
    )
}

/// SQL condition for a message finished for good before `?1`.
const OLD_RAW: &str = "processed = 1 AND raw IS NOT NULL AND processed_at < ?1 AND outcome IN ('answered', 'refused')";

/// SQL condition for a part of a message delivered in full before `?1`.
const OLD_PART: &str = "p.state = 'sent' AND p.html != '' AND p.changed_at < ?1
    AND EXISTS (SELECT 1 FROM outgoing_messages o WHERE o.id = p.outgoing_id AND o.sent_at < ?1)";

impl<S: ReadStore> Retention<S> {
    /// Returns whether any data older than `before` may be deleted. The check is cheap: it skips repairs and fired slots, because it finds
    /// the cycles that reported them.
    pub fn has_forgettable(&self, before: DateTime<Utc>) -> Result<bool> {
        Ok(self.0.conn().prepare(&forgettable_query())?.query_row([format_rfc3339(before)], |row| row.get(0))?)
    }

    /// The row id of the latest message.
    pub fn last_message(&self) -> Result<Option<i64>> {
        Ok(self.0.conn().query_row("SELECT max(id) FROM incoming_messages", [], |row| row.get(0))?)
    }

    /// Returns whether a message that is queued or on hold names this file.
    pub fn is_file_wanted(&self, name: &str) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE (processed = 0 OR outcome IN {PUT_ASIDE})
                 AND (instr(message_text, ?1) > 0 OR instr(COALESCE(raw, ''), ?1) > 0))
             OR EXISTS (SELECT 1 FROM attachments a JOIN incoming_messages m ON m.id = a.message_id
                 WHERE a.path IN ('voice/' || ?1, 'files/' || ?1) AND a.replaced_at IS NULL
                 AND (m.processed = 0 OR m.outcome IN {PUT_ASIDE}))"
        );
        Ok(self.0.conn().prepare(&sql)?.query_row([name], |row| row.get(0))?)
    }

    /// The fired slots that are no longer needed to prevent a second firing. Run it outside the transaction, because it scans all slots.
    fn old_firings(&self, before: &str, rows: u32) -> Result<Vec<(i64, String)>> {
        let mut statement = self.0.conn().prepare(
            "SELECT f.reminder_id, f.slot FROM (
                 SELECT reminder_id, slot, fired_at,
                        row_number() OVER (PARTITION BY reminder_id ORDER BY slot DESC) AS newest
                 FROM reminder_firings) f
             JOIN reminders r ON r.id = f.reminder_id
             WHERE f.fired_at < ?1 AND (r.state != 'active' OR f.newest > ?2) LIMIT ?3",
        )?;
        let firings = statement.query_map((before, FIRINGS_KEPT, rows), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(firings.collect::<sql::QueryResult<_>>()?)
    }
}

impl Retention<&mut FencedStore<'_>> {
    /// Deletes about `rows` rows older than `before`, in one short transaction. Returns the number; 0 if nothing is left.
    pub fn delete_old_rows(&mut self, before: DateTime<Utc>, rows: u32) -> Result<u32> {
        let before = format_rfc3339(before);
        let firings = self.old_firings(&before, rows)?;
        // If a power cut undoes the deletion, the next run repeats it.
        self.0.write_relaxed(|tx| {
            let mut n = forget_journals(tx, &before, rows)?;
            for sql in [
                format!(
                    "UPDATE incoming_messages SET raw = NULL WHERE id IN (
                         SELECT id FROM incoming_messages WHERE {OLD_RAW} ORDER BY processed_at LIMIT ?2)"
                ),
                format!(
                    "UPDATE outgoing_parts SET html = '', plain = '' WHERE rowid IN (
                         SELECT p.rowid FROM outgoing_parts p WHERE {OLD_PART} ORDER BY p.changed_at LIMIT ?2)"
                ),
                "DELETE FROM job_runs WHERE id IN (
                     SELECT id FROM job_runs WHERE state != 'open' AND held IS NULL AND started_at < ?1
                         AND name NOT IN (SELECT name FROM jobs) LIMIT ?2)"
                    .to_owned(),
                "DELETE FROM proposals WHERE id IN (
                     SELECT id FROM proposals WHERE branch IS NULL AND agreed_at IS NULL AND asked_at < ?1 LIMIT ?2)"
                    .to_owned(),
                "DELETE FROM repairs WHERE id IN (
                     SELECT id FROM repairs WHERE cycle_id IS NOT NULL AND at < ?1 LIMIT ?2)"
                    .to_owned(),
                "DELETE FROM reminder_answers WHERE outgoing_id IN (
                     SELECT a.outgoing_id FROM reminder_answers a WHERE a.is_shown = 1 AND a.at < ?1
                         AND NOT EXISTS (SELECT 1 FROM reminder_firings f WHERE f.outgoing_id = a.outgoing_id) LIMIT ?2)"
                    .to_owned(),
                // A nudge without an answer is as old as its message.
                "DELETE FROM nudges WHERE outgoing_id IN (
                     SELECT n.outgoing_id FROM nudges n JOIN outgoing_messages o ON o.id = n.outgoing_id
                     WHERE n.is_open = 0 AND (n.answer IS NULL OR n.is_shown = 1) AND COALESCE(n.answered_at, o.sent_at) < ?1
                     LIMIT ?2)"
                    .to_owned(),
            ] {
                n += to_count(tx.prepare(&sql)?.execute((&before, rows.saturating_sub(n)))?);
            }
            for (reminder, slot) in firings.iter().take(rows.saturating_sub(n) as usize) {
                n += to_count(
                    tx.prepare("DELETE FROM reminder_firings WHERE reminder_id = ?1 AND slot = ?2")?
                        .execute((reminder, slot))?,
                );
            }
            Ok(n)
        })
    }
}

pub(crate) fn forgettable_query() -> String {
    format!(
        "SELECT EXISTS (SELECT 1 FROM cycles c WHERE {})
             OR EXISTS (SELECT 1 FROM incoming_messages WHERE {OLD_RAW})
             OR EXISTS (SELECT 1 FROM outgoing_parts p WHERE {OLD_PART})",
        old_cycle()
    )
}

/// Deletes at most `rows` journal entries, so that a long journal doesn't make a long transaction. A cycle is marked as having no journal
/// once its last entry is deleted.
fn forget_journals(tx: &Transaction<'_>, before: &str, rows: u32) -> Result<u32> {
    let next = format!("SELECT c.id FROM cycles c WHERE {} ORDER BY c.ended_at LIMIT 1", old_cycle());
    let mut n = 0;
    while n < rows {
        let Some(id) = tx.prepare(&next)?.query_row([before], |row| row.get::<_, String>(0)).optional()? else {
            break;
        };
        let entries = tx
            .prepare(
                "DELETE FROM cycle_journal WHERE cycle_id = ?1 AND seq IN (
                     SELECT seq FROM cycle_journal WHERE cycle_id = ?1 ORDER BY seq LIMIT ?2)",
            )?
            .execute((&id, rows - n))?;
        n += to_count(entries);
        if n < rows {
            tx.prepare("DELETE FROM taken_up WHERE cycle_id = ?1")?.execute([&id])?;
            tx.prepare("UPDATE cycles SET system = '[]', tools = '[]', has_journal = 0 WHERE id = ?1")?
                .execute([&id])?;
            n += 1;
        }
    }
    Ok(n)
}

fn to_count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
