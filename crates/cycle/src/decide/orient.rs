//! Orient: is anything due, why, and what is taken up first? Pure functions of what was observed. No reason, no model call.

mod backlog;
mod messages;
mod own_work;
mod tasks;
mod unasked;

use reveille_base::{clock::is_over, types::ChatRef};
use reveille_store::{CycleRow, CycleState, NewCycle, REFLECTED, Undo};

pub use self::{
    backlog::{Backlog, without_backlog},
    messages::{Standing, budget_key, is_answerable, is_any_due, joining, last_channel_id, standings, still_due},
    own_work::{is_begun_by_rule, is_own_work, is_reflection},
    tasks::{decay_key, due_key, task_key},
};
use crate::decide::{
    lineup::ModelState,
    situation::{DueWork, Reason, Situation},
};
use chrono::NaiveDate;

/// All that is due, the most urgent first. What a person wants undone goes before whatever builds on it, and while all else is
/// stopped: it is what a person does next who has stopped something that went wrong.
pub fn due(observed: &Situation) -> Vec<Reason> {
    // A cycle by rule that was cut off has nothing left but its commit and its end: an undo with its commit made isn't begun again.
    let (mut reasons, resumptions): (Vec<_>, Vec<_>) = resumptions(observed)
        .into_iter()
        .partition(|reason| resumes(reason, &observed.open_cycles, NewCycle::is_by_rule));
    reasons.extend(observed.undos.iter().map(|undo| Reason::Undo { undo: undo.clone() }));
    if observed.is_stopped {
        return reasons;
    }
    let (own_work, resumptions): (Vec<_>, Vec<_>) =
        resumptions.into_iter().partition(|reason| resumes(reason, &observed.open_cycles, is_own_work));
    reasons.extend(resumptions);
    reasons.extend(due_reminders(observed));
    // One at a time: each changes the memory that the next one finds.
    let pressed = observed.pressed.iter().find(|nudge| !observed.stopped_chats.contains(&nudge.chat));
    reasons.extend(pressed.map(|nudge| Reason::Pressed { nudge: nudge.clone() }));
    reasons.extend(tasks::agreed_change(observed));
    reasons.extend(messages::due(observed));
    reasons.extend(messages::over_budget(observed));
    let may_think = observed.model.for_own_work().is_some() || !observed.model.is_thinking();
    if observed.is_on_duty {
        reasons.extend(tasks::of_guests(observed));
        reasons.extend(tasks::last_days_of_owner(observed));
    }
    if may_think && observed.is_on_duty {
        reasons.extend(tasks::of_owner(observed));
        if !observed.person_commits.is_empty() {
            let subjects = observed.person_commits.iter().map(|(_, subject)| subject.clone()).collect();
            reasons.push(Reason::PersonCommits { subjects });
        }
    }
    reasons.extend(own_work);
    // The rest comes by itself, and to one machine alone.
    if !observed.is_on_duty {
        return reasons;
    }
    if reasons.is_empty() && observed.model.for_own_work().is_some() {
        reasons.extend(due_own_work(observed).take(1));
    }
    if reasons.is_empty() {
        reasons.extend(unasked::reason(observed));
    }
    if observed.model.for_reflection().is_some() || looks_back_by_rule(&observed.model) {
        reasons.extend(reflection(observed).filter(|_| reasons.is_empty()));
    }
    reasons
}

/// What a cycle takes up.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A wake is undone.
    Undo(Undo),
    /// An interrupted cycle.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// Whether it crashed.
        has_crashed: bool,
    },
    /// What needs no model: these reasons are acted on by rule.
    Mechanical(Vec<Reason>),
    /// What the model is asked for: one chat's messages at most, and other reasons if they are the owner's affair.
    Think {
        /// Messages first.
        reasons: Vec<Reason>,
    },
}

impl Work {
    /// Whether somebody who has written is answered.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Think { reasons } if reasons.iter().any(|reason| matches!(reason, Reason::Messages { .. })))
    }
}

/// Chooses the next cycle's work among what is due: what is undone and interrupted work first, then what needs no model, then one
/// chat. An interrupted look back comes last.
pub fn choose(reasons: Vec<Reason>, model: &ModelState, owner_chat: ChatRef) -> Option<Work> {
    match reasons.first() {
        Some(Reason::Resume { cycle_id, has_crashed }) => {
            return Some(Work::Resume { cycle_id: cycle_id.clone(), has_crashed: *has_crashed });
        }
        Some(Reason::Undo { undo }) => return Some(Work::Undo(undo.clone())),
        _ => {}
    }
    // Own work gives way: what waits behind something else isn't a part of it.
    let reasons = reasons.into_iter().filter(|reason| !matches!(reason, Reason::Resume { .. }));
    let is_mechanical = |reason: &Reason| match reason {
        Reason::Reminder { .. }
        | Reason::InitiativePassed { .. }
        | Reason::Pressed { .. }
        | Reason::AgreedChange { .. }
        | Reason::MissedTask { .. }
        | Reason::Due { .. }
        | Reason::Stale { .. }
        | Reason::OverBudget { .. }
        | Reason::OfGuest { .. } => true,
        Reason::Messages { .. } | Reason::Resume { .. } | Reason::Undo { .. } | Reason::Own { .. } => false,
        Reason::Task { .. } | Reason::Decay { .. } | Reason::PersonCommits { .. } => !model.is_thinking(),
        Reason::Reflection { .. } => looks_back_by_rule(model),
    };
    let (mechanical, rest): (Vec<_>, Vec<_>) = reasons.partition(is_mechanical);
    if !mechanical.is_empty() {
        return Some(Work::Mechanical(mechanical));
    }
    let (messages, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|reason| matches!(reason, Reason::Messages { .. }));
    let mut chosen: Vec<Reason> = messages.into_iter().take(1).collect();
    // What nobody has asked for is thought about: where something else answers, it has a cycle of its own.
    let is_owners = match chosen.first() {
        Some(Reason::Messages { chat, .. }) => {
            *chat == owner_chat && model.asked(*chat).is_none_or(|asked| asked.is_thinking)
        }
        _ => true,
    };
    if is_owners {
        chosen.extend(others);
    }
    (!chosen.is_empty()).then_some(Work::Think { reasons: chosen })
}

/// Whether no model is configured that could look back.
fn looks_back_by_rule(model: &ModelState) -> bool {
    !model.is_thinking() && model.reflect.is_none()
}

/// Whether work is some that nobody waits for.
pub fn is_own(work: &Work, open_cycles: &[CycleRow]) -> bool {
    match work {
        Work::Think { reasons } => matches!(reasons.as_slice(), [Reason::Own { .. } | Reason::Reflection { .. }]),
        Work::Resume { cycle_id, .. } => {
            open_cycles.iter().any(|row| row.cycle.id == *cycle_id && is_own_work(&row.cycle))
        }
        Work::Undo(_) | Work::Mechanical(_) => false,
    }
}

/// The key under which the look back of a day is handled.
pub fn reflection_key(today: NaiveDate) -> String {
    format!("{REFLECTED}{today}")
}

/// A look back waits for everything else: it is a wake's own when nothing else is due. While one is open it has these days.
fn reflection(observed: &Situation) -> Option<Reason> {
    if observed.open_cycles.iter().any(|row| is_reflection(&row.cycle)) {
        return None;
    }
    let days = observed.to_reflect.clone()?;
    let key = reflection_key(days.end);
    (!observed.handled.contains(&key)).then_some(Reason::Reflection { from: days.start, until: days.end, key })
}

/// Own work of which nothing is under way: an open cycle of the same task, or job, comes first.
fn due_own_work<'a>(observed: &'a Situation) -> impl Iterator<Item = Reason> + 'a {
    let open = || observed.open_cycles.iter().filter_map(|row| row.cycle.work.as_ref());
    let is_free = move |due: &&DueWork| !open().any(|work| work.is_of_the_same(&due.work));
    observed.own_work.iter().filter(is_free).map(|due| Reason::Own { due: due.clone() })
}

fn resumptions(observed: &Situation) -> Vec<Reason> {
    observed
        .open_cycles
        .iter()
        .filter(|cycle| cycle.not_before.is_none_or(|at| is_over(at, observed.now)))
        .filter(|cycle| cycle.asks_until.is_none_or(|at| at <= observed.now))
        .filter(|cycle| !cycle.cycle.chat.is_some_and(|chat| observed.stopped_chats.contains(&chat)))
        .filter(|cycle| {
            let goes_on = || observed.model.goes_on_with(&cycle.cycle.model, cycle.cycle.chat).is_some();
            cycle.state == CycleState::Running || goes_on()
        })
        .map(|cycle| Reason::Resume { cycle_id: cycle.cycle.id.clone(), has_crashed: cycle.was_cut_off })
        .collect()
}

fn resumes(reason: &Reason, open_cycles: &[CycleRow], is_such: impl Fn(&NewCycle) -> bool) -> bool {
    let Reason::Resume { cycle_id, .. } = reason else { return false };
    open_cycles.iter().any(|row| row.cycle.id == *cycle_id && is_such(&row.cycle))
}

fn due_reminders(observed: &Situation) -> Vec<Reason> {
    let due = observed.reminders.iter().filter(|reminder| reminder.what.next_at <= observed.now);
    let mut due: Vec<_> = due.map(|reminder| (reminder.what.next_at, reminder.id)).collect();
    due.sort_unstable();
    due.into_iter().map(|(_, id)| Reason::Reminder { id }).collect()
}

#[cfg(test)]
mod tests;
