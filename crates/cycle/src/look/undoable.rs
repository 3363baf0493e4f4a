//! The step that `/undo` and `wake undo` mean. It is chosen at the request, so that a wake ending just then isn't mistaken for the one that
//! the person saw.

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, zone::Tz};
use reveille_store::{CycleRow, CycleState, PersonsStep, Proposal, Store, StoreError, UndoStep};

const NOTHING_LEFT: &str =
    "There's nothing to undo: everything saved or set here is already undone, or I only answered.";

const UNDONE: &str = "That's already undone.";
const NOT_YET: &str = "I'm still working on that. You can undo it once I'm done.";
const CAME_TO_NOTHING: &str = "Nothing came of that, so there's nothing to undo.";
const ABOUT_TO_BE: &str = "I'm already going to undo that, as soon as I finish my current work.";

/// The result of a request to undo.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Undo this wake.
    Wake(Box<CycleRow>),
    /// Undo this change of the assistant's own orders.
    Change(Box<Proposal>),
    /// Undo this step by a person.
    Person(PersonsStep),
    /// Undo nothing; the reason, for people.
    Refused(String),
}

/// Describes a wake for people: `what I did at 14:03: remembered “x”`. `subject` is the subject of its commit.
pub fn describe_wake_step(row: Option<&CycleRow>, subject: Option<&str>, now: DateTime<Utc>, tz: Tz) -> String {
    let at = format_moment(row.and_then(|row| row.started_at), now, tz);
    let did = subject.and_then(|subject| subject.strip_prefix("Wake: ")).map(|did| format!(": {did}"));
    format!("what I did{at}{}", did.unwrap_or_default())
}

fn format_moment(at: Option<DateTime<Utc>>, now: DateTime<Utc>, tz: Tz) -> String {
    let at = at.map(|at| at.with_timezone(&tz));
    let at = at.map(|at| match at.date_naive() == now.with_timezone(&tz).date_naive() {
        true => at.format(" at %H:%M").to_string(),
        false => at.format(" on %a %-d %b at %H:%M").to_string(),
    });
    at.unwrap_or_default()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(char::to_lowercase).into_iter().flatten().chain(chars).collect()
}

/// Describes a person's own step to them: `what you did at 14:03: finished the task “x”`.
pub fn what_they_did(step: &PersonsStep, now: DateTime<Utc>, tz: Tz) -> String {
    format!("what you did{}: {}", format_moment(step.at, now, tz), lower_first(&step.did))
}

/// Describes a change of the assistant's own orders for people.
pub fn which_change(proposal: &Proposal) -> String {
    format!("the change of my orders that you agreed to: “{}”", proposal.new.title)
}

/// Finds the step to undo. Without `id`: the newest step in `chats` (in any chat if empty) without a request to undo, except those in
/// `already`. With `id`: the wake whose id or commit begins like that, or the step or change of orders with that name.
pub fn find_undoable(
    store: &Store,
    chats: &[ChatRef],
    id: Option<&str>,
    already: &[String],
) -> Result<Choice, StoreError> {
    let refused = |why: &str| Ok(Choice::Refused(why.to_owned()));
    let Some(id) = id else {
        return Ok(match store.undos().last_step(chats, already)? {
            Some(UndoStep::Wake(row)) => Choice::Wake(row),
            Some(UndoStep::Person(step)) => Choice::Person(step),
            None => Choice::Refused(NOTHING_LEFT.to_owned()),
        });
    };
    if let Some(number) = PersonsStep::parse_undo_target(id) {
        return check_person_step(store, number, chats, already);
    }
    if let Some(number) = Proposal::parse_undo_target(id).filter(|_| chats.is_empty()) {
        return check_change(store, number, already);
    }
    let mut called = store.undos().find_cycles_by_prefix(id, chats)?.into_iter();
    let row = match (called.next(), called.next()) {
        (Some(row), None) => row,
        (None, _) => {
            return refused("There's no such id here. The first four characters are enough.");
        }
        (Some(_), Some(_)) => return refused("Several ids begin like that. Please give me more characters."),
    };
    let is_asked = already.contains(&row.cycle.id);
    match (row.state, store.undos().find_undo_state(&row.cycle.id)?) {
        (_, Some(true)) => refused(UNDONE),
        (_, Some(false)) => refused(ABOUT_TO_BE),
        _ if is_asked => refused(ABOUT_TO_BE),
        _ if row.cycle.reasons.iter().any(|reason| reason.starts_with("undo ")) => {
            refused("That was an undo, which can't be undone. What it put on hold can be run again.")
        }
        (CycleState::Done, None) => Ok(Choice::Wake(Box::new(row))),
        (CycleState::Running | CycleState::Waiting | CycleState::Parked, None) => refused(NOT_YET),
        (CycleState::Failed | CycleState::Abandoned, None) if store.undos().has_copies(&row.cycle.id)? => {
            Ok(Choice::Wake(Box::new(row)))
        }
        (CycleState::Failed | CycleState::Abandoned, None) => refused(CAME_TO_NOTHING),
    }
}

/// Checks a request to undo a person's own step.
fn check_person_step(store: &Store, number: i64, chats: &[ChatRef], already: &[String]) -> Result<Choice, StoreError> {
    let name = PersonsStep::undone_as(number);
    let step = store.undos().persons_step(number)?.filter(|(_, chat)| chats.is_empty() || chats.contains(chat));
    Ok(match (step, store.undos().find_undo_state(&name)?) {
        (None, _) => Choice::Refused("There's no such step here.".to_owned()),
        (_, Some(true)) => Choice::Refused(UNDONE.to_owned()),
        (_, Some(false)) => Choice::Refused(ABOUT_TO_BE.to_owned()),
        _ if already.contains(&name) => Choice::Refused(ABOUT_TO_BE.to_owned()),
        (Some((step, _)), None) => Choice::Person(step),
    })
}

/// Checks a request to undo a change of the assistant's orders: agreed to, with a completed wake.
fn check_change(store: &Store, number: i64, already: &[String]) -> Result<Choice, StoreError> {
    let refused = |why: &str| Ok(Choice::Refused(why.to_owned()));
    let Some(proposal) = store.proposals().find_proposal(number)?.filter(|proposal| proposal.agreed_at.is_some())
    else {
        return refused("No change of my orders has this number. `wake approvals list --all` shows what I have asked.");
    };
    let name = Proposal::undone_as(number);
    let undone = match store.undos().find_undo_state(&name)? {
        None => store.undos().find_undo_state(&proposal.cycle_id)?,
        known => known,
    };
    let state = store.cycles().find_cycle(&proposal.cycle_id)?.map(|row| row.state);
    match (undone, state) {
        (Some(true), _) => refused(UNDONE),
        (Some(false), _) => refused(ABOUT_TO_BE),
        _ if already.contains(&name) => refused(ABOUT_TO_BE),
        // The change happens with its wake's commit: before that there is nothing to undo.
        (None, Some(CycleState::Running | CycleState::Waiting | CycleState::Parked)) => refused(NOT_YET),
        (None, Some(CycleState::Done)) => Ok(Choice::Change(Box::new(proposal))),
        (None, _) => refused(CAME_TO_NOTHING),
    }
}
