//! `token`, `key` and `budget`: the bot can run, a model can be asked, and the budget allows it.

use std::path::Path;

use chrono::{DateTime, Utc};

use reveille_base::process;
use reveille_config::{CLAUDE_CODE, OFFLINE_MODEL};
use reveille_cycle::decide::budget::Budget;
use reveille_model::offered;
use reveille_store::{Cap, ModelBreaker, ModelFault, Store, Upkeep};

use super::remote::describe_failure;
use crate::{
    health::{
        finding::{Finding, Trouble},
        reach::TelegramAnswer,
        remedy::Remedy,
        scene::Scene,
        words::format_relative_time,
    },
    setup::Checked,
};

pub(super) fn check_token(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let config = scene.effective_config();
    let set = judge_token(config.telegram_token.is_some(), config.allowed_chats.len());
    Ok(match &scene.reached.bot {
        Some(reached) => set.merge(judge_bot(reached)),
        None => set,
    })
}

/// Judges Telegram's answer. A failure to ask says nothing about the token.
fn judge_bot(reached: &TelegramAnswer) -> Finding {
    match reached {
        TelegramAnswer::Fine { username } => Finding::ok(format!("Telegram knows it as @{username}")),
        TelegramAnswer::Unknown(why) => Finding::ok(format!("Telegram couldn't be reached: {why}")),
        TelegramAnswer::Refused => Finding::critical(
            "Telegram rejects it",
            "copy all of it again from @BotFather, including the digits before the colon: wake init",
        ),
        TelegramAnswer::Webhook { host } => {
            let finding = Finding::critical(
                format!("a webhook at {host} takes the bot's messages"),
                "bot webhook delete (waiting messages are kept)",
            );
            finding.with_remedy(Remedy::RemoveWebhook { host: host.clone() })
        }
    }
}

fn judge_token(has_token: bool, chats: usize) -> Finding {
    match (has_token, chats) {
        (true, 1..) => Finding::ok(format!("set; allowed chats: {chats}")),
        (true, 0) => Finding::warn(
            "set, but nobody may talk to the bot yet",
            "start the bot and send it the code that it shows, or set ALLOWED_CHAT_IDS to your numeric chat id",
        ),
        (false, 0) => Finding::ok("none: Telegram isn't set up; wake say and wake chat work without it"),
        (false, _) => Finding::warn(
            "none, though chats are allowed: the bot can't run; wake say works without it",
            "ask @BotFather on Telegram for a token and set TELEGRAM_BOT_TOKEN",
        ),
    }
}

pub(super) fn check_key(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let config = &scene.effective_config();
    let store = scene.store()?;
    let chain = config.list_usable_models();
    let of_tasks = [("MODEL_SIMPLE", &config.model_simple), ("MODEL_REFLECT", &config.model_reflect)];
    let of_tasks = of_tasks.into_iter().filter_map(|(setting, name)| Some((setting, name.as_deref()?)));
    let of_tasks: Vec<(&str, &str)> = of_tasks.filter(|(_, name)| !chain.contains(name)).collect();
    let is_absent = |name: &str| name == CLAUDE_CODE && process::find_program(&config.claude_code).is_none();

    let links = chain.iter().filter(|name| !is_absent(name)).map(|name| ChainLink::read(name, store));
    let links = links.collect::<Result<Vec<_>, Trouble>>()?;
    let mut findings = Vec::new();
    if links.len() < chain.len() {
        let others: Vec<&str> = links.iter().map(|link| link.name).collect();
        findings.push(no_claude_code("MODEL", &config.claude_code, &others));
    }
    if !links.is_empty() {
        let unused = config.requested_models().find(|name| !config.can_use(name));
        let unused = unused.map(|name| (name, config.describe_missing(name).unwrap_or_default()));
        findings.push(judge_chain(&links, unused, scene.now));
    }
    for (setting, name) in of_tasks {
        if is_absent(name) {
            findings.push(no_claude_code(setting, &config.claude_code, &chain));
        } else {
            findings.extend(judge_task(
                setting,
                &ChainLink::read(name, store)?,
                config.describe_missing(name),
                scene.now,
            ));
        }
    }
    findings.extend(scene.reached.model.as_ref().map(judge_model));
    Ok(Finding::merge_all(findings, Finding::nothing_yet()))
}

/// Judges the answer of the first model's server. A wake tries again by itself in any case.
fn judge_model(asked: &Checked) -> Finding {
    match asked {
        Checked::Good(told) => Finding::ok(told),
        Checked::Wrong(why) => Finding::warn(why, "wake init corrects it and tests it"),
        Checked::Unknown(why) => Finding::ok(format!("it couldn't be reached now: {why}")),
    }
}

/// `others` are the models asked in its place.
fn no_claude_code(setting: &str, program: &Path, others: &[&str]) -> Finding {
    let meanwhile = match others.first() {
        Some(other) => format!("{other} is used instead"),
        None => "messages wait".to_owned(),
    };
    Finding::warn(
        format!("{setting} names {CLAUDE_CODE}, but {} is missing", program.display()),
        format!("{meanwhile}; install it (npm install -g @anthropic-ai/claude-code), or set CLAUDE_CODE to its path"),
    )
}

/// Judges a model that a setting names for one kind of work, if a person has to act. `lack` is a missing requirement.
fn judge_task(setting: &str, link: &ChainLink<'_>, lack: Option<&str>, now: DateTime<Utc>) -> Option<Finding> {
    let name = link.name;
    if let Some(why) = lack {
        return Some(Finding::warn(
            format!("{setting} names {name}, which isn't used: {why}"),
            format!("set what it needs, or remove it from {setting} (docs/MODELS.md)"),
        ));
    }
    let breaker = link.breaker.as_ref().filter(|it| it.fault.needs_person())?;
    let fix = match breaker.fault {
        ModelFault::Missing => format!("check that {name} in {setting} is spelt as its provider spells it"),
        _ => format!("check the key and the account of {name}, which {setting} names"),
    };
    Some(Finding::warn(format!("{setting}: {}", link.describe(now)), fix))
}

/// A model of the chain.
struct ChainLink<'a> {
    name: &'a str,
    /// The model's trouble, if any.
    breaker: Option<ModelBreaker>,
    /// Start of its last answered request, the only proof that it can be reached.
    answered_at: Option<DateTime<Utc>>,
}

impl<'a> ChainLink<'a> {
    fn read(name: &'a str, store: Option<&Store>) -> Result<Self, Trouble> {
        let breaker = store.map_or(Ok(None), |store| store.maintenance().find_breaker(name))?;
        let answered_at = store.map_or(Ok(None), |store| store.ledger().last_answer(name))?;
        Ok(Self { name, breaker, answered_at })
    }

    fn describe(&self, now: DateTime<Utc>) -> String {
        let name = self.name;
        match (&self.breaker, self.answered_at) {
            (Some(it), _) => {
                let (failures, error) = (it.failures, Some(it.error.clone()));
                describe_failure(name, &Upkeep { failures, not_before: it.not_before, error, last_ok_at: None }, now)
            }
            (None, Some(at)) => format!("{name} last answered {}", format_relative_time(at, now)),
            (None, None) if name == OFFLINE_MODEL => format!("{name} always answers"),
            (None, None) => format!("{name} is set, not tried yet"),
        }
    }
}

/// `unused` is a named model with its missing requirement.
fn judge_chain(links: &[ChainLink<'_>], unused: Option<(&str, &str)>, now: DateTime<Utc>) -> Finding {
    if let [ChainLink { name: OFFLINE_MODEL, .. }] = links {
        let why = unused.map_or("MODEL says so", |(_, why)| why);
        return Finding::ok(format!("no AI model, I answer offline: {why}"));
    }
    let told = links.iter().map(|link| link.describe(now)).collect::<Vec<_>>().join("; then ");
    if links.iter().all(|link| link.breaker.is_none()) {
        return match unused {
            Some((name, why)) => Finding::warn(
                format!("{told}; {name} isn't used: {why}"),
                "set what it needs, or remove it from MODEL (docs/MODELS.md)",
            ),
            None => Finding::ok(told),
        };
    }
    let is_missing = |link: &&ChainLink<'_>| link.breaker.as_ref().is_some_and(|it| it.fault == ModelFault::Missing);
    if let Some(link) = links.iter().find(is_missing) {
        return Finding::warn(
            format!("set; {told}"),
            format!("messages wait; check that {} in MODEL is spelt as its provider spells it", link.name),
        );
    }
    let answers = links.iter().find(|link| link.breaker.is_none()).map(|link| link.name);
    let meanwhile = match answers {
        Some(name) => format!("{name} answers meanwhile"),
        None => "messages wait until it can be reached".to_owned(),
    };
    Finding::warn(format!("set; {told}"), format!("{meanwhile}; check the key, the account and the network"))
}

pub(super) fn check_budget(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::ok("nothing spent yet"));
    };
    let is_thinking = scene.model_state(store)?.is_thinking();
    let budget = scene.budget(store)?;
    let finding = if is_thinking { judge_budget(&budget) } else { Finding::ok(budget.describe()) };
    Ok(match offered::describe_unpriced_models(&scene.effective_config()) {
        Some(unpriced) => Finding { detail: format!("{}. {unpriced}", finding.detail), ..finding },
        None => finding,
    })
}

fn judge_budget(budget: &Budget) -> Finding {
    let reached = budget.find_reached_cap().map(|cap| (None, cap));
    let Some((chat, cap)) = reached.or_else(|| budget.no_room.iter().map(|(chat, cap)| (*chat, *cap)).next()) else {
        return Finding::ok(budget.describe());
    };
    let why = budget.find_obstacle(chat).unwrap_or_default();
    let until = if cap == Cap::Day { "midnight" } else { "the month is over" };
    let raise = match budget.enough_usd(chat).filter(|_| reached.is_none()) {
        Some(usd) => format!("set {} to {usd:.2} or more", cap.setting_name()),
        None => format!("raise {}", cap.setting_name()),
    };
    Finding::warn(format!("{why}; {}", budget.describe()), format!("messages wait until {until}, or {raise}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::{clock::parse_time, types::ChatRef};

    /// The spending and the limits of today and this month, on 21 November.
    fn of(of_day: (f64, f64), of_month: (f64, Option<f64>)) -> Budget {
        let now = parse_time("2026-11-21T14:00:00Z").unwrap();
        Budget::from_spending((now, "Europe/Berlin".parse().unwrap()), of_day, of_month)
    }

    #[test]
    fn the_bot_needs_a_token_and_an_allowed_chat() {
        assert_eq!(judge_token(true, 2).status, Status::Ok);
        assert!(judge_token(true, 0).fix.unwrap().contains("ALLOWED_CHAT_IDS"));
        assert!(judge_token(false, 2).fix.unwrap().contains("TELEGRAM_BOT_TOKEN"));
        // A person who never set up Telegram needs neither.
        assert_eq!(judge_token(false, 0).status, Status::Ok);
    }

    #[test]
    fn a_servers_answer_counts_and_a_missing_answer_is_no_problem() {
        let judged = |reached| judge_bot(&reached);
        assert_eq!(
            judged(TelegramAnswer::Fine { username: "rev".to_owned() }),
            Finding::ok("Telegram knows it as @rev")
        );
        assert_eq!(judged(TelegramAnswer::Unknown("no network".to_owned())).status, Status::Ok);
        assert_eq!(judged(TelegramAnswer::Refused).status, Status::Critical);
        let webhook = judged(TelegramAnswer::Webhook { host: "example.org".to_owned() });
        assert!(webhook.status == Status::Critical && webhook.detail.contains("example.org"), "{webhook:?}");
        assert_eq!(webhook.remedies, [Remedy::RemoveWebhook { host: "example.org".to_owned() }]);
        assert_eq!(judge_model(&Checked::Unknown("down".to_owned())).status, Status::Ok);
        assert_eq!(judge_model(&Checked::Wrong("no such key".to_owned())).status, Status::Warn);
    }

    #[test]
    fn offline_is_a_choice_and_a_failing_model_is_told() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let failing = |fault| {
            let error = "overloaded".to_owned();
            Some(ModelBreaker { model: String::new(), fault, failures: 1, since: None, not_before: None, error })
        };
        let link = |name, breaker, answered_at| ChainLink { name, breaker, answered_at };
        assert_eq!(judge_chain(&[link(OFFLINE_MODEL, None, None)], None, now).status, Status::Ok);
        let well = |answered_at| judge_chain(&[link("claude", None, answered_at)], None, now);
        assert_eq!(well(None), Finding::ok("claude is set, not tried yet"));
        assert_eq!(well(parse_time("2026-11-21T09:00:00Z")), Finding::ok("claude last answered 3 h ago"));
        let finding = judge_chain(&[link("claude", failing(ModelFault::Outage), None)], None, now);
        assert!(finding.status == Status::Warn && finding.detail.contains("claude failed once: overloaded"));
        let chain = [link("claude", failing(ModelFault::Account), None), link("other", None, None)];
        let finding = judge_chain(&chain, None, now);
        assert!(finding.detail.contains("claude failed once: overloaded; retry due at the next wake; then other"));
        assert!(finding.fix.unwrap().starts_with("other answers meanwhile"));
        let finding = judge_chain(&[link("claud", failing(ModelFault::Missing), None)], None, now);
        assert!(finding.fix.unwrap().contains("claud in MODEL"));
        let finding = judge_chain(&[link("other", None, None)], Some(("claude", "there is no key")), now);
        assert!(finding.status == Status::Warn && finding.detail.ends_with("claude isn't used: there is no key"));
    }

    #[test]
    fn a_task_model_that_needs_a_person_is_told_with_its_setting() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let told = |fault: Option<ModelFault>, lack: Option<&str>| {
            let error = "no such model".to_owned();
            let breaker = fault.map(|fault| {
                let model = "claud".to_owned();
                ModelBreaker { model, fault, failures: 1, since: None, not_before: None, error }
            });
            judge_task("MODEL_SIMPLE", &ChainLink { name: "claud", breaker, answered_at: None }, lack, now)
        };
        let missing = told(Some(ModelFault::Missing), None).unwrap();
        assert!(missing.status == Status::Warn && missing.detail.starts_with("MODEL_SIMPLE: claud failed once"));
        assert!(missing.fix.unwrap().contains("claud in MODEL_SIMPLE is spelt"));
        assert!(told(Some(ModelFault::Account), None).unwrap().fix.unwrap().contains("the account of claud"));
        assert!(told(None, Some("there is no key")).unwrap().detail.ends_with("isn't used: there is no key"));
        assert_eq!((told(Some(ModelFault::Outage), None), told(None, None)), (None, None));
    }

    #[test]
    fn claude_code_that_is_missing_holds_messages_up_only_where_it_is_alone() {
        let told = |others: &[&str]| no_claude_code("MODEL", Path::new("/nowhere/claude"), others).fix.unwrap();
        assert!(told(&[]).starts_with("messages wait; install it"));
        assert!(told(&["claude-sonnet-5-5"]).starts_with("claude-sonnet-5-5 is used instead; install it"));
    }

    #[test]
    fn a_spent_budget_is_told_with_what_to_do() {
        assert_eq!(judge_budget(&of((4.99, 5.0), (4.99, None))).status, Status::Ok);
        let day = judge_budget(&of((5.0, 5.0), (5.0, None)));
        assert!(day.status == Status::Warn && day.detail.contains("today's budget is spent"), "{day:?}");
        assert_eq!(day.fix.as_deref(), Some("messages wait until midnight, or raise DAILY_BUDGET_USD"));
        let month = judge_budget(&of((1.0, 5.0), (50.0, Some(50.0))));
        assert!(month.detail.contains("this month's budget is spent"), "{month:?}");
        assert!(month.fix.unwrap().contains("until the month is over, or raise MONTHLY_BUDGET_USD"));
        let mut tight = of((0.0, 0.03), (0.0, None));
        (tight.no_room, tight.needs_usd) =
            ([(Some(ChatRef::from_telegram(7)), Cap::Day)].into(), [(Some(ChatRef::from_telegram(7)), 0.19)].into());
        let tight = judge_budget(&tight);
        assert!(tight.detail.starts_with("the next call may cost up to $0.19"), "{tight:?}");
        assert_eq!(tight.fix.unwrap(), "messages wait until midnight, or set DAILY_BUDGET_USD to 0.19 or more");
    }
}
