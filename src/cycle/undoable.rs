//! Which wake `/undo` and `wake undo` mean: decided when it is asked for, so that a wake that is just ending isn't taken for
//! the one that the person saw.

use crate::queue::{CycleRow, CycleState, Store, StoreError};

/// What comes of asking for a wake to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This one is to be.
    Wake(Box<CycleRow>),
    /// None is, and why, for people.
    Refused(String),
}

/// Finds the wake: the last of `chats` (of all when none is named) that nobody has asked to undo yet, not counting `already`; or
/// the one whose id or commit begins with `id`.
pub fn undoable(store: &Store, chats: &[i64], id: Option<&str>, already: &[String]) -> Result<Choice, StoreError> {
    let refused = |why: &str| Ok(Choice::Refused(why.to_owned()));
    let Some(id) = id else {
        return Ok(match store.last_undoable(chats, already)? {
            Some(row) => Choice::Wake(Box::new(row)),
            None => Choice::Refused("There is no wake left that could be undone.".to_owned()),
        });
    };
    let mut called = store.cycles_called(id, chats)?.into_iter();
    let row = match (called.next(), called.next()) {
        (Some(row), None) => row,
        (None, _) => {
            return refused("There is no wake of that id here. Four characters of it, or of its commit's, are enough.");
        }
        (Some(_), Some(_)) => return refused("Several wakes have an id that begins so: give more of it."),
    };
    let is_asked = already.contains(&row.cycle.id);
    match (row.state, store.undone(&row.cycle.id)?) {
        (_, Some(true)) => refused("That wake is undone already."),
        (_, Some(false)) => refused("That wake is to be undone already: it is done as soon as no other one runs."),
        _ if is_asked => refused("That wake is to be undone already: it is done as soon as no other one runs."),
        _ if row.cycle.reasons.iter().any(|reason| reason.starts_with("undo ")) => {
            refused("That wake undid another one, and isn't undone itself. What it put aside can be retried.")
        }
        (CycleState::Done, None) => Ok(Choice::Wake(Box::new(row))),
        (CycleState::Running | CycleState::Waiting | CycleState::Parked, None) => {
            refused("That wake isn't over yet: it can be undone once it has committed.")
        }
        (CycleState::Failed | CycleState::Abandoned, None) => {
            refused("That wake committed nothing: there is nothing to undo.")
        }
    }
}
