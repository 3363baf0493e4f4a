//! Calls from outside a conversation, by an MCP client (`wake mcp`).
//!
//! A reading call is judged, answered at once, and leaves no trace; one that would ask is refused, because no person waits there. A
//! changing call becomes a cycle whose one turn the client has taken, with the same lock and fence, journal, policy, approvals and commit
//! as any other. A client's model may have read anything, so such a cycle counts as tainted: facts go into quarantine, and lasting effects
//! ask.

use std::{rc::Rc, time::Duration};

use serde_json::{Value, json};

use reveille_base::types::{Effect, Stop, Usage};
use reveille_git::Repo;
use reveille_index::embed::Meaning;
use reveille_memory as memory;
use reveille_policy as policy;
use reveille_policy::{Circumstances, Decision, Reach, Risk, Subject, Verdict, What};
use reveille_store::{
    Entry, HEAD_SEEN, Incoming, Store,
    wake_lock::{LockError, WakeLock, takeover, waker::Waker},
};
use reveille_tools::{
    Outcome, READ, Registry, World,
    mcp::{
        client::{self, settings::Settings},
        server::Unread,
    },
    unwrap_call,
};

use crate::{
    context::{Context, Report, WakeError},
    decide::{
        budget::Budget,
        machine::{Cycle, build_user_message},
        uptake::OUTSIDE,
        verify::Account,
    },
    maintain::{ready, sync, trouble},
    run::{
        begin::{live, prepare},
        finish, record, wake,
    },
    session::{Live, Next, Session},
    sharing,
    tooling::{Means, Tooling},
};

/// The origin of the call's content.
const TAINT: &str = "an MCP client";
/// The id of the one call.
const CALL: &str = "mcp_1";
/// How long to wait for another wake.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of messages in `queue_list`.
const MAX_LISTED: usize = 50;

/// The registry's tools offered to a client. Tools of a conversation (plans, notes) are useless in a single call.
const OFFERED: [&str; 14] = [
    "memory_read",
    "memory_search",
    "remember",
    "forget",
    "task_list",
    "task_add",
    "task_update",
    "task_touch",
    "task_done",
    "task_move",
    "reminder_list",
    "reminder_set",
    "reminder_done",
    REPLY,
];
const REPLY: &str = "reply";
const QUEUE_LIST: &str = "queue_list";

/// The result for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The text for its model.
    pub text: String,
    /// True if the call failed.
    pub is_error: bool,
}

impl Told {
    fn from_error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

impl From<Outcome> for Told {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(done) => Self { text: done.content, is_error: done.is_failure },
            Err(refusal) => Self::from_error(refusal.to_string()),
        }
    }
}

/// Returns the definitions of the callable tools, in the protocol's form.
pub fn list_tools(context: Context<'_>) -> Vec<Value> {
    let registry = Tooling::read(context).registry;
    let names: Vec<&str> = OFFERED.into_iter().filter(|name| *name != REPLY).collect();
    // A client applies the hints to all verbs of a tool.
    let all_are = |offered: &str, effects: &[Effect]| {
        let verbs = names.iter().filter_map(|name| registry.get(name)).filter(|tool| tool.offered_as() == offered);
        verbs.into_iter().all(|tool| effects.contains(&tool.effect))
    };
    let definition = |tool: Value| {
        let field = |name: &str| tool.get(name).cloned().unwrap_or_default();
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let repeats = all_are(name, &[Effect::Read, Effect::Idempotent]);
        json!({
            "name": name, "description": field("description"), "inputSchema": field("input_schema"), "annotations":
                {"readOnlyHint": all_are(name, &[Effect::Read]), "idempotentHint": repeats, "openWorldHint": false},
        })
    };
    let mut tools: Vec<Value> = registry.list_definitions(&names).into_iter().map(definition).collect();
    tools.push(json!({
        "name": REPLY,
        "description": "Answer a message of the queue (`queue_list` shows them). It is delivered to the chat it came from.",
        "inputSchema": {"type": "object", "required": ["message", "text"], "additionalProperties": false, "properties": {
            "message": {"type": "integer", "description": "The message's number."},
            "text": {"type": "string", "description": "The answer, in Markdown."},
        }},
        "annotations": {"readOnlyHint": false, "idempotentHint": false, "openWorldHint": false},
    }));
    tools.push(json!({
        "name": QUEUE_LIST,
        "description": "List the messages that wait for an answer, oldest first, with their numbers.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
    }));
    tools
}

/// Carries a call out. `input` is a raw JSON object.
///
/// # Errors
/// If the workspace, the database or the repository can't be used. The next wake resumes a started call.
pub async fn call_tool(context: Context<'_>, store: &mut Store, name: &str, input: &str) -> Result<Told, WakeError> {
    let registry = Tooling::read(context).registry;
    if name == QUEUE_LIST {
        let world = build_reading_world(context, store)?;
        // fault: queue-shown-whatever-rules
        return Ok(match find_refusal(queue_verdict(&world)) {
            Some(why) => Told::from_error(context.redactor.redact(&why)),
            None => Told { text: render_queue(context, store)?, is_error: false },
        });
    }
    if let Some(refusal) = Registry::no_verb(name, input) {
        return Ok(Told::from(Err(refusal)));
    }
    let verb = unwrap_call(name, input);
    let (name, input) = verb.as_ref().map_or((name, input), |(name, input)| (name.as_str(), input.as_str()));
    match registry.get(name).filter(|_| OFFERED.contains(&name)).map(|tool| tool.effect) {
        None => Ok(Told::from_error(format!("There is no tool {name:?} here."))),
        Some(Effect::Read) => {
            let world = build_reading_world(context, store)?;
            // fault: client-reads-isnt-judged
            let told = match registry.judge(name, input, &world, Some(TAINT)).and_then(find_refusal) {
                Some(why) => Told::from_error(why),
                None => Told::from(registry.call(name, input, &world)),
            };
            crate::context::check_readable(&world.memory.documents)?;
            Ok(Told { text: context.redactor.redact(&told.text), ..told })
        }
        Some(_) => run_changing_call(context, store, name, input).await,
    }
}

/// Returns the reason to refuse a reading call. `None` if it is allowed. A call that would ask is refused too, because nobody waits for the
/// answer.
fn find_refusal(verdict: Verdict) -> Option<String> {
    let Verdict { decision, reasons, .. } = verdict;
    let why = reasons.join(" ");
    match decision {
        Decision::Allow => None,
        Decision::Deny => Some(format!("The policy doesn't allow this: {why} Nothing was read.")),
        Decision::Ask => Some(format!(
            "This needs approval, and nobody can be asked during a reading call: {why} Nothing was read. Your person can read it at their \
             machine, or change policy.toml."
        )),
    }
}

/// Returns the policy's verdict on reading the queue, which no conversation tool does.
fn queue_verdict(world: &World) -> Verdict {
    let subject = Subject {
        tool: QUEUE_LIST,
        risk: Risk::Safe,
        effect: Effect::Read,
        is_free: false,
        reach: Reach::Within,
        what: What::Plain,
        arguments: "{}",
    };
    let circumstances = Circumstances {
        autonomy: world.means.autonomy,
        taint: Some(TAINT),
        is_sandboxed: true,
        uncovered: None,
        tainted_write: None,
    };
    policy::judge(&subject, &world.means.rules, &circumstances)
}

/// Lists the waiting messages, one per line.
fn render_queue(context: Context<'_>, store: &Store) -> Result<String, WakeError> {
    let queued = store.inbox().list_queued_messages()?;
    let line = |message: &Incoming| {
        let at = message
            .received_at
            .map(|at| at.with_timezone(&context.config.timezone).format("%Y-%m-%d %H:%M").to_string());
        let from = message.sender_name.as_deref().unwrap_or("somebody");
        let text = crate::decide::brief::clip(&message.text, 500).replace('\n', " ");
        format!("message {}, {}, {from} in chat {}: {text}", message.id, at.unwrap_or_default(), message.chat)
    };
    let mut lines: Vec<String> = queued.iter().take(MAX_LISTED).map(line).collect();
    match queued.len() {
        0 => lines.push("No message waits.".to_owned()),
        n if n > MAX_LISTED => lines.push(format!("({} more wait.)", n - MAX_LISTED)),
        _ => {}
    }
    Ok(context.redactor.redact(&lines.join("\n")))
}

/// Builds the world of a reading call, without a chat or messages.
///
/// # Errors
/// The store's errors.
pub fn build_reading_world(context: Context<'_>, store: &Store) -> Result<World, WakeError> {
    let (config, now) = (context.config, context.clock.now());
    let loaded = policy::load(&config.policy_path(), config.home.as_deref());
    let shelter = Rc::new(client::build_shelter(config, &loaded.rules, &Settings::for_workspace(config)));
    let mut world = World::new(config, context.version, now, loaded.rules, shelter);
    OUTSIDE.clone_into(&mut world.cycle.model);
    world.cycle.taint = Some(TAINT.to_owned());
    world.conversation.other_local_chats = store.chats().local_chats()?.into_iter().collect();
    world.conversation.attachments.dir.clone_from(&config.media_dir);
    world.memory.reminders = store.reminders().list_reminders()?;
    world.memory.meaning = Meaning::new(config, context.redactor, Budget::read(store, config, now)?.caps());
    world.unasked.tell_per_day = 0;
    world.unasked.unwoken = Waker::load(config, now).render_warning(config);
    Ok(world)
}

/// Runs a changing call as a cycle, under the lock.
async fn run_changing_call(
    context: Context<'_>,
    store: &mut Store,
    name: &str,
    input: &str,
) -> Result<Told, WakeError> {
    if let Some(stopped) = store.chats().find_stop_order()? {
        return Ok(Told::from_error(format!(
            "{} Nothing was done.",
            crate::stop::render_notice(stopped, context.config.timezone)
        )));
    }
    let Some(lock) = wait_for_lock(context).await? else {
        return Ok(Told::from_error("Another wake is at work. Nothing was done; try again in a while."));
    };
    let sharing = match sharing::take(context, store)? {
        Ok(sharing) => sharing,
        Err(others) => return Ok(Told::from_error(format!("{others} Nothing was done; try again in a while."))),
    };
    let mut report = Report::default();
    let means = Means::from_config(context.config);
    let mut session = Session::begin(context, &means, store, (lock, sharing), OUTSIDE, &mut report)?;
    let ran = match wake::register_holder(&mut session) {
        Ok(()) => run_outside_call(&mut session, name, input).await,
        Err(error) => Err(error),
    };
    trouble::note_trouble(&mut session, ran.as_ref().err()).await;
    let ended = session.end();
    let told = ran?;
    ended?;
    Ok(told)
}

/// Acquires the wake lock. `None` if another wake doesn't end within [`LOCK_WAIT`].
async fn wait_for_lock(context: Context<'_>) -> Result<Option<WakeLock>, WakeError> {
    let until = tokio::time::Instant::now() + LOCK_WAIT;
    loop {
        match takeover::acquire(&context.config.lock_path(), context.config.stale_lock) {
            Ok(taken) => return Ok(Some(taken.lock)),
            Err(LockError::Held(_) | LockError::Stuck { .. }) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(LockError::Held(_) | LockError::Stuck { .. }) => return Ok(None),
            Err(error) => return Err(WakeError::Lock(error)),
        }
    }
}

/// Extracts the message answered by a call of `reply`. The tool itself answers the messages of its cycle.
fn parse_answered_message(input: &str) -> Result<(i64, String), Told> {
    let mut arguments: Value = serde_json::from_str(input).unwrap_or_default();
    let message =
        arguments.as_object_mut().and_then(|arguments| arguments.remove("message")).and_then(|id| id.as_i64());
    match message {
        Some(message) => Ok((message, arguments.to_string())),
        None => {
            Err(Told::from_error("message is missing: the number of the message that is answered. Nothing was done."))
        }
    }
}

async fn run_outside_call(session: &mut Session<'_>, name: &str, input: &str) -> Result<Told, WakeError> {
    let repo = prepare_repo(session)?;
    let (answered, input) = match (name, parse_answered_message(input)) {
        (REPLY, Ok((message, input))) => (Some(message), input),
        (REPLY, Err(told)) => return Ok(told),
        _ => (None, input.to_owned()),
    };
    let queued = session.store.inbox().list_queued_messages()?;
    let open = session.store.cycles().open_cycles()?;
    let is_free = |message: &&Incoming| {
        let taken = message.cycle_id.as_ref().is_some_and(|id| open.iter().any(|row| row.cycle.id == *id));
        Some(message.id) == answered && !taken && !message.awaits_files
    };
    let seen: Vec<&Incoming> = queued.iter().filter(is_free).collect();
    if let (Some(message), true) = (answered, seen.is_empty()) {
        return Ok(Told::from_error(format!(
            "Message {message} doesn't wait, or somebody is at it. Nothing was done; `queue_list` shows what waits."
        )));
    }
    let mut cycle = session.new_cycle(&[], OUTSIDE)?;
    cycle.reasons = vec![format!("an MCP client called {name}")];
    (cycle.chat, cycle.thread_id) =
        seen.first().map_or((None, None), |message| (Some(message.chat), message.thread_id));
    let ids: Vec<i64> = seen.iter().map(|message| message.id).collect();
    let mut account = Account::default();
    sync::take_in_person_edits(session, &repo, &mut account)?;
    session.refresh_models()?;
    let lineup = session.models();
    let mut world = prepare::build_world(session, &repo, &cycle, &lineup, (&queued, &ids), &mut account)?;
    world.cycle.taint = Some(TAINT.to_owned());
    // Tools write nothing themselves, so an impossible call leaves no cycle behind.
    let tooling = session.tooling();
    let registry = &tooling.registry;
    let verdict = registry.judge(name, &input, &world, Some(TAINT));
    if let Some(verdict) = verdict.filter(|verdict| verdict.decision == Decision::Deny) {
        let why = verdict.reasons.join(" ");
        return Ok(Told::from_error(format!("The policy doesn't allow this: {why} Nothing was done.")));
    }
    let tried = registry.call(name, &input, &world);
    crate::context::check_readable(&world.memory.documents)?;
    if let Err(refusal) = tried {
        let why = refusal.to_string();
        return Ok(Told::from_error(why));
    }
    let plan_file = session.open_plan_file(&cycle, &[])?;
    let opening = Entry::Said {
        raw: build_user_message("An MCP client calls a tool of yours."),
        messages: ids,
        handles: Vec::new(),
        head: None,
        taint: Some(TAINT.to_owned()),
    };
    if !session.store.cycles_mut().begin_message_cycle(&cycle, &opening, &seen)? {
        session.remove_plan_file(&plan_file);
        return Ok(Told::from_error("The message was changed this very moment. Nothing was done; look at it again."));
    }
    let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
    state.apply(&opening);
    let (id, exec) = (cycle.id.clone(), session.build_exec(&world));
    let mut live = Live::new(cycle, state, world, plan_file, account, exec);
    record::record_entry(session, &mut live, &build_turn(name, &input), &[])?;
    let _: Next = live::drive_cycle(session, &repo, live).await?;
    let told = read_result(session, &id)?;
    // The call is done and committed; a later failure is no error of the call.
    let is_wanted = sync::has_due_work(session, &repo);
    if let Err(error) = is_wanted.and_then(|is| if is { Ok(false) } else { sync::run_slow_work(session, &repo) }) {
        let why = session.context.redactor.redact(&error.to_string());
        tracing::warn!(%why, "what comes after a call did not work");
    }
    Ok(told)
}

/// Opens the repository and completes a killed wake's changes.
fn prepare_repo(session: &mut Session<'_>) -> Result<Repo, WakeError> {
    let repo = ready::open_repo(session)?;
    repo.housekeeping().remove_stale_locks();
    ready::finish_interrupted_commit(session, &repo)?;
    if session.store.maintenance().find_handled_value(HEAD_SEEN)?.is_none() {
        finish::mark_head_as_seen(session, &repo)?;
    }
    ready::clear_plan_files(session)?;
    Ok(repo)
}

/// Reads the call's result from the journal.
fn read_result(session: &Session<'_>, cycle_id: &str) -> Result<Told, WakeError> {
    let outcome = session.store.journal().read_journal(cycle_id)?.into_iter().find_map(|entry| match entry {
        Entry::Outcome { content, is_error, .. } => Some(Told { text: content, is_error }),
        _ => None,
    });
    let asked = session.store.approvals().find_call_approval(cycle_id, CALL)?;
    Ok(match (outcome, asked) {
        (Some(told), _) => told,
        (None, Some(question)) => Told::from_error(format!(
            "Not done yet: the person is asked (question {}; `wake approvals list` at their machine, or a button in their chat). If \
             they agree it is done by itself, exactly as called; don't call again.",
            question.id
        )),
        (None, None) => {
            let why = session.report.error.as_deref().unwrap_or("it was interrupted");
            Told::from_error(format!("Not done yet: {why}. It is kept, and continues at the next wake."))
        }
    })
}

/// Builds the only turn of such a cycle.
fn build_turn(name: &str, input: &str) -> Entry {
    let input: Value = serde_json::from_str(input).unwrap_or_else(|_| json!({}));
    let call = json!([{"type": "tool_use", "id": CALL, "name": name, "input": input}]);
    Entry::Turn { content: call.to_string(), stop: Stop::ToolUse, usage: Usage::default() }
}

/// Lists the paths of the memory readable as resources.
///
/// # Errors
/// The reason why they aren't shown.
pub fn memory_paths(context: Context<'_>, store: &Store) -> Result<Vec<String>, Unread> {
    let world = build_reader(context, store, &json!({}))?;
    Ok(world.memory.documents.list().into_iter().filter(|path| is_resource(path)).collect())
}

/// Reads one of these documents.
///
/// # Errors
/// If it is missing, or the reason why it isn't shown.
pub fn memory_text(context: Context<'_>, store: &Store, path: &str) -> Result<String, Unread> {
    let world = build_reader(context, store, &json!({ "path": path }))?;
    let text = world.memory.documents.get(path).filter(|_| is_resource(path)).ok_or(Unread::Missing)?;
    Ok(context.redactor.redact(&text))
}

fn is_resource(path: &str) -> bool {
    // Names of documents imported from other programs are untrusted text.
    path.starts_with("memory/") && !memory::is_imported(path) || path == memory::CLAUDE
}

/// Builds the world of a resource's reader, unless the policy forbids reading. Resources are read as `memory_read` reads.
fn build_reader(context: Context<'_>, store: &Store, input: &Value) -> Result<World, Unread> {
    let why = |why: &str| Unread::Refused(context.redactor.redact(why));
    let world = build_reading_world(context, store).map_err(|error| why(&error.to_string()))?;
    let verdict = Tooling::read(context).registry.judge(READ, &input.to_string(), &world, Some(TAINT));
    // fault: resources-arent-judged
    verdict.and_then(find_refusal).map_or(Ok(world), |refusal| Err(why(&refusal)))
}
