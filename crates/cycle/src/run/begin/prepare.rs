//! The start of a cycle: the world seen by its tools, the conversation's fixed parts and the first message.

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
    Attachments, Chat, ChatSnapshot, CycleFacts, Documents, MAX_ATTACHMENTS, MAX_EXCHANGES, MAX_UNDOABLE,
    MemorySnapshot, ToRead, ToolView, Undoable, World,
};

use crate::run::begin::attached::Allowance;
use crate::{
    Choice,
    background::{self, begun::StartedJob},
    context::WakeError,
    decide::{
        brief,
        brief::memories::MemoryExtent,
        budget::{Budget, day_begin},
        lineup::ModelState,
        machine::Cycle,
        orient::last_channel_id,
        situation::{Reason, Situation},
        taint,
        verify::Account,
    },
    look::undoable::{describe_wake_step, find_undoable, what_they_did},
    run::{
        begin::{attached, recall},
        record::{lasting::list_lasting_receipts, recordings},
        step::token_rate,
    },
    session::Session,
};

/// The maximum number of skill problems in a wake's account; `health check` lists all.
const MAX_NOTED: usize = 5;

/// Builds the world seen by the tools. `lineup` was read at the cycle's start; `open` are ids of `messages`.
pub(crate) fn build_world(
    session: &mut Session<'_>,
    repo: &Repo,
    cycle: &NewCycle,
    lineup: &ModelState,
    (messages, open): (&[Incoming], &[i64]),
    account: &mut Account,
) -> Result<World, WakeError> {
    let config = session.context.config;
    let now = session.now();
    let mut documents = Documents::new(repo.root(), session.store.journal().list_staged_files(&cycle.id)?);
    if let Some(chat) = view::foreign_chat(cycle.chat, config.owner_chat)
        && !view::is_shared(&documents.text(memory::CLAUDE))
    {
        documents = documents.with_view(View::for_chat(chat));
    }
    let Skills { usable: skills, problems } = Skills::collect(&documents.list(), |path| documents.text(path));
    account.notes.extend(problems.into_iter().take(MAX_NOTED));
    account.notes.extend(list_unreadable_documents(repo));
    let since = day_begin(now, config.timezone);
    let caps = Budget::read(&session.store, config, now)?.caps();
    let loaded = policy::load(&config.policy_path(), config.home.as_deref());
    account.notes.extend(loaded.rules.refusal().map(str::to_owned));
    let tooling = session.tooling();
    account.notes.extend(tooling.servers.problems.iter().cloned());
    let mut told_keys = session.store.outbox().told_keys()?;
    told_keys.extend(session.store.maintenance().handled_keys(memory::reflect::CONTRADICTION)?);
    // Uses the current setting, which may have changed during the pull.
    let lineup = lineup.clone().with_local_chats(session.store.chats().local_chats()?, config.owner_chat);
    // Background jobs are the owner's but belong to no chat, so they see nothing of local chats.
    let is_local = lineup.is_local(cycle.chat);
    let others = lineup.local.iter().filter_map(|chat| *chat).filter(|chat| Some(*chat) != cycle.chat);
    let meaning = Meaning::new(config, session.context.redactor, caps);
    let shelter = session.shelter_of_cycle(&loaded.rules, &cycle.id)?;
    let rules = adapt_rules(loaded.rules, &documents, &shelter);
    let mut world = World::new(config, session.context.version, now, rules, shelter);
    world.cycle = CycleFacts {
        id: cycle.id.clone(),
        model: session.context.model.name().to_owned(),
        is_stand_in: lineup.is_thinking() && !is_local,
        assignment: background::run::find_assignment(repo, cycle, &documents)?,
        taint: None,
        replies: 0,
    };
    world.conversation = ChatSnapshot {
        chat: cycle.chat.map(|id| Chat { id, thread_id: cycle.thread_id, reply_to: last_channel_id(messages, open) }),
        is_local,
        other_local_chats: others.collect(),
        open_messages: open.to_vec(),
        own_words: Vec::new(),
        exchanges: match cycle.chat {
            Some(chat) => session.store.inbox().list_exchanges(chat, MAX_EXCHANGES)?,
            None => Vec::new(),
        },
        attachments: list_attachments(session, cycle)?,
        undoable: list_undoable(session, cycle)?,
        last_undoable: find_last_undoable(session, repo, cycle)?,
        shown_tasks: match cycle.chat {
            Some(chat) => session.store.outbox().shown_tasks(chat)?,
            None => Vec::new(),
        },
    };
    world.means.catalogue =
        tooling.catalogue(if documents.root().is_some() { ToolView::Owner } else { ToolView::Guest });
    world.unasked.told_keys = told_keys;
    world.unasked.told_today =
        u32::try_from(session.store.outbox().tells_since(config.owner_chat, since)?).unwrap_or(u32::MAX);
    world.unasked.unwoken = find_wake_warning(session, cycle);
    world.memory = MemorySnapshot {
        documents,
        index: session.index.clone(),
        meaning: if is_local { meaning.kept_here() } else { meaning },
        skills,
        reminders: session.store.reminders().list_reminders()?,
    };
    Ok(world)
}

/// Returns the warning that no wake will start at a time set in this chat. `None` for Telegram, whose bot starts the wakes itself.
fn find_wake_warning(session: &Session<'_>, cycle: &NewCycle) -> Option<String> {
    let config = session.context.config;
    let is_terminal = cycle.chat.is_none_or(|id| id == ChatRef::TERMINAL);
    if is_terminal { Waker::load(config, session.now()).render_warning(config) } else { None }
}

/// Adapts the rules to a chat: adds our folders that file tools may use, and removes granted hosts for a chat without access to
/// the owner's memory.
fn adapt_rules(rules: policy::Rules, documents: &Documents, shelter: &Shelter) -> policy::Rules {
    let rules = rules.with_scratch(&shelter.folder().work_path()).with_own(shelter.scratch());
    match documents.root() {
        Some(brain) => rules.with_brain(brain),
        // fault: guests-reach-hosts-granted
        None => rules.without_hosts(),
    }
}

/// Lists the steps a cycle may undo: any step for the owner, its own steps for another chat.
fn list_undoable(session: &Session<'_>, cycle: &NewCycle) -> Result<Vec<Undoable>, StoreError> {
    let foreign = view::foreign_chat(cycle.chat, session.context.config.owner_chat);
    let chats: Vec<ChatRef> = foreign.into_iter().collect();
    let known = session.store.undos().all_undoable(&chats, MAX_UNDOABLE)?;
    let own = session.store.undos().persons_commits(&chats, MAX_UNDOABLE)?;
    Ok(known.into_iter().chain(own).map(|(wake, commit)| Undoable { wake, commit: Some(commit), what: None }).collect())
}

/// Returns the step that "undo that" means in this chat, as for `/undo`: its newest, or the terminal's if the chat is the owner's.
fn find_last_undoable(session: &Session<'_>, repo: &Repo, cycle: &NewCycle) -> Result<Option<Undoable>, StoreError> {
    let Some(chat) = cycle.chat else { return Ok(None) };
    let is_owners = view::foreign_chat(Some(chat), session.context.config.owner_chat).is_none();
    let chats = if is_owners { vec![chat, ChatRef::TERMINAL] } else { vec![chat] };
    Ok(match find_undoable(&session.store, &chats, None, &[])? {
        Choice::Wake(row) => {
            let message = repo
                .history()
                .wake_commit(&row.cycle.id)
                .ok()
                .flatten()
                .and_then(|commit| repo.history().read_message(commit).ok());
            let subject = message.as_deref().and_then(|message| message.lines().next());
            let what = describe_wake_step(Some(&row), subject, session.now(), session.context.config.timezone);
            Some(Undoable { wake: row.cycle.id.clone(), commit: row.commit_id.clone(), what: Some(what) })
        }
        Choice::Person(step) => {
            let what = what_they_did(&step, session.now(), session.context.config.timezone);
            Some(Undoable { wake: PersonsStep::undone_as(step.id), commit: step.commit, what: Some(what) })
        }
        Choice::Change(_) | Choice::Refused(_) => None,
    })
}

/// Lists the files sent by the asking chat.
pub(crate) fn list_attachments(session: &Session<'_>, cycle: &NewCycle) -> Result<Attachments, StoreError> {
    let files =
        cycle.chat.map(|chat| session.store.attachments().attachments_of_chat(chat, MAX_ATTACHMENTS)).transpose()?;
    let dir = session.context.config.media_dir.clone();
    Ok(Attachments { dir, files: files.unwrap_or_default(), ..Attachments::default() })
}

/// Builds the conversation's fixed parts and first message.
pub(crate) fn build_opening(
    session: &mut Session<'_>,
    cycle: &mut NewCycle,
    world: &World,
    observation: &Situation,
    reasons: &[Reason],
    work: &StartedJob,
) -> Result<Entry, WakeError> {
    let ids: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
    let redactor = session.context.redactor;
    // People's commits are the owner's affair, and wait for the owner's cycle.
    let is_owners = world.foreign_chat().is_none();
    let person_commits = if is_owners { observation.person_commits.as_slice() } else { &[] };
    let words = format!("{}\n{}", join_subject_words(&cycle.reasons, observation, &ids), work.words);
    let messages: Vec<&Incoming> = observation.messages.iter().filter(|message| ids.contains(&message.id)).collect();
    let (recalled, meant) = recall::search_memory(session, world, cycle, &messages).unzip();
    let recent = select_since_fresh_start(session, cycle, &world.conversation.exchanges)?;
    let exchanges = brief::select_exchanges(&recent, MemoryExtent::beside_hits(recalled.as_deref()));
    let is_withheld = |found: &[brief::Recollection]| found.iter().any(|one| one.is_of_others);
    let projects = brief::list_mentioned_projects(&world.memory.documents, world.foreign_chat(), &words);
    let to_read = ToRead {
        project: !projects.is_empty(),
        withheld: exchanges.iter().any(|entry| entry.taint.is_some()) || recalled.as_deref().is_some_and(is_withheld),
    };
    (cycle.system, cycle.tools) = build_fixed_parts(session, world, &words, to_read);
    let is_short = session.context.model.is_small();
    let files =
        attached::read_files(session, &messages, Allowance::from_conversation(&[], session.context.config.images_max))?;
    let (done_already, done_after) = list_lasting_effects(session, &ids)?;
    let similar_work = recordings::render_similar_work(session, cycle, &ids, meant.flatten().as_ref())?;
    let raw = brief::render_opening(&brief::Brief {
        wake_id: &cycle.id,
        now: world.clock.now,
        tz: world.clock.tz,
        reasons: &cycle.reasons,
        done_already: &done_already,
        person_commits,
        exchanges,
        messages: &messages,
        files: &files,
        documents: &world.memory.documents,
        recalled: recalled.as_deref(),
        rate: token_rate::read_rate(session)?,
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
        taint: taint::join_origins(
            taint::find_origins(&messages, &files).into_iter().chain(done_after).chain(work.taint.clone()),
        ),
        // fault end: whoever-goes-wakes-work
    })
}

/// Builds the fixed parts of a conversation with the current model, given words about its subject.
fn build_fixed_parts(session: &Session<'_>, world: &World, words: &str, to_read: ToRead) -> (String, String) {
    let redactor = session.context.redactor;
    let orders = world.memory.documents.text(memory::CLAUDE);
    let is_short = session.context.model.is_small();
    let system =
        if is_short { brief::render_short_system() } else { brief::render_system(&orders, &world.memory.skills) };
    let system = redactor.redact_json(&system);
    let tooling = session.tooling();
    let seen = tooling.registry.filter_visible(world.tool_view());
    let offered = match &world.cycle.assignment {
        Some(work) => seen.render_job_offer(work, words, to_read),
        None => seen.render_offer(words, to_read),
    };
    // Definitions from servers are in their own words, and a server knows the keys given to it. Our own definitions contain no secrets.
    // fault: servers-definitions-believed-hold
    let tools = if tooling.servers.servers.is_empty() { offered } else { redactor.redact_json(&offered) };
    (system, tools)
}

/// Builds the fixed parts for a cycle begun by another model.
pub(crate) fn rebuild_fixed_parts(
    session: &Session<'_>,
    cycle: &NewCycle,
    world: &World,
    state: &Cycle,
) -> Result<(String, String), StoreError> {
    let queued = session.store.inbox().list_queued_messages()?;
    let said = queued.iter().filter(|message| state.messages.contains(&message.id));
    let planned = state.plan.iter().flat_map(|plan| plan.steps.iter().map(|step| step.what.as_str()));
    let words = cycle.reasons.iter().map(String::as_str).chain(said.map(|message| message.text.as_str()));
    let words = words.chain(planned).collect::<Vec<_>>().join("\n");
    let shows = |what| state.conversation.messages.first().is_some_and(|opening| opening.contains(what));
    let to_read = ToRead { withheld: shows("withheld="), project: shows("<projects ") };
    Ok(build_fixed_parts(session, world, &words, to_read))
}

/// Returns the exchanges since the chat's fresh start, without late answers to earlier messages, in the messages' order.
fn select_since_fresh_start<'e>(
    session: &Session<'_>,
    cycle: &NewCycle,
    exchanges: &'e [Exchange],
) -> Result<Cow<'e, [Exchange]>, StoreError> {
    let Some(chat) = cycle.chat else { return Ok(exchanges.into()) };
    let Some(start) = session.store.inbox().fresh_start(chat, cycle.thread_id)? else { return Ok(exchanges.into()) };
    let old = exchanges.iter().rposition(|exchange| start.is_after(exchange)).map_or(0, |last| last + 1);
    let late = session.store.inbox().answers_to_the_past(start, chat)?;
    let since = exchanges.iter().skip(old).filter(|said| said.from.is_some() || !late.contains(&said.row));
    Ok(since.cloned().collect())
}

/// Lists the lasting effects of earlier cycles that worked on these messages and were given up. The next cycle must not repeat them. Files
/// don't count, since they are on separate branches. Also returns the taints of those cycles, because their receipts may contain untrusted
/// text.
fn list_lasting_effects(session: &Session<'_>, messages: &[i64]) -> Result<(Vec<String>, BTreeSet<String>), WakeError> {
    let (mut done, mut after) = (Vec::new(), BTreeSet::new());
    for row in session.store.cycles().list_abandoned_cycles(messages)? {
        let id = &row.cycle.id;
        let journal = match session.store.journal().read_journal(id) {
            Err(StoreError::Damaged(_)) => {
                done.push(format!("Unknown effects (the record of the wake {id}, which was given up, can't be read)"));
                continue;
            }
            journal => journal?,
        };
        let lasting = list_lasting_receipts(&journal, &session.tooling().registry);
        if !lasting.is_empty() {
            let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
            after.extend(state.taints);
        }
        done.extend(lasting.iter().map(|what| format!("{what} (in the wake {id}, which was given up)")));
    }
    Ok((done, after))
}

/// Joins the words about a cycle's subject: its messages and its reasons.
fn join_subject_words(reasons: &[String], observation: &Situation, messages: &[i64]) -> String {
    let said = observation.messages.iter().filter(|message| messages.contains(&message.id));
    let said = said.flat_map(|message| [Some(message.text.as_str()), message.quoted.as_deref()]).flatten();
    reasons.iter().map(String::as_str).chain(said).collect::<Vec<_>>().join("\n")
}

/// Describes the documents that exist but can't be read as text.
fn list_unreadable_documents(repo: &Repo) -> Vec<String> {
    let errors = memory::DOCUMENTS.iter().filter_map(|path| repo.check_text(path).err());
    errors.filter(RepoError::is_file_fault).map(|error| format!("Could not be read: {error}.")).collect()
}
