//! Orders an undo for the person at this machine. The next wake carries it out.

use chrono::{DateTime, Utc};

use reveille_config::Config;
use reveille_cycle::{Choice, describe_wake_step, find_undoable, what_they_did, which_change};
use reveille_git::Committed;
use reveille_store::{CycleRow, Order, PersonsStep, Proposal, Store, StoreError, UndoStep};

/// The answer to a request for an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAnswer {
    /// Ordered, with a description of the step, such as `what I did at 14:03: remembered “x”`.
    Ordered(String),
    /// Refused, with the reason for people.
    Refused(String),
}

/// Orders an undo, by default of the newest step.
pub fn order_undo(
    store: &mut Store,
    config: &Config,
    now: DateTime<Utc>,
    id: Option<&str>,
) -> Result<UndoAnswer, StoreError> {
    // The person at this machine may undo the steps of every chat, so no chats are listed.
    Ok(match find_undoable(store, &[], id, &[])? {
        Choice::Wake(row) => {
            let what = describe_wake(config, now, &row);
            store.inbox_mut().carry_out_order(&Order::Undo { wake: row.cycle.id }, now)?;
            UndoAnswer::Ordered(what)
        }
        Choice::Change(proposal) => {
            store.inbox_mut().carry_out_order(&Order::Undo { wake: Proposal::undone_as(proposal.id) }, now)?;
            UndoAnswer::Ordered(which_change(&proposal))
        }
        Choice::Person(step) => {
            store.inbox_mut().carry_out_order(&Order::Undo { wake: PersonsStep::undone_as(step.id) }, now)?;
            UndoAnswer::Ordered(what_they_did(&step, now, config.timezone))
        }
        Choice::Refused(why) => UndoAnswer::Refused(why),
    })
}

/// Finds the newest undoable step, with a description.
pub fn find_newest(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<Option<(String, String)>, StoreError> {
    Ok(store.undos().last_step(&[], &[])?.map(|step| match step {
        UndoStep::Wake(row) => (row.cycle.id.clone(), describe_wake(config, now, &row)),
        UndoStep::Person(step) => (PersonsStep::undone_as(step.id), what_they_did(&step, now, config.timezone)),
    }))
}

/// Describes a wake for people, by its time and its commit's subject.
pub fn describe_wake(config: &Config, now: DateTime<Utc>, row: &CycleRow) -> String {
    let memory = Committed::open(&config.repo_dir()).ok().flatten();
    let subject = row.commit_id.as_deref().and_then(|commit| memory?.find_subject(commit));
    describe_wake_step(Some(row), subject.as_deref(), now, config.timezone)
}
