//! Times relative to a named thing ("15 minutes before the meeting"), and the reminder that was just sent ("stop").

use chrono::NaiveDate;

use reveille_base::schedule::{RelativeTime, Slot, TimeTrouble, task_time};
use reveille_memory as memory;
use reveille_memory::{
    lookup::{Miss, pick},
    others,
    tasks::TaskList,
};

use super::{ReminderTime, find_taint, list_visible_reminders};
use crate::{Refusal, World};

/// Prefix of a reminder's message.
const SENT: &str = "⏰ ";

/// The time of a thing.
enum ThingTime {
    At(Slot),
    On(NaiveDate),
}

/// Returns the time at the given distance from the only thing of that name.
pub(super) fn resolve(relative: &RelativeTime, said: &str, world: &World) -> Result<ReminderTime, Refusal> {
    let things = list_things(world);
    let names: Vec<&str> = things.iter().map(|(name, _)| name.as_str()).collect();
    let thing = &relative.thing;
    let (name, time) = match pick(thing, &names) {
        Ok(at) => things.get(at).ok_or_else(|| refuse_unknown(thing))?,
        Err(Miss::NotFound { .. }) => return Err(refuse_unknown(thing)),
        Err(Miss::Ambiguous { candidates }) => {
            let several = candidates.join("”, “");
            return Err(Refusal::new(format!(
                "“{thing}” could be any of these: “{several}”. Please give the whole name, or a time. Nothing was done."
            )));
        }
    };
    let found = match time {
        ThingTime::At(slot) => relative.from_slot(*slot, world.local_time()),
        ThingTime::On(day) => relative.from_day(*day, world.local_time()),
    };
    match found {
        Ok(slot) => {
            let of = format!(" ({} “{name}”)", take_lead_words(relative, said));
            Ok(ReminderTime { of, ..ReminderTime::once(slot) })
        }
        Err(TimeTrouble::NeedsTime) => Err(Refusal::new(format!(
            "“{name}” has a day but no time, so I need the hour: say something like “tomorrow at 14:45”. Nothing was done."
        ))),
        Err(trouble) => Err(Refusal::new(format!("“{said}” {trouble}. Nothing was done."))),
    }
}

fn refuse_unknown(thing: &str) -> Refusal {
    Refusal::new(format!(
        "I don't know when “{thing}” is: no reminder or task with that name has a time. Say when, such as “tomorrow at 14:45”. Nothing \
         was done."
    ))
}

/// Returns the lead words, such as "15 minutes before".
fn take_lead_words<'a>(relative: &RelativeTime, said: &'a str) -> &'a str {
    let end = said.to_lowercase().find(&relative.thing.to_lowercase()).unwrap_or(said.len());
    let lead = said.get(..end).unwrap_or(said).trim();
    ["the", "my", "our"].iter().find_map(|article| lead.strip_suffix(article)).unwrap_or(lead).trim()
}

/// Lists reminders and tasks with their times, without untrusted ones.
fn list_things(world: &World) -> Vec<(String, ThingTime)> {
    let own = list_visible_reminders(world).filter(|reminder| find_taint([*reminder], world).is_none());
    let mut things: Vec<_> = own.map(|reminder| (reminder.what.text.clone(), ThingTime::At(reminder.next()))).collect();
    for path in [memory::ACTIVE, memory::BACKLOG] {
        let tasks = TaskList::parse(&world.memory.documents.text(path)).0;
        for task in tasks.tasks().iter().filter(|task| !task.is_done() && !task.is_unconfirmed()) {
            let at = task.step_time().and_then(|at| task_time(at, world.clock.tz));
            let at = at.map(|at| ThingTime::At(Slot::from_instant(at, world.clock.tz)));
            let is_others =
                || others::has_untrusted_lines(path, tasks.text(), world.foreign_chat(), task.line, task.line);
            if let Some(time) = at.or(task.due_date().map(ThingTime::On)).filter(|_| !is_others()) {
                things.push((task.title.clone(), time));
            }
        }
    }
    things
}

/// Returns the text of the only reminder sent here since the person's last message.
pub(super) fn find_sent_reminder(world: &World) -> Result<String, Refusal> {
    let back = world.conversation.exchanges.iter().rev().skip_while(|said| said.from.is_some());
    let sent = back.take_while(|said| said.from.is_none()).filter_map(|said| said.text.strip_prefix(SENT));
    let mut texts: Vec<String> = Vec::new();
    for message in sent {
        let mut lines = message.lines();
        let first = lines.next().unwrap_or_default().trim();
        // Several reminders in one message are a list after a count line.
        let listed: Vec<&str> = lines.filter_map(|line| line.strip_prefix("- ")).collect();
        let new = if first.ends_with(':') && !listed.is_empty() { listed } else { vec![first] };
        texts.extend(new.into_iter().map(str::to_owned));
    }
    texts.dedup();
    match texts.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Refusal::new(
            "No reminder was just sent here. Say which one to end, such as “cancel reminder 2”; “list reminders” shows them. Nothing was \
             done.",
        )),
        several => Err(Refusal::new(format!(
            "Several were just sent: “{}”. Say which one to end, such as “cancel the … reminder”. Nothing was done.",
            several.join("”, “")
        ))),
    }
}
