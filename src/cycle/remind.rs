//! Reminders that are due: each alone when it is met, those that were missed in one message a chat, so that a long sleep
//! doesn't end in a flood. What happens is decided by [`crate::schedule::due`]; here is what is said of it.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::{WakeError, observe::Observation, orient::Reason, wake::Wake};
use crate::{
    queue::{Firing, NewOutgoing, Reminder, Round},
    schedule::{
        Missed, Slot,
        due::{Passed, Turn},
    },
};

/// From so many minutes on a reminder says for when it was.
const LATE_MIN: i64 = 10;
/// From so long before a clock that was set back the past is looked up: more than zones can be apart.
const HISTORY: TimeDelta = TimeDelta::days(2);

impl Wake<'_> {
    /// Fires the reminders among the reasons; gives receipts of what was done.
    pub(super) fn remind(
        &mut self,
        reasons: &[Reason],
        observation: &Observation,
        cycle_id: &str,
    ) -> Result<Vec<String>, WakeError> {
        let (now, tz) = (self.now(), self.context.config.timezone);
        let is_due = |reminder: &&Reminder| {
            reasons.iter().any(|reason| matches!(reason, Reason::Reminder { id } if *id == reminder.id))
        };
        let mut due = Vec::new();
        for reminder in observation.reminders.iter().filter(is_due) {
            let history = self.store.reminder_history(reminder.id, reminder.what.slot)?;
            due.push(Due { reminder, turn: reminder.series(tz).turn(&history, now), tz });
        }
        let mut rounds = rounds(&due, now);
        for message in rounds.iter_mut().filter_map(|round| round.message.as_mut()) {
            message.text = self.context.redactor.redact(&message.text);
            message.cycle_id = Some(cycle_id.to_owned());
        }
        self.store.fire(self.fence, &rounds, now)?;
        Ok(due.iter().filter_map(|due| due.receipt(now)).collect())
    }

    /// After the clock was set back, finds the next slots anew: what was passed over under the wrong time is still ahead.
    pub(super) fn rewind_reminders(&mut self) -> Result<(), WakeError> {
        let (now, tz) = (self.now(), self.context.config.timezone);
        for reminder in self.store.reminders()?.iter().filter(|reminder| reminder.is_set_back(now)) {
            let history = self.store.reminder_history(reminder.id, (now - HISTORY).naive_utc())?;
            let created = reminder.created_at.unwrap_or(reminder.what.next_at);
            let next = reminder.series(tz).rewound(&history, created, now).unwrap_or(reminder.next());
            self.store.set_next_slot(self.fence, reminder.id, next, now)?;
        }
        Ok(())
    }
}

/// A due reminder and what becomes of it. `tz` is the person's zone.
struct Due<'a> {
    reminder: &'a Reminder,
    turn: Turn,
    tz: Tz,
}

/// What is fired with which message.
fn rounds(due: &[Due<'_>], now: DateTime<Utc>) -> Vec<Round> {
    let (missed, met): (Vec<&Due<'_>>, Vec<&Due<'_>>) = due.iter().partition(|due| due.is_told_as_missed());
    let mut rounds: Vec<Round> = met
        .into_iter()
        .map(|due| Round { firings: vec![due.firing()], message: due.met(now).map(|text| due.message(text)) })
        .collect();
    let mut chats: Vec<Vec<&Due<'_>>> = Vec::new();
    for due in missed {
        match chats.iter_mut().find(|chat| chat.first().is_some_and(|first| first.chat() == due.chat())) {
            Some(chat) => chat.push(due),
            None => chats.push(vec![due]),
        }
    }
    rounds.extend(chats.iter().map(|chat| Round {
        firings: chat.iter().map(|due| due.firing()).collect(),
        message: chat.first().map(|first| first.message(digest(chat))),
    }));
    rounds
}

/// One message about all that was missed in a chat.
fn digest(chat: &[&Due<'_>]) -> String {
    if let [due] = chat {
        return match due.turn.happens {
            Some(_) => format!("⏰ {}\n\n(It was due {}. I was not running then.)", due.text(), due.times()),
            None => format!("Missed while I was not running: “{}”, due {}.", due.text(), due.times()),
        };
    }
    let (late, left_out): (Vec<&&Due<'_>>, _) = chat.iter().partition(|due| due.turn.happens.is_some());
    let list = |head: &str, items: &[&&Due<'_>]| {
        let lines = items.iter().map(|due| format!("\n- {}, due {}", due.text().replace('\n', "\n  "), due.times()));
        if items.is_empty() { None } else { Some(format!("{head}{}", lines.collect::<String>())) }
    };
    let late = list("⏰ This came due while I was not running:", &late);
    let left_out = list("Missed while I was not running, and left out:", &left_out);
    late.into_iter().chain(left_out).collect::<Vec<_>>().join("\n\n")
}

impl Due<'_> {
    fn chat(&self) -> (i64, Option<i64>) {
        (self.reminder.what.chat_id, self.reminder.what.thread_id)
    }

    fn text(&self) -> &str {
        &self.reminder.what.text
    }

    fn firing(&self) -> Firing {
        Firing { id: self.reminder.id, turn: self.turn, missed: self.reminder.what.missed }
    }

    fn message(&self, text: String) -> NewOutgoing {
        let (chat_id, thread_id) = self.chat();
        NewOutgoing { chat_id, thread_id, text, kind: "reminder".to_owned(), ..NewOutgoing::default() }
    }

    /// It was missed, and a message says so.
    fn is_told_as_missed(&self) -> bool {
        match self.reminder.what.missed {
            Missed::Run => self.turn.is_late,
            Missed::Tell => self.turn.happens.is_none() && self.turn.passed.is_some(),
            Missed::Skip => false,
        }
    }

    /// What is said of one that happens at its time; of one that is skipped, nothing.
    fn met(&self, now: DateTime<Utc>) -> Option<String> {
        let slot = self.turn.happens?;
        let mut text = format!("⏰ {}", self.text());
        let missed =
            self.turn.passed.filter(|_| self.turn.has_missed(now) && self.reminder.what.missed != Missed::Skip);
        if let Some(passed) = missed {
            text.push_str(&format!("\n\n(I was not running when it was due {}.)", self.span(passed)));
        } else if now.signed_duration_since(slot.at).num_minutes() >= LATE_MIN {
            text.push_str(&format!("\n\n(It was due {}.)", self.time(slot)));
        }
        Some(text)
    }

    /// When what happens late, or the last that was missed, was due, and how often before.
    fn times(&self) -> String {
        match (self.turn.happens, self.turn.passed) {
            (Some(slot), Some(passed)) => format!("{}, and before that {}", self.time(slot), self.span(passed)),
            (Some(slot), None) => self.time(slot),
            (None, Some(passed)) => self.span(passed),
            (None, None) => String::new(),
        }
    }

    fn span(&self, passed: Passed) -> String {
        match passed.count {
            1 => self.time(passed.first),
            count => format!("{count} times from {} to {}", self.time(passed.first), self.time(passed.last)),
        }
    }

    /// A slot on its own wall clock; the zone is said where it isn't the person's.
    fn time(&self, slot: Slot) -> String {
        let zone = self.reminder.zone(self.tz);
        let wall = slot.wall_time(self.reminder.what.rule.as_ref(), zone).format("%a %-d %b %H:%M");
        if zone == self.tz { wall.to_string() } else { format!("{wall} ({zone})") }
    }

    /// What the memory's log says of it.
    fn receipt(&self, now: DateTime<Utc>) -> Option<String> {
        let text = self.text();
        let was_missed = self.turn.has_missed(now) || self.turn.happens.is_none();
        Some(match (self.turn.happens, self.turn.passed.filter(|_| was_missed), self.reminder.what.missed) {
            (Some(_), _, _) if self.turn.is_late => format!("Reminded of “{text}” late: it was due {}", self.times()),
            (Some(_), None, _) => format!("Reminded of “{text}”"),
            (Some(_), Some(passed), _) => format!("Reminded of “{text}”; it was missed {}", self.span(passed)),
            (None, Some(passed), Missed::Skip) => {
                format!("Skipped the reminder “{text}”, missed {}", self.span(passed))
            }
            (None, Some(passed), _) => format!("Told that the reminder “{text}” was missed {}", self.span(passed)),
            (None, None, _) => return None,
        })
    }
}
