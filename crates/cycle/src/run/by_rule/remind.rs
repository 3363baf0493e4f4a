//! Due reminders. A reminder on time is a message of its own. Missed ones, and many at once, share one message per chat, so that a long
//! sleep or a busy hour causes no flood. [`reveille_base::schedule::due`] decides; this module builds the messages.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    schedule::{
        Missed, Slot,
        due::{DueTurn, Passed},
    },
    types::ChatRef,
    words::day_and_time,
    zone::Tz,
};
use reveille_store::{Change, Firing, NewOutgoing, OutgoingKind, Reminder, Round};

use crate::run::record::effects::RuleEffects;
use crate::{
    context::WakeError,
    decide::situation::{Reason, Situation},
    look::observe::{ZONE, is_zone_new},
    session::Session,
};

/// The delay from which a reminder states its time, in minutes.
const LATE_MIN: i64 = 10;
/// The number of simultaneous reminders sent separately. More in one chat share a message.
const MAX_ALONE: usize = 5;
/// How far back the history is read after the clock was set back. Time zones differ by less than this.
const HISTORY: TimeDelta = TimeDelta::days(2);

/// Builds the effects of the reminders among the reasons.
pub(crate) fn build_effects(
    session: &Session<'_>,
    reasons: &[Reason],
    observation: &Situation,
) -> Result<RuleEffects, WakeError> {
    let (now, tz) = (session.now(), session.context.config.timezone);
    let is_due = |reminder: &&Reminder| {
        reasons.iter().any(|reason| matches!(reason, Reason::Reminder { id } if *id == reminder.id))
    };
    let mut due = Vec::new();
    for reminder in observation.reminders.iter().filter(is_due) {
        let history = session.store.reminders().reminder_history(reminder.id, reminder.what.slot)?;
        due.push(Due { reminder, turn: reminder.series(tz).decide_turn(&history, now), tz });
    }
    let later = |chat| {
        let waits =
            |reminder: &&Reminder| reminder.what.next_at <= now && !is_due(reminder) && reminder_chat(reminder) == chat;
        observation.reminders.iter().filter(waits).count()
    };
    let mut rounds = plan_rounds(&due, now, &later);
    for message in rounds.iter_mut().filter_map(|round| round.message.as_mut()) {
        message.text = session.context.redactor.redact(&message.text);
    }
    Ok(RuleEffects {
        changes: rounds.into_iter().map(Change::Fire).collect(),
        receipts: due.iter().filter_map(|due| due.render_receipt(now)).collect(),
        ..RuleEffects::default()
    })
}

/// Computes the next slots again after the clock was set back, since slots skipped under the wrong time are still to come.
pub(crate) fn rewind_reminders(session: &mut Session<'_>) -> Result<(), WakeError> {
    let (now, tz) = (session.now(), session.context.config.timezone);
    for reminder in session.store.reminders().list_reminders()?.iter().filter(|reminder| reminder.is_set_back(now)) {
        let history = session.store.reminders().reminder_history(reminder.id, (now - HISTORY).naive_utc())?;
        let created = reminder.created_at.unwrap_or(reminder.what.next_at);
        let next = reminder.series(tz).find_rewound_slot(&history, created, now).unwrap_or(reminder.next());
        session.store.reminders_mut().set_next_slot(reminder.id, next)?;
    }
    Ok(())
}

/// Tells the owner once about the effects of a new time zone, and how to change them.
pub(crate) fn tell_of_zone(session: &mut Session<'_>) -> Result<(), WakeError> {
    let (config, now) = (session.context.config, session.now());
    let zone = config.timezone;
    let notice = match session.store.maintenance().find_handled_value(ZONE)? {
        Some(noted) if noted == zone.name() => return Ok(()),
        Some(_) if !is_zone_new(&session.store, config, now)? => return Ok(()),
        Some(noted) => {
            let text = describe_zone_change(&noted, zone, &session.store.reminders().list_reminders()?);
            let day = now.with_timezone(&zone).date_naive();
            let key = Some(format!("zone/{noted}/{zone}/{day}"));
            Some(NewOutgoing { key, ..NewOutgoing::notice(config.owner_chat, session.context.redactor.redact(&text)) })
        }
        None => None,
    };
    if let Some(notice) = notice {
        session.store.outbox_mut().plan_wake_message(&notice)?;
    }
    Ok(session.store.maintenance_mut().set_handled_value(ZONE, zone.name())?)
}

/// Describes the effects of a move to another time zone.
fn describe_zone_change(from: &str, to: Tz, reminders: &[Reminder]) -> String {
    let stays = |reminder: &&Reminder| reminder.keeps_another_zone(to);
    let staying: Vec<&Reminder> = reminders.iter().filter(stays).collect();
    let head =
        format!("Your time zone is now {to}; it was {from}. Jobs, tasks and quiet hours now follow the new zone.");
    let Some(first) = staying.first() else { return head };
    let (there, rule) = (first.zone(to), first.what.rule.as_ref());
    let (old, here) = (first.next().wall_time(rule, there), first.what.next_at.with_timezone(&to).naive_local());
    let keep =
        if staying.len() == 1 { "One reminder keeps".to_owned() } else { format!("{} reminders keep", staying.len()) };
    format!(
        "{head}\n\n{keep} the time of the zone in which it was set: “{}” comes {} in {there}, which is {} here. If that's right, there's \
         nothing to do. To get them at the same hour here, say “move my reminders here” (or `wake remind here`).",
        first.what.text,
        day_and_time(old),
        day_and_time(here),
    )
}

/// A due reminder with its turn. `tz` is the person's zone.
struct Due<'a> {
    reminder: &'a Reminder,
    turn: DueTurn,
    tz: Tz,
}

/// The chat that gets a reminder, and the topic in it.
type ReminderPlace = (ChatRef, Option<i64>);

fn reminder_chat(reminder: &Reminder) -> ReminderPlace {
    (reminder.what.chat, reminder.what.thread_id)
}

/// Assigns the reminders to messages. `later` returns the number of a chat's further due reminders.
fn plan_rounds(due: &[Due<'_>], now: DateTime<Utc>, later: &dyn Fn(ReminderPlace) -> usize) -> Vec<Round> {
    let (missed, on_time): (Vec<&Due<'_>>, Vec<&Due<'_>>) = due.iter().partition(|due| due.is_told_as_missed());
    let (spoken, silent): (Vec<_>, Vec<_>) = on_time.into_iter().partition(|due| due.turn.happens.is_some());
    let mut rounds: Vec<Round> =
        silent.into_iter().map(|due| Round { firings: vec![due.to_firing()], message: None }).collect();
    let joined = |chat: &[&Due<'_>], text: String| Round {
        firings: chat.iter().map(|due| due.to_firing()).collect(),
        message: chat.first().map(|first| first.build_message(text)),
    };
    for chat in group_by_chat(spoken) {
        if chat.len() <= MAX_ALONE {
            rounds.extend(chat.iter().map(|due| joined(&[due], due.render_on_time(now))));
        } else {
            let later = chat.first().map_or(0, |first| later(first.chat()));
            rounds.push(joined(&chat, render_combined(&chat, now, later)));
        }
    }
    rounds.extend(group_by_chat(missed).iter().map(|chat| joined(chat, render_missed(chat))));
    rounds
}

fn group_by_chat<'a, 'b>(due: Vec<&'a Due<'b>>) -> Vec<Vec<&'a Due<'b>>> {
    let mut chats: Vec<Vec<&Due<'_>>> = Vec::new();
    for due in due {
        match chats.iter_mut().find(|chat| chat.first().is_some_and(|first| first.chat() == due.chat())) {
            Some(chat) => chat.push(due),
            None => chats.push(vec![due]),
        }
    }
    chats
}

/// Renders one message about all reminders due in a chat.
fn render_combined(chat: &[&Due<'_>], now: DateTime<Utc>, later: usize) -> String {
    let line = |due: &&Due<'_>| {
        let note = due.render_note(now).map(|note| format!(" {note}"));
        format!("\n- {}{}", due.text().replace('\n', "\n  "), note.unwrap_or_default())
    };
    let more = match later {
        0 => String::new(),
        1 => "\n\nOne more is due and comes next.".to_owned(),
        later => format!("\n\n{later} more are due and come next."),
    };
    format!("⏰ {} reminders were due:{}{more}", chat.len(), chat.iter().map(line).collect::<String>())
}

/// Renders one message about all missed reminders of a chat.
fn render_missed(chat: &[&Due<'_>]) -> String {
    if let [due] = chat {
        return match due.turn.happens {
            Some(_) => format!("⏰ {}\n\n(It was due {}. I was not running then.)", due.text(), due.format_times()),
            None => format!("Missed while I was not running: “{}”, due {}.", due.text(), due.format_times()),
        };
    }
    let (late, left_out): (Vec<&&Due<'_>>, _) = chat.iter().partition(|due| due.turn.happens.is_some());
    let list = |head: &str, items: &[&&Due<'_>]| {
        let lines =
            items.iter().map(|due| format!("\n- {}, due {}", due.text().replace('\n', "\n  "), due.format_times()));
        if items.is_empty() { None } else { Some(format!("{head}{}", lines.collect::<String>())) }
    };
    let late = list("⏰ This came due while I was not running:", &late);
    let left_out = list("Missed while I was not running, and left out:", &left_out);
    late.into_iter().chain(left_out).collect::<Vec<_>>().join("\n\n")
}

impl Due<'_> {
    fn chat(&self) -> ReminderPlace {
        reminder_chat(self.reminder)
    }

    fn text(&self) -> &str {
        &self.reminder.what.text
    }

    fn to_firing(&self) -> Firing {
        Firing { id: self.reminder.id, turn: self.turn, missed: self.reminder.what.missed }
    }

    fn build_message(&self, text: String) -> NewOutgoing {
        let (chat, thread_id) = self.chat();
        NewOutgoing { chat, thread_id, text, kind: OutgoingKind::Reminder, ..NewOutgoing::default() }
    }

    /// Returns `true` if the reminder was missed and a message should say so.
    fn is_told_as_missed(&self) -> bool {
        match self.reminder.what.missed {
            Missed::Run => self.turn.is_late,
            Missed::Tell => self.turn.happens.is_none() && self.turn.passed.is_some(),
            Missed::Skip => false,
        }
    }

    /// Renders a reminder on time.
    fn render_on_time(&self, now: DateTime<Utc>) -> String {
        let note = self.render_note(now).map(|note| format!("\n\n{note}"));
        format!("⏰ {}{}", self.text(), note.unwrap_or_default())
    }

    /// Renders the due time, unless it is now.
    fn render_note(&self, now: DateTime<Utc>) -> Option<String> {
        let slot = self.turn.happens?;
        let missed =
            self.turn.passed.filter(|_| self.turn.has_missed(now) && self.reminder.what.missed != Missed::Skip);
        match missed {
            Some(passed) => Some(format!("(I was not running when it was due {}.)", self.format_span(passed))),
            None if now.signed_duration_since(slot.at).num_minutes() >= LATE_MIN => {
                Some(format!("(It was due {}.)", self.format_time(slot)))
            }
            None => None,
        }
    }

    /// Renders the due time of a late reminder, or of the last missed one, and the number of earlier ones.
    fn format_times(&self) -> String {
        match (self.turn.happens, self.turn.passed) {
            (Some(slot), Some(passed)) => {
                format!("{}, and before that {}", self.format_time(slot), self.format_span(passed))
            }
            (Some(slot), None) => self.format_time(slot),
            (None, Some(passed)) => self.format_span(passed),
            (None, None) => String::new(),
        }
    }

    fn format_span(&self, passed: Passed) -> String {
        match passed.count {
            1 => self.format_time(passed.first),
            count => {
                format!("{count} times from {} to {}", self.format_time(passed.first), self.format_time(passed.last))
            }
        }
    }

    /// Renders a slot by its own wall clock, with the zone if it isn't the person's.
    fn format_time(&self, slot: Slot) -> String {
        let zone = self.reminder.zone(self.tz);
        let wall = slot.wall_time(self.reminder.what.rule.as_ref(), zone);
        let wall = day_and_time(wall);
        if zone == self.tz { wall } else { format!("{wall} ({zone})") }
    }

    /// Renders the line for the memory's log.
    fn render_receipt(&self, now: DateTime<Utc>) -> Option<String> {
        let text = self.text();
        let was_missed = self.turn.has_missed(now) || self.turn.happens.is_none();
        Some(match (self.turn.happens, self.turn.passed.filter(|_| was_missed), self.reminder.what.missed) {
            (Some(_), _, _) if self.turn.is_late => {
                format!("Reminded of “{text}” late: it was due {}", self.format_times())
            }
            (Some(_), None, _) => format!("Reminded of “{text}”"),
            (Some(_), Some(passed), _) => format!("Reminded of “{text}”; it was missed {}", self.format_span(passed)),
            (None, Some(passed), Missed::Skip) => {
                format!("Skipped the reminder “{text}”, missed {}", self.format_span(passed))
            }
            (None, Some(passed), _) => {
                format!("Told that the reminder “{text}” was missed {}", self.format_span(passed))
            }
            (None, None, _) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use reveille_base::{
        clock::parse_time,
        schedule::{Rule, due::SlotHistory, resolve_local_time},
    };
    use reveille_store::NewReminder;

    fn berlin() -> Tz {
        "Europe/Berlin".parse::<Tz>().unwrap()
    }

    /// A reminder at 9 each day from Wednesday, 18 November.
    fn daily(id: i64, chat: ChatRef, missed: Missed) -> Reminder {
        let nine = chrono::NaiveTime::from_hms_opt(9, 0, 0).unwrap();
        let slot = resolve_local_time(chrono::NaiveDate::from_ymd_opt(2026, 11, 18).unwrap().and_time(nine), berlin());
        let what = NewReminder {
            chat,
            thread_id: None,
            text: format!("thing {id}"),
            rule: Some(Rule::Daily { at: nine }),
            zone: "Europe/Berlin".to_owned(),
            slot: slot.civil,
            next_at: slot.at,
            missed,
        };
        Reminder { id, what, created_at: None, written_at: None, skipped: None }
    }

    /// The messages for each chat, and the receipts, at a time in UTC.
    fn said(reminders: &[Reminder], tz: Tz, now: &str) -> (Vec<(i64, String)>, Vec<String>) {
        let now = parse_time(now).unwrap();
        let turn = |reminder: &Reminder| reminder.series(tz).decide_turn(&SlotHistory::default(), now);
        let due: Vec<Due<'_>> = reminders.iter().map(|reminder| Due { reminder, turn: turn(reminder), tz }).collect();
        let rounds = plan_rounds(&due, now, &|_| 7);
        let fired: BTreeSet<i64> = rounds.iter().flat_map(|round| &round.firings).map(|firing| firing.id).collect();
        assert_eq!(fired.len(), reminders.len(), "each fires, whether it says something or not");
        let messages = rounds.into_iter().filter_map(|round| round.message);
        (
            messages.map(|message| (message.chat.id, message.text)).collect(),
            due.iter().filter_map(|due| due.render_receipt(now)).collect(),
        )
    }

    #[test]
    fn a_reminder_on_time_is_its_own_message_and_mentions_missed_times_if_wanted() {
        let at_nine = "2026-11-20T08:05:00Z";
        let both =
            [daily(1, ChatRef::from_telegram(7), Missed::Skip), daily(2, ChatRef::from_telegram(7), Missed::Tell)];
        let (messages, receipts) = said(&both, berlin(), at_nine);
        let before = "(I was not running when it was due 2 times from Wed 18 Nov 09:00 to Thu 19 Nov 09:00.)";
        assert_eq!(messages, [(7, "⏰ thing 1".to_owned()), (7, format!("⏰ thing 2\n\n{before}"))]);
        assert_eq!(
            receipts,
            [1, 2].map(|id| {
                format!("Reminded of “thing {id}”; it was missed 2 times from Wed 18 Nov 09:00 to Thu 19 Nov 09:00")
            })
        );
    }

    #[test]
    fn many_reminders_at_once_are_one_message_that_lists_each() {
        let due: Vec<Reminder> =
            (1..=12).map(|id| daily(id, ChatRef::from_telegram(7 + id / 11), Missed::Skip)).collect();
        let (messages, receipts) = said(&due, berlin(), "2026-11-18T08:01:00Z");
        let lines: String = (1..=10).map(|id| format!("\n- thing {id}")).collect();
        let joined = format!("⏰ 10 reminders were due:{lines}\n\n7 more are due and come next.");
        assert_eq!(messages, [(7, joined), (8, "⏰ thing 11".to_owned()), (8, "⏰ thing 12".to_owned())]);
        assert_eq!(receipts.len(), 12);
    }

    #[test]
    fn missed_reminders_are_one_message_per_chat() {
        let missed: Vec<Reminder> =
            (1..=40).map(|id| daily(id, ChatRef::from_telegram(7 + id % 2), Missed::Run)).collect();
        let (messages, receipts) = said(&missed, berlin(), "2026-11-18T12:00:00Z");
        assert_eq!(messages.iter().map(|(chat, _)| *chat).collect::<Vec<_>>(), [8, 7]);
        assert!(messages.iter().all(|(_, text)| text.matches("\n- thing ").count() == 20), "{messages:#?}");
        assert_eq!(receipts.len(), 40);
        let (messages, _) =
            said(&[daily(1, ChatRef::from_telegram(7), Missed::Tell)], berlin(), "2026-11-18T12:00:00Z");
        assert_eq!(messages, [(7, "Missed while I was not running: “thing 1”, due Wed 18 Nov 09:00.".to_owned())]);
        let (messages, receipts) =
            said(&[daily(1, ChatRef::from_telegram(7), Missed::Skip)], berlin(), "2026-11-18T12:00:00Z");
        assert_eq!(messages, []);
        assert_eq!(receipts, ["Skipped the reminder “thing 1”, missed Wed 18 Nov 09:00"]);
    }

    #[test]
    fn a_zone_that_is_not_the_persons_is_named() {
        let (messages, _) = said(
            &[daily(1, ChatRef::from_telegram(7), Missed::Run)],
            "America/New_York".parse::<Tz>().unwrap(),
            "2026-11-18T12:00:00Z",
        );
        assert!(messages[0].1.contains("(It was due Wed 18 Nov 09:00 (Europe/Berlin). I was"), "{messages:?}");
    }
}
