//! `token`, `key`, `budget`: whether the bot can run, whether a mind can be asked, and whether it may be today.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::remote::failure;
use crate::{
    config::{CLAUDE_CODE, OFFLINE_MODEL},
    health::{
        finding::{Finding, Trouble},
        scene::Scene,
    },
    people, process,
    queue::{Cap, Upkeep, UpkeepKind},
};

pub(super) fn token(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    // Where the database can't be read, another check says so.
    let config = match scene.store() {
        Ok(Some(store)) => people::admitted(scene.config, store)?,
        _ => scene.config.clone(),
    };
    Ok(judge_token(config.telegram_token.is_some(), config.allowed_chat_ids.len()))
}

fn judge_token(has_token: bool, chats: usize) -> Finding {
    match (has_token, chats) {
        (true, 1..) => Finding::ok(format!("there; chats listened to: {chats}")),
        (true, 0) => Finding::warn(
            "there, but nobody may talk to the bot yet",
            "start the bot and send it the code that it shows, or set ALLOWED_CHAT_IDS to your numeric chat id",
        ),
        (false, _) => Finding::warn(
            "none: the bot can't run; wake say works without it",
            "ask @BotFather on Telegram for a token and set TELEGRAM_BOT_TOKEN",
        ),
    }
}

pub(super) fn key(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let upkeep = match scene.store()? {
        Some(store) => store.upkeep(UpkeepKind::Model)?,
        None => Upkeep::default(),
    };
    let config = scene.config;
    if config.effective_model() == CLAUDE_CODE && process::find(&config.claude_code).is_none() {
        return Ok(no_claude_code(&config.claude_code));
    }
    Ok(judge_key(config.effective_model(), config.anthropic_key.is_some(), &upkeep, scene.now))
}

fn no_claude_code(program: &Path) -> Finding {
    Finding::warn(
        format!("MODEL is {CLAUDE_CODE}, but {} isn't there", program.display()),
        "messages wait; install it (npm install -g @anthropic-ai/claude-code), or set CLAUDE_CODE to where it is",
    )
}

fn judge_key(model: &str, has_key: bool, upkeep: &Upkeep, now: DateTime<Utc>) -> Finding {
    if model == OFFLINE_MODEL {
        let why = if has_key { "MODEL says so" } else { "there is no ANTHROPIC_API_KEY" };
        return Finding::ok(format!("the offline mind answers: {why}"));
    }
    if upkeep.failures == 0 {
        return Finding::ok(format!("there; {model} answers"));
    }
    Finding::warn(
        format!("there; {}", failure(model, upkeep, now)),
        "messages wait and are answered when it can be reached; see the key, the account and the network",
    )
}

pub(super) fn budget(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::ok("nothing spent yet"));
    };
    let mind = scene.mind(store)?;
    let over = mind.over_budget.or_else(|| mind.no_room.into_values().next());
    Ok(judge_budget(&scene.budget(store)?.describe(), over))
}

fn judge_budget(detail: &str, over: Option<Cap>) -> Finding {
    match over {
        None => Finding::ok(detail),
        Some(cap) => {
            let until = if cap == Cap::Day { "midnight" } else { "the month is over" };
            Finding::warn(
                format!("{detail}; what has no room in it isn't asked before {until}"),
                format!("messages wait until then, or raise {}", cap.setting()),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::parse_time, health::Status};

    #[test]
    fn the_bot_needs_a_token_and_somebody_to_listen_to() {
        assert_eq!(judge_token(true, 2).status, Status::Ok);
        assert!(judge_token(true, 0).fix.unwrap().contains("ALLOWED_CHAT_IDS"));
        assert!(judge_token(false, 2).fix.unwrap().contains("TELEGRAM_BOT_TOKEN"));
    }

    #[test]
    fn offline_is_a_choice_and_a_failing_mind_is_told() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let failing = Upkeep { failures: 1, error: Some("overloaded".to_owned()), ..Upkeep::default() };
        assert_eq!(judge_key(OFFLINE_MODEL, false, &failing, now).status, Status::Ok);
        assert_eq!(judge_key("claude", true, &Upkeep::default(), now).status, Status::Ok);
        let finding = judge_key("claude", true, &failing, now);
        assert!(finding.status == Status::Warn && finding.detail.contains("claude failed once: overloaded"));
    }

    #[test]
    fn a_spent_budget_is_told_with_what_to_do() {
        assert_eq!(judge_budget("4.99 of 5.00 USD today", None).status, Status::Ok);
        let day = judge_budget("5.00 of 5.00 USD today", Some(Cap::Day));
        assert!(day.status == Status::Warn && day.detail.contains("before midnight"), "{day:?}");
        assert!(day.fix.unwrap().contains("raise DAILY_BUDGET_USD"));
        let month = judge_budget("1.00 of 5.00 USD today, 50.00 of 50.00 this month", Some(Cap::Month));
        assert!(month.detail.contains("before the month is over") && month.fix.unwrap().contains("MONTHLY_BUDGET_USD"));
    }
}
