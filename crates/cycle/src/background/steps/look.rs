//! The due steps of the owner's long tasks, in the tasks' order. Nothing is read while no task has steps.

use reveille_base::types::{ChatRef, OwnWork};
use reveille_git::RepoError;
use reveille_memory::{
    steps::{TaskSteps, Upcoming, steps_path},
    tasks::Task,
    view,
};
use reveille_store::{Store, StoreError};

use crate::decide::situation::DueWork;

/// Lists the next steps of the owner's tasks.
pub(crate) fn list_due_steps(
    tasks: &[Task],
    owner_chat: ChatRef,
    read: impl Fn(&str) -> Result<Option<String>, RepoError>,
) -> Vec<DueWork> {
    let is_owners = |task: &&Task| !task.is_unconfirmed() && view::foreign_chat(task.chat(), owner_chat).is_none();
    let with_steps = tasks.iter().filter(is_owners).filter(|task| task.is_in_hand());
    with_steps.filter_map(|task| find_due_step(task, &read)).collect()
}

fn find_due_step(task: &Task, read: impl Fn(&str) -> Result<Option<String>, RepoError>) -> Option<DueWork> {
    let plan = task.steps_name()?;
    let text = read(&steps_path(plan)?).ok().flatten()?;
    let steps = TaskSteps::parse(&text).0;
    let Upcoming::Step(step) = steps.find_next_action() else { return None };
    let what = format!("step {} of {} of “{}”: {}", step.number, steps.steps().len(), task.title, step.what);
    Some(DueWork { work: OwnWork::Step { plan: plan.to_owned(), step: step.number, run: step.tries }, what })
}

/// Returns `true` if the next step was started and no cycle is working on it, because that cycle was given up or undone. A person must
/// release it.
pub fn is_step_held(
    store: &Store,
    task: &Task,
    read: impl Fn(&str) -> Result<Option<String>, RepoError>,
) -> Result<bool, StoreError> {
    let Some(due) = find_due_step(task, read) else { return Ok(false) };
    let is_open = store.cycles().open_cycles()?.iter().any(|row| row.cycle.work.as_ref() == Some(&due.work));
    Ok(!is_open && store.maintenance().find_handled_value(&due.key())?.is_some())
}

/// Keeps the work not yet started by a cycle.
pub(crate) fn remove_handled(store: &Store, due: Vec<DueWork>) -> Result<Vec<DueWork>, StoreError> {
    let mut left = Vec::new();
    for work in due {
        if store.maintenance().find_handled_value(&work.key())?.is_none() {
            left.push(work);
        }
    }
    Ok(left)
}
