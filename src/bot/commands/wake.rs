//! `/wake`: looks for work now, without waiting for a back-off or a time.

use std::collections::{BTreeMap, BTreeSet};

use reveille_base::words::{format_count, format_list};
use reveille_cycle as cycle;
use reveille_cycle::{DueItem, decide::orient::Standing};
use reveille_store::{Order, Result, wake_lock};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    let is_owners = desk.is_by_owner(asked);
    if desk.stopped.is_some() && !is_owners {
        return Ok(CommandReply::from_text("My owner has stopped me. Only they can resume."));
    }
    if desk.find_stop_time(asked).is_some() {
        return Ok(CommandReply::from_text("Stopped. Send /resume to continue."));
    }
    let order = Order::Wake { is_owners };
    // Only the owner may know about other due work and waiting messages.
    if !desk.is_owners(asked.message.chat) {
        return Ok(CommandReply::with_order("Checking now what waits in this chat.", order));
    }
    let holder = wake_lock::read_holder(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let mut waiting = cycle::read_waiting_work(desk.store, desk.config, desk.now)?;
    // From here, the cycle of a living wake looks like an interrupted one.
    if let Some(cycle_id) = holder.as_ref().and_then(|holder| holder.cycle_id.as_ref()) {
        waiting.due.remove(&DueItem::Resume(cycle_id.clone()));
    }
    Ok(CommandReply::with_order(render_answer(holder.is_some(), waiting.due, &waiting.messages), order))
}

fn render_answer(is_awake: bool, due: BTreeSet<DueItem>, messages: &BTreeMap<Standing, usize>) -> String {
    let look = if is_awake { "I'm working now, and I'll check again right after" } else { "Checking now" };
    let n = |standing| messages.get(&standing).copied().unwrap_or(0);
    let (mut to_answer, mut waits_for_budget) = (n(Standing::InHand) + n(Standing::BackOff), n(Standing::Budget) > 0);
    let mut others = BTreeSet::new();
    for item in due {
        match item {
            DueItem::Message(_) => to_answer += 1,
            DueItem::OverBudget(_) => waits_for_budget = true,
            DueItem::Resume(_) => drop(others.insert("unfinished work".to_owned())),
            DueItem::Other(name) => drop(others.insert(name)),
        }
    }
    let messages = (to_answer > 0).then(|| format!("{} to answer", format_count(to_answer, "message")));
    let found = match (messages, others.is_empty()) {
        (None, true) => "nothing is due".to_owned(),
        (Some(messages), true) => format!("{messages}, nothing else due"),
        (messages, false) => format_list(messages.into_iter().chain(others)),
    };
    let waits = |n: usize, one: &str, many: &str| match n {
        0 => None,
        1 => Some(format!("1 message {one}.")),
        n => Some(format!("{n} messages {many}.")),
    };
    let waiting = [
        waits(n(Standing::Files), "waits for its files", "wait for their files"),
        waits(
            n(Standing::ModelState),
            "waits for an AI model that can answer it",
            "wait for an AI model that can answer them",
        ),
        waits_for_budget.then(|| "Your messages are waiting: the budget is too small for them. See /cost.".to_owned()),
    ];
    [format!("{look}: {found}.")].into_iter().chain(waiting.into_iter().flatten()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_due_or_how_it_stands_with_what_is_kept() {
        let says = |is_awake, due: &[DueItem], messages: &[(Standing, usize)]| {
            render_answer(is_awake, due.iter().cloned().collect(), &messages.iter().copied().collect())
        };
        let other = |name: &str| DueItem::Other(name.to_owned());
        assert_eq!(says(false, &[], &[]), "Checking now: nothing is due.");
        assert_eq!(says(true, &[], &[]), "I'm working now, and I'll check again right after: nothing is due.");
        let kept = [(Standing::InHand, 3), (Standing::BackOff, 2)];
        assert_eq!(says(false, &[], &kept), "Checking now: 5 messages to answer, nothing else due.");
        assert_eq!(
            says(false, &[DueItem::OverBudget("chat 42 waits for the budget".to_owned())], &[(Standing::Budget, 1)]),
            "Checking now: nothing is due. Your messages are waiting: the budget is too small for them. See /cost."
        );
        assert_eq!(
            says(
                false,
                &[
                    DueItem::Message(7),
                    DueItem::Message(8),
                    other("reminder 3"),
                    DueItem::Resume("20261121T140000Z-1".to_owned())
                ],
                &[(Standing::Due, 2)]
            ),
            "Checking now: 2 messages to answer, reminder 3, unfinished work."
        );
        assert_eq!(
            says(false, &[], &[(Standing::Files, 1), (Standing::ModelState, 2)]),
            "Checking now: nothing is due. 1 message waits for its files. 2 messages wait for an AI model that can answer them."
        );
    }
}
