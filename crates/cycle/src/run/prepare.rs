//! What a cycle begins with: the world that its tools see, and the conversation's fixed parts and first message.

use std::{borrow::Cow, collections::BTreeSet};

use reveille_base::types::ChatRef;
use reveille_git::{Repo, RepoError};
use reveille_index::embed::Meaning;
use reveille_memory as memory;
use reveille_memory::{
    skill::Skills,
    view::{self, View},
};
use reveille_policy as policy;
use reveille_sandbox::exec::Shelter;
use reveille_store::{Entry, Exchange, Incoming, NewCycle, PersonsStep, StoreError, wake_lock::waker::Waker};
use reveille_tools::{
    Attachments, Chat, Documents, MAX_ATTACHMENTS, MAX_EXCHANGES, MAX_UNDOABLE, ToRead, Undoable, World,
};

use super::attached::Allowance;
use crate::{
    Choice,
    context::WakeError,
    decide::{
        brief,
        budget::{Budget, day_begin},
        lineup::ModelState,
        machine::Cycle,
        orient::last_channel_id,
        situation::{Reason, Situation},
        taint,
        verify::Account,
    },
    look::undoable::{undoable, what_it_did, what_they_did},
    run::{attached, lasting::lasting, own_work, own_work_begun::Begun, recall, recordings, token_rate},
    session::Session,
};

/// Problems of skills that one wake's account names at most; `health check` names all.
const MAX_NOTED: usize = 5;

/// Builds what the tools see. `lineup` is of the look that the cycle began with; `open` are ids of `messages`.
pub(crate) fn world(
    session: &mut Session<'_>,
    repo: &Repo,
    cycle: &NewCycle,
    lineup: &ModelState,
    (messages, open): (&[Incoming], &[i64]),
    account: &mut Account,
) -> Result<World, WakeError> {
    let config = session.context.config;
    let now = session.now();
    let mut documents = Documents::new(repo.root(), session.store.staged(&cycle.id)?);
    if let Some(chat) = view::foreign_chat(cycle.chat, config.owner_chat)
        && !view::is_shared(&documents.text(memory::CLAUDE))
    {
        documents = documents.seen_by(View::of(chat));
    }
    let Skills { usable: skills, problems } = Skills::collect(&documents.list(), |path| documents.text(path));
    account.notes.extend(problems.into_iter().take(MAX_NOTED));
    account.notes.extend(unreadable(repo));
    let since = day_begin(now, config.timezone);
    let caps = Budget::look(&session.store, config, now)?.caps();
    let loaded = policy::load(&config.policy_path(), config.home.as_deref());
    account.notes.extend(loaded.rules.refusal().map(str::to_owned));
    let tooling = session.tooling();
    account.notes.extend(tooling.servers.problems.iter().cloned());
    let mut told_keys = session.store.told_keys()?;
    told_keys.extend(session.store.handled_keys(memory::reflect::CONTRADICTION)?);
    // By the rule of this moment: it may have changed while the memory was pulled.
    let lineup = lineup.clone().with_local_chats(session.store.local_chats()?, config.owner_chat);
    // What nobody asked for is the owner's affair, but no chat of theirs: it finds nothing of those that are kept local.
    let is_local = lineup.is_local(cycle.chat);
    let others = lineup.local.iter().filter_map(|chat| *chat).filter(|chat| Some(*chat) != cycle.chat);
    let meaning = Meaning::new(config, session.context.redactor, caps);
    let shelter = session.shelter_of_cycle(&loaded.rules, &cycle.id)?;
    let rules = rules_of_chat(loaded.rules, &documents, &shelter);
    Ok(World {
        wake_id: cycle.id.clone(),
        model: session.context.model.name().to_owned(),
        is_stand_in: lineup.is_thinking() && !is_local,
        is_local,
        other_local_chats: others.collect(),
        assignment: own_work::assignment(repo, cycle, &documents)?,
        catalogue: tooling.catalogue(documents.root().is_some()),
        chat: cycle.chat.map(|id| Chat { id, thread_id: cycle.thread_id, reply_to: last_channel_id(messages, open) }),
        open_messages: open.to_vec(),
        told_keys,
        told_today: u32::try_from(session.store.tells_since(config.owner_chat, since)?).unwrap_or(u32::MAX),
        reminders: session.store.reminders()?,
        unwoken: unwoken(session, cycle),
        documents,
        index: session.index.clone(),
        meaning: if is_local { meaning.kept_here() } else { meaning },
        skills,
        attachments: attachments(session, cycle)?,
        exchanges: match cycle.chat {
            Some(chat) => session.store.exchanges(chat, MAX_EXCHANGES)?,
            None => Vec::new(),
        },
        undoable: all_undoable(session, cycle)?,
        last_undoable: last_undoable(session, repo, cycle)?,
        shown_tasks: match cycle.chat {
            Some(chat) => session.store.shown_tasks(chat)?,
            None => Vec::new(),
        },
        ..World::new(config, session.context.version, now, rules, shelter)
    })
}

/// What a chat is to be told of what it sets for a time. What comes by Telegram comes by a bot, which wakes for what it sets.
fn unwoken(session: &Session<'_>, cycle: &NewCycle) -> Option<String> {
    let config = session.context.config;
    let is_heard_here = cycle.chat.is_none_or(|id| id == ChatRef::TERMINAL);
    if is_heard_here { Waker::look(config, session.now()).warning(config) } else { None }
}

/// The rules as they hold for a chat: with the folders of ours that the tools for files may use, and no granted host for one
/// that may not use all that is the owner's.
fn rules_of_chat(rules: policy::Rules, documents: &Documents, shelter: &Shelter) -> policy::Rules {
    let rules = rules.with_scratch(&shelter.folder().work_path()).with_own(shelter.scratch());
    match documents.root() {
        Some(brain) => rules.with_brain(brain),
        // fault: guests-reach-hosts-granted
        None => rules.without_hosts(),
    }
}

/// The steps that a cycle may take back: the owner's any, another chat's its own.
fn all_undoable(session: &Session<'_>, cycle: &NewCycle) -> Result<Vec<Undoable>, StoreError> {
    let foreign = view::foreign_chat(cycle.chat, session.context.config.owner_chat);
    let chats: Vec<ChatRef> = foreign.into_iter().collect();
    let known = session.store.all_undoable(&chats, MAX_UNDOABLE)?;
    let own = session.store.persons_commits(&chats, MAX_UNDOABLE)?;
    Ok(known.into_iter().chain(own).map(|(wake, commit)| Undoable { wake, commit: Some(commit), what: None }).collect())
}

/// The step that the chat means by "undo that", as `/undo` does: the newest of it, or of the console where it is the owner's.
fn last_undoable(session: &Session<'_>, repo: &Repo, cycle: &NewCycle) -> Result<Option<Undoable>, StoreError> {
    let Some(chat) = cycle.chat else { return Ok(None) };
    let is_owners = view::foreign_chat(Some(chat), session.context.config.owner_chat).is_none();
    let chats = if is_owners { vec![chat, ChatRef::TERMINAL] } else { vec![chat] };
    Ok(match undoable(&session.store, &chats, None, &[])? {
        Choice::Wake(row) => {
            let message = repo.wake_commit(&row.cycle.id).ok().flatten().and_then(|commit| repo.message(commit).ok());
            let subject = message.as_deref().and_then(|message| message.lines().next());
            let what = what_it_did(Some(&row), subject, session.now(), session.context.config.timezone);
            Some(Undoable { wake: row.cycle.id.clone(), commit: row.commit_id.clone(), what: Some(what) })
        }
        Choice::Person(step) => {
            let what = what_they_did(&step, session.now(), session.context.config.timezone);
            Some(Undoable { wake: PersonsStep::undone_as(step.id), commit: step.commit, what: Some(what) })
        }
        Choice::Change(_) | Choice::Refused(_) => None,
    })
}

/// The files that the asking chat has sent.
pub(crate) fn attachments(session: &Session<'_>, cycle: &NewCycle) -> Result<Attachments, StoreError> {
    let files = cycle.chat.map(|chat| session.store.attachments_of_chat(chat, MAX_ATTACHMENTS)).transpose()?;
    let dir = session.context.config.media_dir.clone();
    Ok(Attachments { dir, files: files.unwrap_or_default(), ..Attachments::default() })
}

/// The cycle's fixed parts and its first message.
pub(crate) fn opening(
    session: &mut Session<'_>,
    cycle: &mut NewCycle,
    world: &World,
    observation: &Situation,
    reasons: &[Reason],
    work: &Begun,
) -> Result<Entry, WakeError> {
    let ids: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
    let redactor = session.context.redactor;
    // What people commit is the owner's affair, and is left for their cycle.
    let is_owners = world.foreign_chat().is_none();
    let person_commits = if is_owners { observation.person_commits.as_slice() } else { &[] };
    let words = format!("{}\n{}", called_for(&cycle.reasons, observation, &ids), work.words);
    let messages: Vec<&Incoming> = observation.messages.iter().filter(|message| ids.contains(&message.id)).collect();
    let (recalled, meant) = recall::recalled(session, world, cycle, &messages).unzip();
    let of_now = since_fresh_start(session, cycle, &world.exchanges)?;
    let exchanges = brief::shown_of(&of_now, recalled.is_some());
    let is_withheld = |found: &[brief::Recollection]| found.iter().any(|one| one.is_of_others);
    let projects = brief::spoken_projects(&world.documents, world.foreign_chat(), &words);
    let there = ToRead {
        project: !projects.is_empty(),
        withheld: exchanges.iter().any(|entry| entry.taint.is_some()) || recalled.as_deref().is_some_and(is_withheld),
    };
    (cycle.system, cycle.tools) = fixed_parts(session, world, &words, there);
    let is_short = session.context.model.is_small();
    let files = attached::files_of(session, &messages, Allowance::left_by(&[], session.context.config.images_max))?;
    let (done_already, done_after) = done_already(session, &ids)?;
    let similar_work = recordings::similar_work(session, cycle, &ids, meant.flatten().as_ref())?;
    let raw = brief::opening(&brief::Brief {
        wake_id: &cycle.id,
        now: world.now,
        tz: world.tz,
        reasons: &cycle.reasons,
        done_already: &done_already,
        person_commits,
        exchanges,
        messages: &messages,
        files: &files,
        documents: &world.documents,
        recalled: recalled.as_deref(),
        rate: token_rate::known(session)?,
        reader: world.foreign_chat(),
        similar_work: if is_short { "" } else { &similar_work },
        projects: &projects,
        own_work: &work.block,
        is_short,
    });
    Ok(Entry::Said {
        raw: brief::with_images(redactor.redact_json(&raw), &files),
        messages: ids,
        handles: reasons.iter().filter_map(Reason::handled_key).collect(),
        head: observation.head.clone().filter(|_| is_owners),
        // fault: whoever-goes-wakes-work
        taint: taint::joined(taint::of(&messages, &files).into_iter().chain(done_after).chain(work.taint.clone())),
    })
}

/// The fixed parts of a conversation with the present model, about something in these words.
fn fixed_parts(session: &Session<'_>, world: &World, words: &str, there: ToRead) -> (String, String) {
    let redactor = session.context.redactor;
    let orders = world.documents.text(memory::CLAUDE);
    let is_short = session.context.model.is_small();
    let system = if is_short { brief::short_system() } else { brief::system(&orders, &world.skills) };
    let system = redactor.redact_json(&system);
    let tooling = session.tooling();
    let seen = tooling.registry.seen_by(world.sees_all());
    let offered = match &world.assignment {
        Some(work) => seen.offered_to(work, words, there),
        None => seen.offered(words, there),
    };
    // Those of servers are in their words, and a server knows the keys that it was given. Ours are the same for everybody.
    // fault: servers-definitions-believed-hold
    let tools = if tooling.servers.servers.is_empty() { offered } else { redactor.redact_json(&offered) };
    (system, tools)
}

/// The same for a cycle that another model began.
pub(crate) fn fixed_parts_again(
    session: &Session<'_>,
    cycle: &NewCycle,
    world: &World,
    state: &Cycle,
) -> Result<(String, String), StoreError> {
    let queued = session.store.queued()?;
    let said = queued.iter().filter(|message| state.messages.contains(&message.id));
    let planned = state.plan.iter().flat_map(|plan| plan.steps.iter().map(|step| step.what.as_str()));
    let words = cycle.reasons.iter().map(String::as_str).chain(said.map(|message| message.text.as_str()));
    let words = words.chain(planned).collect::<Vec<_>>().join("\n");
    let shows = |what| state.conversation.messages.first().is_some_and(|opening| opening.contains(what));
    let there = ToRead { withheld: shows("withheld="), project: shows("<projects ") };
    Ok(fixed_parts(session, world, &words, there))
}

/// What was said since the cycle's chat was begun afresh, without late answers to what was said before. They come in the order in
/// which they were said.
fn since_fresh_start<'e>(
    session: &Session<'_>,
    cycle: &NewCycle,
    exchanges: &'e [Exchange],
) -> Result<Cow<'e, [Exchange]>, StoreError> {
    let Some(chat) = cycle.chat else { return Ok(exchanges.into()) };
    let Some(start) = session.store.fresh_start(chat, cycle.thread_id)? else { return Ok(exchanges.into()) };
    let old = exchanges.iter().rposition(|exchange| start.is_after(exchange)).map_or(0, |last| last + 1);
    let late = session.store.answers_to_the_past(start, chat)?;
    let since = exchanges.iter().skip(old).filter(|said| said.from.is_some() || !late.contains(&said.row));
    Ok(since.cloned().collect())
}

/// What given-up wakes had done for these messages that lasts: it must not be done again. Their files don't, they are
/// on a branch of their own. And whose words those wakes had read: what they say of it may hold them, and whoever goes on with
/// their work must know what was done.
fn done_already(session: &Session<'_>, messages: &[i64]) -> Result<(Vec<String>, BTreeSet<String>), WakeError> {
    let (mut done, mut after) = (Vec::new(), BTreeSet::new());
    for row in session.store.given_up_with(messages)? {
        let id = &row.cycle.id;
        let journal = match session.store.journal(id) {
            Err(StoreError::Damaged(_)) => {
                done.push(format!(
                    "Nobody knows what (the record of the wake {id}, which was given up, can't be read)"
                ));
                continue;
            }
            journal => journal?,
        };
        let lasting = lasting(&journal, &session.tooling().registry);
        if !lasting.is_empty() {
            let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
            after.extend(state.taints);
        }
        done.extend(lasting.iter().map(|what| format!("{what} (in the wake {id}, which was given up)")));
    }
    Ok((done, after))
}

/// The words that say what a cycle is about: what is said to it, and why it is due.
fn called_for(reasons: &[String], observation: &Situation, messages: &[i64]) -> String {
    let said = observation.messages.iter().filter(|message| messages.contains(&message.id));
    let said = said.flat_map(|message| [Some(message.text.as_str()), message.quoted.as_deref()]).flatten();
    reasons.iter().map(String::as_str).chain(said).collect::<Vec<_>>().join("\n")
}

/// Notes on documents that are there and can't be read as text.
fn unreadable(repo: &Repo) -> Vec<String> {
    let errors = memory::DOCUMENTS.iter().filter_map(|path| repo.check_text(path).err());
    errors.filter(RepoError::is_of_a_file).map(|error| format!("Could not be read: {error}.")).collect()
}
