//! `telegram`: checks that the running bot hears Telegram. The last completed poll counts rather than the process,
//! since a bot can live on without hearing anything.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::clock::parse_time;
use reveille_cycle::lease::{self, LeasePart};
use reveille_store::{UpkeepKind, wake_lock};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_relative_time,
};

/// Silence after which a running bot counts as deaf. A poll or a wait between tries takes at most a minute.
const MAX_SILENCE: TimeDelta = TimeDelta::minutes(10);

/// The start of the bot's own error message about a second poller.
const RIVAL: &str = "something else fetches this bot's messages";

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(bot_id) = scene.config.bot_id() else {
        return Ok(Finding::ok("no bot is set up"));
    };
    let (heard, trouble) = match scene.store()? {
        Some(store) => {
            (store.inbox().find_last_poll_time(bot_id)?, store.maintenance().read_upkeep(UpkeepKind::Poll)?.error)
        }
        None => (None, None),
    };
    let bot = wake_lock::read_holder(&scene.config.bot_lock_path()).filter(|holder| holder.identity().is_alive());
    if bot.is_some()
        && scene.config.lease.is_shared()
        && !lease::is_held_here(&lease::read_record(scene.config, LeasePart::Bot))
    {
        return Ok(Finding::ok("a bot runs, and waits for its turn: see the check `machines`"));
    }
    let running_since = bot.map(|holder| parse_time(&holder.started_at).unwrap_or(scene.now));
    Ok(judge_telegram(heard, running_since, trouble.as_deref(), scene.now))
}

fn judge_telegram(
    heard: Option<DateTime<Utc>>,
    running_since: Option<DateTime<Utc>>,
    trouble: Option<&str>,
    now: DateTime<Utc>,
) -> Finding {
    let last = heard
        .map_or_else(|| "no contact yet".to_owned(), |at| format!("last contact {}", format_relative_time(at, now)));
    let Some(since) = running_since else {
        return Finding::ok(format!("no bot runs; {last}"));
    };
    if let Some(why) = trouble {
        return Finding::warn(
            format!("a bot runs but fetches no messages: {why}; {last}"),
            if why.starts_with(RIVAL) {
                "stop the other one, on whatever machine it runs; `bot webhook` shows whether it is a webhook. The bot keeps trying"
            } else {
                "fix what it names; the bot keeps trying. Telegram keeps messages for a day"
            },
        );
    }
    let silent = now - heard.map_or(since, |at| at.max(since));
    if silent > MAX_SILENCE {
        return Finding::warn(
            format!("a bot runs without reaching Telegram; {last}"),
            "`wake logs --program bot` shows why; Telegram keeps messages for a day",
        );
    }
    if heard.is_none() {
        return Finding::ok(format!("a bot has just started; {last}"));
    }
    Finding::ok(format!("a bot runs; {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    #[test]
    fn a_bot_that_hears_nothing_is_told_of() {
        let at = |time: &str| parse_time(&format!("2026-11-21T{time}:00Z"));
        let judged = |heard: Option<&str>, since: Option<&str>| {
            let finding = judge_telegram(heard.and_then(at), since.and_then(at), None, at("12:00").unwrap());
            (finding.status, finding.detail)
        };
        let ok = |detail: &str| (Status::Ok, detail.to_owned());
        let warn = |detail: &str| (Status::Warn, detail.to_owned());
        assert_eq!(judged(None, None), ok("no bot runs; no contact yet"));
        assert_eq!(judged(Some("03:00"), None), ok("no bot runs; last contact 9 h ago"));
        assert_eq!(judged(Some("11:59"), Some("08:00")), ok("a bot runs; last contact 1 min ago"));
        let conflict = judge_telegram(at("11:59"), at("08:00"), Some("Conflict"), at("12:00").unwrap());
        assert_eq!(conflict.status, Status::Warn);
        assert!(conflict.detail.contains("fetches no messages: Conflict"), "{conflict:?}");
        // It has just begun.
        assert_eq!(judged(Some("03:00"), Some("11:55")), ok("a bot runs; last contact 9 h ago"));
        assert_eq!(
            judged(Some("11:49"), Some("08:00")),
            warn("a bot runs without reaching Telegram; last contact 11 min ago")
        );
        assert_eq!(judged(None, Some("11:00")), warn("a bot runs without reaching Telegram; no contact yet"));
    }
}
