//! Reminders: setting, listing, moving and ending. They fire at their civil time, without a model. `near` resolves
//! relative times, and finds the reminder just sent.

mod near;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::{
    schedule::{
        Missed, Rule, Slot, is_distance, parse_only_day, parse_relative, resolve_local_time,
        when::{self, When},
    },
    types::Effect,
    zone::Tz,
};
use reveille_memory::view;
use reveille_policy::Reach;
use reveille_store::{Change, NewReminder, Reminder};

use super::{Done, NamedList, Outcome, Refusal, Tool, World, check_text, shorten_text, task};

/// Maximum number of active reminders.
const MAX_REMINDERS: usize = 500;
/// Maximum number for a chat other than the owner's, so that it can't use up the limit.
const MAX_REMINDERS_OF_CHAT: usize = 50;
/// A value for `when`: the same hour in the person's current zone.
pub const HERE: &str = "here";
/// Maximum age of an instant that still makes a reminder.
const MAX_LATE: TimeDelta = TimeDelta::days(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Set {
    /// What to remind of, as your person should read it.
    text: String,
    /// When, in your person's zone: `2026-11-23 09:00`, `tomorrow at 9`, `every weekday at 8`, `every month on the 1st`, or by a task or
    /// reminder: `15 minutes before the meeting`.
    when: String,
    /// If the machine was off or asleep then: `run` it late (the default), `skip` it, or only `tell` that it was missed.
    #[serde(default)]
    missed: Missed,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Show {
    /// Only those that are due on this day, such as `today` or `2026-11-23`, with the tasks that are.
    #[serde(default)]
    day: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The reminder's number from `reminder_list`, or words that only it has.
    reminder: String,
    /// When from now on, as for `reminder_set`. A day alone keeps the time, a time alone the day or the rhythm. `here` with `all`: the
    /// same hour in the present zone.
    #[serde(default)]
    when: Option<String>,
    /// Instead of `when`: how much later, such as `1 hour`, than its time, or than now if that has passed.
    #[serde(default)]
    by: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Its number from `reminder_list`, words that only it has, or `last`: the one just sent here.
    reminder: String,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "reminder_set",
            "Set a reminder for the asking chat, once or recurring. It is sent at its time without you being asked.",
            Effect::Staged,
            set_reminder,
        )
        .with_reach(Reach::Persists),
        Tool::new("reminder_list", "List the active reminders, the next one first.", Effect::Read, list_reminders),
        Tool::new(
            "reminder_move",
            "Move a reminder to another time, or have it recur otherwise. It gets another number.",
            Effect::Staged,
            move_reminder,
        )
        .with_reach(Reach::Persists),
        Tool::new("reminder_done", "End a reminder: it is not sent any more.", Effect::Idempotent, finish_reminder)
            .with_reach(Reach::Persists),
    ]
}

fn set_reminder(args: &Set, world: &World) -> Outcome {
    let text = check_text(&args.text, "text", 1_000)?;
    if world.memory.reminders.len() >= MAX_REMINDERS {
        return Err(Refusal::new(format!(
            "{MAX_REMINDERS} reminders are active, which is the limit. Nothing was done."
        )));
    }
    if world.foreign_chat().is_some() && list_visible_reminders(world).count() >= MAX_REMINDERS_OF_CHAT {
        return Err(Refusal::new(format!(
            "{MAX_REMINDERS_OF_CHAT} reminders of this chat are active, which is its limit. Nothing was done."
        )));
    }
    let ReminderTime { slot, rule, of } = parse_slot(&args.when, world)?;
    let chat = world.conversation.chat.map_or((world.unasked.owner_chat, None), |chat| (chat.id, chat.thread_id));
    let at = format!("{}{of}{}", format_slot(slot, rule.as_ref(), world.clock.tz), format_missed_policy(args.missed));
    let done = Done {
        content: format!("Reminder set: {text} — {at}"),
        receipt: Some(format!("Set the reminder “{}”, {at}", shorten_text(&text))),
        changes: vec![Change::AddReminder(NewReminder {
            chat: chat.0,
            thread_id: chat.1,
            text,
            rule,
            zone: world.clock.tz.name().to_owned(),
            slot: slot.civil,
            next_at: slot.at,
            missed: args.missed,
        })],
        ..Done::default()
    };
    Ok(world.append_wake_warning(done))
}

/// The time of a reminder.
struct ReminderTime {
    /// The next slot.
    slot: Slot,
    /// The recurrence.
    rule: Option<Rule>,
    /// A phrase about a relative time, or empty.
    of: String,
}

impl ReminderTime {
    fn once(slot: Slot) -> Self {
        Self { slot, rule: None, of: String::new() }
    }
}

/// Resolves an expression to a time.
fn parse_slot(expression: &str, world: &World) -> Result<ReminderTime, Refusal> {
    if let Ok(at) = DateTime::parse_from_rfc3339(expression.trim()) {
        let slot = Slot::from_instant(at.with_timezone(&Utc), world.clock.tz);
        // An instant that has just passed is a request that was read late, and is due at once.
        if world.clock.now.signed_duration_since(slot.at) > MAX_LATE {
            return Err(Refusal::new(format!("“{expression}” has already passed. Nothing was done.")));
        }
        return Ok(ReminderTime::once(slot));
    }
    let relative = parse_relative(expression, world.local_time());
    if let Some(relative) = relative.filter(|found| found.span.start == 0) {
        return near::resolve(&relative, expression, world);
    }
    let found = when::parse_only_time(expression, world.local_time()).ok_or_else(|| {
        // A partially understood expression would fire at the wrong time.
        Refusal::new(format!(
            "No time was understood in {expression:?}. Give one such as `2026-11-23 09:00` or `every weekday at 8`. Nothing was done."
        ))
    })?;
    match found {
        Ok(When::At(slot)) => Ok(ReminderTime::once(slot)),
        Ok(When::Every(rule)) => match rule.next_after(world.clock.now, world.clock.tz) {
            Some(slot) => Ok(ReminderTime { slot, rule: Some(rule), of: String::new() }),
            None => Err(Refusal::new(format!("“{rule}” never comes. Nothing was done."))),
        },
        Err(trouble) => Err(Refusal::new(format!("“{expression}” {trouble}. Nothing was done."))),
    }
}

fn list_reminders(args: &Show, world: &World) -> Outcome {
    let Some(day) = &args.day else {
        let lines: Vec<_> =
            list_visible_reminders(world).map(|reminder| format_reminder(reminder, world.clock.tz)).collect();
        let content = if lines.is_empty() { "No reminders are set.".to_owned() } else { lines.join("\n") };
        return Ok(Done { taint: find_taint(list_visible_reminders(world), world), ..Done::from_text(content) });
    };
    let date = parse_day(day, world)?;
    let due: Vec<(Slot, &Reminder)> =
        list_visible_reminders(world).filter_map(|one| Some((find_slot(one, date, world.clock.tz)?, one))).collect();
    let line = |(slot, one): &(Slot, &Reminder)| {
        let at = slot.wall_time(one.what.rule.as_ref(), one.zone(world.clock.tz));
        format!("{}. {} — {}", one.id, one.what.text, at.format("%H:%M"))
    };
    let (tasks, are_others) = task::list_due_tasks(date, world);
    let lines: Vec<_> = due.iter().map(line).chain(tasks).collect();
    let content =
        if lines.is_empty() { format!("Nothing is due on {}.", date.format("%A, %-d %B")) } else { lines.join("\n") };
    let taint = find_taint(due.into_iter().map(|(_, one)| one), world).or(are_others);
    Ok(Done { taint, ..Done::from_text(content) })
}

/// Resolves an expression to a day.
fn parse_day(day: &str, world: &World) -> Result<NaiveDate, Refusal> {
    match parse_only_day(day, world.local_time()) {
        Some(Ok(day)) => Ok(day),
        _ => Err(Refusal::new(format!("No day was understood in {day:?}. Give one such as `today` or `2026-11-23`."))),
    }
}

/// Returns the reminder's slot on a day; `None` if there is no future slot on that day.
pub fn find_slot(reminder: &Reminder, date: NaiveDate, tz: Tz) -> Option<Slot> {
    let (next, zone) = (reminder.next(), reminder.zone(tz));
    let rule = reminder.what.rule.as_ref();
    let is_then = |slot: &Slot| slot.wall_time(rule, zone).date() == date;
    if is_then(&next) {
        return Some(next);
    }
    let before = resolve_local_time(date.and_time(NaiveTime::MIN), zone).at - TimeDelta::seconds(1);
    rule?.next_after(before.max(next.at), zone).filter(is_then)
}

/// Moves all reminders of another zone to the same hour in the current zone.
fn shift_here(world: &World) -> Outcome {
    let (mut lines, mut done) = (Vec::new(), Done::default());
    for reminder in list_visible_reminders(world).filter(|reminder| reminder.keeps_another_zone(world.clock.tz)) {
        let old = &reminder.what;
        let slot = match &old.rule {
            Some(rule) => rule.next_after(world.clock.now, world.clock.tz),
            None => {
                Some(resolve_local_time(reminder.next().civil, world.clock.tz)).filter(|slot| slot.at > world.clock.now)
            }
        };
        let Some(slot) = slot else {
            lines.push(format!("{} — its hour has passed here, so it stays as it is", old.text));
            continue;
        };
        lines.push(format!("{} — {}", old.text, format_slot(slot, old.rule.as_ref(), world.clock.tz)));
        let zone = world.clock.tz.name().to_owned();
        done.changes.extend([
            Change::EndReminder { id: reminder.id },
            Change::AddReminder(NewReminder { zone, slot: slot.civil, next_at: slot.at, ..old.clone() }),
        ]);
        done.taint = done.taint.or_else(|| find_taint([reminder], world));
    }
    if lines.is_empty() {
        return Ok(Done::from_text(format!("All reminders already follow the time of {}.", world.clock.tz)));
    }
    done.receipt = Some(format!("Moved the reminders to the time of {}", world.clock.tz));
    Ok(Done { content: format!("They now follow the time of {}:\n{}", world.clock.tz, lines.join("\n")), ..done })
}

/// Moves a reminder. The old one ends and a new one is set, so that an undo restores the old one.
fn move_reminder(args: &Move, world: &World) -> Outcome {
    if args.reminder.trim().eq_ignore_ascii_case("all") && args.when.as_deref() == Some(HERE) {
        return shift_here(world);
    }
    let reminder = match find_reminder(&args.reminder, world) {
        Ok(reminder) => reminder,
        Err(outcome) => return *outcome,
    };
    let ReminderTime { slot, rule, of } = match (&args.when, &args.by) {
        (Some(when), None) => parse_new_time(when, reminder, world)?,
        (None, Some(by)) => put_off(by, reminder, world)?,
        _ => return Err(Refusal::new("It takes either `when` or `by`. Nothing was done.")),
    };
    let old = &reminder.what;
    let at = format!("{}{of}{}", format_slot(slot, rule.as_ref(), world.clock.tz), format_missed_policy(old.missed));
    Ok(Done {
        content: format!("Moved: {} — {at}", old.text),
        receipt: Some(format!("Moved the reminder “{}” to {at}", shorten_text(&old.text))),
        changes: vec![
            Change::EndReminder { id: reminder.id },
            Change::AddReminder(NewReminder {
                rule,
                zone: world.clock.tz.name().to_owned(),
                slot: slot.civil,
                next_at: slot.at,
                ..old.clone()
            }),
        ],
        taint: find_taint([reminder], world),
        ..Done::default()
    })
}

/// Delays a reminder relative to its time, or to now if that has passed.
fn put_off(by: &str, reminder: &Reminder, world: &World) -> Result<ReminderTime, Refusal> {
    if !is_distance(by) {
        return Err(Refusal::new(format!("“{by}” is no length of time, such as `1 hour`. Nothing was done.")));
    }
    let from = reminder.what.next_at.max(world.clock.now).with_timezone(&world.clock.tz);
    let length = ["in ", "for ", "by "].iter().find_map(|lead| by.trim().strip_prefix(lead)).unwrap_or(by.trim());
    match when::parse_only_time(&format!("in {length}"), from) {
        Some(Ok(When::At(slot))) if reminder.what.rule.is_none() => Ok(ReminderTime::once(slot)),
        Some(Ok(_)) => Err(refuse_single_move(reminder)),
        Some(Err(trouble)) => Err(Refusal::new(format!("“{by}” {trouble}. Nothing was done."))),
        None => Err(Refusal::new(format!("“{by}” is no length of time, such as `1 hour`. Nothing was done."))),
    }
}

/// Returns the refusal to move a recurring reminder only once.
fn refuse_single_move(reminder: &Reminder) -> Refusal {
    let rule = reminder.what.rule.as_ref().map(ToString::to_string).unwrap_or_default();
    Refusal::new(format!("It recurs ({rule}), so say how from now on, such as “every Friday at 9”. Nothing was done."))
}

/// Keeps the day or the rhythm, at another time of day; `None` unless the expression is only a time of day.
fn parse_other_time(when: &str, reminder: &Reminder, world: &World) -> Option<ReminderTime> {
    let time = when.trim().strip_prefix("at ").unwrap_or(when.trim());
    let on = |day: &str| match when::parse_only_time(&format!("{day} at {time}"), world.local_time())? {
        Ok(When::At(slot)) => Some(slot),
        _ => None,
    };
    let (zone, rule) = (reminder.zone(world.clock.tz), reminder.what.rule.as_ref());
    let at = on("tomorrow")?.civil.time();
    let Some(rule) = rule else {
        let day = reminder.next().wall_time(None, zone).date();
        return Some(ReminderTime::once(on(&day.to_string())?));
    };
    let said = rule.to_string();
    let (rhythm, _) = said.rsplit_once(" at ").filter(|(rhythm, old)| !rhythm.contains(" at ") && old.len() == 5)?;
    let changed = when::parse_only_time(&format!("{rhythm} at {}", at.format("%H:%M")), world.local_time())?;
    let Ok(When::Every(rule)) = changed else { return None };
    let slot = rule.next_after(world.clock.now, world.clock.tz)?;
    Some(ReminderTime { slot, rule: Some(rule), of: String::new() })
}

/// Resolves a reminder's new time. An expression without a time of day keeps the old one.
fn parse_new_time(when: &str, reminder: &Reminder, world: &World) -> Result<ReminderTime, Refusal> {
    if let Some(found) = parse_other_time(when, reminder, world) {
        return Ok(found);
    }
    let (old, zone) = (&reminder.what, reminder.zone(world.clock.tz));
    let at_its_time =
        format!("{} at {}", when.trim(), reminder.next().wall_time(old.rule.as_ref(), zone).format("%H:%M"));
    let is_whole = |found: &when::FoundTime| found.span == (0..at_its_time.len()) && found.when.is_ok();
    let is_instant = DateTime::parse_from_rfc3339(when.trim()).is_ok();
    let keeps_time =
        !is_instant && when::parse_when(&at_its_time, world.local_time()).is_some_and(|found| is_whole(&found));
    let time = parse_slot(if keeps_time { &at_its_time } else { when }, world)?;
    if old.rule.is_some() && time.rule.is_none() { Err(refuse_single_move(reminder)) } else { Ok(time) }
}

/// Formats a reminder for the list, including unusual settings.
fn format_reminder(reminder: &Reminder, tz: Tz) -> String {
    let (what, zone) = (&reminder.what, reminder.zone(tz));
    let mut line =
        format!("{}. {} — {}", reminder.id, what.text, format_slot(reminder.next(), what.rule.as_ref(), zone));
    if zone != tz {
        line.push_str(&format!(" ({zone})"));
    }
    line.push_str(&format_missed_policy(what.missed));
    if let Some(skipped) = reminder.skipped {
        let slot = Slot { civil: skipped, at: skipped.and_utc() };
        line.push_str(&format!(
            "; the last was: {}",
            slot.wall_time(what.rule.as_ref(), zone).format("%a %-d %b at %H:%M")
        ));
    }
    line
}

fn format_missed_policy(missed: Missed) -> String {
    if missed == Missed::default() { String::new() } else { format!(", {missed}") }
}

fn finish_reminder(args: &Which, world: &World) -> Outcome {
    let mut query = args.reminder.clone();
    // A quoted text must match the whole reminder, not only a part.
    let named = query.trim().strip_prefix('“').and_then(|text| text.strip_suffix('”')).map(str::to_owned);
    if named.is_some() || query.trim().eq_ignore_ascii_case("last") {
        let sent = named.map_or_else(|| near::find_sent_reminder(world), Ok)?;
        match list_visible_reminders(world)
            .find(|reminder| reminder.what.text.lines().next().map(str::trim) == Some(&sent))
        {
            Some(reminder) => query = reminder.id.to_string(),
            None => return Ok(Done::from_text(format!("“{sent}” was set once and won't come again."))),
        }
    }
    let reminder = match find_reminder(&query, world) {
        Ok(reminder) => reminder,
        Err(outcome) => return *outcome,
    };
    Ok(Done {
        content: format!("Ended: {}", reminder.what.text),
        receipt: Some(format!("Ended the reminder “{}”", shorten_text(&reminder.what.text))),
        changes: vec![Change::EndReminder { id: reminder.id }],
        taint: find_taint([reminder], world),
        ..Done::default()
    })
}

/// Finds the only reminder for a number or words; otherwise returns the outcome for the model.
fn find_reminder<'a>(query: &str, world: &'a World) -> Result<&'a Reminder, Box<Outcome>> {
    let query = check_text(query, "reminder", 1_000).map_err(|refusal| Box::new(Err(refusal)))?;
    let number = query.trim_start_matches('#').parse::<i64>().ok();
    let wanted = query.to_lowercase();
    let bare = ["the ", "my "].iter().find_map(|article| wanted.strip_prefix(article)).unwrap_or(&wanted);
    let matching: Vec<&Reminder> = list_visible_reminders(world)
        .filter(|reminder| match number {
            Some(number) => reminder.id == number,
            None => reminder.what.text.to_lowercase().contains(bare),
        })
        .collect();
    match matching.as_slice() {
        [reminder] => Ok(*reminder),
        [] => {
            let named = number.map_or_else(|| format!("“{query}”"), |number| number.to_string());
            Err(Box::new(Err(Refusal::with_list(format!("There's no reminder {named}"), NamedList::Reminders))))
        }
        several => {
            let lines: Vec<_> =
                several.iter().map(|reminder| format!("{}. {}", reminder.id, reminder.what.text)).collect();
            let content = format!("Several reminders fit {query:?}; say the number:\n{}", lines.join("\n"));
            Err(Box::new(match find_taint(several.iter().copied(), world) {
                // A refusal can't taint the cycle.
                Some(taint) => Ok(Done { taint: Some(taint), is_failure: true, ..Done::from_text(content) }),
                None => Err(Refusal::new(content)),
            }))
        }
    }
}

/// Lists the visible reminders: a chat's own, or all for the owner's chat and for a cycle without a chat.
pub(super) fn list_visible_reminders(world: &World) -> impl Iterator<Item = &Reminder> {
    let only = world.conversation.chat.map(|chat| chat.id).filter(|id| *id != world.unasked.owner_chat);
    world.memory.reminders.iter().filter(move |reminder| only.is_none_or(|chat| reminder.what.chat == chat))
}

/// Returns the source of untrusted text: a guest's reminders from another chat.
fn find_taint<'a>(reminders: impl IntoIterator<Item = &'a Reminder>, world: &World) -> Option<String> {
    let is_theirs = |reminder: &Reminder| {
        view::foreign_chat(Some(reminder.what.chat), world.unasked.owner_chat)
            .is_some_and(|chat| Some(chat) != world.foreign_chat())
    };
    reminders.into_iter().any(is_theirs).then(|| "reminders of another chat".to_owned())
}

/// Formats a slot for people.
fn format_slot(slot: Slot, rule: Option<&Rule>, tz: Tz) -> String {
    let next = slot.wall_time(rule, tz).format("%a %-d %b %Y at %H:%M");
    rule.map_or_else(|| next.to_string(), |rule| format!("{rule}, next {next}"))
}
