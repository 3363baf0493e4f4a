//! Reflection on some days: first by rules, at no cost; then by a thinking model, if there is one.

use std::{collections::BTreeSet, ops::Range, path::Path};

use chrono::{NaiveDate, TimeDelta};

use reveille_base::{
    types::ChatRef,
    words::{format_local_time, one_line},
};
use reveille_git::{Repo, find_trailer};
use reveille_memory as memory;
use reveille_memory::{
    ARCHIVE_DIR, SEMANTIC_MEMORY, others,
    preferences::Preferences,
    reflect::{self, CONTRADICTION, HABIT, LookedBack, PastMessage, PersonMemoryEdits, ReflectionInput},
    view,
};
use reveille_store::{Change, NewCycle};
use reveille_tools::{Asking, Documents};

use crate::run::record::effects::RuleEffects;
use crate::{
    context::WakeError,
    decide::brief::{clip, escape, escape_attribute},
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
/// The maximum length of a shown entry, in characters.
const EXCHANGE_CHARS_MAX: usize = 600;
/// The maximum length of all shown entries, in characters.
const EXCHANGES_CHARS_MAX: usize = 40_000;
/// The maximum length of the days' log, in characters.
const LOG_CHARS_MAX: usize = 30_000;

/// The request to the model.
const ASKED: &str = "\
Nobody has asked for anything: look back at these days, and write down what will matter. The rules have already done what \
<done> lists. Now:
1. Sum up each day with `day_summary`: what it was about, what came of it, its key facts. It takes the place of the rule's list.
2. What was learnt and isn't known yet: `remember`. What you have seen three times or more is a pattern: remember it with its \
sources (days or message numbers). Twice is a coincidence.
3. What has changed: `forget` the old fact and `remember` the new one. What your person wrote by hand isn't yours to change.
4. Facts that can't both be so: `contradiction`, which asks your person. Never choose for them.
5. If a fact may stop being true, add the day as of which it holds: “… (as of 2026-05-03)”.
Don't write to your person. If there is nothing to add, end without a word.";

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

/// Renders the block for the model. Untrusted text is left out.
pub(crate) fn render_block(
    session: &Session<'_>,
    repo: &Repo,
    days: &Range<NaiveDate>,
    found: &LookedBack,
) -> Result<String, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let mut text = format!("<reflection>\n{ASKED}\n<done>");
    for line in found.receipts.iter().chain(&found.health) {
        text.push_str(&format!("\n- {}", escape(line)));
    }
    text.push_str("\n</done>\n<log>");
    let mut logs = read_archived_logs(&documents, days);
    logs.push(documents.text(memory::EPISODIC_MEMORY));
    let mut entries = String::new();
    for log in &logs {
        let (log, _) = others::remove_untrusted(memory::EPISODIC_MEMORY, log, None);
        for day in memory::episodic::Log::parse(&log).0.days.iter().filter(|day| days.contains(&day.date)) {
            for entry in &day.entries {
                let at = entry.time.map(|time| time.format(" %H:%M").to_string()).unwrap_or_default();
                entries.push_str(&format!("\n{}{at} {}", day.date, escape(&entry.text)));
            }
        }
    }
    text.push_str(&clip(&entries, LOG_CHARS_MAX));
    text.push_str("\n</log>\n<exchanges>");
    let mut said = String::new();
    let chats: BTreeSet<ChatRef> = [ChatRef::TERMINAL, session.context.config.owner_chat].into();
    let (tz, local_chats) = (session.context.config.timezone, session.store.chats().local_chats()?);
    // Local chats are left out, because the results go to the memory, which all models see.
    for chat in chats.into_iter().filter(|chat| !local_chats.contains(chat)) {
        for one in session.store.inbox().list_exchanges(chat, EXCHANGES_MAX)? {
            let Some(at) = one.at.filter(|at| days.contains(&at.with_timezone(&tz).date_naive())) else { continue };
            if one.taint.is_none() {
                let who = escape_attribute(one.from.as_deref().unwrap_or("you"));
                let words = escape(&clip(&one.text, EXCHANGE_CHARS_MAX));
                let (at, number) = (format_local_time(at, tz), one.format_number());
                said.push_str(&format!("\n<said by=\"{who}\" at=\"{at}\" entry=\"{number}\">{words}</said>"));
            }
        }
    }
    text.push_str(&clip(&said, EXCHANGES_CHARS_MAX));
    text.push_str("\n</exchanges>\n</reflection>");
    Ok(text)
}
