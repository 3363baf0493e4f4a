//! Orient: the due reasons, their order, and the next cycle's work. Pure functions of the situation. Without a reason no model is called.

mod backlog;
mod messages;
mod tasks;

use reveille_base::{clock::is_over, types::ChatRef};
use reveille_store::{CycleRow, CycleState, NewCycle, Undo};

pub use self::{
    backlog::{Backlog, without_backlog},
    messages::{
        Standing, budget_key, find_still_due, is_answerable, is_any_due, last_channel_id, list_new_messages,
        list_standings,
    },
    tasks::{decay_key, due_key, task_key},
};
pub use super::own_work::{is_begun_by_rule, is_own_work, is_reflection};
use crate::{
    background::{
        initiative,
        reflection::{self, decide::reflects_by_rule},
    },
    decide::{
        lineup::ModelState,
        situation::{DueWork, Reason, Situation},
    },
};

/// Lists all due reasons, the most urgent first. Undo comes before work that builds on the wake, and works even while all else is stopped:
/// undo is the likely next step of a person who stopped a mistake.
pub fn list_due_reasons(observed: &Situation) -> Vec<Reason> {
    // A cut-off cycle by rule only lacks its commit and its end, so a committed undo doesn't start again.
    let (mut reasons, resumptions): (Vec<_>, Vec<_>) = list_resumptions(observed)
        .into_iter()
        .partition(|reason| is_resumption(reason, &observed.open_cycles, NewCycle::is_by_rule));
    reasons.extend(observed.undos.iter().map(|undo| Reason::Undo { undo: undo.clone() }));
    if observed.is_stopped {
        return reasons;
    }
    let (own_work, resumptions): (Vec<_>, Vec<_>) =
        resumptions.into_iter().partition(|reason| is_resumption(reason, &observed.open_cycles, is_own_work));
    reasons.extend(resumptions);
    reasons.extend(due_reminders(observed));
    // One at a time, because each changes the memory for the next.
    let pressed = observed.pressed.iter().find(|nudge| !observed.stopped_chats.contains(&nudge.chat));
    reasons.extend(pressed.map(|nudge| Reason::Pressed { nudge: nudge.clone() }));
    reasons.extend(tasks::find_agreed_change(observed));
    reasons.extend(messages::list_due_messages(observed));
    reasons.extend(messages::over_budget(observed));
    let may_think = observed.model.find_background_model().is_some() || !observed.model.is_thinking();
    if observed.is_on_duty {
        reasons.extend(tasks::list_guest_reasons(observed));
        reasons.extend(tasks::last_days_of_owner(observed));
    }
    if may_think && observed.is_on_duty {
        reasons.extend(tasks::list_owner_reasons(observed));
        if !observed.person_commits.is_empty() {
            let subjects = observed.person_commits.iter().map(|(_, subject)| subject.clone()).collect();
            reasons.push(Reason::PersonCommits { subjects });
        }
    }
    reasons.extend(own_work);
    // The rest starts by itself, on one machine only.
    if !observed.is_on_duty {
        return reasons;
    }
    if reasons.is_empty() && observed.model.find_background_model().is_some() {
        reasons.extend(list_due_background_jobs(observed).take(1));
    }
    if reasons.is_empty() {
        reasons.extend(initiative::decide::find_reason(observed));
    }
    if observed.model.for_reflection().is_some() || reflects_by_rule(&observed.model) {
        reasons.extend(reflection::decide::find_reason(observed).filter(|_| reasons.is_empty()));
    }
    reasons
}

/// The work of the next cycle.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Undo a wake.
    Undo(Undo),
    /// Resume an interrupted cycle.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// True if the cycle crashed.
        has_crashed: bool,
    },
    /// Work without a model: rules handle these reasons.
    Mechanical(Vec<Reason>),
    /// Work for the model: at most one chat's messages, and other reasons if the chat is the owner's.
    Think {
        /// The reasons, messages first.
        reasons: Vec<Reason>,
    },
}

impl Work {
    /// Returns `true` if the work answers a message.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Think { reasons } if reasons.iter().any(|reason| matches!(reason, Reason::Messages { .. })))
    }
}

/// Chooses the next cycle's work among the due reasons: undo and interrupted work first, then work without a model, then one chat. An
/// interrupted reflection comes last.
pub fn choose(reasons: Vec<Reason>, model: &ModelState, owner_chat: ChatRef) -> Option<Work> {
    match reasons.first() {
        Some(Reason::Resume { cycle_id, has_crashed }) => {
            return Some(Work::Resume { cycle_id: cycle_id.clone(), has_crashed: *has_crashed });
        }
        Some(Reason::Undo { undo }) => return Some(Work::Undo(undo.clone())),
        _ => {}
    }
    // Background jobs give way: a resumption behind other reasons doesn't join them.
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
        Reason::Reflection { .. } => reflects_by_rule(model),
    };
    let (mechanical, rest): (Vec<_>, Vec<_>) = reasons.partition(is_mechanical);
    if !mechanical.is_empty() {
        return Some(Work::Mechanical(mechanical));
    }
    let (messages, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|reason| matches!(reason, Reason::Messages { .. }));
    let mut chosen: Vec<Reason> = messages.into_iter().take(1).collect();
    // Unasked work needs a thinking model. If something else answers this chat, that work gets a cycle of its own.
    let is_owners = match chosen.first() {
        Some(Reason::Messages { chat, .. }) => {
            *chat == owner_chat && model.find_model(*chat).is_none_or(|asked| asked.is_thinking)
        }
        _ => true,
    };
    if is_owners {
        chosen.extend(others);
    }
    (!chosen.is_empty()).then_some(Work::Think { reasons: chosen })
}

/// Returns `true` if the work is a background job.
pub fn is_background_job(work: &Work, open_cycles: &[CycleRow]) -> bool {
    match work {
        Work::Think { reasons } => matches!(reasons.as_slice(), [Reason::Own { .. } | Reason::Reflection { .. }]),
        Work::Resume { cycle_id, .. } => {
            open_cycles.iter().any(|row| row.cycle.id == *cycle_id && is_own_work(&row.cycle))
        }
        Work::Undo(_) | Work::Mechanical(_) => false,
    }
}

/// Lists due background jobs. An open cycle of the same task or job comes first.
fn list_due_background_jobs<'a>(observed: &'a Situation) -> impl Iterator<Item = Reason> + 'a {
    let open = || observed.open_cycles.iter().filter_map(|row| row.cycle.work.as_ref());
    let is_free = move |due: &&DueWork| !open().any(|work| work.is_of_the_same(&due.work));
    observed.own_work.iter().filter(is_free).map(|due| Reason::Own { due: due.clone() })
}

fn list_resumptions(observed: &Situation) -> Vec<Reason> {
    observed
        .open_cycles
        .iter()
        .filter(|cycle| cycle.not_before.is_none_or(|at| is_over(at, observed.now)))
        .filter(|cycle| cycle.asks_until.is_none_or(|at| at <= observed.now))
        .filter(|cycle| !cycle.cycle.chat.is_some_and(|chat| observed.stopped_chats.contains(&chat)))
        .filter(|cycle| {
            let goes_on = || observed.model.find_resuming_model(&cycle.cycle.model, cycle.cycle.chat).is_some();
            cycle.state == CycleState::Running || goes_on()
        })
        .map(|cycle| Reason::Resume { cycle_id: cycle.cycle.id.clone(), has_crashed: cycle.was_cut_off })
        .collect()
}

fn is_resumption(reason: &Reason, open_cycles: &[CycleRow], is_such: impl Fn(&NewCycle) -> bool) -> bool {
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
