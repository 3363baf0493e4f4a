//! The due time for initiative, and the candidates. Off by default. Between its times this only asks the clock; after a used slot it reads
//! one key.

use chrono::{DateTime, Utc};

use reveille_base::approval_text::hash_action;
use reveille_config::Config;
use reveille_memory as memory;
use reveille_memory::{
    initiative::{InitiativeInput, Weighed, weigh},
    project::Project,
    view,
};
use reveille_store::{Store, StoreError};
use reveille_tools::{Documents, known_projects};

use crate::{
    background::initiative::slot::{DueInitiative, find_due_slot},
    decide::situation::DueWork,
};

/// The key of the last question without a result, so that the same question isn't paid for again.
pub(crate) const ASKED: &str = "initiative/asked";

/// Returns the due slot with its candidates. `None` while the last proposal waits for an answer, without candidates, and if the same
/// question was asked in vain.
pub(crate) fn find_due(
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<DueInitiative>, StoreError> {
    let Some(slot) = find_due_slot(config.initiative, config.quiet_hours, now, config.timezone) else {
        return Ok(None);
    };
    if store.maintenance().find_handled_value(&DueWork::format_key(&slot.background_job()))?.is_some()
        || store.outbox().is_proposal_unanswered(config.owner_chat)?
    {
        return Ok(None);
    }
    let weighed = weigh_candidates(store, config, &Documents::new(&config.repo_dir(), Vec::new()), now)?;
    if !weighed.worthwhile_candidates().is_empty()
        && store
            .maintenance()
            .find_handled_value(ASKED)?
            .is_some_and(|asked| asked == digest_question(&weighed, config, now))
    {
        return Ok(None);
    }
    let is_there = !weighed.candidates.is_empty() && !weighed.is_unwanted;
    Ok(is_there.then_some(DueInitiative { slot, weighed }))
}

/// Computes a digest of the question to the model about these candidates. It stays the same within a week until a task or a score changes.
pub(crate) fn digest_question(weighed: &Weighed, config: &Config, now: DateTime<Utc>) -> String {
    let week = now.with_timezone(&config.timezone).format("%G-W%V").to_string();
    let told = weighed
        .worthwhile_candidates()
        .iter()
        .map(|one| format!("{}\n{}", one.describe(), one.next.as_deref().unwrap_or_default()));
    hash_action(&std::iter::once(week).chain(told).collect::<Vec<_>>().join("\n"))
}

/// Weighs the candidates by the rules.
pub(crate) fn weigh_candidates(
    store: &Store,
    config: &Config,
    documents: &Documents,
    now: DateTime<Utc>,
) -> Result<Weighed, StoreError> {
    let projects: Vec<(String, Project)> = known_projects(documents)
        .into_iter()
        .map(|(name, path)| (name, Project::parse(&documents.text(&path))))
        .collect();
    let is_owners = |chat| view::foreign_chat(Some(chat), config.owner_chat).is_none();
    let reminders: Vec<(DateTime<Utc>, String)> = store
        .reminders()
        .list_reminders()?
        .into_iter()
        .filter(|reminder| is_owners(reminder.what.chat))
        .map(|reminder| (reminder.what.next_at, reminder.what.text))
        .collect();
    Ok(weigh(&InitiativeInput {
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
