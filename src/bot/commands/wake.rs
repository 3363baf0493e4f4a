//! `/wake`: look now, whatever was to be waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::{super::batch::Asked, Desk, Reply, bounded};
use crate::{
    cycle::{self, lock, orient::Standing},
    queue::{Order, Result},
    words::count,
};

/// Reasons that are named at most.
const MAX_NAMED: usize = 8;

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<Reply> {
    let is_owners = desk.is_by_owner(asked);
    match desk.stopped_for(asked) {
        Some(_) if desk.stopped.is_some() && !is_owners => {
            return Ok(Reply::says("My owner has stopped all work: it goes on by their word."));
        }
        Some(_) if desk.stopped.is_none() => return Ok(Reply::says("Work for this chat is stopped: /resume goes on.")),
        Some(_) => return Ok(Reply::says("All work is stopped: /resume goes on.")),
        None => {}
    }
    let order = Order::Wake { is_owners };
    // What else is due, and how much waits, is the owner's to know.
    if !desk.is_owners(asked.message.chat_id) {
        return Ok(Reply::orders("I look now at what waits in this chat.", order));
    }
    let holder = lock::read(&desk.config.lock_path()).filter(|holder| holder.identity().is_alive());
    let mut waiting = cycle::waiting(desk.store, desk.config, desk.now)?;
    // What a living wake works on looks from here like a cycle that was cut off.
    if let Some(cycle_id) = holder.as_ref().and_then(|holder| holder.cycle_id.as_ref()) {
        waiting.due.remove(&format!("resume {cycle_id}"));
    }
    Ok(Reply::orders(text(holder.is_some(), waiting.due, &waiting.messages), order))
}

fn text(is_awake: bool, due: BTreeSet<String>, messages: &BTreeMap<Standing, usize>) -> String {
    let look = if is_awake { "I am awake, and look again as soon as I am done." } else { "I look now." };
    if !due.is_empty() {
        let lines = due.into_iter().map(|name| format!("- {name}")).collect();
        return format!("{look} Due:\n{}", bounded(lines, MAX_NAMED));
    }
    let waiting = messages.iter().filter_map(|(standing, n)| sentence(*standing, *n));
    let said: Vec<String> = [format!("{look} Nothing else is due.")].into_iter().chain(waiting).collect();
    match said.as_slice() {
        [_] => format!("{look} Nothing is due."),
        said => said.join(" "),
    }
}

/// What is said of `n` messages that aren't due.
fn sentence(standing: Standing, n: usize) -> Option<String> {
    let (is, waits) = if n == 1 { ("is", "waits") } else { ("are", "wait") };
    let n = count(n, "message");
    match standing {
        Standing::Due => None,
        Standing::InHand => Some(format!("{n} {is} in hand.")),
        Standing::Files => Some(format!("{n} {waits} for files that are on their way.")),
        Standing::Mind => Some(format!("{n} {is} kept until there is a mind that can answer.")),
        Standing::Budget => Some(format!("{n} {waits} for the budget: /cost shows it.")),
        Standing::BackOff => Some(format!("{n} {is} kept: I try whether I can answer now.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_due_or_how_it_stands_with_what_is_kept() {
        let says = |is_awake, messages: &[(Standing, usize)]| {
            text(is_awake, BTreeSet::new(), &messages.iter().copied().collect())
        };
        assert_eq!(says(false, &[]), "I look now. Nothing is due.");
        assert_eq!(says(true, &[]), "I am awake, and look again as soon as I am done. Nothing is due.");
        let all = [Standing::InHand, Standing::Files, Standing::Mind, Standing::Budget, Standing::BackOff];
        insta::assert_snapshot!(says(false, &all.map(|standing| (standing, 2))), @"I look now. Nothing else is due. 2 messages are in hand. 2 messages wait for files that are on their way. 2 messages are kept until there is a mind that can answer. 2 messages wait for the budget: /cost shows it. 2 messages are kept: I try whether I can answer now.");
        let due = (1..=10).map(|n| format!("message {n}")).collect();
        assert!(text(false, due, &BTreeMap::new()).ends_with("- message 7\nand 2 more"));
    }
}
