//! Whether it is time to look for something worth doing, and what there is. Off by default; between its times this asks the clock alone,
//! and once its time was used for one key.

use chrono::{DateTime, Utc};

use crate::{
    config::Config,
    cycle::decide::{
        initiative::{DueInitiative, slot_due},
        situation::DueWork,
    },
    memory::{
        self,
        initiative::{InitiativeLook, Weighed, weigh},
        project::Project,
        view,
    },
    store::{Store, StoreError},
    tool::{Documents, known_projects},
};

/// The slot that is due, with what was weighed: none while the last proposal waits for an answer, and where there is nothing at all.
pub(in crate::cycle) fn due(
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<DueInitiative>, StoreError> {
    let Some(slot) = slot_due(config.initiative, config.quiet_hours, now, config.timezone) else { return Ok(None) };
    if store.handled(&DueWork::key_of(&slot.work()))?.is_some() || store.is_proposal_unanswered(config.owner_chat)? {
        return Ok(None);
    }
    let weighed = weighed(store, config, &Documents::new(&config.repo_dir(), Vec::new()), now)?;
    let is_there = !weighed.candidates.is_empty() && !weighed.is_unwanted;
    Ok(is_there.then_some(DueInitiative { slot, weighed }))
}

/// What there is to do, by the rule.
pub(in crate::cycle) fn weighed(
    store: &Store,
    config: &Config,
    documents: &Documents,
    now: DateTime<Utc>,
) -> Result<Weighed, StoreError> {
    let projects: Vec<(String, Project)> = known_projects(documents)
        .into_iter()
        .map(|(name, path)| (name, Project::read(&documents.text(&path))))
        .collect();
    let is_owners = |chat| view::foreign_chat(Some(chat), config.owner_chat).is_none();
    let reminders: Vec<(DateTime<Utc>, String)> = store
        .reminders()?
        .into_iter()
        .filter(|reminder| is_owners(reminder.what.chat))
        .map(|reminder| (reminder.what.next_at, reminder.what.text))
        .collect();
    Ok(weigh(&InitiativeLook {
        now,
        tz: config.timezone,
        active: &documents.text(memory::ACTIVE),
        backlog: &documents.text(memory::BACKLOG),
        context: &documents.text(memory::CONTEXT),
        projects: &projects,
        reminders: &reminders,
        owner_chat: config.owner_chat,
    }))
}
