//! `database`: checks that it opens, has the known schema, is sound, and has a small write-ahead log.

use reveille_cycle::workspace;
use reveille_store::{Schema, StoreError, WAL_BOUND_BYTES};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::{list, size},
};

/// Free space within the file above which shrinking makes sense, if it is also over half the file.
const FREE_WARN_BYTES: u64 = 256 << 20;

struct Facts {
    schema: Schema,
    /// The problems found by SQLite's own check.
    damage: Vec<String>,
    bytes: u64,
    /// The free part of it.
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
    let damage = match store.integrity() {
        Ok(sound) => sound.err().unwrap_or_default(),
        Err(StoreError::Damaged(why)) => vec![why],
        Err(error) => return Err(error.into()),
    };
    let judged = judge(&Facts {
        schema: store.schema()?,
        damage,
        bytes: bytes_of(&main),
        free_bytes: store.free_bytes()?,
        wal_bytes: store.log_bytes(),
    });
    let saved = workspace::saved(&main);
    Ok(judge_saved(&saved.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        .into_iter()
        .fold(judged, Finding::and))
}

/// The bot's copy may hold data that this database lacks, if the file was taken away while the bot had it open.
fn judge_saved(saved: &[String]) -> Option<Finding> {
    let last = saved.last()?;
    Some(Finding::warn(
        format!("the bot has saved what it had open when messages.db was taken away under it: {}", list(saved)),
        format!("if you miss anything, stop the bot and put {last} in the place of messages.db; else remove it"),
    ))
}

/// This program never repairs or replaces a damaged database, since its contents can be recovered.
fn damaged(why: &str) -> Finding {
    Finding::critical(
        format!("messages.db is damaged: {why}"),
        "stop the bot, keep a copy of messages.db*, then: sqlite3 messages.db .recover | sqlite3 recovered.db, and put that in \
         its place. Until then nothing new is stored; Telegram keeps messages for a day",
    )
}

fn judge_unopened(error: &StoreError) -> Finding {
    match error {
        StoreError::Damaged(why) => damaged(why),
        StoreError::Gone { path, saved, is_empty } => {
            let how = if *is_empty { "empty" } else { "gone" };
            let put_back = match saved {
                Some(saved) => {
                    format!("stop the bot and put back what it has saved: mv {} {}", saved.display(), path.display())
                }
                None => "put it back, such as from a backup".to_owned(),
            };
            Finding::critical(
                format!(
                    "messages.db is {how}, though wakes have worked here: what was queued, set and spent stood in it. Nothing new is \
                     stored; Telegram keeps messages for a day"
                ),
                format!("{put_back}; or start without it: health check --new-database"),
            )
        }
        StoreError::Newer { .. } => Finding::critical(error.to_string(), "upgrade this program"),
        StoreError::Older { .. } => Finding::left_to_a_wake(error.to_string(), "wake --once; nothing of it is lost"),
        StoreError::Busy => Finding::warn(error.to_string(), "run health check again in a minute"),
        StoreError::Server(_) => Finding::critical(
            format!(
                "{error}. What was said stands in it; nothing new is stored, and Telegram keeps messages for a day"
            ),
            "see that the server of DATABASE_URL runs and lets this machine in",
        ),
        _ => Finding::critical(
            format!("messages.db can't be opened: {error}"),
            "see that it is a file which you can read and write",
        ),
    }
}

fn judge(facts: &Facts) -> Finding {
    if !facts.damage.is_empty() {
        return damaged(&list(&facts.damage));
    }
    let sum = format!("sound, {}, schema {}", size(facts.bytes), facts.schema.found);
    if facts.wal_bytes > WAL_BOUND_BYTES {
        return Finding::warn(
            format!("{sum}; its write-ahead log has grown to {}", size(facts.wal_bytes)),
            "some program keeps the database open for reading: close it, the next wake then cuts the log back",
        );
    }
    if facts.free_bytes > FREE_WARN_BYTES.max(facts.bytes / 2) {
        return Finding::warn(
            format!("{sum}; {} of it are free and used again by what comes", size(facts.free_bytes)),
            "nothing has to be done. To make the file smaller: stop the bot, then sqlite3 messages.db VACUUM (it needs as much \
             room again while it works)",
        );
    }
    Finding::ok(sum)
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
    fn damage_is_critical_the_rest_mends_itself() {
        assert_eq!(judge(&facts()).status, Status::Ok);
        let damage = vec!["row 3 missing from index".to_owned()];
        assert_eq!(judge(&Facts { damage, ..facts() }).status, Status::Critical);
        let older = StoreError::Older { path: "messages.db".into(), found: 1, known: 2 };
        assert_eq!(judge_unopened(&older).status, Status::Warn);
        let wal_bytes = WAL_BOUND_BYTES + 1;
        assert_eq!(judge(&Facts { wal_bytes, ..facts() }).status, Status::Warn);
        let free_bytes = (1 << 29) + 1;
        assert_eq!(judge(&Facts { free_bytes, ..facts() }).status, Status::Warn);
        assert_eq!(judge(&Facts { free_bytes: FREE_WARN_BYTES, bytes: FREE_WARN_BYTES, ..facts() }).status, Status::Ok);
        assert_eq!(judge_unopened(&StoreError::Busy).status, Status::Warn);
        assert_eq!(judge_unopened(&StoreError::Full).status, Status::Critical);
    }
}
