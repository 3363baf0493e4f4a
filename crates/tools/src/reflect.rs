//! The tools of a reflection besides reading and remembering: a day's summary in the model's words, and marking a contradiction, with a
//! question to the person about it. A reflection has no other tools: nothing leaves the machine, and no program runs.

use chrono::{Days, NaiveDate};
use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::{
    schedule::{self, Missed},
    types::{ChatRef, Effect},
};
use reveille_memory as memory;
use reveille_memory::{
    others,
    preferences::Preferences,
    reflect::{Dispute, add_reworded_summary, days_path, find_dispute},
    unsettled::find_conflicts,
};
use reveille_store::{Change, NewNudge, NewOutgoing, NewReminder, OutgoingKind};

use super::{Done, Outcome, Refusal, Tool, World, check_text, shorten_text};

/// All tools of a reflection.
const ALLOWED: [&str; 8] =
    ["plan", "remember", "forget", "memory_search", "memory_read", "read_exchange", DAY_SUMMARY, CONTRADICTION];
const DAY_SUMMARY: &str = "day_summary";
const CONTRADICTION: &str = "contradiction";
/// Maximum age of a day to sum up, in days.
const DAYS_BACK_MAX: u64 = 15;
/// Maximum number of key facts in a summary.
const FACTS_MAX: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DaySummary {
    /// The day, such as 2026-11-20.
    day: String,
    /// What the day with your person was about and what came of it, in a few sentences that can be understood by themselves.
    summary: String,
    /// What was learnt on it, a sentence each.
    #[serde(default)]
    key_facts: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Contradiction {
    /// Words that only the one fact has.
    one: String,
    /// Words that only the other fact has.
    other: String,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            DAY_SUMMARY,
            "Sum up a day with your person, in place of the list made by rule. Searching finds it later.",
            Effect::Idempotent,
            day_summary,
        ),
        Tool::new(
            CONTRADICTION,
            "Mark two stored facts that can't both be so, and ask your person which is right. Both stay until they say.",
            Effect::Idempotent,
            mark_contradiction,
        ),
    ]
}

/// Returns true for a tool that only a reflection has.
pub(super) fn is_of_reflection(tool: &str) -> bool {
    matches!(tool, DAY_SUMMARY | CONTRADICTION)
}

/// Returns true if a reflection has the tool.
pub(super) fn is_allowed(tool: &str) -> bool {
    ALLOWED.contains(&tool)
}

fn day_summary(args: &DaySummary, world: &World) -> Outcome {
    let today = world.local_time().date_naive();
    let day: NaiveDate =
        args.day.trim().parse().map_err(|_| {
            Refusal::new(format!("day {:?} is none: write it as 2026-11-20. Nothing was done.", args.day))
        })?;
    if day >= today || today.checked_sub_days(Days::new(DAYS_BACK_MAX)).is_some_and(|first| day < first) {
        return Err(Refusal::new(format!("{day} is not one of the days of this reflection. Nothing was done.")));
    }
    let mut lines = vec![check_text(&args.summary, "summary", 1_000)?];
    for fact in args.key_facts.iter().take(FACTS_MAX) {
        lines.push(format!("Key fact: {}", check_text(fact, "key fact", 300)?));
    }
    let path = days_path(day);
    let new = add_reworded_summary(
        &world.memory.documents.text(&path),
        day,
        (&world.cycle.id, world.cycle.taint.is_some()),
        &lines,
    );
    Ok(Done {
        content: format!("Kept in {path}."),
        receipt: Some(format!("Summed up {day}: {}", shorten_text(&args.summary))),
        changes: vec![world.memory.documents.stage(&path, new)],
        ..Done::default()
    })
}

fn mark_contradiction(args: &Contradiction, world: &World) -> Outcome {
    let by_hand = world.person_edits().cloned().unwrap_or_default();
    let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let found = find_dispute(&text, &args.one, &args.other).map_err(Refusal::new)?;
    let (known, _) = memory::facts::Facts::parse(&text);
    let is_untrusted =
        |line| others::has_untrusted_lines(memory::SEMANTIC_MEMORY, &text, world.foreign_chat(), line, line);
    let mut named = known.iter().filter(|(_, fact)| fact.text == found.one || fact.text == found.other);
    if found.one == found.other || named.any(|(_, fact)| is_untrusted(fact.line)) {
        return Err(Refusal::new("These aren't two facts that are known for sure. Nothing was done.".to_owned()));
    }
    let key = found.key();
    let conflict_lines: Vec<usize> = find_conflicts(&text).into_iter().flat_map(|conflict| conflict.lines).collect();
    let is_disputed = |fact: &memory::facts::Fact| fact.text == found.one || fact.text == found.other;
    let is_marked = known.iter().any(|(_, fact)| is_disputed(fact) && conflict_lines.contains(&fact.line));
    if is_marked || world.unasked.told_keys.contains(&key) || world.unasked.told_keys.contains(&format!("tell/{key}")) {
        return Err(Refusal::new("That contradiction was noted before. Nothing was done.".to_owned()));
    }
    let holds_nudges = Preferences::parse(&world.memory.documents.text(memory::CONTEXT)).holds_nudges();
    let asking = Asking {
        owner_chat: world.unasked.owner_chat,
        now: world.clock.now,
        tz: world.clock.tz,
        quiet_hours: world.unasked.quiet_hours,
        may_ask: world.unasked.told_today < world.unasked.tell_per_day && !holds_nudges,
    };
    let Some(question) = asking.build_question(std::slice::from_ref(&found)) else {
        return Err(Refusal::new(
            "Your person can't be asked today. Nothing was done; it can be noted another day.".to_owned(),
        ));
    };
    let marked = found.mark_facts(&text, &by_hand);
    let content = if marked == text {
        "Both lines are your person's own and stay as they are. Your person is asked."
    } else {
        "Both stay, what isn't your person's own line is marked, and your person is asked."
    };
    let noted = Change::Handled { key, value: String::new() };
    Ok(Done {
        content: content.to_owned(),
        receipt: Some(format!(
            "Noted a contradiction: “{}” and “{}”",
            shorten_text(&found.one),
            shorten_text(&found.other)
        )),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, marked), noted, question],
        ..Done::default()
    })
}

/// What it takes to ask a person about contradictions. As with `tell`, a question comes only in waking hours and never twice.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// The chat to ask.
    pub owner_chat: ChatRef,
    /// The current time.
    pub now: chrono::DateTime<chrono::Utc>,
    /// The person's time zone.
    pub tz: reveille_base::zone::Tz,
    /// The hours in which no message is sent.
    pub quiet_hours: Option<reveille_config::QuietHours>,
    /// True while the daily limit permits a question.
    pub may_ask: bool,
}

impl Asking {
    /// Returns the question about these contradictions; `None` if none may be asked. In quiet hours, a reminder asks at their end.
    pub fn build_question(&self, disputes: &[Dispute]) -> Option<Change> {
        let first = disputes.first().filter(|_| self.may_ask)?;
        let pairs = disputes.iter().map(|pair| format!("“{}” and “{}”", pair.one, pair.other));
        let text = format!(
            "My notes contradict each other: {}. Which is right? Tell me, and I'll forget the other.",
            pairs.collect::<Vec<_>>().join("; ")
        );
        let local = self.now.with_timezone(&self.tz).naive_local();
        Some(match self.quiet_hours.filter(|hours| hours.contains(local.time())) {
            Some(hours) => {
                let is_tomorrow = hours.until <= local.time();
                let day = if is_tomorrow { local.date().succ_opt().unwrap_or(local.date()) } else { local.date() };
                let slot = schedule::resolve_local_time(day.and_time(hours.until), self.tz);
                Change::AddReminder(NewReminder {
                    chat: self.owner_chat,
                    thread_id: None,
                    text,
                    rule: None,
                    zone: self.tz.name().to_owned(),
                    slot: slot.civil,
                    next_at: slot.at,
                    missed: Missed::Run,
                })
            }
            None => Change::Send(NewOutgoing {
                chat: self.owner_chat,
                text,
                kind: OutgoingKind::Tell,
                nudge: Some(NewNudge { task: None, zone: self.tz.name().to_owned(), may_stop: true, proposal: None }),
                key: Some(format!("tell/{}", first.key())),
                ..NewOutgoing::default()
            }),
        })
    }
}
