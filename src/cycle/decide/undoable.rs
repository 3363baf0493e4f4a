//! Which wake `/undo` and `wake undo` mean: decided when it is asked for, so that a wake that is just ending isn't taken for
//! the one that the person saw.

use chrono::{DateTime, Utc};

use crate::zone::Tz;
use crate::{
    store::{CycleRow, CycleState, Store, StoreError},
    types::ChatRef,
};

const NOTHING_LEFT: &str =
    "There's nothing to undo: all that I saved or set here is undone already, or I only answered.";

/// What comes of asking for a wake to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This one is to be.
    Wake(Box<CycleRow>),
    /// None is, and why, for people.
    Refused(String),
}

/// Which wake it is, for people: `what I did at 14:03: remembered “x”`. `subject`: its commit's.
pub fn what_it_did(row: Option<&CycleRow>, subject: Option<&str>, now: DateTime<Utc>, tz: Tz) -> String {
    let at = row.and_then(|row| row.started_at).map(|at| at.with_timezone(&tz));
    let at = at.map(|at| match at.date_naive() == now.with_timezone(&tz).date_naive() {
        true => at.format(" at %H:%M").to_string(),
        false => at.format(" on %a %-d %b at %H:%M").to_string(),
    });
    let did = subject.and_then(|subject| subject.strip_prefix("Wake: ")).map(|did| format!(": {did}"));
    format!("what I did{}{}", at.unwrap_or_default(), did.unwrap_or_default())
}

/// Finds the wake: the last of `chats` (of all when none is named) that did more than answer and that nobody has asked to undo
/// yet, not counting `already`; or the one whose id or commit begins with `id`.
pub fn undoable(store: &Store, chats: &[ChatRef], id: Option<&str>, already: &[String]) -> Result<Choice, StoreError> {
    let refused = |why: &str| Ok(Choice::Refused(why.to_owned()));
    let Some(id) = id else {
        return Ok(match store.last_undoable(chats, already)? {
            Some(row) => Choice::Wake(Box::new(row)),
            None => Choice::Refused(NOTHING_LEFT.to_owned()),
        });
    };
    let mut called = store.cycles_called(id, chats)?.into_iter();
    let row = match (called.next(), called.next()) {
        (Some(row), None) => row,
        (None, _) => {
            return refused("I know nothing of that id here. Its first four characters are enough.");
        }
        (Some(_), Some(_)) => return refused("Several ids begin like that: give me more of it."),
    };
    let is_asked = already.contains(&row.cycle.id);
    match (row.state, store.undone(&row.cycle.id)?) {
        (_, Some(true)) => refused("That is undone already."),
        (_, Some(false)) => refused("That is about to be undone already, as soon as I'm done with what I'm at."),
        _ if is_asked => refused("That is about to be undone already, as soon as I'm done with what I'm at."),
        _ if row.cycle.reasons.iter().any(|reason| reason.starts_with("undo ")) => {
            refused("That was an undo, which can't be undone. What it put on hold can be run again.")
        }
        (CycleState::Done, None) => Ok(Choice::Wake(Box::new(row))),
        (CycleState::Running | CycleState::Waiting | CycleState::Parked, None) => {
            refused("I'm not done with that yet: it can be undone once I am.")
        }
        (CycleState::Failed | CycleState::Abandoned, None) if store.has_copies(&row.cycle.id)? => {
            Ok(Choice::Wake(Box::new(row)))
        }
        (CycleState::Failed | CycleState::Abandoned, None) => {
            refused("That came to nothing, so there's nothing to undo.")
        }
    }
}
