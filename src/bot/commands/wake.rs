//! `/wake`: look now, whatever was to be waited for.

use super::{Desk, Reply, bounded};
use crate::{
    cycle::{self, lock, orient::count},
    queue::{Order, Result},
};

/// Reasons that are named at most.
const MAX_NAMED: usize = 8;

pub(super) fn answer(desk: &Desk<'_>) -> Result<Reply> {
    if desk.stopped.is_some() {
        return Ok(Reply::says("All work is stopped: /resume goes on."));
    }
    let is_awake = lock::read(&desk.config.lock_path()).is_some_and(|holder| holder.identity().is_alive());
    let due = cycle::waiting(desk.store, desk.config, desk.now)?.due;
    let waiting = usize::try_from(desk.store.queue_depth()?.0).unwrap_or(usize::MAX);
    Ok(Reply::orders(text(is_awake, due.into_iter().collect(), waiting), Order::Wake))
}

fn text(is_awake: bool, due: Vec<String>, waiting: usize) -> String {
    let look = if is_awake { "I am awake, and look again as soon as I am done." } else { "I look now." };
    match (due.len(), waiting) {
        (0, 0) => format!("{look} Nothing is due."),
        (0, n) => format!(
            "{look} Nothing is due, but {} kept: I try whether I can answer now.",
            match n {
                1 => "1 message is".to_owned(),
                n => format!("{} are", count(n, "message")),
            }
        ),
        _ => {
            let lines = due.into_iter().map(|name| format!("- {name}")).collect();
            format!("{look} Due:\n{}", bounded(lines, MAX_NAMED))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_due() {
        assert_eq!(text(false, vec![], 0), "I look now. Nothing is due.");
        assert_eq!(text(true, vec![], 0), "I am awake, and look again as soon as I am done. Nothing is due.");
        assert_eq!(
            text(false, vec![], 2),
            "I look now. Nothing is due, but 2 messages are kept: I try whether I can answer now."
        );
        let due = (1..=10).map(|n| format!("message {n}")).collect();
        assert!(text(false, due, 10).ends_with("- message 8\nand 2 more"));
    }
}
