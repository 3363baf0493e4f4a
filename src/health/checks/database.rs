//! `database`: checks that the database opens, has the known schema, is undamaged, and has a small write-ahead log.

use reveille_cycle::workspace;
use reveille_store::{Schema, StoreError, WAL_BOUND_BYTES};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::{format_list, format_size},
};

/// Free space within the file, in bytes. Shrinking makes sense above this and above half the file.
const FREE_WARN_BYTES: u64 = 256 << 20;

struct Facts {
    schema: Schema,
    /// The problems found by SQLite's own check.
    damage: Vec<String>,
    bytes: u64,
    /// The free space within the file.
    free_bytes: u64,
    wal_bytes: u64,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    if let Some(error) = scene.store_error() {
        return Ok(judge_unopened(error));
    }
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let bytes_of = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let [main, ..] = store.files();
    let damage = match store.check_integrity() {
        Ok(sound) => sound.err().unwrap_or_default(),
        Err(StoreError::Damaged(why)) => vec![why],
        Err(error) => return Err(error.into()),
    };
    let judged = judge_facts(&Facts {
        schema: store.read_schema()?,
        damage,
        bytes: bytes_of(&main),
        free_bytes: store.free_bytes()?,
        wal_bytes: store.log_bytes(),
    });
    let saved = workspace::list_saved_copies(&main);
    Ok(judge_saved(&saved.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        .into_iter()
        .fold(judged, Finding::merge))
}

/// Warns of copies that the bot saved because the file was removed while it was open. They may hold data that this database lacks.
fn judge_saved(saved: &[String]) -> Option<Finding> {
    let last = saved.last()?;
    Some(Finding::warn(
        format!(
            "messages.db was removed while the bot had it open, so the bot saved its contents: {}",
            format_list(saved)
        ),
        format!("if anything is missing, stop the bot and replace messages.db with {last}; otherwise remove it"),
    ))
}

/// Reports a damaged database. No command of ours repairs or replaces it, since that could destroy contents that can still be recovered.
fn report_damage(why: &str) -> Finding {
    Finding::critical(
        format!("messages.db is damaged: {why}"),
        "stop the bot, keep a copy of messages.db*, then: sqlite3 messages.db .recover | sqlite3 recovered.db, and replace \
         messages.db with it. Until then nothing new is stored; Telegram keeps messages for a day",
    )
}

fn judge_unopened(error: &StoreError) -> Finding {
    match error {
        StoreError::Damaged(why) => report_damage(why),
        StoreError::Gone { path, saved, is_empty } => {
            let condition = if *is_empty { "empty" } else { "gone" };
            let put_back = match saved {
                Some(saved) => {
                    format!("stop the bot and restore what it saved: mv {} {}", saved.display(), path.display())
                }
                None => "restore it, for example from a backup".to_owned(),
            };
            Finding::critical(
                format!(
                    "messages.db is {condition}, though wakes have run here: it held queued messages, reminders and costs. Nothing new is \
                     stored; Telegram keeps messages for a day"
                ),
                format!("{put_back}; or start without it: health check --new-database"),
            )
        }
        StoreError::Newer { .. } => Finding::critical(error.to_string(), "upgrade this program"),
        StoreError::Older { .. } => Finding::warn_for_wake(error.to_string(), "wake --once; nothing is lost"),
        StoreError::Busy => Finding::warn(error.to_string(), "run health check again in a minute"),
        StoreError::Server(_) => Finding::critical(
            format!("{error}. Your messages are in it; nothing new is stored, and Telegram keeps messages for a day"),
            "check that the server of DATABASE_URL is running and accepts this machine",
        ),
        _ => Finding::critical(
            format!("messages.db can't be opened: {error}"),
            "check that it is a file you can read and write",
        ),
    }
}

fn judge_facts(facts: &Facts) -> Finding {
    if !facts.damage.is_empty() {
        return report_damage(&format_list(&facts.damage));
    }
    let summary = format!("sound, {}, schema {}", format_size(facts.bytes), facts.schema.found);
    if facts.wal_bytes > WAL_BOUND_BYTES {
        return Finding::warn(
            format!("{summary}; its write-ahead log has grown to {}", format_size(facts.wal_bytes)),
            "some program keeps the database open for reading; close it, and the next wake shrinks the log",
        );
    }
    if facts.free_bytes > FREE_WARN_BYTES.max(facts.bytes / 2) {
        return Finding::warn(
            format!("{summary}; {} of it is free and will be reused", format_size(facts.free_bytes)),
            "nothing to do. To shrink the file: stop the bot, then sqlite3 messages.db VACUUM (it needs as much \
             space again while it runs)",
        );
    }
    Finding::ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    fn facts() -> Facts {
        Facts {
            schema: Schema { found: 1, known: 1, readable_from: None },
            damage: Vec::new(),
            bytes: 1 << 30,
            free_bytes: 1 << 29,
            wal_bytes: WAL_BOUND_BYTES,
        }
    }

    #[test]
    fn damage_is_critical_and_other_problems_are_warnings() {
        assert_eq!(judge_facts(&facts()).status, Status::Ok);
        let damage = vec!["row 3 missing from index".to_owned()];
        assert_eq!(judge_facts(&Facts { damage, ..facts() }).status, Status::Critical);
        let older = StoreError::Older { path: "messages.db".into(), found: 1, known: 2 };
        assert_eq!(judge_unopened(&older).status, Status::Warn);
        let wal_bytes = WAL_BOUND_BYTES + 1;
        assert_eq!(judge_facts(&Facts { wal_bytes, ..facts() }).status, Status::Warn);
        let free_bytes = (1 << 29) + 1;
        assert_eq!(judge_facts(&Facts { free_bytes, ..facts() }).status, Status::Warn);
        assert_eq!(
            judge_facts(&Facts { free_bytes: FREE_WARN_BYTES, bytes: FREE_WARN_BYTES, ..facts() }).status,
            Status::Ok
        );
        assert_eq!(judge_unopened(&StoreError::Busy).status, Status::Warn);
        assert_eq!(judge_unopened(&StoreError::Full).status, Status::Critical);
    }
}
