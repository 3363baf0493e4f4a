//! Reflection on some days: first by rules, at no cost; then by a thinking model, if there is one.

use std::{collections::BTreeSet, ops::Range, path::Path};

use chrono::{NaiveDate, TimeDelta};

use reveille_base::{types::ChatRef, words::one_line};
use reveille_git::{Repo, find_trailer};
use reveille_memory as memory;
use reveille_memory::{
    ARCHIVE_DIR, SEMANTIC_MEMORY,
    preferences::Preferences,
    reflect::{self, CONTRADICTION, HABIT, LookedBack, PastMessage, PersonMemoryEdits, ReflectionInput},
    view,
};
use reveille_store::{Change, NewCycle};
use reveille_tools::{Asking, Documents};

use crate::run::record::effects::RuleEffects;
use crate::{
    background::reflection::words::{self, ReflectedDays},
    context::WakeError,
    session::Session,
};

/// The maximum number of commits searched for those by people.
const SEARCHED_MAX: usize = 10_000;
/// The maximum number of a person's commits read for edits.
const COMMITS_MAX: usize = 500;
/// The period in which habits are counted.
const HABIT_PERIOD: TimeDelta = TimeDelta::days(30);
/// The maximum number of messages searched for habits.
const SAID_MAX: usize = 5_000;
/// The maximum number of exchange entries read per chat.
const EXCHANGES_MAX: usize = 400;

/// Collects the facts added or removed by a person. An undo counts as a person's word.
pub(crate) fn collect_hand_edits(repo: &Repo) -> Result<PersonMemoryEdits, WakeError> {
    let mut by_hand = PersonMemoryEdits::default();
    let mut theirs = Vec::new();
    for commit in repo.history().list_commits(SEARCHED_MAX)? {
        if !commit.is_ours() || find_trailer(&repo.history().read_message(commit.id)?, "Undoes").is_some() {
            theirs.push(commit);
        }
    }
    for commit in theirs.into_iter().take(COMMITS_MAX) {
        if !repo.history().list_changed_paths(commit.id)?.contains(Path::new(SEMANTIC_MEMORY)) {
            continue;
        }
        let before = repo
            .history()
            .find_parent(commit.id)?
            .map(|id| repo.history().read_text_at(id, SEMANTIC_MEMORY))
            .transpose()?
            .flatten();
        let after = repo.history().read_text_at(commit.id, SEMANTIC_MEMORY)?;
        by_hand.note_edit(&before.unwrap_or_default(), &after.unwrap_or_default());
    }
    Ok(by_hand)
}

/// Applies the rules to these days.
pub(crate) fn apply_rules(
    session: &Session<'_>,
    repo: &Repo,
    cycle: &NewCycle,
    days: &Range<NaiveDate>,
) -> Result<(RuleEffects, LookedBack), WakeError> {
    let (config, now) = (session.context.config, session.now());
    let documents = Documents::new(repo.root(), Vec::new());
    let holds_nudges = Preferences::parse(&documents.text(memory::CONTEXT)).holds_nudges();
    let told = session
        .store
        .outbox()
        .tells_since(config.owner_chat, crate::decide::budget::day_begin(now, config.timezone))?;
    let has_room = told < i64::from(config.tell_per_day) && !holds_nudges;
    let archive = read_archived_logs(&documents, days);
    let asked = list_past_messages(session)?;
    let mut noted = session.store.maintenance().handled_keys(CONTRADICTION)?;
    noted.extend(session.store.maintenance().handled_keys(HABIT)?);
    let found = reflect::look_back(&ReflectionInput {
        wake: &cycle.id,
        days: days.clone(),
        today: days.end,
        read: &|path| documents.text(path),
        archive: &archive,
        asked: &asked,
        by_hand: &collect_hand_edits(repo)?,
        noted: &noted,
        owner_chat: config.owner_chat,
        // If no question may ever be asked, only a mark shows the contradiction.
        disputes: has_room || config.tell_per_day == 0,
    });
    let asking = Asking {
        owner_chat: config.owner_chat,
        now,
        tz: config.timezone,
        quiet_hours: config.quiet_hours,
        may_ask: has_room,
    };
    let mut changes: Vec<Change> = found.files.iter().map(|(path, text)| documents.stage(path, text.clone())).collect();
    changes.extend(asking.build_question(&found.disputes));
    crate::context::check_readable(&documents)?;
    Ok((RuleEffects { changes, receipts: found.receipts.clone(), handles: found.keys.clone() }, found))
}

/// Returns the archived logs of the days' months.
fn read_archived_logs(documents: &Documents, days: &Range<NaiveDate>) -> Vec<String> {
    let months: BTreeSet<String> = [days.start, days.end].iter().map(|day| day.format("%Y-%m").to_string()).collect();
    months.iter().filter_map(|month| documents.get(&format!("{ARCHIVE_DIR}/{month}.md"))).collect()
}

fn list_past_messages(session: &Session<'_>) -> Result<Vec<PastMessage>, WakeError> {
    let (config, redactor) = (session.context.config, session.context.redactor);
    let said = session.store.maintenance().own_words_since(session.now() - HABIT_PERIOD, SAID_MAX)?;
    let local_chats = session.store.chats().local_chats()?;
    Ok(said
        .into_iter()
        .filter(|(_, chat, ..)| !local_chats.contains(chat))
        .filter_map(|(message, chat, at, text)| {
            let text = one_line(&redactor.redact(&text));
            let date = at?.with_timezone(&config.timezone).date_naive();
            Some(PastMessage { message, chat: view::foreign_chat(Some(chat), config.owner_chat), date, text })
        })
        .collect())
}

/// Builds the block for the model.
pub(crate) fn build_block(
    session: &Session<'_>,
    repo: &Repo,
    days: &Range<NaiveDate>,
    found: &LookedBack,
) -> Result<String, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let mut logs = read_archived_logs(&documents, days);
    logs.push(documents.text(memory::EPISODIC_MEMORY));
    let chats: BTreeSet<ChatRef> = [ChatRef::TERMINAL, session.context.config.owner_chat].into();
    let local = session.store.chats().local_chats()?;
    let mut exchanges = Vec::new();
    // Local chats are left out, because the results go to the memory, which all models see.
    for chat in chats.into_iter().filter(|chat| !local.contains(chat)) {
        exchanges.extend(session.store.inbox().list_exchanges(chat, EXCHANGES_MAX)?);
    }
    let tz = session.context.config.timezone;
    Ok(words::render_opening(&ReflectedDays { days, found, logs: &logs, exchanges: &exchanges, tz }))
}
