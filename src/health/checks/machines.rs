//! `machines`: checks that machines take turns, by the last known state and without contacting anyone.

use chrono::{DateTime, Utc};

use reveille_config::{Config, UnrequestedWork};
use reveille_cycle::lease::{self, LastSeenLease, LeasePart, LeaseRecord};
use reveille_store::{Upkeep, UpkeepKind};

use crate::health::{
    checks::remote::describe_failure,
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_relative_time,
};

struct Facts {
    bot: LeaseRecord,
    wake: LeaseRecord,
    is_on_duty: bool,
    duty: UnrequestedWork,
    upkeep: Upkeep,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    if !scene.config.lease.is_shared() {
        return Ok(Finding::ok("this one alone (LEASE=local)"));
    }
    let upkeep = match scene.store()? {
        Some(store) => store.maintenance().read_upkeep(UpkeepKind::Lease)?,
        None => Upkeep::default(),
    };
    Ok(judge_facts(&read_facts(scene.config, upkeep), scene.now))
}

fn read_facts(config: &Config, upkeep: Upkeep) -> Facts {
    Facts {
        bot: lease::read_record(config, LeasePart::Bot),
        wake: lease::read_record(config, LeasePart::Wake),
        is_on_duty: lease::is_on_duty(config),
        duty: config.lease.duty,
        upkeep,
    }
}

/// Describes the machine on duty. `None` if this machine is alone.
pub(in crate::health) fn describe_duty(config: &Config, now: DateTime<Utc>) -> Option<String> {
    config.lease.is_shared().then(|| describe_machines(&read_facts(config, Upkeep::default()), now))
}

fn describe_machines(facts: &Facts, now: DateTime<Utc>) -> String {
    let duty = if facts.is_on_duty { "this one is on duty" } else { "this one isn't on duty" };
    format!("{duty}; bot: {}; work: {}", describe_holder(&facts.bot, now), describe_holder(&facts.wake, now))
}

fn describe_holder(record: &LeaseRecord, now: DateTime<Utc>) -> String {
    let Some(seen) = &record.seen else { return "not seen yet".to_owned() };
    let since = seen.start_time().map(|at| format!(" since {}", format_relative_time(at, now))).unwrap_or_default();
    let when =
        seen.observation_time().map(|at| format!(" (seen {})", format_relative_time(at, now))).unwrap_or_default();
    match seen {
        LastSeenLease { is_held: false, .. } => format!("nobody{when}"),
        // The end of this machine's own lease is known without asking.
        LastSeenLease { is_ours: true, .. } if !lease::is_held_here(record) => "no longer this one".to_owned(),
        LastSeenLease { is_ours: true, .. } => format!("this one{since}"),
        LastSeenLease { name, .. } => format!("{name}{since}{when}"),
    }
}

fn judge_facts(facts: &Facts, now: DateTime<Utc>) -> Finding {
    let said = describe_machines(facts, now);
    let mut troubles = Vec::new();
    if facts.upkeep.failures > 0 {
        troubles.push(describe_failure("asking for the lease", &facts.upkeep, now));
    }
    troubles.extend(facts.bot.trouble.as_ref().map(|why| format!("the bot couldn't ask for its lease: {why}")));
    if !troubles.is_empty() {
        return Finding::warn(
            [vec![said], troubles].concat().join("; "),
            "until it can be asked, this machine answers what it has and pushes nothing; its bot stops polling once its \
             term is over. Try by hand in the memory's directory: git ls-remote",
        );
    }
    if facts.duty == UnrequestedWork::Bot && facts.bot.seen.is_none() {
        return Finding::warn(
            said,
            "no machine's bot was seen, so nothing runs automatically here, such as tasks at their times. If no machine runs a \
             bot, set LEASE_DUTY=always on one of them",
        );
    }
    Finding::ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    fn seen(name: &str, is_ours: bool, is_held: bool) -> LeaseRecord {
        let at = "2026-11-21T11:58:00Z".to_owned();
        let since = "2026-11-21T10:00:00Z".to_owned();
        let seen = LastSeenLease { name: name.to_owned(), is_ours, is_held, since, at };
        LeaseRecord { seen: Some(seen), ..LeaseRecord::default() }
    }

    #[test]
    fn the_machine_on_duty_is_named_and_an_unreachable_lease_is_a_warning() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let mut facts = Facts {
            bot: seen("desk", false, true),
            wake: seen("laptop", true, false),
            is_on_duty: false,
            duty: UnrequestedWork::Bot,
            upkeep: Upkeep::default(),
        };
        let finding = judge_facts(&facts, now);
        assert_eq!(finding.status, Status::Ok);
        assert_eq!(
            finding.detail,
            "this one isn't on duty; bot: desk since 2 h ago (seen 2 min ago); work: nobody (seen 2 min ago)"
        );
        facts.bot = seen("laptop", true, true);
        assert!(judge_facts(&facts, now).detail.contains("bot: no longer this one"));
        facts.upkeep = Upkeep { failures: 2, error: Some("no route".to_owned()), ..Upkeep::default() };
        let finding = judge_facts(&facts, now);
        assert_eq!(finding.status, Status::Warn);
        assert!(finding.detail.contains("asking for the lease failed 2 times: no route"), "{}", finding.detail);
        facts.upkeep = Upkeep::default();
        facts.bot = LeaseRecord::default();
        assert_eq!(judge_facts(&facts, now).status, Status::Warn, "nobody is on duty as far as is known");
    }
}
