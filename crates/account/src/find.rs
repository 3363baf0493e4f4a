//! Finds a wake by its id, its commit's id, the beginning of either, or the number of a message it handled.

use reveille_base::types::ChatRef;
use reveille_git::{Repo, RepoError};
use reveille_store::{CycleRow, Store, StoreError};

/// The wake or commit found under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundWake {
    /// A cycle of this database.
    Cycle(Box<CycleRow>),
    /// A commit of the memory without a cycle in this database: it is a person's, or older than the database.
    Commit(String),
    /// Nothing was found. Holds an explanation for people.
    Nothing(String),
}

/// The reason for a failed search.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The database couldn't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory couldn't be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Finds a wake by name; without a name, the latest cycle.
pub fn find_wake(store: Option<&Store>, repo: Option<&Repo>, name: Option<&str>) -> Result<FoundWake, FindError> {
    let Some(name) = name else {
        let last = store.map(|store| store.cycles().last_cycle()).transpose()?.flatten();
        return Ok(last.map_or_else(
            || FoundWake::Nothing("Nothing has been done yet.".to_owned()),
            |row| FoundWake::Cycle(Box::new(row)),
        ));
    };
    let by_number = |number: &str| number.parse::<i64>().ok().filter(|number| *number > 0);
    if let Some(number) = name.strip_prefix('#').map(by_number) {
        return match number {
            Some(number) => find_by_message(store, number),
            None => Ok(describe_unknown(name)),
        };
    }
    let cycles = store
        .map(|store| store.undos().find_cycles_by_prefix(name, &[] as &[ChatRef]))
        .transpose()?
        .unwrap_or_default();
    let commit = match (cycles.as_slice(), repo) {
        ([], Some(repo)) => repo.history().find_commit(name)?.map(|commit| commit.id.to_string()),
        _ => None,
    };
    let message = match by_number(name) {
        Some(number) => find_by_message(store, number)?,
        None => describe_unknown(name),
    };
    let is_message = !matches!(&message, FoundWake::Nothing(why) if why.starts_with(NO_SUCH));
    match (cycles.as_slice(), commit, is_message) {
        ([_, _, ..], ..) => {
            Ok(FoundWake::Nothing("Several ids begin like that. Please give more characters.".to_owned()))
        }
        ([_], _, true) | (_, Some(_), true) => Ok(FoundWake::Nothing(format!(
            "{name} is both a message's number and the beginning of an id. Please give more of the id, or use `wake show '#{name}'` for \
             the message."
        ))),
        ([row], _, false) => Ok(FoundWake::Cycle(Box::new(row.clone()))),
        ([], Some(commit), false) => Ok(FoundWake::Commit(commit)),
        ([], None, _) => Ok(message),
    }
}

/// The beginning of the answer for an unknown name.
const NO_SUCH: &str = "There is no";

fn describe_unknown(name: &str) -> FoundWake {
    FoundWake::Nothing(format!("{NO_SUCH} wake or commit {name:?}. `wake log` lists them."))
}

/// Finds the cycle that last handled a message.
fn find_by_message(store: Option<&Store>, number: i64) -> Result<FoundWake, FindError> {
    let Some(store) = store else { return Ok(describe_unknown(&number.to_string())) };
    Ok(match store.history().cycle_of_message(number)? {
        None => FoundWake::Nothing(format!(
            "{NO_SUCH} message {number}, and no wake or commit of that name. `wake log` lists them."
        )),
        Some(None) => FoundWake::Nothing(format!("Message {number} is waiting: no wake has started on it yet.")),
        Some(Some(cycle)) => match store.cycles().find_cycle(&cycle)? {
            Some(row) => FoundWake::Cycle(Box::new(row)),
            None => FoundWake::Nothing(format!(
                "Message {number} was handled by the wake {cycle}, which is no longer kept."
            )),
        },
    })
}
